"""What all groups of a question add up to: measured up to a limit, and by noisy counts beyond it. Post-processing.

A question counts units by the total of their vector over its groups, and then measures the sum of these totals, each up
to a limit that suits the counts (`in_question.cut_off_total`). Both are of just the rows that it asks about, and that
are in its groups: a row whose key is NULL is in none. (So the number of rows of the table, which `protect` tells, is no
total of a question's groups. It is only never less, where all rows are asked for.) What lies beyond the limit follows
from the counts, and the end of their tail is extrapolated (`tails`). Where all rows are asked for, `protect` has
counted the same units, with less noise than a cheap question can (`known_sizes`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dalenius.measuring.expressions import TRUE, Column
from dalenius.measuring.limits.at_protect import rows_deviation
from dalenius.measuring.limits.clip_search import takes_all
from dalenius.measuring.limits.clipping import class_points
from dalenius.measuring.limits.counts import LengthCounts
from dalenius.measuring.limits.histogram import CANDIDATES, CLASSES, class_top, noise_deviation, see_classes
from dalenius.measuring.limits.rescaled import Total
from dalenius.measuring.limits.tails import FAR, Array, Tails, possible_tails

if TYPE_CHECKING:
    from dalenius.measuring.plan import Measure, Plan

_PLACE = 0.5  # of a class's width, as a deviation: where its units lie, if they are alike
_SURELY = 5.0  # deviations of the noise, from which on a class is compared
_DIFFERENT = 3.0  # deviations from which on two counts are not of the same units
_CONTRADICTS = 2.0  # deviations
_HIDDEN = 0.5  # of what nobody has verified, as a deviation
_WITHIN = 0.1  # how far what lies beyond a limit may be off where it was counted: sizes within a class are not known
_TAIL = 0.5  # how far an extrapolated tail may be off, as a part of it, beside what the counts allow


@dataclass(frozen=True, slots=True)
class CutOff:
    """A noisy sum of sizes, each of which counts up to a limit, and the deviation of its noise; all in steps."""

    limit: int
    sum: float
    deviation: float


def known_sizes(plan: Plan, number: int, counts: LengthCounts) -> LengthCounts:
    """Units by their total over the groups, as the question counted them, and as `protect` did if that is the same.

    What `protect` counted are all rows of the table. A question that asks for all of them has the same totals, unless
    rows are in none of its groups. That would show: then the two counts differ by more than their noise, and the
    question's own stand alone. Of both, the mean is taken by how little noise they have. What is too rare to show is
    another matter (`_with_public`).
    """
    public = _public_sizes(plan, plan.measures[number])
    return counts if public is None else pool_counts(counts, public)


def pool_counts(counts: LengthCounts, public: LengthCounts) -> LengthCounts:
    """The mean of two counts by how little noise they have, where they may be of the same units; else the first."""
    if public.gaussian is None or counts.gaussian is None:
        return counts
    own, other = (np.array(each.noisy, dtype=float) for each in (counts, public))
    variances = float(counts.gaussian), float(public.gaussian)
    off = (own - other) / math.sqrt(sum(variances))
    seen = (own > _SURELY * math.sqrt(variances[0])) | (other > _SURELY * math.sqrt(variances[1]))
    matter = seen & (np.arange(len(own)) > 0)
    several = int(matter.sum())
    if float((off[matter] ** 2).sum()) > several + _DIFFERENT * math.sqrt(2 * several):
        return counts
    weight = variances[1] / sum(variances)
    noisy = (round(each) for each in (weight * own + (1 - weight) * other).tolist())
    return LengthCounts(tuple(noisy), gaussian=Fraction(round(weight * variances[0]) or 1))


def _public_sizes(plan: Plan, measure: Measure) -> LengthCounts | None:
    """The sizes that `protect` counted, where a question asks for all of what they are; None: it does not."""
    found, table = plan.table.found, plan.table
    if found is None or found.carried or plan.where != TRUE or not table.direct or plan.periods != ("",):
        return None
    if not takes_all(measure.where):
        return None
    if measure.kind == "rows":
        return found.sizes.get("rows")
    same = isinstance(measure.value, Column) and measure.step == table.policy.columns[measure.value.name].step
    return found.sizes.get(f"total {measure.value.name}") if same and isinstance(measure.value, Column) else None


def question_total(plan: Plan, number: int, counts: LengthCounts, cut_off: CutOff | None) -> Total | None:
    """The total of a measure over the groups, in steps; None where no class stands out of the noise."""
    total, known, found = total_of(counts, cut_off), known_sizes(plan, number, counts), plan.table.found
    if total is not None and known is not counts:
        total = _with_public(total, counts, known, cut_off)
    if total is None or found is None or plan.measures[number].kind != "rows" or "rows" not in found.sizes:
        return total
    rows = CutOff(found.rows, float(found.row_count), rows_deviation(found))
    every = total_of(found.sizes["rows"], rows)
    if every is None or not plan.table.direct or plan.periods != ("",):
        return total
    # There are not more rows than the table has.
    return Total(min(total.mean, every.mean + every.deviation), total.deviation)


def _with_public(own: Total, counts: LengthCounts, known: LengthCounts, cut_off: CutOff | None) -> Total:
    """The total of a question's own counts, and that with `protect`'s, by how far each may be off.

    Heavy units are few: that they have no rows in the groups would not show in noisy counts. So half of what is beyond
    the question's own last class counts as what the other may be off; and where a measured sum contradicts it, the
    question's own stands alone.
    """
    sizes, public = _Sizes.of(known), total_of(known, cut_off)
    if sizes is None or public is None:
        return own
    if cut_off is not None:
        limit = cut_off.limit
        expected = sizes.add_up(lambda each: np.minimum(each, limit))
        if abs(cut_off.sum - expected.mean) > _CONTRADICTS * math.hypot(
            cut_off.deviation, math.sqrt(expected.variance)
        ):
            return own
    units = sizes.seen + sizes.tails.mean
    hidden = float((units * sizes.points.mean(1))[len(see_classes(counts.noisy, counts.law)) :].sum())
    off = math.hypot(public.deviation, _HIDDEN * hidden)
    weight = own.deviation**2 / max(own.deviation**2 + off**2, 1e-9)
    mean = weight * public.mean + (1 - weight) * own.mean
    return Total(mean, weight * off + (1 - weight) * own.deviation)


def total_of(counts: LengthCounts, cut_off: CutOff | None = None) -> Total | None:
    """The total of all sizes; None where no class stands out of the noise.

    Args:
        counts: Units by size.
        cut_off: What was measured besides.
    """
    sizes = _Sizes.of(counts)
    if sizes is None:
        return None
    ways = [sizes.add_up(lambda each: each)]
    if cut_off is not None:
        ways.append(sizes.beyond(cut_off))
    weights = np.array([1 / max(each.variance, 1e-9) for each in ways])
    weights /= weights.sum()
    pairs = list(zip(weights.tolist(), ways, strict=True))
    mean = math.fsum(weight * each.mean for weight, each in pairs)
    measured = math.fsum(weight**2 * each.measured for weight, each in pairs)
    unseen = math.fsum(weight * math.sqrt(each.unseen) for weight, each in pairs) ** 2  # both have the same tail
    return Total(mean, math.sqrt(measured + unseen))


def choose_cut(counts: LengthCounts, noise: float) -> int | None:
    """Up to which limit sizes are best added up; None where no class stands out of the noise.

    Args:
        counts: Units by size.
        noise: The deviation of the sum's noise, for a limit of 1.
    """
    sizes = _Sizes.of(counts)
    if sizes is None:
        return None
    most = class_top(len(sizes.seen) - 1)
    limits = [each for each in CANDIDATES if each <= most] or [1]
    return min(limits, key=lambda each: sizes.beyond(CutOff(each, 0.0, noise * each)).variance)


@dataclass(frozen=True, slots=True)
class _Sum:
    """What something adds up to; the variance of what was counted or measured of it, and of what was not."""

    mean: float
    measured: float
    unseen: float

    @property
    def variance(self) -> float:
        return self.measured + self.unseen


@dataclass(frozen=True)
class _Sizes:
    """Units by size, as far as they stand out of the noise, and the tails that they may have."""

    seen: Array
    points: Array
    tails: Tails
    last: int
    deviation: float

    @classmethod
    def of(cls, counts: LengthCounts) -> _Sizes | None:
        found = see_classes(counts.noisy, counts.law)
        if not found:
            return None
        last, size = len(found), min(CLASSES, len(found) + FAR)
        deviation = noise_deviation(counts.law)
        points, low, high = class_points(size, rows=True, scattered=False)
        noisy = np.array(counts.noisy[:size], dtype=float)
        tails = possible_tails(noisy, last, deviation, np.log(low), np.log(high))
        return cls(np.array([*found, *[0.0] * (size - last)]), points, tails, last, deviation)

    def add_up(self, share: Callable[[Array], Array]) -> _Sum:
        """A part of each size."""
        each = share(self.points)
        part = each.mean(1)
        ends = self.tails.units @ part
        end = float(self.tails.chances @ ends)
        unseen = float(self.tails.chances @ (ends - end) ** 2) + (_TAIL * end) ** 2 + self.tails.giants(part) ** 2
        beside = np.maximum(np.append(self.seen[1:], 0.0), np.append(0.0, self.seen[:-1]))
        pile = np.maximum(self.seen - beside, 0.0)
        place = _PLACE * float(np.linalg.norm(pile * (each.max(1) - each.min(1))))
        counted = self.deviation * float(np.linalg.norm(part[: self.last]))
        return _Sum(float(self.seen @ part) + end, counted**2 + place**2, unseen)

    def beyond(self, cut_off: CutOff) -> _Sum:
        """All sizes: what was measured of them, and what the counts say is beyond its limit."""
        rest = self.add_up(lambda each: np.maximum(each - cut_off.limit, 0.0))
        measured = cut_off.deviation**2 + rest.measured + (_WITHIN * rest.mean) ** 2
        return _Sum(cut_off.sum + rest.mean, measured, rest.unseen)
