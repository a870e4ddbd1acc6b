"""The report: what a home promised, what was spent and done, and whether its history holds; for an outside reader.

Everything is told from the entries of the history themselves, up to the one that was verified last: no number in it is
of another moment than the head that stands in it. Nothing here looks at data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dalenius._version import __version__
from dalenius.app.balances import share_spent
from dalenius.errors import DaleniusError, LedgerCorruptError
from dalenius.ledger.budgets import GROUPS, Balance, Budget
from dalenius.ledger.verification import Verified, verify
from dalenius.tables.difference import difference
from dalenius.tables.registry import Version

if TYPE_CHECKING:
    from dalenius.ledger.chain import Entry
    from dalenius.ledger.ledger import Ledger

_FINEST = 240  # points of a line; more could not be told apart
EVERYBODY, OWNER, ANALYST = "everybody", "owner", "analyst"
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, DaleniusError)


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
    """What was spent means for several units together."""

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
    granted: int


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


def report(ledger: Ledger, now: datetime | None = None) -> Report:
    """Verifies the history, reads it, and tells it.

    A history that does not hold is told as far as it can be read, and said not to hold.
    """
    now = now or datetime.now(UTC)
    try:
        checked = _holds(verify(ledger))
    except LedgerCorruptError as error:
        checked = _broken(ledger, error)
    story = _Story(checked.holds)
    for entry in ledger.entries():
        if checked.holds and entry.number > checked.entries:
            break  # written after the verification
        story.add(entry)
    return Report(
        made=now.isoformat(timespec="seconds"),
        program=f"dalenius {__version__}",
        verification=checked,
        begun=story.begun,
        promises=tuple(story.promises()),
        spending=tuple(story.spending()),
        questions=story.questions(),
        failures=tuple(story.failures),
        policies=tuple(story.policies),
        data=tuple(story.data),
        epochs=tuple(story.new_people),
        actions=tuple(story.actions),
        publications=tuple(story.publications),
        alarms=tuple(story.alarms),
        mechanisms=tuple(Use(name, *counts) for name, counts in sorted(story.uses.items())),
        unreadable=tuple(story.unreadable),
    )


def _holds(found: Verified) -> Verification:
    return Verification(True, found.entries, found.head, found.charges, found.releases)


def _broken(ledger: Ledger, error: LedgerCorruptError) -> Verification:
    count, head = 0, ""
    for entry in ledger.entries():
        hashed: object = entry.hash  # of any type, in a file that was changed
        count, head = entry.number, hashed.hex() if isinstance(hashed, bytes) else ""
    return Verification(False, count, head, message=error.message, why=error.why, fix=error.fix)


@dataclass
class _Sum:
    loss: int = 0
    delta: int = 0
    count: int = 0

    def add(self, units: tuple[int, int]) -> None:
        self.loss, self.delta, self.count = self.loss + units[0], self.delta + units[1], self.count + 1

    @property
    def units(self) -> tuple[int, int]:
        return self.loss, self.delta


@dataclass
class _Story:
    """The history, entry by entry; what cannot be read is skipped, and its number kept."""

    holds: bool
    begun: str = ""
    budgets: dict[str, Budget] = field(default_factory=dict)
    caps: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    allotments: dict[tuple[str, str], float] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)
    # By data set, epoch, period, role and analyst.
    sums: dict[tuple[str, int, str, str, str], _Sum] = field(default_factory=dict)
    steps: dict[tuple[str, int], list[tuple[str, tuple[int, int]]]] = field(default_factory=dict)
    charges: dict[int, dict[str, Any]] = field(default_factory=dict)
    answered: int = 0
    granted: int = 0
    failures: list[Failure] = field(default_factory=list)
    policies: list[PolicyVersion] = field(default_factory=list)
    data: list[DataVersion] = field(default_factory=list)
    new_people: list[Epoch] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    publications: list[Action] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    uses: dict[str, tuple[int, int]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    unreadable: list[int] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """The next entry."""
        try:
            data = entry.data
            datetime.fromisoformat(entry.time)
            for name, form in _FORMS.items():
                if name in data and not isinstance(data[name], form):
                    raise TypeError(name)
            self._add(entry, data)
        except _MALFORMED:
            self.unreadable.append(entry.number)

    def _add(self, entry: Entry, data: dict[str, Any]) -> None:
        match entry.kind:
            case "ledger":
                self.begun = entry.time
            case "charge":
                self._charge(entry, data)
            case "answer":
                self.answered += 1
            case "failure":
                charge = self.charges[data["charge"]]
                self.failures.append(
                    Failure(data["charge"], entry.time, charge["dataset"], charge["analyst"], charge["epsilon"])
                )
            case "grant":
                self.granted += 1
                self._spend(self.charges[data["charge"]], ((ANALYST, data["analyst"]),))
            case "policy" | "refresh":
                self._version(entry, data)
            case "epoch":
                self.epochs[data["dataset"]] = data["epoch"]
                self.new_people.append(
                    Epoch(data["dataset"], data["epoch"], entry.number, entry.time, data.get("by", ""), data["reason"])
                )
            case "note" if "alarm" in data:
                self.alarms.append(
                    Alarm(entry.number, entry.time, data.get("dataset", ""), str(data["alarm"]), data.get("charge"))
                )
            case "publication":
                what = ", ".join(f"{name}: {value}" for name, value in data.items() if name != "reason")
                self.publications.append(_action(entry, what, data))
            case _:
                self.actions.append(_action(entry, self._told(entry.kind, entry.time, data), data))

    def _charge(self, entry: Entry, data: dict[str, Any]) -> None:
        who = (ANALYST, data["analyst"]) if data["analyst"] else (OWNER, "")
        self._spend(data, ((EVERYBODY, ""), who))
        self.charges[entry.number] = {name: data[name] for name in _KEPT if name in data}
        dataset, epoch = data["dataset"], data.get("epoch", 0)
        if self.budgets[dataset].period is None:
            total = self.sums[dataset, epoch, "", EVERYBODY, ""]
            self.steps.setdefault((dataset, epoch), []).append((entry.time, total.units))
        counts: dict[str, int] = {}
        for kind, times in _leaves(data["event"]["event"]):
            counts[kind] = counts.get(kind, 0) + times
        for kind, times in counts.items():
            charges, before = self.uses.get(kind, (0, 0))
            self.uses[kind] = charges + 1, before + times

    def _spend(self, charge: dict[str, Any], totals: tuple[tuple[str, str], ...]) -> None:
        loss, delta = (int(each) for each in charge["units"])
        for period in charge["periods"]:
            for role, name in totals:
                place = charge["dataset"], charge.get("epoch", 0), period, role, name
                self.sums.setdefault(place, _Sum()).add((loss, delta))

    def _version(self, entry: Entry, data: dict[str, Any]) -> None:
        before = self.versions.get(data["table"])
        version = Version.from_record(entry, before if entry.kind == "refresh" else None)
        changes = () if before is None else difference(before.policy, version.policy)
        self.versions[version.table] = version
        same_data = before is not None and (before.data_version, before.epoch) == (version.data_version, version.epoch)
        if not same_data:
            self.data.append(
                DataVersion(
                    version.table,
                    version.dataset,
                    version.data_version,
                    version.epoch,
                    len(version.fingerprint.files),
                    entry.number,
                    entry.time,
                    data.get("by", ""),
                    version.reason,
                )
            )
        if entry.kind == "policy" or changes:
            self.policies.append(
                PolicyVersion(
                    version.table,
                    version.dataset,
                    version.version,
                    entry.number,
                    entry.time,
                    version.reason,
                    before is None,
                    tuple(Changed(each.place, str(each)[len(each.place) + 2 :], each.note) for each in changes),
                )
            )

    def _told(self, kind: str, time: str, data: dict[str, Any]) -> str:
        match kind:
            case "budget":
                dataset, budget = data["dataset"], Budget.from_dict(data["budget"])
                before = self.budgets.get(dataset)
                self.budgets[dataset] = budget
                self.caps.setdefault(dataset, []).append((time, budget.epsilon))
                if before is None:
                    return f"{dataset} gets a budget of ε = {budget.epsilon:g}"
                return f"the budget of {dataset} goes from ε = {before.epsilon:g} to {budget.epsilon:g}"
            case "allotment":
                dataset, analyst = data["dataset"], data["analyst"]
                if data["epsilon"] == 0:
                    self.allotments.pop((dataset, analyst), None)
                    return f"{analyst} may spend no more of {dataset}"
                old = self.allotments.get((dataset, analyst))
                self.allotments[dataset, analyst] = data["epsilon"]
                was = f" (before: {old:g})" if old is not None else ""
                return f"{analyst} may spend up to ε = {data['epsilon']:g} of {dataset}{was}"
            case "token" if data["action"] == "revoke":
                return f"token {data['id']}{self.tokens.get(data['id'], '')} is revoked"
            case "token":
                whose = f"analyst {data['analyst']}" if data["analyst"] else f"the {data['role']}"
                self.tokens[data["id"]] = f" of {whose}"
                also = "; answers leave when they are ready, not at a fixed time" if data.get("trusted") else ""
                note = f" ({data['note']})" if data.get("note") else ""
                return f"token {data['id']} is given to {whose}{note}, good until {data['expires'][:10]}{also}"
            case "limits":
                return f"limits of {data['table']} were found privately for data version {data['data_version']}"
            case "closed":
                return f"table {data['table']} is closed to everyone: {data['why']}"
        return ", ".join(f"{name}: {value}" for name, value in data.items() if name != "reason")

    def questions(self) -> Questions:
        charged, failed = len(self.charges), len(self.failures)
        return Questions(charged, self.answered, failed, max(0, charged - self.answered - failed), self.granted)

    def promises(self) -> Iterator[Promise]:
        for dataset, budget in sorted(self.budgets.items()):
            tables = sorted(name for name, version in self.versions.items() if version.dataset == dataset)
            epoch = self.epochs.get(dataset, 0)
            yield Promise(
                dataset,
                tuple(tables),
                budget.unit,
                budget.neighbors.value,
                budget.accounting.value,
                budget.period,
                epoch,
                budget.epsilon,
                budget.delta,
                self.caps[dataset][0][0],
                tuple(self._line(dataset, budget, epoch)),
                tuple(self.caps[dataset]),
            )

    def _line(self, dataset: str, budget: Budget, epoch: int) -> Iterator[tuple[str, float]]:
        steps = self.steps.get((dataset, epoch), [])
        stride = -(-len(steps) // _FINEST)
        for place, (time, units) in enumerate(steps, 1):
            if place % stride == 0 or place == len(steps):
                try:
                    yield time, _balance(budget, units).spent_guarantee.epsilon
                except _MALFORMED:
                    if self.holds:
                        raise

    def spending(self) -> Iterator[Spending]:
        """Everybody before the owner before the analysts, of each data set, epoch and period."""
        places = set(self.sums)
        for dataset in self.budgets:
            epoch = self.epochs.get(dataset, 0)
            periods = {place[2] for place in self.sums if place[:2] == (dataset, epoch)} or {""}
            allotted = [name for each, name in self.allotments if each == dataset]
            for period in periods:
                places.add((dataset, epoch, period, EVERYBODY, ""))
                places.update((dataset, epoch, period, ANALYST, name) for name in allotted)
        order = (EVERYBODY, OWNER, ANALYST)
        for place in sorted(places, key=lambda each: (*each[:3], order.index(each[3]), each[4])):
            try:
                yield self._spending(place)
            except _MALFORMED:
                if self.holds:
                    raise

    def _spending(self, place: tuple[str, int, str, str, str]) -> Spending:
        dataset, epoch, period, role, analyst = place
        budget, found = self.budgets[dataset], self.sums.get(place, _Sum())
        balance = _balance(budget, found.units)
        gone = balance.spent_guarantee
        current = epoch == self.epochs.get(dataset, 0)
        cap = {EVERYBODY: budget.epsilon, OWNER: None, ANALYST: self.allotments.get((dataset, analyst))}[role]
        left = None
        if current and cap is not None:
            whole = self.sums.get((dataset, epoch, period, EVERYBODY, ""), _Sum())
            # an allotment never buys more than there is
            guards = (budget.filter(cap, found.units), budget.filter(units=whole.units))
            left = min(each.remaining_epsilon for each in guards)
        groups = (Group(size, each.epsilon, each.delta) for size in GROUPS if (each := balance.group(size)).delta < 1)
        return Spending(
            dataset,
            epoch,
            period,
            role,
            analyst,
            found.count,
            gone.epsilon,
            gone.delta,
            getattr(balance.spent, "rho", None),
            share_spent(balance),
            cap if current else None,
            left,
            tuple(groups) if role == EVERYBODY and found.count else (),
        )


# What an entry may hold that was not changed by hand; the rest is only ever shown.
_FORMS: dict[str, type | tuple[type, ...]] = {
    "dataset": str,
    "table": str,
    "analyst": str,
    "reason": str,
    "by": str,
    "epsilon": (int, float),
    "epoch": int,
    "data_version": int,
    "version": str,
    "id": str,
    "charge": int,
}
_KEPT = ("dataset", "analyst", "epsilon", "epoch", "periods", "units")


def _balance(budget: Budget, units: tuple[int, int]) -> Balance:
    """So much spent of a whole budget."""
    return Balance(budget, budget.epsilon, budget.filter(units=units).spent, 0.0, 0.0, 0)


def _leaves(event: dict[str, Any], times: int = 1) -> Iterator[tuple[str, int]]:
    """The mechanisms in an event, as it stands in a charge, and how often each was used."""
    times *= int(event.get("times", 1))
    parts = event.get("events") or ([event["event"]] if "event" in event else [])
    if not parts or event["kind"] in {"poisson-sampled", "sampled-without-replacement"}:
        yield event["kind"], times
    for each in parts:
        yield from _leaves(each, times)


def _action(entry: Entry, what: str, data: dict[str, Any]) -> Action:
    return Action(entry.number, entry.time, entry.kind, what, str(data.get("reason", "")))


__all__ = ["Report", "Spending", "report"]
