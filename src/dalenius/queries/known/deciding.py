"""Whether a question is known: whether what follows from own answers is as good as what would be paid for.

It is compared by what a preview says of each aggregate, also of those that only HAVING or ORDER BY need: the noise
error of every group (of averages, whose errors follow the size of a group, of the usual one), and the error in all
where that is known of a fresh answer. Where a fresh question would first find its own limits, its error is only bounded
before; it is reckoned then at the limits that the own answers had.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dalenius.measuring.plan import require
from dalenius.queries.accuracy import came_out
from dalenius.queries.known.answers import ALONE, KNOWN, KnownAnswer, shown_answer
from dalenius.queries.known.deriving import derive, releases_of
from dalenius.queries.known.sources import OwnRelease, own_sources, paid_measures
from dalenius.queries.known.workloads import readings
from dalenius.queries.outer.asking import OuterPlanned, plan_any
from dalenius.queries.planning import expectations_of
from dalenius.queries.preview import Choice, known_choice
from dalenius.queries.workloads.known import known_release
from dalenius.queries.workloads.linear import Sums, why_not_linear
from dalenius.releasing.leaving import own_releases

if TYPE_CHECKING:
    from dalenius.measuring.estimates import Estimate
    from dalenius.measuring.expressions import Aggregate
    from dalenius.measuring.plan import Plan
    from dalenius.queries.ask import Ask
    from dalenius.queries.expectations import ExpectedPrice
    from dalenius.queries.expected_answer import ExpectedColumn
    from dalenius.queries.planning import Planned
    from dalenius.queries.postprocess import ReleasedTable
    from dalenius.queries.preview import Preview
    from dalenius.queries.release import Release
    from dalenius.queries.total_intervals import Clipped
    from dalenius.queries.workloads.showing import QuestionReading
    from dalenius.releasing.leaving import Asker, Leaving

_SLACK = 1 + 1e-9
_MOST_CELLS = 2**14  # groups of a question that may follow from others


def known_answer(asker: Asker, ask: Ask, found: Planned | OuterPlanned, leaving: Leaving) -> Release | None:
    """The answer from what this asker has paid for, if it is as good as what would be charged now."""
    if isinstance(found, OuterPlanned) or ask.error is not None or ask.fresh or not asker.free:
        return None
    same = known_release(asker, found, ask.question, leaving.epsilon, ask.confidence)
    if same is not None:
        found.snapshot.check_unchanged()  # as for every stored answer
        return same
    ways = [] if types_limits(ask) else candidates(asker, found, ask.question, ask.confidence)
    if not ways:
        return None
    price = expectations_of(asker, ask, found).at(leaving.epsilon)
    return _first(found, [each for each in ways if is_as_good(each, price)])


def exact_answer(asker: Asker, ask: Ask) -> Release | None:
    """The answer from what this asker has paid for, if it is as exact as was asked for by an error."""
    if ask.error is None or ask.fresh or not asker.free or types_limits(ask):
        return None
    found = plan_any(asker, replace(ask, error=None))
    if isinstance(found, OuterPlanned):
        return None
    ways = candidates(asker, found, ask.question, ask.confidence)
    error = ask.error
    return _first(found, [each for each in ways if came_out(found.plan, error, each.table)])


def types_limits(ask: Ask) -> bool:
    """Whether the asker named limits: whoever wants others than those of the table gets no answer at these."""
    from dalenius.queries.rules.clause import cut_clause

    _, options = cut_clause(ask.question)
    typed: list[object] = [options.rows, options.groups, options.units]
    if ask.limits is not None:
        typed += [ask.limits.rows, ask.limits.groups, ask.limits.units, ask.limits.totals or None, ask.limits.search]
    return any(each is not None for each in typed)


def _first(found: Planned, ways: Sequence[Candidate]) -> Release | None:
    if not ways:
        return None
    found.snapshot.check_unchanged()  # as for every stored answer
    return ways[0].shown()


def with_known(asker: Asker, ask: Ask, found: Planned, told: Preview) -> Preview:
    """The preview with those prices at which the answer follows from what this asker has paid for."""
    if ask.fresh or all(each.known for each in told.choices):
        return told
    ways = [] if types_limits(ask) else candidates(asker, found, ask.question, ask.confidence)
    choices, notes, looked = list[Choice](), list[str](), ask.error is None
    for each in told.choices:  # the lowest price first: where no workload has its answer, none has it at another
        known: ReleasedTable | Release | None = None
        if looked and not each.known:
            known = known_release(asker, found, ask.question, each.epsilon, ask.confidence)
            looked = known is not None
        if known is None and not each.known:
            way = next((one for one in ways if _fits(one, ask, found, each.epsilon)), None)
            known, notes = (None, notes) if way is None else (way.table, [*notes, *way.notes])
        choices.append(each if known is None else known_choice(each, known))
    return replace(told, choices=tuple(choices), notes=tuple(dict.fromkeys((*told.notes, *notes))))


def _fits(candidate: Candidate, ask: Ask, found: Planned, epsilon: float) -> bool:
    if ask.error is not None:
        return came_out(found.plan, ask.error, candidate.table)
    return is_as_good(candidate, require(found.expectations).at(epsilon))


# --- what follows


@dataclass(frozen=True)
class Candidate:
    """An answer that follows from own releases.

    Attributes:
        table: What the question asked to see.
        estimates: Every aggregate's number in every group, also where HAVING or LIMIT leave it out.
        clipped: What limits took from the aggregates of which that is known.
        tighter: At which part of the question's own limits it was measured, at the least.
        shown: Makes the release of it.
        notes: What its limits are, where they are not those that the question would have.
    """

    table: ReleasedTable
    estimates: Mapping[Aggregate, Sequence[Estimate]]
    clipped: Mapping[Aggregate, Clipped]
    tighter: float
    shown: Callable[[], Release]
    notes: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """How noisy it is, for a comparison with others."""
        return sum(each.noise_error or 0.0 for own in self.estimates.values() for each in own)


def candidates(asker: Asker, found: Planned, question: str, confidence: float) -> list[Candidate]:
    """What follows from the asker's own releases, the least noise first. Never touches the data."""
    plan, snapshot = found.plan, found.snapshot
    if why_not_linear(plan) is not None or len(plan.cells) > _MOST_CELLS:
        return []
    sources = own_sources(asker, snapshot.dataset, snapshot.epoch)
    ways = [*_from_questions(asker, found, sources, question, confidence)]
    ways += _from_workloads(asker, found, sources, question, confidence)
    return sorted(ways, key=lambda each: each.error)


