"""The answer that a question is expected to give at a price: its limits, its noise, what clipping will take.

The limits are chosen by the same fit as in a real answer (`in_question.fit_clip`) at the noise of this price, the
measures get the laws of that price, and what clipping takes is estimated by the same functions (`total_intervals`).
Where the numbers come from stands in `expectations`, with why it is private.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from dalenius.measuring.estimates import Estimate, deviation_of
from dalenius.measuring.expressions import TRUE, Aggregate, walk
from dalenius.measuring.limits.clip_search import Clip, takes_all
from dalenius.measuring.limits.in_question import apply_clips
from dalenius.measuring.statistics.distinct import public_values
from dalenius.measuring.statistics.family import Cellwise, Single, UsualGroup
from dalenius.mechanisms.laws import SummedLaw
from dalenius.queries.average_intervals import clipped_average
from dalenius.queries.expected_search import expected_clips
from dalenius.queries.postprocess import key_columns, tabulate
from dalenius.queries.rules.price import Priced, price_plan
from dalenius.queries.total_intervals import Clipped, Unknown

if TYPE_CHECKING:
    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.plan import Measure, Plan, Statistic
    from dalenius.mechanisms.laws import Law
    from dalenius.queries.answering import Answer
    from dalenius.queries.expectations import Expectations
    from dalenius.queries.scaled_estimates import Stored

_WIDE = 0.2  # of the range of values: an interval that is wider says nothing of where they lie
_LOST = 0.3  # of a value: an earlier error above that leaves it open how large it is
_MODEL, _SINGLE = 0.3, 0.3  # how far the error of a quantile is off where values spread otherwise; and by chance
_MIDDLE = 0.9  # of the average group: so large is the middle one, for a few are mostly larger than all others
_SMALLEST = 0.1  # of the average group: a smaller one is mostly noise
SMALL = 0.5  # of the average group: what is promised in per cent holds for all that are at least so large


@dataclass(frozen=True, slots=True)
class ExpectedColumn:
    """What is expected of one column, in a usual group.

    Attributes:
        noise_error: Half-width from the noise alone; None for keys.
        total_error: How far the raw truth may lie from what is shown; None where clipping is not known.
        at_most: It is the most that the noise error can be, since nothing is known that would say less.
    """

    noise_error: float | None = None
    total_error: float | None = None
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class ExpectedCell:
    """What is expected of one aggregate in one group."""

    truth: float
    noise_error: float
    total_error: float | None

    @property
    def error(self) -> float:
        """The total one; that of the noise, where clipping is not known."""
        return self.noise_error if self.total_error is None else self.total_error

    def times(self, factor: float) -> ExpectedCell:
        """A group so much as large: what clipping takes is in proportion, the noise is the same."""
        total = self.total_error
        further = None if total is None else self.noise_error + factor * max(0.0, total - self.noise_error)
        return ExpectedCell(factor * self.truth, self.noise_error, further)


@dataclass(frozen=True)
class ExpectedAnswer:
    """What one price is expected to give."""

    expectations: Expectations
    plan: Plan
    asked: Priced  # at the limits that the question is asked with
    priced: Priced  # at those that it will find
    clips: tuple[Clip, ...]
    unknown: frozenset[int]  # the numbers of measures that find their own limit, of which nothing is known
    answers: dict[float, Answer] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, expectations: Expectations, epsilon: float, draw: int) -> ExpectedAnswer:
        """With the limits that the question would find for itself under noise that is made up."""
        plan = expectations.known
        priced = price_plan(plan, epsilon, expectations.delta_at(epsilon), expectations.left)
        clips, unknown = expected_clips(expectations, priced, draw)
        lowered = apply_clips(plan, clips)
        price = price_plan(lowered, epsilon, priced.delta) if clips else priced
        return cls(expectations, lowered, priced, price, clips, unknown)

    # --- columns

    def column(self, expression: Expression) -> ExpectedColumn:
        """What is expected of an output."""
        parts = [each for each in walk(expression) if isinstance(each, Aggregate)]
        if not parts:
            return ExpectedColumn()
        at_most = any(self._is_bound(each) for each in parts)
        if not isinstance(expression, Aggregate):
            return self._computed(expression, parts, at_most)
        return ExpectedColumn(at_most=at_most)

    def _is_bound(self, aggregate: Aggregate) -> bool:
        number = self.plan.answers[aggregate]
        start = self.plan.start(number)
        return not self.unknown.isdisjoint(range(start, start + len(self.plan.statistics[number].measures)))

    def _computed(self, expression: Expression, parts: Sequence[Aggregate], at_most: bool) -> ExpectedColumn:
        """Arithmetic on expected numbers, in one usual group, as it is done with released ones (`postprocess`)."""
        question = replace(self.plan.question, having=TRUE, order=(), limit=None, offset=0, sets=())
        outputs = tuple(each for each in question.outputs if each.expression == expression)[:1]
        keys = len(question.keys)
        cell = self.plan.cells[0][1 if self.plan.sets else 0 :] if self.plan.cells else (None,) * keys
        plan = replace(self.plan, question=replace(question, outputs=outputs), cells=(cell,), sets=())
        estimates, clipped = dict[Aggregate, list[Estimate]](), dict[Aggregate, Clipped]()
        for each in dict.fromkeys(parts):
            found, known, at = self.estimates(each), self.clipped(each), self._usual_place(each)
            estimates[each] = [found[at]]
            if isinstance(known, Clipped):
                clipped[each] = replace(known, totals=[known.totals[at]], missed=[known.missed[at]])
        table = tabulate(plan, key_columns(plan), estimates, clipped)
        ((value,),), ((noise,),), ((total,),) = table.rows, table.noise_error, table.total_interval
        reach = None if total is None or value is None else max(value - total[0], total[1] - value)
        return ExpectedColumn(noise, reach, at_most)

    def _usual_place(self, aggregate: Aggregate) -> int:
        found = [each.noise_error or 0.0 for each in self.estimates(aggregate)]
        middle = statistics.median_low(found)
        return found.index(middle)

    # --- groups

    def cells(self, aggregate: Aggregate, part: float = 1.0) -> list[ExpectedCell]:
        """What is expected in the groups: of an earlier answer each, else in one that is ``part`` of an average one."""
        estimates, clipped = self.estimates(aggregate, part), self.clipped(aggregate, part)
        totals = clipped.totals if isinstance(clipped, Clipped) else [None] * len(estimates)
        missed = clipped.missed if isinstance(clipped, Clipped) else [0.0] * len(estimates)
        found = []
        for each, total, lost in zip(estimates, totals, missed, strict=True):
            value = float(each.value or 0.0)
            reach = None if total is None else max(value - total[0], total[1] - value)
            sign = -1 if value < 0 else 1
            found.append(ExpectedCell(value + sign * lost, each.noise_error or 0.0, reach))
            if self.expectations.past is None:  # all others are as the first one, or do not matter
                break
        return found

    def large_cells(self, aggregate: Aggregate) -> list[ExpectedCell]:
        """Those that are at least half as large as the average one; without an earlier answer, the smallest of them."""
        number = self.plan.answers[aggregate]
        if self.expectations.past is None:
            return self.cells(aggregate, SMALL if len(self.plan.cells) > 1 else 1.0)
        cells, sizes = self.cells(aggregate), self._sizes(number)
        least = SMALL * statistics.fmean(sizes) if sizes else 0.0
        return [each for each, size in zip(cells, sizes, strict=True) if size >= least]

    def _sizes(self, number: int) -> list[float]:
        """How large the groups of an earlier answer are: by rows where they are counted, else by the number itself."""
        past, start = self.expectations.past, self.plan.start(number)
        if past is None:
            return []
        # of a tree of values, its root
        return [abs(float(each)) for each in past.measures[start][1][:: self.plan.measures[start].width]]

    def estimates(self, aggregate: Aggregate, part: float = 1.0) -> Sequence[Estimate]:
        """The aggregate's number in every group; the first one is ``part`` of an average one."""
        number = self.plan.answers[aggregate]
        statistic = self.plan.statistics[number]
        if _is_single(statistic):
            return self._answer(part).estimates[aggregate]
        if self.expectations.past is not None:
            return self._as_before(aggregate, number, statistic)
        first = self._usual(aggregate, number, statistic, part)
        rest = first if part == 1.0 else self._usual(aggregate, number, statistic, 1.0)
        return [first, *[rest] * (max(1, len(self.plan.cells)) - 1)]

    def clipped(self, aggregate: Aggregate, part: float = 1.0) -> Clipped | Unknown:
        """What clipping is expected to take; that a condition leaves units as it is guessed to says too little."""
        number = self.plan.answers[aggregate]
        statistic, start = self.plan.statistics[number], self.plan.start(number)
        whole = self.plan.where == TRUE and takes_all(statistic.measures[0].where)
        measures = range(start, start + len(statistic.measures))
        if (self.expectations.past is None and not whole) or not self.unknown.isdisjoint(measures):
            return Unknown.OTHER
        if _is_single(statistic):
            return self._answer(part).clipped[aggregate]
        return self._clipped_average(aggregate, number, part) if aggregate.kind == "avg" else Unknown.OTHER

    def _clipped_average(self, aggregate: Aggregate, number: int, part: float) -> Clipped | Unknown:
        statistic, plan = self.plan.statistics[number], self._as_asked
        mean, size = self.expectations.public.mean_of(aggregate.value), max(1, len(self.plan.cells))
        if self.expectations.past is not None:
            values = self._measured(number)
        elif mean is not None and len(statistic.measures) == 2:
            rows = self._rows(statistic.measures[0], number) * self._left(number)
            each = (1.0, mean / float(statistic.measures[1].step) - statistic.measures[1].centre)
            values = [
                [round(rows * one * 2.0**measure.bits)] * size
                for one, measure in zip(each, statistic.measures, strict=True)
            ]
        else:
            return Unknown.OTHER
        estimates = self.estimates(aggregate, part)
        found = clipped_average(plan, number, values, estimates, self.clips, self._confidence)
        return Unknown.OTHER if found is None else found

    def knows(self, aggregate: Aggregate) -> bool:
        """Whether it is known, and not only guessed, about how large its number is."""
        if self.expectations.past is not None:
            return True
        public, number = self.expectations.public, self.plan.answers[aggregate]
        if aggregate.kind in {"count", "units"}:
            return public.counted
        mean = public.mean_of(aggregate.value)
        return public.counted and mean is not None and self.plan.statistics[number].kind in {"sum", "moments"}

    def _answer(self, part: float) -> Answer:
        """An answer with the numbers that are expected, as far as they are single measures."""
        if part not in self.answers:
            self.answers[part] = self._made(part)
        return self.answers[part]

    def _made(self, part: float) -> Answer:
        from dalenius.queries.answering import Answer

        plan, size = self._as_asked, max(1, len(self.plan.cells))
        laws = [each.noise for each in self.priced.mechanisms]
        measures: list[tuple[Noise, tuple[int, ...]]] = [(each, ()) for each in laws[: len(plan.measures)]]
        singles = {aggregate: at for aggregate, at in plan.answers.items() if _is_single(plan.statistics[at])}
        for number in set(singles.values()):
            start, measure = plan.start(number), self.plan.statistics[number].measures[0]
            if self.expectations.past is None:
                whole = self._integer(measure, number, 1.0)
                values = (self._integer(measure, number, part), *[whole] * (size - 1))
            else:
                values = tuple(self._measured(number)[0])
            measures[start] = (measures[start][0], values)
        priced = self.priced
        plan = replace(plan, answers=singles, cells=plan.cells or ((),))
        again = self._again(plan, measures)
        return Answer(plan, priced.epsilon, priced.rho, tuple(measures), self._confidence, self.clips, again)

    def _again(self, plan: Plan, measures: Sequence[tuple[Noise, tuple[int, ...]]]) -> dict[int, Stored]:
        """What is measured a second time, at a higher limit: as much more as that leaves."""
        from dalenius.queries.scaled_estimates import Stored

        heavy = {each.measure: each for each in self.clips if each.rescaled is not None and each.rescaled.heavy}
        found = {}
        for at, number in enumerate(sorted(heavy), len(plan.measures)):
            measure, lengths = self.plan.measures[at], self.expectations.lengths.get(number)
            tight = self.plan.measures[number]
            ratio = 1.0 if lengths is None else lengths.kept(measure.clip) / max(lengths.kept(tight.clip), 1.0)
            scale = ratio * 2.0 ** (measure.bits - tight.bits)
            values = tuple(round(value * scale) for value in measures[number][1])
            found[number] = Stored(self.priced.mechanisms[at].noise, values, measure.bits)
        return found

    @cached_property
    def _as_asked(self) -> Plan:
        """The plan at the limits that it is asked with, counted in the parts of a step that the answer will have."""
        known = self.expectations.known
        if not self.clips:
            return self.plan
        found = []
        for before, after in zip(known.statistics, self.plan.statistics, strict=False):  # some are measured again
            measures = [
                replace(one, bits=other.bits) for one, other in zip(before.measures, after.measures, strict=True)
            ]
            found.append(replace(before, measures=tuple(measures)))
        return replace(known, statistics=tuple(found))

    @property
    def _confidence(self) -> float:
        return self.expectations.confidence

    # --- from what is public

    def _usual(
        self,
        aggregate: Aggregate,
        number: int,
        statistic: Statistic,
        part: float,
        noise: Sequence[Law] | None = None,
    ) -> Estimate:
        """In a group that is ``part`` of an average one, with the noise of this price where no other is given."""
        start, first = self.plan.start(number), statistic.measures[0]
        mechanisms = self.priced.mechanisms[start : start + len(statistic.measures)]
        laws = [each.noise for each in mechanisms] if noise is None else list(noise)
        public = self.expectations.public
        mean, square = public.mean_of(aggregate.value), public.square_of(aggregate.value)
        if part == 1.0 and self.expectations.past is None and public.counted and public.groups > 1:
            part = _MIDDLE
        group = UsualGroup(max(1, round(part * self._rows(first, number) * self._left(number))), mean, square)
        return statistic.family.expected(aggregate, statistic, laws, group, self._confidence)

    def _rows(self, measure: Measure, number: int) -> float:
        lengths = self.expectations.lengths.get(self.plan.start(number))
        if measure.kind == "rows" and lengths is not None:
            return lengths.kept(measure.clip) / max(1, self.expectations.public.groups)
        return float(self.expectations.public.rows(measure))

    def _left(self, number: int) -> float:
        """Of the rows that its count would keep alone, what the other measures of a ratio leave.

        All measures of a ratio are scaled down together, so that they stay about the same rows: by the one of which
        most is cut off.
        """
        start, shares = self.plan.start(number), list[float]()
        for at, measure in enumerate(self.plan.statistics[number].measures, start):
            lengths = self.expectations.lengths.get(at)
            shares.append(1.0 if lengths is None else lengths.rows_kept(measure.clip))
        return min(1.0, min(shares) / max(shares[0], 1e-9))

    def _integer(self, measure: Measure, number: int, part: float) -> int:
        """What one measure is expected to be in a group, as its integers count it."""
        public, start = self.expectations.public, self.plan.start(number)
        if measure.kind == "rows":
            value = self._rows(measure, number)
        elif measure.kind == "units":
            value = public.units(measure)
        elif measure.kind == "distinct":
            value = self._distinct(measure)
        elif measure.kind == "distinct_sum":
            value = self._distinct(measure) * (measure.low + measure.high) / 2
        else:
            lengths, mean = self.expectations.lengths.get(start), public.mean_of(measure.value)
            if lengths is not None:
                value = lengths.kept(measure.clip) / max(1, public.groups)
                value = -value if measure.high <= 0 else value
            else:
                step = float(measure.step)
                each = (measure.low + measure.high) / 2 if mean is None else mean / step - measure.centre
                value = public.rows(measure) * each
        return round(part * value * float(1 << measure.bits))

    def _distinct(self, measure: Measure) -> float:
        """How many different values there are in a group."""
        public = self.expectations.public
        if measure.value is None:
            return 1.0
        most = public_values(measure.value, self.plan.table.policy)
        rows = float(public.rows(measure))
        return rows if most is None else most * -math.expm1(-rows / most)

    # --- from an earlier answer

    def _measured(self, number: int) -> list[list[int]]:
        """The measures of a statistic as they were, at the limits and in the parts of a step that are expected now."""
        past = self.expectations.past
        if past is None:
            raise RuntimeError("There is no earlier answer.")
        start, statistic = self.plan.start(number), self.plan.statistics[number]
        before = {each.measure: each.clip for each in past.clips}
        ratios = []
        for at, measure in enumerate(statistic.measures, start):
            lengths = self.expectations.lengths.get(at)
            if lengths is not None and at in before:
                ratios.append(lengths.kept(measure.clip) / max(lengths.kept(before[at]), 1.0))
        ratio = statistics.fmean(ratios) if ratios else 1.0
        found = []
        for at, measure in enumerate(statistic.measures, start):
            scale = ratio * 2.0 ** (measure.bits - past.plan.measures[at].bits)
            values = past.measures[at][1]
            found.append(list(values) if scale == 1 else [round(value * scale) for value in values])
        return found

    def _as_before(self, aggregate: Aggregate, number: int, statistic: Statistic) -> list[Estimate]:
        """The numbers of an earlier answer, with the noise of this price."""
        past, start = self.expectations.past, self.plan.start(number)
        if past is None:
            raise RuntimeError("There is no earlier answer.")
        laws = [each.noise for each in self.priced.mechanisms[start : start + len(statistic.measures)]]
        if isinstance(statistic.family, Cellwise):
            columns = list(zip(laws, self._measured(number), strict=True))
            reading = statistic.family.read(statistic, columns, len(self.plan.cells), self._confidence)
            return self._unless_lost(aggregate, number, statistic, reading.estimates(aggregate))
        if self.expectations.public.square_of(aggregate.value) is not None:
            return self._quantiles(aggregate, number, statistic)
        # A quantile is about as uncertain as the ranks around it, which are as uncertain as the noise is wide.
        (law,), (old, _) = laws, past.measures[start]
        narrower = deviation_of([(1.0, law)]) / deviation_of([(1.0, old)])
        usual = self._usual(aggregate, number, statistic, 1.0)
        step = float(statistic.measures[0].step)
        wide = _WIDE * float(statistic.high - statistic.low)  # as good as nothing is known then
        return [
            usual if each.value is None or (each.noise_error or 0.0) > wide else _narrowed(each, narrower, step)
            for each in past.estimates[aggregate]
        ]

    def _unless_lost(
        self, aggregate: Aggregate, number: int, statistic: Statistic, read: Sequence[Estimate]
    ) -> list[Estimate]:
        """What an earlier answer says, where that was more than noise; else as in a usual group.

        An error is in proportion to 1/n, or to the deviation that was found: where these were mostly noise it would be.
        """
        past, public = self.expectations.past, self.expectations.public
        if past is None or public.square_of(aggregate.value) is None:
            return list(read)
        usual = self._usual(aggregate, number, statistic, 1.0)
        before = past.estimates[aggregate]
        lost = [each.value is None or (each.noise_error or 0.0) > _LOST * abs(each.value) for each in before]
        return [usual if gone else each for gone, each in zip(lost, read, strict=True)]

    def _quantiles(self, aggregate: Aggregate, number: int, statistic: Statistic) -> list[Estimate]:
        """Of values of which it is public how they spread, as the errors of an earlier answer correct it.

        One error of a quantile is mostly chance: it hangs on single ranks. So what is public is believed beside it, and
        the less the more groups there were.
        """
        past, start = self.expectations.past, self.plan.start(number)
        if past is None:
            raise RuntimeError("There is no earlier answer.")
        usual, before = self._usual(aggregate, number, statistic, 1.0), past.estimates[aggregate]
        step, wide = float(statistic.measures[0].step), _WIDE * float(statistic.high - statistic.low)
        old, off = past.measures[start][0], 1.0
        at_first = 0.0
        if not isinstance(old, SummedLaw):
            at_first = self._usual(aggregate, number, statistic, 1.0, [old]).noise_error or 0.0
        errors = [each.noise_error or 0.0 for each in before if each.value is not None]
        told = [each for each in errors if each <= wide]
        if told and 0 < at_first <= wide:
            weight = _MODEL**2 / (_MODEL**2 + _SINGLE**2 / len(told))
            off = (max(statistics.fmean(told), step) / at_first) ** weight
        sizes = self._sizes(number)
        average = statistics.fmean(sizes) if sizes else 0.0
        found = []
        for each, size in zip(before, sizes, strict=True):
            fewer = average / max(size, _SMALLEST * average) if average else 1.0
            here = usual if each.value is None else replace(usual, value=each.value)
            found.append(_narrowed(here, off * fewer, step))
        return found


def _is_single(statistic: Statistic) -> bool:
    """Whether its one measure is the answer: a count, or a sum."""
    return isinstance(statistic.family, Single)


def _narrowed(estimate: Estimate, factor: float, step: float) -> Estimate:
    """The estimate with an interval so much narrower, in whole steps."""
    if estimate.value is None or estimate.noise_error is None or estimate.low is None or estimate.high is None:
        return estimate
    error = step * max(1, round((estimate.noise_error / step - 1) * factor + 1))  # one step is there without any noise
    return Estimate(estimate.value, error, estimate.value - error, estimate.value + error)
