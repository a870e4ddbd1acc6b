"""A question's numbers, as far as they follow from what its asker has paid for.

For each measure of the question there are the measures of own answers that add up the same thing. Each alone, and
several together, may tell its numbers: what has the least noise is taken. Limits decide what may serve. What tighter
ones took nobody would see, so a measure serves only if its limit is no lower than the question's own, or if it is known
what it took. A part of its groups keeps what it has there, which may be less than it would keep alone: that is said.
Even equal limits take different parts of different rows, and a difference of two answers would show that as if it were
rows: so only those of which it is known are subtracted; others are combined with the same question, asked again. Rows
and sum of an average are of one answer, in which they were limited together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalenius.queries.known.combining import added_up, combine
from dalenius.queries.known.following import Attributes, follows
from dalenius.queries.workloads.linear import ROWS, Summed, atoms_of

if TYPE_CHECKING:
    from dalenius.measuring.plan import Measure, Plan, Statistic
    from dalenius.measuring.strategies.factors import Array
    from dalenius.queries.known.sources import PaidMeasure
    from dalenius.queries.workloads.attributes import Atoms


@dataclass(frozen=True, eq=False)
class Numbers:
    """One measure of a question, derived: its numbers in all groups.

    Attributes:
        values: In steps, about the centre.
        variances: Of each.
        gaussian: Whether the noise is.
        centre: What is subtracted from each row's value, in steps.
        reach: How far below and above the noise the truth may lie for what limits took; None: nobody knows.
        sources: What they are made of.
        part: Whether they are some groups of an answer only, of which nobody knows what limits took.
    """

    values: Array
    variances: Array
    gaussian: bool
    centre: int
    reach: Array | None
    sources: tuple[PaidMeasure, ...]
    part: bool = False

    @property
    def noise(self) -> float:
        """How noisy it is, for a comparison."""
        return float(np.mean(self.variances))


def derive(plan: Plan, paid: Sequence[PaidMeasure]) -> list[Numbers] | None:
    """The numbers of each measure of a plan; None where one of them does not follow."""
    if not paid:
        return None
    deriving = _Deriving(plan, paid)
    found: list[Numbers] = []
    for statistic in plan.statistics:
        own = deriving.statistic(statistic)
        if own is None:
            return None
        found += own
    return found


class _Deriving:
    """One question, and what may tell it."""

    def __init__(self, plan: Plan, paid: Sequence[PaidMeasure]) -> None:
        self.plan, self.paid = plan, paid
        self.attributes = Attributes(plan.table.policy.columns)

    def statistic(self, statistic: Statistic) -> list[Numbers] | None:
        """Its measures' numbers: of an average, sum and rows together."""
        if len(statistic.measures) > 1:
            return min(self._averages(statistic), key=lambda each: each[-1].noise, default=None)
        (measure,) = statistic.measures
        summed = ROWS if measure.kind == "rows" else Summed(measure.value, measure.step, measure.centre)
        found = self.numbers(summed, measure)
        return None if found is None else [found]

    def _averages(self, statistic: Statistic) -> Iterator[list[Numbers]]:
        """By each own answer that has it: numerator and denominator were scaled by one factor per unit there."""
        by_answer: dict[tuple[int, int, int], list[PaidMeasure]] = {}
        for each in self.paid:
            if not each.single:
                by_answer.setdefault((each.charge, id(each.answer), each.statistic), []).append(each)
        for own in by_answer.values():
            if len(own) != len(statistic.measures):
                continue
            found = []
            for measure, each in zip(statistic.measures, own, strict=True):
                same = each.measure.kind == measure.kind and each.measure.value == measure.value
                alike = same and each.measure.step == measure.step and each.serves(self.plan, measure)
                numbers = self._follows(each, atoms_of(self.plan, measure)) if alike else None
                if numbers is not None:
                    found.append(numbers)
            if len(found) == len(own):
                yield found

    def numbers(self, summed: Summed, measure: Measure) -> Numbers | None:
        """What follows of one thing that is added up, with the least noise."""
        paid = [each for each in self.paid if each.single and each.summed == summed]
        atoms = atoms_of(self.plan, measure)
        serving = [each for each in paid if each.serves(self.plan, measure)]
        alone = (self._follows(each, atoms) for each in serving)
        ways = [*(each for each in alone if each is not None), *self._together(serving, atoms, summed)]
        return min(ways, key=lambda each: each.noise, default=None)

    def _follows(self, each: PaidMeasure, atoms: Atoms) -> Numbers | None:
        """By one measure alone."""
        groups = len(self.plan.cells)
        goes = follows((each.atoms, each.cells), (atoms, self.plan.cells), self.attributes)
        if goes is None:
            return None
        # Errors of groups that were scaled by one factor go together: at worst, they add up plainly.
        variances = (
            np.square(added_up(each.deviations, goes, groups))
            if each.scaled
            else added_up(np.square(each.deviations), goes, groups)
        )
        reach = None if each.reach is None else np.stack([added_up(one, goes, groups) for one in each.reach])
        values = added_up(each.values, goes, groups)
        part = reach is None and bool((goes < 0).any())
        return Numbers(values, variances, each.gaussian, each.summed.centre, reach, (each,), part)

    def _together(self, paid: Sequence[PaidMeasure], atoms: Atoms, summed: Summed) -> Iterator[Numbers]:
        for pool in _pools([each for each in paid if each.combines]):
            one = combine(pool, atoms, self.plan.cells, self.attributes)
            if one is None:
                continue
            used = [(each, weights) for each, weights in one.weights if np.abs(weights).max(initial=0.0) > 1e-9]
            gaussian = all(each.gaussian for each, _ in used)
            sources = tuple(each for each, _ in used)
            reach = _reach(used)
            part = reach is None and any((np.abs(weights).max(axis=0) <= 1e-9).any() for _, weights in used)
            yield Numbers(one.values, one.variances, gaussian, summed.centre, reach, sources, part)


def _pools(measures: Sequence[PaidMeasure]) -> Iterator[list[PaidMeasure]]:
    """Measures that may be combined: of which it is known what limits took, or the same question at the same limits."""
    found: dict[object, list[PaidMeasure]] = {}
    for each in measures:
        key = None if each.reach is not None else (each.atoms, each.cells, each.limit)
        found.setdefault(key, []).append(each)
    return (each for each in found.values() if len(each) > 1)


def _reach(used: Iterable[tuple[PaidMeasure, Array]]) -> Array | None:
    """What limits took, at worst: of what is subtracted, it goes the other way."""
    found: Array | None = None
    for each, weights in used:
        if each.reach is None:
            return None
        plus, minus = np.maximum(weights, 0.0), np.maximum(-weights, 0.0)
        below, above = each.reach
        own = np.stack([plus @ below + minus @ above, plus @ above + minus @ below])
        found = own if found is None else found + own
    return found


def releases_of(numbers: Iterable[Numbers]) -> Mapping[int, float]:
    """The charges that some numbers are made of, and what each was."""
    return {each.charge: each.epsilon for one in numbers for each in one.sources}
