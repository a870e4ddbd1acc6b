"""What all groups of a question add up to, from noisy counts of units by their total: post-processing.

A question counts units by the total of their vector over its groups (`in_question.counts_totals`). That is of just the
rows that it asks about, and that are in its groups: a row whose key is NULL is in none. (So the number of rows of the
table, which `protect` tells, is no total of a question's groups. It is only never less, where all rows are asked for.)
The end of the tail is extrapolated (`tails`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dalenius.measuring.limits.at_protect import rows_deviation
from dalenius.measuring.limits.clipping import class_points
from dalenius.measuring.limits.histogram import CLASSES, noise_deviation, see_classes
from dalenius.measuring.limits.rescaled import Total
from dalenius.measuring.limits.tails import FAR, Array, possible_tails

if TYPE_CHECKING:
    from dalenius.measuring.limits.counts import LengthCounts
    from dalenius.measuring.plan import Plan

_PLACE = 0.5  # of a class's width, as a deviation: where its units lie, if they are alike
_TAIL = 0.5  # how far an extrapolated tail may be off, as a part of it, beside what the counts allow


def question_total(plan: Plan, number: int, counts: LengthCounts) -> Total | None:
    """The total of a measure over the groups, in steps; None where no class stands out of the noise."""
    total, found = total_of(counts), plan.table.found
    if total is None or found is None or plan.measures[number].kind != "rows" or "rows" not in found.sizes:
        return total
    every = total_of(found.sizes["rows"], (found.rows, found.row_count, rows_deviation(found)))
    if every is None or not plan.table.direct or plan.periods != ("",):
        return total
    # There are not more rows than the table has.
    return Total(min(total.mean, every.mean + every.deviation), total.deviation)


def total_of(counts: LengthCounts, cut_off: tuple[int, int, float] | None = None) -> Total | None:
    """The total of all sizes; None where no class stands out of the noise.

    Args:
        counts: Units by size.
        cut_off: A limit, the noisy sum of all sizes with each cut off at it, and the deviation of its noise.
    """
    law = counts.law
    found = see_classes(counts.noisy, law)
    if not found:
        return None
    last, size = len(found), min(CLASSES, len(found) + FAR)
    seen, deviation = np.array([*found, *[0.0] * (size - last)]), noise_deviation(law)
    sizes, low, high = class_points(size, rows=True, scattered=False)
    tails, chances = possible_tails(
        np.array(counts.noisy[:size], dtype=float), last, deviation, np.log(low), np.log(high)
    )
    beside = np.maximum(np.append(seen[1:], 0.0), np.append(0.0, seen[:-1]))
    pile = np.maximum(seen - beside, 0.0)

    def add_up(share: Callable[[Array], Array], base: float, noise: float) -> tuple[float, float, float]:
        """What a part of each size adds up to; the variance of what is measured of it, and of what is not."""
        each = share(sizes)
        part = each.mean(1)
        ends = tails @ part
        end = float(chances @ ends)
        unseen = float(chances @ (ends - end) ** 2) + (_TAIL * end) ** 2
        place = _PLACE * float(np.linalg.norm(pile * (each.max(1) - each.min(1))))
        measured = (deviation * float(np.linalg.norm(part[:last]))) ** 2 + place**2 + noise**2
        return base + float(seen @ part) + end, measured, unseen

    ways = [add_up(lambda each: each, 0.0, 0.0)]
    if cut_off is not None:
        limit, cut, noise = cut_off
        ways.append(add_up(lambda each: np.maximum(each - limit, 0.0), float(cut), noise))
    weights = np.array([1 / max(measured + unseen, 1e-9) for _, measured, unseen in ways])
    weights /= weights.sum()
    mean = math.fsum(weight * each for weight, (each, _, _) in zip(weights, ways, strict=True))
    measured = math.fsum(weight**2 * each for weight, (_, each, _) in zip(weights, ways, strict=True))
    unseen = math.fsum(weight * math.sqrt(each) for weight, (_, _, each) in zip(weights, ways, strict=True)) ** 2
    return Total(float(mean), math.sqrt(measured + unseen))
