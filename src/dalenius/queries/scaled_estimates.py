"""Aggregates whose groups are scaled up to their total: from stored integers to numbers with intervals.

What is shown is nearer to the raw rows than what was measured (`limits.rescaling`, `limits.heavy_band`). Its noise
error is that of the noise in it, scaled as it is. Its total interval allows for the total, for chance and for heavy
units that favour some groups; it reaches no lower than what the tight limit left, for clipping only takes away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dalenius.measuring.estimates import Estimate, noise_variance, normal_width
from dalenius.measuring.limits.clipping import Loss
from dalenius.measuring.limits.heavy_band import Groups, margins_of, scale_groups
from dalenius.measuring.limits.rescaling import Lengths
from dalenius.measuring.plan import require
from dalenius.queries.total_intervals import Clipped, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.limits.clip_search import Clip
    from dalenius.measuring.plan import Plan


@dataclass(frozen=True)
class Stored:
    """The noisy integers of a measure, the law of their noise, and in which parts of a step they are counted."""

    law: Noise
    values: Sequence[int]
    bits: int

    @property
    def steps(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """In steps."""
        return np.array([value / 2**self.bits for value in self.values], dtype=np.float64)

    @property
    def deviation(self) -> float:
        """Of the noise, in steps."""
        return math.sqrt(noise_variance(self.law)) / float(2**self.bits)


@dataclass(frozen=True)
class ScaledAggregate:
    """Its number in every group, and what clipping took before that was given back."""

    estimates: list[Estimate]
    clipped: Clipped


def scale_aggregate(
    plan: Plan, number: int, clip: Clip, tight: Stored, again: Stored | None, confidence: float
) -> ScaledAggregate:
    """The groups of a statistic with one measure.

    Args:
        plan: What was asked.
        number: Of the statistic.
        clip: The limit that was found, and how it is scaled up.
        tight: What was measured at it.
        again: What was measured at the higher limit, where it was.
        confidence: Of the intervals.
    """
    measure, rescaled, counts = plan.statistics[number].measures[0], require(clip.rescaled), require(clip.counts)
    lengths = Lengths(counts.noisy, counts.law, len(plan.cells), rescaled.total, rows=measure.kind == "rows")
    groups = Groups(tight.steps, tight.deviation, margins=margins_of(plan.cells, len(plan.keys)))
    if again is not None:
        groups = replace(groups, high=again.steps, high_noise=again.deviation)
    scaled = scale_groups(groups, lengths.taken(clip.clip), rescaled.total)
    step, whole, z = float(measure.step), measure.step.denominator == 1, normal_width(confidence)
    estimates, totals = list[Estimate](), list[Interval | None]()
    parts = zip(*(each.tolist() for each in (scaled.value, scaled.noise, scaled.off, groups.tight)), strict=True)
    for value, noise, off, least in parts:
        error = z * noise
        low = min(value - error, max(value - z * off, least - z * tight.deviation))
        high_end = value + max(error, z * off)
        if whole:
            shown = round(value)
            error, low, high_end = float(math.ceil(error + 0.5)), math.floor(low), math.ceil(high_end)
            unit = int(measure.step)
            estimates.append(
                Estimate(shown * unit, error * unit, float((shown - error) * unit), float((shown + error) * unit))
            )
            totals.append((float(min(low, shown - error) * unit), float(max(high_end, shown + error) * unit)))
        else:
            estimates.append(Estimate(value * step, error * step, (value - error) * step, (value + error) * step))
            totals.append((low * step, high_end * step))
    loss = Loss(scaled.given_back)
    return ScaledAggregate(estimates, Clipped(loss, totals, [0.0] * len(totals), measure, clip.clip, found=True))
