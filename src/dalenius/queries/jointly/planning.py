"""A joint question as one party sees it: planned and priced from its own policy and ledger, without the data.

All that decides the noise must be the same at all parties, and nothing of it may come from one party's data. So limits
that `protect` found do not count here: they must be declared.

Sums are counted modulo a prime. What comes out is right while it stays below half of it: a party brings at most `room`
into each cell (it is cut off there, which changes no sensitivity), and a question for which that might cut off
something from 10⁸ people is counted more coarsely or refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.accounting import parameters
from dalenius.accounting.events import Composed
from dalenius.accounting.guarantees import ZCDP
from dalenius.errors import BudgetError, InputError, NotAllowedError, QuestionRefusedError
from dalenius.measuring.measures import count_in
from dalenius.measuring.plan import Limits, Plan, Table
from dalenius.mechanisms.summed_gaussian import SummedGaussian
from dalenius.queries.ask import Ask
from dalenius.queries.planning import OpenTables, plan_ask
from dalenius.releasing.opened import Opened
from dalenius.releasing.snapshot import Snapshot
from dalenius.tables.policy import JOINT

if TYPE_CHECKING:
    from dalenius.accounting.events import Event
    from dalenius.releasing.leaving import Asker
    from dalenius.tables.policy import JointSpec
    from dalenius.tables.registry import Version

PEOPLE = 10**8
"""So many people may be in one party's table with nothing cut off."""
ADDED = frozenset({"rows", "sum", "moments"})
"""Families whose measures are sums over units: those of all parties' tables are those of all tables in one."""


