"""How wide the interval of a quantile will be, before anything is measured: for previews. Never touches the data.

The width depends on the noise, so it is averaged over made-up noise, on a group of rows that spread evenly over the
bounds. In a consistent tree (`trees`) the noise of a node is shared by its children half and half, but for what the
left one has more than the right one, which is independent of all above and beside and has variance 2aᵢ₋₁. So the noise
of ranks can be drawn from the root downwards, and only where it matters: around the quantile, at ends so close that
a finer look changes nothing. That makes many draws cheap, however many leaves there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalenius.measuring.estimates import noise_variance
from dalenius.measuring.trees import EXTREMES, SCALE, Floats, Layout, deviations, located, variances, z_of

if TYPE_CHECKING:
    from dalenius.measuring.expressions import Aggregate
    from dalenius.measuring.plan import Measure
    from dalenius.mechanisms.laws import Law

_DRAWS, _MOST = 800, 4000  # one width varies by about a quarter of itself: the mean of so many by 1% or 0.4%
_POINTS = 2**19  # that are drawn in all, where that gives more than the fewest
_FINE = 128  # ends in an interval, at least, where there are so many
_AROUND = 6  # half-widths on either side of the quantile that are drawn
_SEED = 1977  # fixed, and it hides nothing: there is no data here


def expected_error(aggregate: Aggregate, measure: Measure, law: Law, rows: int, confidence: float) -> float:
    """The mean noise error of a quantile, or private extreme, in a group of so many rows, spread evenly."""
    group = _Group(Layout.of(measure), law, float(rows) * SCALE, confidence)
    if aggregate.kind not in EXTREMES:
        return float(group.errors(float(aggregate.parameter or 0.0), 0.0)[0].mean())
    edge = group.width * float(deviations(group.layout.leaves, 0.0)[: group.layout.used + 1].max())
    share, sign, _ = EXTREMES[aggregate.kind]
    # As `trees.Tree.estimates`: at most half of the rows lie beyond an extreme.
    found, total = group.errors(share, sign * edge)
    small = float((total <= 2 * edge).mean())
    if not small:
        return float(found.mean())
    middle, other = group.errors(0.5, 0.0)
    parts = ((found, total > 2 * edge, 1 - small), (middle, other <= 2 * edge, small))
    return sum(weight * float(each[held].mean()) for each, held, weight in parts if held.any())


@dataclass(frozen=True)
class _Group:
    """So much weight, spread evenly over the leaves that hold values, and the noise of one node."""

    layout: Layout
    law: Law
    weight: float
    confidence: float

    @property
    def width(self) -> float:
        """So much of one node's noise is explained."""
        return z_of(self.law, self.confidence) * self.deviation

    @property
    def deviation(self) -> float:
        return math.sqrt(noise_variance(self.law))

    def errors(self, share: float, shift: float) -> tuple[Floats, Floats]:
        """Noise error where the ranks reach share·all + shift, and the weight of all, for each draw."""
        layout = self.layout
        first, last, apart = self._window(share, shift)
        noise, total = _drawn(layout.leaves, first, last, apart)
        ends = np.minimum(np.arange(first, last + apart, apart), layout.used)
        whole = self.weight + self.deviation * total
        before = self.weight * ends / layout.used + self.deviation * noise[:, : len(ends)]
        off = before - share * whole[:, None] - shift
        place, within, low, high = located(off, self.width * deviations(layout.leaves, share)[ends])
        size, most = layout.size * apart, layout.high - layout.low
        at = first * layout.size
        value = np.minimum(at + place * size + np.minimum(size - 1, np.floor(within * size)), most)
        reach = np.maximum(value - at - low * size, np.minimum(at + (high + 1) * size - 1, most) - value)
        known = whole > self.width * math.sqrt(variances(layout.levels - 1)[-1])
        return np.where(known, reach, most / 2) * float(layout.step), whole

    def _window(self, share: float, shift: float) -> tuple[int, int, int]:
        """First and last leaf that matter, and how far ends lie apart: powers of two, so that they are in the tree."""
        leaves, used = self.layout.leaves, self.layout.used
        centre = min(max((share + shift / self.weight) * used, 0.0), float(used))
        half = self.width * float(deviations(leaves, share)[round(centre)]) * used / self.weight
        apart = 1
        while min(2 * half, used) > 2 * apart * _FINE:
            apart *= 2
        block = apart
        while block < min(leaves, half):
            block *= 2
        first = max(0, math.floor((centre - _AROUND * half) / block)) * block
        last = min(leaves, (math.floor((centre + _AROUND * half) / block) + 1) * block)
        return first, min(last, -(-used // apart) * apart), apart


def _drawn(leaves: int, first: int, last: int, apart: int) -> tuple[Floats, Floats]:
    """Noise of the ranks at every ``apart``-th end from ``first`` to ``last``, and of all, per deviation of a node."""
    chance, variance = np.random.default_rng(_SEED), variances(leaves.bit_length() - 1)
    draws = max(_DRAWS, min(_MOST, _POINTS * apart // (last - first + apart)))
    total = math.sqrt(variance[-1]) * chance.standard_normal(draws)
    nodes, start, before, size = total[:, None], 0, np.zeros(draws), leaves
    while size > apart:
        size //= 2
        more = math.sqrt(2 * variance[size.bit_length() - 1]) * chance.standard_normal(nodes.shape)
        nodes = np.stack([nodes + more, nodes - more], axis=2).reshape(draws, -1) / 2
        # what lies wholly before the window is only added up; what lies behind it is not looked at
        ahead = (first - start) // size
        before = before + nodes[:, :ahead].sum(axis=1)
        start += ahead * size
        nodes = nodes[:, ahead : -(-(last - start) // size) + ahead]
    return before[:, None] + np.concatenate([np.zeros((draws, 1)), np.cumsum(nodes, axis=1)], axis=1), total
