"""Where the raw average may lie: post-processing of its noisy count and sum, and of the counts behind their limits.

A unit beyond a limit counts for less, with all its rows alike: count and sum have one factor, the smaller of their two
(`measures`). With K rows counted, whose average is a, and L rows that were not, whose average is b,

    raw = (K·a + L·b)/(K + L) = a + P·(b − a),   P = L/(K + L).

*P* is what the counts of units by their rows tell. A limit C of sums takes rows as one of C/a rows would: it is read at
the lower of the two. Where values have been moved by a centre, C over half of the largest one stands for that.

*b* is not known, and it is not worked out as the quotient of two worst cases: both parts lose the same units. Rows that
were not counted are taken to have between half and twice the average of those that were, but no further from it than
values deviate that lie evenly between their bounds (R/√12), nor beyond these. That is an assumption and no bound. Where
sums lose more than rows do, b is high for another reason: single large values. Then what sums lose beyond rows,
(1 + F)/(1 + G) − 1 with F and G lost for each that was kept, is allowed where it is more.

*With noise.* The truth lies somewhere between the ends of that, and each end has the noise's error. So far beyond them
as a one-sided interval reaches is enough (Imbens & Manski 2004, "Confidence intervals for partially identified
parameters"): it cannot lie past both ends at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dalenius.measuring.estimates import normal_width
from dalenius.measuring.expressions import TRUE
from dalenius.measuring.limits.clip_search import takes_all
from dalenius.measuring.limits.clipping import Spread
from dalenius.queries.total_intervals import Clipped, Interval, Unknown, estimate_loss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dalenius.measuring.estimates import Estimate
    from dalenius.measuring.limits.clip_search import Clip
    from dalenius.measuring.limits.clipping import Loss
    from dalenius.measuring.plan import Measure, Plan, Statistic

_MORE, _LESS = 1.0, 0.5  # of an average: rows that were not counted have up to twice, and down to half of it
_EVEN = math.sqrt(12)  # the range over the deviation of values that lie evenly in it
_USUAL = 0.5  # of the largest value, where they have been moved: how large they are taken to be
_FEW = 0.5  # of all rows: where fewer have a value, what is known of all rows says nothing of these


def clipped_average(
    plan: Plan,
    number: int,
    values: Sequence[Sequence[int]],
    estimates: Sequence[Estimate],
    clips: Sequence[Clip],
    confidence: float,
) -> Clipped | None:
    """What clipping took from the rows of an average, and where the raw one may lie; None where that is not known.

    Args:
        plan: What was asked.
        number: Of the statistic.
        values: The noisy integers of its measures.
        estimates: The average in every group.
        clips: The limits that the question found itself.
        confidence: Of the intervals.
    """
    statistic = plan.statistics[number]
    # A third limit, of squares, may take more than these two; and what is lost of both signs moves averages anyhow.
    if statistic.kind != "moments" or len(statistic.measures) != 2 or statistic.low < 0 < statistic.high:
        return None
    lost = _losses(plan, number, values, clips)
    if lost is None:
        return None
    totals, shifts = list[Interval | None](), list[float]()
    for each in estimates:
        if each.value is None or each.low is None or each.high is None:
            totals.append(None)
            shifts.append(0.0)
            continue
        down, up = _shifts(statistic, float(each.value), *lost.most)
        totals.append(_total(statistic, each, down, up, confidence))
        shifts.append(max(_shifts(statistic, float(each.value), *lost.estimated)))
    count = statistic.measures[0]
    return Clipped(lost.rows, totals, shifts, count, lost.clip, found=lost.found)


@dataclass(frozen=True)
class _Losses:
    """Of the rows, and of the sum where that may lose more; at which limit of rows, and whether it was found here."""

    rows: Loss
    sums: Loss | None
    clip: int
    found: bool

    @property
    def estimated(self) -> tuple[float, float]:
        """Lost for each that was kept, of rows and of sums; of these no more than of rows, where they have no say."""
        return self.rows.factor, self.rows.factor if self.sums is None else self.sums.factor

    @property
    def most(self) -> tuple[float, float]:
        """The same, as much as it may be."""
        return self.rows.most, self.rows.most if self.sums is None else self.sums.most


def _losses(plan: Plan, number: int, values: Sequence[Sequence[int]], clips: Sequence[Clip]) -> _Losses | None:
    count, summed = plan.statistics[number].measures
    start, found = plan.start(number), {each.measure: each for each in clips}
    own, own_sum = found.get(start), found.get(start + 1)
    of_rows, of_sums = count.clip if own is None else own.clip, summed.clip if own_sum is None else own_sum.clip
    rows, total = (
        math.fsum(one / 2**each.bits for one in column) for each, column in zip((count, summed), values, strict=True)
    )
    if rows <= 0:
        return None
    implied = of_sums >= of_rows * summed.largest  # whoever is within the limit of rows is within that of sums
    usual = _USUAL * summed.largest if _moved(summed) else min(max(abs(total) / rows, 1e-9), summed.largest)
    clip = of_rows if implied else max(1, min(of_rows, round(of_sums / usual)))
    spread = Spread(
        groups=max(1, len(plan.cells)), scattered=plan.norm == "l2" and len(plan.cells) > 1, total=rows, rows=True
    )
    # Rows that have a value are taken to be like all others, if they are most.
    counted = replace(count, where=TRUE) if takes_all(count.where) else count
    lost = estimate_loss(plan, counted, own, spread, clip)
    if isinstance(lost, Unknown) or (own is None and _are_few(plan, rows * (1 + lost.factor))):
        return None
    if implied or _moved(summed):
        return _Losses(lost, None, clip, own is not None)
    more = estimate_loss(plan, summed, own_sum, replace(spread, total=abs(total), rows=False))
    return None if isinstance(more, Unknown) else _Losses(lost, more, clip, own is not None or own_sum is not None)


def _moved(summed: Measure) -> bool:
    """Whether a centre was taken from values, so that sums have both signs."""
    return summed.low < 0 < summed.high


def _are_few(plan: Plan, rows: float) -> bool:
    """Whether far fewer rows have a value than there are."""
    return plan.table.found is not None and rows < _FEW * plan.table.found.row_count


def _shifts(statistic: Statistic, value: float, rows: float, sums: float) -> tuple[float, float]:
    """How far below and above an average the raw one may lie, where so much of rows and sums was lost for each kept."""
    low, high = float(statistic.low), float(statistic.high)
    sign = -1 if high <= 0 else 1  # away from zero
    toward, away = (value - low, high - value) if sign > 0 else (high - value, value - low)
    even, size = (high - low) / _EVEN, abs(value)
    less, more = (_share(rows) * min(times * size, even, room) for times, room in ((_LESS, toward), (_MORE, away)))
    beyond = max(0.0, (1 + sums) / (1 + rows) - 1)
    more = max(more, min(beyond * size, _share(sums) * away))
    return (less, more) if sign > 0 else (more, less)


def _share(factor: float) -> float:
    """Of all, what is lost where so much is for each that is kept."""
    return factor / (1 + factor)


def _total(statistic: Statistic, each: Estimate, down: float, up: float, confidence: float) -> Interval:
    """The interval that allows for noise and shifts; no smaller than that of the noise, and within the bounds."""
    value, low, high = (float(one or 0.0) for one in (each.value, each.low, each.high))
    one_sided = normal_width(2 * confidence - 1) / normal_width(confidence)
    first, last = value - down - one_sided * (value - low), value + up + one_sided * (high - value)
    return max(float(statistic.low), min(low, first)), min(float(statistic.high), max(high, last))