@dataclass(frozen=True)
class JointAsk:
    """What is asked of all parties.

    Attributes:
        question: SQL.
        epsilon: Its price, in each party's ledger.
        me: This party.
        parties: All of them, in the order of the run.
        threshold: So many together learn nothing but the answer.
        confidence: Of the errors.
    """

    question: str
    epsilon: float
    me: str
    parties: tuple[str, ...]
    threshold: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", parameters.epsilon(self.epsilon))
        if self.me not in self.parties or len(self.parties) < 2:
            raise InputError("These are no parties.", why="This one is not among them.", fix="Name the others.")
        most = len(self.parties) - 1
        least = max(1, most // 2)
        if not least <= self.threshold <= most:
            raise InputError(
                f"A threshold of {self.threshold} does not fit {len(self.parties)} parties.",
                why=f"From {least} to {most} parties may collude: noise is made for the others.",
                fix=f"Give --threshold {least}, or leave it out.",
            )


@dataclass(frozen=True)
class JointPlan:
    """A joint question, planned and priced at one party.

    Attributes:
        ask: What was asked.
        plan: What will be measured here; its integers are counted as all parties count them.
        snapshot: What is read.
        spec: This data set's [joint].
        overlap: In so many parties one person may be.
        rho: What ε comes to here, under this budget's own δ.
        mechanisms: The noise of each measure.
    """

    ask: JointAsk
    plan: Plan
    snapshot: Snapshot
    spec: JointSpec
    overlap: int
    rho: float
    mechanisms: tuple[SummedGaussian, ...]

    @property
    def event(self) -> Event:
        """What is charged."""
        events: tuple[Event, ...] = tuple(each.event for each in self.mechanisms)
        return events[0] if len(events) == 1 else Composed(events)

    @property
    def room(self) -> tuple[int, ...]:
        """What one party may bring into a cell at most, by measure."""
        return tuple(room_of(each, len(self.ask.parties)) for each in self.mechanisms)


def room_of(mechanism: SummedGaussian, parties: int) -> int:
    """Half of the prime 2⁶¹ − 1, without what noise reaches, shared among the parties."""
    return (2**60 - 1 - mechanism.reach) // parties


def plan_joint(asker: Asker, ask: JointAsk) -> JointPlan:
    """The plan; raises for whatever cannot be asked. Never touches the data.

    Raises:
        DaleniusError: It may not be asked, or the budget is spent. Nothing is charged.
    """
    with asker.own_work():
        opened = Opened.of(asker)
        check_partners(ask, opened.versions)
        if not opened.budgets:
            raise _alone("Nothing in force here has a section [joint].")
        among = OpenTables.of(asker, opened)
        tables = {name: _declared(each) for name, each in among.tables.items()}
        found = plan_ask(
            asker,
            Ask(ask.question, ask.epsilon, confidence=ask.confidence, limits=Limits(search=0)),
            among=replace(among, tables=tables),
        )
    plan, snapshot = found.plan, found.snapshot
    spec = spec_of(snapshot.dataset, opened.versions)
    if spec is None:
        raise _alone(f"No policy of the data set {snapshot.dataset!r} has a section [joint].")
    _check_partners(ask, spec)
    _check_shape(plan)
    overlap = min(spec.overlap or len(ask.parties), len(ask.parties))
    rho = plan.table.budget.filter().price(ask.epsilon, 0.0)
    if not isinstance(rho, ZCDP):
        raise NotAllowedError(
            "Joint questions need a budget under zCDP.",
            why="The noise that parties make together is discrete Gaussian, which pure ε cannot price.",
            fix="Take a data set whose budget has a delta.",
        )
    plan, mechanisms = _with_noise(plan, ask, Fraction(rho.rho), overlap)
    return JointPlan(ask, plan, snapshot, spec, overlap, rho.rho, mechanisms)


def check_partners(ask: JointAsk, versions: Mapping[str, Version]) -> None:
    """Refuses parties that no policy here names, before anything is said of tables."""
    specs = [each.policy.joint for each in versions.values() if each.policy.joint is not None]
    others = {each for each in ask.parties if each != ask.me}
    if not any(others <= set(each.partners) for each in specs):
        raise _alone("No policy here names all of them as partners.")


def spec_of(dataset: str, versions: Mapping[str, Version]) -> JointSpec | None:
    """The [joint] of a data set."""
    specs = (each.policy.joint for each in versions.values() if each.dataset == dataset)
    return next((each for each in specs if each is not None), None)


def _check_partners(ask: JointAsk, spec: JointSpec) -> None:
    strangers = sorted({each for each in ask.parties if each != ask.me} - set(spec.partners))
    if strangers:
        raise _alone(f"[joint] of this data set does not name {', '.join(strangers)}.")


def _alone(why: str) -> NotAllowedError:
    return NotAllowedError(
        "This question may not be asked with these parties.",
        why=why,
        fix='The owner adds [joint] with partners = ["…"] and an epsilon to the policy, and protects it again.',
    )


def _declared(table: Table) -> Table:
    """A table of which nothing is known but what its owner declared."""
    through = {name: _declared(each) for name, each in table.through.items()}
    return replace(table, found=None, through=through)


def _check_shape(plan: Plan) -> None:
    if plan.selection is not None:
        raise QuestionRefusedError(
            "A joint question has public keys only.",
            why="Finding keys privately would look at each party's rows apart.",
            fix="Declare the keys in every party's policy, the same ones, or group by something else.",
        )
    if plan.searched:
        raise QuestionRefusedError(
            "A joint question finds no limits of its own.",
            why="They would follow from each party's rows apart.",
            fix="Take the option out, and declare limits in every party's policy, the same ones.",
        )
    others = sorted({each.kind for each in plan.statistics} - ADDED)
    if others:
        raise QuestionRefusedError(
            f"Joint questions have no {', '.join(others)} yet.",
            why="COUNT, SUM, AVG and what follows from sums of squares add up over parties; these do not.",
            fix="Ask for counts, sums, averages, variances.",
        )


def _with_noise(plan: Plan, ask: JointAsk, rho: Fraction, overlap: int) -> tuple[Plan, tuple[SummedGaussian, ...]]:
    """The plan counted as finely as the prime has room for, and the noise of each measure.

    A person in k parties changes the sum by at most k times what one table may change by: Δ2² becomes k²Δ2².
    """

    def priced(counted: Plan) -> tuple[SummedGaussian, ...]:
        return tuple(
            SummedGaussian.priced(
                rho * each.share,
                squared_sensitivity=overlap**2 * each.sensitivity,
                dimension=max(1, len(counted.cells)) * each.width,
                parties=len(ask.parties),
                colluding=ask.threshold,
                neighbors=counted.neighbors,
            )
            for each in counted.measures
        )

    bits = [each.bits for each in plan.measures]
    while True:
        counted = count_in(plan, bits)
        mechanisms = priced(counted)
        tight = [
            at
            for at, (each, mechanism) in enumerate(zip(counted.measures, mechanisms, strict=True))
            if room_of(mechanism, len(ask.parties)) < PEOPLE * each.limit
        ]
        if not tight:
            return counted, mechanisms
        if not all(bits[at] for at in tight):
            raise QuestionRefusedError(
                "The numbers of this question are too large for a joint sum.",
                why=f"Sums are counted modulo 2⁶¹ − 1, and {PEOPLE:,} people at a party's limit would not fit.",
                fix="Declare a coarser step or a lower limit at all parties, or give a larger epsilon.",
            )
        bits = [each - (at in tight) for at, each in enumerate(bits)]


def check_left(asker: Asker, planned: JointPlan) -> None:
    """Refuses before anybody is called what the ledger would refuse: others would be charged in vain."""
    left = asker.remaining(planned.snapshot.dataset, planned.plan.periods)
    if planned.ask.epsilon > min(each["epsilon"] for each in left.values()):
        raise BudgetError(
            f"The budget for joint questions has no ε = {planned.ask.epsilon:g} left here.",
            why="[joint] epsilon and [budget] epsilon bound what all of them may spend together.",
            fix=f"Ask with less; what is left is shown by 'dalenius budget --analyst {JOINT}'.",
        )