def _from_questions(
    asker: Asker, found: Planned, sources: Sequence[OwnRelease], question: str, confidence: float
) -> list[Candidate]:
    plan = found.plan
    numbers = derive(plan, list(paid_measures(sources, plan, found.snapshot, confidence, others=True)))
    if numbers is None:
        return []
    known = KnownAnswer(plan, numbers, confidence)
    used = releases_of(numbers)

    def shown() -> Release:
        charges = [each.charge for each in sources if each.charge.number in used]
        return shown_answer(known, asker, own_releases(asker, charges), question)

    limits = [
        min((each.limit[1] for each in own.sources), default=measure.clip) / max(1, measure.clip)
        for own, measure in zip(numbers, plan.measures, strict=True)
    ]
    return [Candidate(known.table, known.estimates, known.clipped, min(1.0, *limits), shown, known.limits)]


def _from_workloads(
    asker: Asker, found: Planned, sources: Sequence[OwnRelease], question: str, confidence: float
) -> list[Candidate]:
    plan, ways = found.plan, []
    for release, reading in readings(sources, plan, found.snapshot, confidence):
        limits = [
            reading.stored.parts[each["part"]].clip / max(1, measure.clip)
            for each, measure in zip(reading.terms, plan.measures, strict=True)
        ]
        taken = reading.taken.known
        known = set(plan.answers) <= set(taken)
        # What a lower limit took must be known; what limits that are no lower took from a part of the rows is said.
        if not known and (min(limits) < 1 or not _is_one_sign(plan)):
            continue
        alone = () if known or not _is_part(plan, reading) else (ALONE,)

        def shown(
            release: OwnRelease = release, reading: QuestionReading = reading, alone: tuple[str, ...] = alone
        ) -> Release:
            from dalenius.queries.workloads.showing import shown_release

            (answered,) = own_releases(asker, [release.charge])
            free = {"epsilon": 0.0, "delta": 0.0, "rho": None if reading.stored.rho is None else 0.0}
            remaining = asker.remaining(found.snapshot.dataset, plan.periods)
            own = shown_release(
                plan,
                reading.stored,
                reading.table(),
                (*reading.notes, *alone, KNOWN.format(what="a workload"), *asker.warnings(found.snapshot.dataset)),
                reading.taken.limits,
                answered,
                confidence,
                free,
                remaining,
            )
            return own.of_question(question)

        told = (*(each for each in reading.taken.notes if each not in plan.notes), *alone)
        ways.append(Candidate(reading.table(), reading.estimates, taken, min(1.0, *limits), shown, told))
    return ways


def _is_one_sign(plan: Plan) -> bool:
    """Whether no sum adds up numbers of either sign: limits of many classes may turn such a one about."""
    single = (each.measures[0] for each in plan.statistics if len(each.measures) == 1)
    return not any(each.low < 0 < each.high for each in single)


def _is_part(plan: Plan, reading: QuestionReading) -> bool:
    """Whether some of a workload's classes are in no group of a question."""
    return not all(Sums.of_json(each, len(plan.cells)).whole for each in reading.terms)


def is_as_good(candidate: Candidate, fresh: ExpectedPrice) -> bool:
    """Whether an answer that is known has no larger errors than what is expected of a fresh one."""
    return all(_is_as_good(candidate, each, fresh.column(each)) for each in candidate.estimates)


def _is_as_good(candidate: Candidate, aggregate: Aggregate, fresh: ExpectedColumn) -> bool:
    errors = [each.noise_error for each in candidate.estimates[aggregate]]
    if fresh.noise_error is None or not errors:
        return False
    known = [each for each in errors if each is not None]
    if len(known) < len(errors):
        return False
    usual = aggregate.kind == "avg"
    own = statistics.median(known) if usual else max(known)
    if own > _SLACK * fresh.noise_error * (candidate.tighter if fresh.at_most else 1.0):
        return False
    if aggregate not in candidate.clipped:
        return fresh.total_error is None
    reached = [
        max(float(one.value) - ends[0], ends[1] - float(one.value))
        for one, ends in zip(candidate.estimates[aggregate], candidate.clipped[aggregate].totals, strict=True)
        if ends is not None and one.value is not None
    ]
    # Of a fresh answer at unknown limits there is no error in all: then what limits took is to be less than the noise.
    most = 2 * fresh.noise_error if fresh.total_error is None else max(fresh.total_error, fresh.noise_error)
    return len(reached) == len(errors) and statistics.median(reached) <= _SLACK * most
