"""The facts of the report, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

EVERYBODY, OWNER, ANALYST = "everybody", "owner", "analyst"


@dataclass(frozen=True)
class Verification:
    """Whether the history holds; if not, what is wrong."""

    holds: bool
    entries: int
    head: str
    charges: int = 0
    releases: int = 0
    message: str = ""
    why: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Group:
    """What a loss means for several units together."""

    size: int
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Spending:
    """What was spent of one data set in one epoch and period: by all together, by the owner, or by one analyst."""

    dataset: str
    epoch: int
    period: str
    role: str  # everybody, owner or analyst
    analyst: str
    questions: int
    epsilon: float
    delta: float
    rho: float | None
    share: float  # of the data set's budget, in the currency that adds up
    cap: float | None  # the budget or allotment in force; None: none
    left: float | None  # the largest ε that one more question may type; None: of people who are no longer asked about
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True)
class Promise:
    """The budget of one data set, and whom it protects."""

    dataset: str
    tables: tuple[str, ...]
    unit: str
    neighbors: str
    accounting: str
    period: str | None
    epoch: int
    epsilon: float
    delta: float
    since: str
    line: tuple[tuple[str, float], ...]  # when, and the ε spent from then on, by everybody; for budgets without periods
    caps: tuple[tuple[str, float], ...]  # when, and the ε promised from then on
    groups: tuple[Group, ...]  # what the whole budget means for several units; sizes with a δ below 1
    published: str = ""  # that rows were published, and ε no longer bounds what can be learned


@dataclass(frozen=True)
class Changed:
    """One place of a policy that says something else than before."""

    place: str
    what: str
    note: str


@dataclass(frozen=True)
class PolicyVersion:
    """One version of a table's policy."""

    table: str
    dataset: str
    version: str
    entry: int
    time: str
    reason: str
    first: bool
    changes: tuple[Changed, ...]
    by: str = ""


@dataclass(frozen=True)
class DataVersion:
    """The data behind a table's name, from some moment on."""

    table: str
    dataset: str
    data_version: int
    epoch: int
    files: int
    entry: int
    time: str
    by: str
    reason: str


@dataclass(frozen=True)
class Epoch:
    """The people of a data set were declared to be new ones."""

    dataset: str
    epoch: int
    entry: int
    time: str
    by: str
    reason: str


@dataclass(frozen=True)
class Action:
    """Something that the owner did."""

    entry: int
    time: str
    kind: str
    what: str
    reason: str
    by: str = ""


@dataclass(frozen=True)
class Failure:
    """A question that was charged and ended without an answer."""

    entry: int
    time: str
    dataset: str
    analyst: str
    epsilon: float


@dataclass(frozen=True)
class Alarm:
    """Something that went wrong while a question was answered."""

    entry: int
    time: str
    dataset: str
    what: str
    charge: int | None


@dataclass(frozen=True)
class Questions:
    """How questions ended."""

    charged: int
    answered: int
    failed: int
    open: int
    granted: int  # whole answers that another had paid for, as earlier releases gave them
    shared: int = 0  # charged to the asker's allotment alone: made from another's answer


@dataclass(frozen=True)
class Use:
    """How often one kind of mechanism was charged."""

    mechanism: str
    charges: int
    times: int


@dataclass(frozen=True)
class Report:
    """All facts of the report."""

    made: str
    program: str
    verification: Verification
    begun: str
    promises: tuple[Promise, ...]
    spending: tuple[Spending, ...]
    questions: Questions
    failures: tuple[Failure, ...]
    policies: tuple[PolicyVersion, ...]
    data: tuple[DataVersion, ...]
    epochs: tuple[Epoch, ...]
    actions: tuple[Action, ...]
    publications: tuple[Action, ...]
    alarms: tuple[Alarm, ...]
    mechanisms: tuple[Use, ...]
    unreadable: tuple[int, ...]  # entries of a history that does not hold

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)

    def spent(self, dataset: str, role: str = EVERYBODY) -> list[Spending]:
        """What was spent of a data set by those, on the people that it is about now."""
        epoch = next(each.epoch for each in self.promises if each.dataset == dataset)
        return [each for each in self.spending if (each.dataset, each.epoch, each.role) == (dataset, epoch, role)]
