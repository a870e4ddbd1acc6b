"""Quantiles from a noisy tree of counts, and the layout that the tree has.

A column's range is cut into n equal leaves, n a power of two. Above them stands a binary tree: each node holds the
(weighted) number of rows in the leaves below it, so that every rank is a sum of few nodes. All nodes get noise of one
law. One tree serves every quantile of its column, and its least and largest value, at one price.

Everything here but the layout is post-processing: it sees noisy integers and the law of their noise, never data.

*Ranks.* Counts that were measured several times over (a node, its children, theirs …) are made consistent by least
squares, which is done in two passes [Hay et al. 2010, Thm. 3]. Let a₀ = 1 and aᵢ = 2aᵢ₋₁/(2aᵢ₋₁ + 1): the variance, in
units of one node's, of the best estimate of a node of height i from its own subtree. What a node's left child has more
than its right one is then uncorrelated with everything above and beside it, of variance 2aᵢ₋₁. So the estimated number
of rows before leaf b, less p times that of all rows, has variance

    (b/n − p)²·a_h + Σ over the nodes of the path to b of min(f, 1 − f)²·2a,

f being how far b lies within the node. It is linear in the noise, so that this is exact.

*Intervals.* The p-quantile lies in the leaf before which at most p of the rows lie, and behind whose end at least p do.
An end that the noise cannot explain (z deviations) is ruled out, on either side; what is left is the interval. For a
fixed set of ends it covers at least at the confidence, since only the ends of the right leaf must survive. The noise of
neighbouring ends is nearly independent, and with many of them one survives by chance; so only multiples of a power of
two are looked at, about an eighth of the interval apart. That is chosen by the noisy ranks; a test measures coverage.

*Widths before anything is measured*, for previews. The width depends on the noise, so it is averaged over made-up
noise, on a group of rows that spread over the bounds, evenly or as their mean says (`value_spread`). In a consistent
tree the noise of a node is shared by its children half and half, but for what the left one has more than the right one
(above). So the noise of ranks can be drawn from the root downwards, and only where it matters: around the quantile, at
ends so close that a finer look changes nothing. That makes many draws cheap, however many leaves there are.

References:
    Hay, Rastogi, Miklau & Suciu (2010), "Boosting the accuracy of differentially private histograms through
    consistency". Honaker (2015), "Efficient use of differentially private binary trees".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius._numbers import count_of
from dalenius.measuring.estimates import Estimate, noise_variance
from dalenius.measuring.expressions import written
from dalenius.measuring.value_spread import EVEN, ValueSpread
from dalenius.mechanisms.laws import DiscreteLaplaceLaw

if TYPE_CHECKING:
    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.expressions import Aggregate
    from dalenius.measuring.plan import Measure
    from dalenius.mechanisms.laws import Law

SCALE = 2**20  # what a row of a unit within its limit weighs
MOST_LEAVES = 2**16
MOST_NODES = 2**18  # of all groups together
FEWEST = 32  # leaves, where there are too many groups for more
# MIN and MAX: the share of the rows that lie before them, the way inwards, and the side of what lies beyond.
EXTREMES = {"min": (0.0, 1.0, "below"), "max": (1.0, -1.0, "above")}
_APART = 4  # ends that are looked at lie so many times closer than half the interval
_DRAWS, _MOST = 800, 4000  # one width varies by about a quarter of itself: the mean of so many by 1% or 0.4%
_POINTS = 2**19  # that are drawn in all, where that gives more than the fewest
_LARGEST = 2**22  # of them, even where that gives fewer draws
_SKEWED = 1.5  # a mean that is so many times the middle is that of a few
_FINE = 128  # ends in an interval, at least, where there are so many
_AROUND = 6  # half-widths on either side of the quantile that are drawn
_SEED = 1977  # fixed, and it hides nothing: there is no data here
Floats = NDArray[np.float64]


# --- the layout


def leaves_for(values: int, cells: int) -> int | None:
    """How many leaves: one for each value if they fit, else as many as do; None where too few do.

    >>> leaves_for(73, 1), leaves_for(500_001, 1), leaves_for(500_001, 16), leaves_for(73, 10_000)
    (128, 65536, 8192, None)
    """
    wanted = 1 << max(0, values - 1).bit_length()
    most = MOST_LEAVES
    while most > 1 and cells * (2 * most - 1) > MOST_NODES:
        most //= 2
    return None if most < min(wanted, FEWEST) else min(wanted, most)


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """How a column's whole steps lie in leaves.

    Attributes:
        leaves: How many; a power of two.
        low: The first leaf begins with this step.
        high: The last step that there is; leaves past it stay empty.
        size: Steps in a leaf.
        step: What one step is worth.
    """

    leaves: int
    low: int
    high: int
    size: int
    step: Fraction

    @classmethod
    def of(cls, measure: Measure) -> TreeLayout:
        """As a plan's measure says: its width is that of the whole tree, 2n − 1, or of its leaves alone."""
        leaves = (measure.width + 1) // 2 if measure.primitive.tree else measure.width
        return cls(leaves, measure.low, measure.high, -(-(measure.high - measure.low + 1) // leaves), measure.step)

    @property
    def levels(self) -> int:
        """Of the tree, with its root and its leaves: a row is in one node of each."""
        return self.leaves.bit_length()

    @property
    def used(self) -> int:
        """The leaves that hold values."""
        return (self.high - self.low) // self.size + 1


def largest(measure: Measure, norm: str) -> int:
    """The most that one unit's own tree can be long: Σv² where the norm is L2, Σ|v| where it is L1.

    Let a unit have n_g rows that count in group g, ‖n‖ ≤ k; each weighs s = ⌊S·min(1, C/k)⌋. On one level of the tree
    its entries are s·c with c ≥ 0 rows in each node, and Σ c = n_g over the nodes of group g, so Σ c² ≤ n_g². Hence
    that level's L2 norm is at most s·‖n‖₂ ≤ s·k ≤ S·C, and its L1 norm s·‖n‖₁ ≤ S·C. All L levels together have a
    squared L2 norm of at most L·(S·C)², and an L1 norm of at most L·S·C. A histogram is one level.
    """
    levels, most = TreeLayout.of(measure).levels if measure.primitive.tree else 1, SCALE * measure.clip
    return levels * most**2 if norm == "l2" else levels * most


def nodes(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The whole tree of each row of leaves, level by level from the root.

    >>> nodes(np.array([[1, 2, 3, 4]])).tolist()
    [[10, 3, 7, 1, 2, 3, 4]]
    """
    found = [counts]
    while found[0].shape[1] > 1:
        found.insert(0, found[0][:, 0::2] + found[0][:, 1::2])
    return np.concatenate(found, axis=1)


# --- ranks


def variances(height: int) -> list[float]:
    """aᵢ for i = 0 … height."""
    found = [1.0]
    for _ in range(height):
        found.append(2 * found[-1] / (2 * found[-1] + 1))
    return found


def ranks(tree: Floats) -> Floats:
    """The consistent number of rows before each leaf, and of all: n + 1 numbers for each row of 2n − 1 noisy nodes.

    >>> ranks(np.array([[10.0, 3, 7, 1, 2, 3, 4]])).round(9).tolist()
    [[0.0, 1.0, 3.0, 6.0, 10.0]]
    """
    height = ((tree.shape[1] + 1) // 2).bit_length() - 1
    variance = variances(height)
    own = [tree[:, (1 << depth) - 1 : (2 << depth) - 1] for depth in range(height + 1)]
    best = [own[height]]  # upwards: each node from its own subtree
    for depth in range(height - 1, -1, -1):
        below, weight = best[0], 2 * variance[height - depth - 1]
        best.insert(0, (weight * own[depth] + below[:, 0::2] + below[:, 1::2]) / (weight + 1))
    settled = best[0]  # downwards: what a parent is settled at is shared by its children
    for depth in range(1, height + 1):
        rest = (settled - best[depth][:, 0::2] - best[depth][:, 1::2]) / 2
        settled = best[depth] + np.repeat(rest, 2, axis=1)
    return np.concatenate([np.zeros((len(tree), 1)), np.cumsum(settled, axis=1)], axis=1)


@lru_cache(maxsize=32)
def _path_variance(leaves: int) -> Floats:
    """Of the ranks, beside that of the number of all rows, in units of one node's variance."""
    height = leaves.bit_length() - 1
    variance, ends = variances(height), np.arange(leaves + 1)
    found = np.zeros(leaves + 1)
    for depth in range(height):
        within = (ends % (leaves >> depth)) / (leaves >> depth)
        found += np.minimum(within, 1 - within) ** 2 * 2 * variance[height - depth - 1]
    return found


def deviations(leaves: int, share: float) -> Floats:
    """Standard deviation of (rows before each leaf) − share·(all rows), in units of one node's."""
    ends = np.arange(leaves + 1) / leaves
    total = variances(leaves.bit_length() - 1)[-1]
    return np.asarray(np.sqrt((ends - share) ** 2 * total + _path_variance(leaves)))


def z_of(law: Noise, confidence: float) -> float:
    """So many deviations of a sum of such noises are exceeded with a chance of at most 1 − confidence.

    Sums of Laplace noises lie between one of them and the normal law; at either tail one of the two is the longer.
    """
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    return max(normal, -math.log1p(-confidence) / math.sqrt(2)) if isinstance(law, DiscreteLaplaceLaw) else normal


# --- from ranks to values


@dataclass(frozen=True)
class Tree:
    """The noisy tree of one column in every group, with its ranks made consistent.

    ``before`` holds, per group, the weighted rows before each leaf, and of all; in units of `SCALE`.
    """

    layout: TreeLayout
    law: Noise
    before: Floats
    confidence: float

    @classmethod
    def read(cls, measure: Measure, law: Noise, values: Any, confidence: float) -> Tree:
        """From a measure's noisy integers, group by group."""
        noisy = np.asarray(values, dtype=np.float64).reshape(-1, measure.width)
        return cls(TreeLayout.of(measure), law, ranks(noisy), confidence)

    @property
    def deviation(self) -> float:
        """Of one node's noise."""
        return math.sqrt(noise_variance(self.law))

    @property
    def edge(self) -> float:
        """The noise error of a rank, in weight: the rows that lie beyond a private extreme.

        At the place where it is largest, so that nothing but noise rarely passes for an extreme.
        """
        worst = float(deviations(self.layout.leaves, 0.0)[: self.layout.used + 1].max())
        return z_of(self.law, self.confidence) * self.deviation * worst

    def notes(self, aggregate: Aggregate) -> tuple[str, ...]:
        """What MIN and MAX are, with about how many rows may lie beyond, in two digits."""
        if aggregate.kind not in EXTREMES:
            return ()
        rows = max(1.0, self.edge / SCALE)
        shown = round(rows, 1 - math.floor(math.log10(rows)))
        name = "" if aggregate.value is None else written(aggregate.value)
        side, said = EXTREMES[aggregate.kind][2], aggregate.kind.upper()
        groups = " in each group" if len(self.before) > 1 else ""
        return (
            f"{said}({name}) is a private extreme: about {count_of(round(shown), 'row')} may lie {side} it{groups}.",
        )

    def estimates(self, aggregate: Aggregate) -> list[Estimate]:
        """The quantile, or private extreme, in every group.

        MIN and MAX are the values beyond which as many rows lie as the noise error of a rank, and at most half of all.
        """
        total = self.before[:, -1]
        if aggregate.kind not in EXTREMES:
            return self._found(float(aggregate.parameter or 0.0), np.zeros(len(total)), slice(None))
        small = total <= 2 * self.edge
        share, sign, _ = EXTREMES[aggregate.kind]
        found: list[Estimate | None] = [None] * len(total)
        for chosen, at, shift in ((small, 0.5, 0.0), (~small, share, sign * self.edge)):
            places = np.flatnonzero(chosen)
            for place, each in zip(places, self._found(at, np.full(len(places), shift), places), strict=True):
                found[place] = each
        return [each for each in found if each is not None]

    def _found(self, share: float, shift: Floats, places: Any) -> list[Estimate]:
        """Where the rows before reach share·all + shift."""
        used = self.layout.used
        before = self.before[places]
        if not len(before):
            return []
        total = before[:, -1]
        off = before[:, : used + 1] - share * total[:, None] - shift[:, None]
        width = z_of(self.law, self.confidence) * self.deviation
        margin = width * deviations(self.layout.leaves, share)[: used + 1]
        place, within, low, high = locate(off, margin)
        known = total > width * math.sqrt(variances(self.layout.levels - 1)[-1])
        return [
            self._estimate(*each)
            for each in zip(known.tolist(), place.tolist(), within.tolist(), low, high, strict=True)
        ]

    def _estimate(self, known: bool, place: int, within: float, first: int, last: int) -> Estimate:
        layout = self.layout
        size, step = layout.size, layout.step
        bounds = layout.low * step, layout.high * step
        if not known:
            ends = float(bounds[0]), float(bounds[1])
            return Estimate(None, (ends[1] - ends[0]) / 2, *ends)
        inside = min(size - 1, math.floor(Fraction(within) * size))
        value = min(layout.low + place * size + inside, layout.high) * step
        low = (layout.low + int(first) * size) * step
        high = min(layout.low + (int(last) + 1) * size - 1, layout.high) * step
        shown = int(value) if step.denominator == 1 else float(value)
        return Estimate(shown, float(max(value - low, high - value)), float(low), float(high))


def locate(off: Floats, margin: Floats) -> tuple[NDArray[np.intp], Floats, NDArray[np.intp], NDArray[np.intp]]:
    """The leaf where ranks pass 0, how far within it, and the first and last leaf of the interval.

    ``off`` holds a row for each group and a column for each end of a leaf; ``margin`` what noise explains there.
    """
    last = off.shape[1] - 2
    # Ranks rise with the value, and noisy ones are brought near to that: halfway between both envelopes.
    rising = np.maximum.accumulate(off, axis=1) + np.minimum.accumulate(off[:, ::-1], axis=1)[:, ::-1]
    rising /= 2
    place = _first(rising[:, 1:] >= 0, last)
    rows = np.arange(len(off))
    start, end = rising[rows, place], rising[rows, place + 1]
    within = np.clip(np.where(end > start, -start / np.where(end > start, end - start, 1.0), 0.5), 0.0, 1.0)
    low, high = _left(rising, margin, 1)
    apart = _power(np.maximum(1, (high - low) / 2 / _APART))
    for spacing in sorted(set(apart.tolist())):  # np.unique would import all of numpy.ma
        chosen = np.flatnonzero(apart == spacing)
        low[chosen], high[chosen] = _left(off[chosen], margin, spacing)
    return place, within, np.minimum(low, place), np.maximum(np.minimum(high, last), place)


def _first(holds: NDArray[np.bool_], otherwise: int) -> NDArray[np.intp]:
    """The first place of each row at which it holds."""
    return np.where(holds.any(axis=1), holds.argmax(axis=1), otherwise)


def _left(off: Floats, margin: Floats, spacing: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first and last leaf that are not ruled out, by ends that are multiples of ``spacing``, and the last end."""
    ends = np.arange(0, off.shape[1] - 1, spacing)
    ends = np.append(ends, off.shape[1] - 1)
    seen, most = off[:, ends], margin[ends]
    first = _first(seen[:, 1:] >= -most[1:], len(ends) - 2)
    last = len(ends) - 2 - _first((seen[:, :-1] <= most[:-1])[:, ::-1], len(ends) - 2)
    return ends[first], ends[last + 1] - 1


def _power(values: Floats) -> NDArray[np.int64]:
    """The largest power of two that is no more."""
    return np.asarray(2 ** np.floor(np.log2(values)).astype(np.int64))


# --- widths, before anything is measured


def expected_error(
    aggregate: Aggregate, measure: Measure, law: Law, rows: int, confidence: float, spread: ValueSpread = EVEN
) -> float:
    """The mean noise error of a quantile, or private extreme, in a group of so many rows, with values spread so.

    Where a few of the draws tell nothing, and so have the whole range as their error, it is that of the middle one.
    """
    group = _Group(TreeLayout.of(measure), law, float(rows) * SCALE, confidence, spread)
    return _mean_error(aggregate.kind, float(aggregate.parameter or 0.0), group)


@lru_cache(maxsize=1024)  # a preview looks at the same columns and prices again and again
def _mean_error(kind: str, parameter: float, group: _Group) -> float:
    if kind not in EXTREMES:
        drawn = group.errors(parameter, 0.0)[0]
        average, median = float(drawn.mean()), float(np.median(drawn))
        return average if average < _SKEWED * median else median
    edge = group.width * float(deviations(group.layout.leaves, 0.0)[: group.layout.used + 1].max())
    share, sign, _ = EXTREMES[kind]
    # As `Tree.estimates`: at most half of the rows lie beyond an extreme.
    found, total = group.errors(share, sign * edge)
    small = float((total <= 2 * edge).mean())
    if not small:
        return float(found.mean())
    middle, other = group.errors(0.5, 0.0)
    parts = ((found, total > 2 * edge, 1 - small), (middle, other <= 2 * edge, small))
    return sum(weight * float(each[held].mean()) for each, held, weight in parts if held.any())


@dataclass(frozen=True)
class _Group:
    """So much weight, spread over the leaves that hold values, and the noise of one node."""

    layout: TreeLayout
    law: Law
    weight: float
    confidence: float
    spread: ValueSpread = EVEN

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
        before = self.weight * self.spread.all_below(ends / layout.used) + self.deviation * noise[:, : len(ends)]
        off = before - share * whole[:, None] - shift
        place, within, low, high = locate(off, self.width * deviations(layout.leaves, share)[ends])
        size, most = layout.size * apart, layout.high - layout.low
        at = first * layout.size
        value = np.minimum(at + place * size + np.minimum(size - 1, np.floor(within * size)), most)
        reach = np.maximum(value - at - low * size, np.minimum(at + (high + 1) * size - 1, most) - value)
        known = whole > self.width * math.sqrt(variances(layout.levels - 1)[-1])
        return np.where(known, reach, most / 2) * float(layout.step), whole

    def _window(self, share: float, shift: float) -> tuple[int, int, int]:
        """First and last leaf that matter, and how far ends lie apart: powers of two, so that they are in the tree."""
        leaves, used = self.layout.leaves, self.layout.used
        part = share + shift / self.weight
        centre = self.spread.place(part) * used
        off = self.width * float(deviations(leaves, share)[round(centre)]) / self.weight
        ends = self.spread.place(part - off) * used, self.spread.place(part + off) * used
        # Of evenly spread values, what lies past the bounds counts as well: the noise goes on there.
        half = max(centre - ends[0], ends[1] - centre, off * used if self.spread == EVEN else 0.0)
        apart = 1
        while min(2 * half, used) > 2 * apart * _FINE:
            apart *= 2
        block = apart
        while block < min(leaves, half):
            block *= 2
        low, high = centre - _AROUND * half, centre + _AROUND * half
        if self.spread != EVEN:  # where values are rare, ranks hardly rise, and ends far away may not be ruled out
            low = min(low, self.spread.place(part - _AROUND * off) * used)
            high = max(high, self.spread.place(part + _AROUND * off) * used)
        first = max(0, math.floor(low / block)) * block
        last = min(leaves, (math.floor(high / block) + 1) * block)
        return first, min(last, -(-used // apart) * apart), apart


@lru_cache(maxsize=4)  # about 10 MB each: quantiles and prices of one question mostly share theirs
def _drawn(leaves: int, first: int, last: int, apart: int) -> tuple[Floats, Floats]:
    """Noise of the ranks at every ``apart``-th end from ``first`` to ``last``, and of all, per deviation of a node."""
    chance, variance = np.random.default_rng(_SEED), variances(leaves.bit_length() - 1)
    points = (last - first) // apart + 1
    draws = max(min(_DRAWS, _LARGEST // points), min(_MOST, _POINTS // points))
    total = math.sqrt(variance[-1]) * chance.standard_normal(draws)
    nodes, start, before, size = total[:, None], 0, np.zeros(draws), leaves
    while size > apart:
        size //= 2
        more = math.sqrt(2 * variance[size.bit_length() - 1]) * chance.standard_normal(nodes.shape)
        halves = np.empty((*nodes.shape, 2))
        np.add(nodes, more, out=halves[:, :, 0])
        np.subtract(nodes, more, out=halves[:, :, 1])
        halves /= 2
        nodes = halves.reshape(draws, -1)
        # what lies wholly before the window is only added up; what lies behind it is not looked at
        ahead = (first - start) // size
        before = before + nodes[:, :ahead].sum(axis=1)
        start += ahead * size
        nodes = nodes[:, ahead : -(-(last - start) // size) + ahead]
    found = before[:, None] + np.concatenate([np.zeros((draws, 1)), np.cumsum(nodes, axis=1)], axis=1)
    for each in (found, total):  # whoever asks next gets the same
        each.setflags(write=False)
    return found, total
