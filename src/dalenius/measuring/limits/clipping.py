"""What clipping took from an answer, estimated from what is released: post-processing, which costs nothing.

A unit whose vector w ≥ 0 has a length k beyond its limit C keeps w·C/k and loses w·(1 − C/k). Noisy counts of units by
length tell about how much that is in all: with n units of length k, whose total is r(k) times their length,

    lost = Σ n·r·(k − C)⁺,   kept = Σ n·r·min(k, C),   factor = lost/kept.

*r* lies between 1 (all in one group) and √groups (evenly in all). N rows that fall at random into m groups have
k² = N + N(N − 1)/m on average, which gives N, and r = N/k; m is what makes kept agree with the sum of all groups.

*What was released tells of the tail*, too: where units that stand out cannot have added so much, others have. A tail
with which kept falls short of it fits the less; so do fewer groups (√m, one). By the counts alone, noise that seemed to
end a tail made intervals narrow where half of all rows was lost, and all that was answered from these counts was wrong
alike, in one home of six.

*Units past the last class* that stands out of the noise are extrapolated (`tails`): each tail that the noisy counts
allow weighs by how well it fits them.

*A group* that shows y misses about y·factor. It may miss more, for reasons that add in squares: its noise; what the
counts do not tell (their noise, sizes within a class, the tail, how heavy units spread); chance, where the heavy units
are few and each has groups of its own, which is Σ n·(1 − r²/groups)·((k − C)⁺ − factor·min(k, C))² over all groups; and
heavy units that favour some groups, for which a *fixed* part of what it misses is allowed (`FAVOUR`). That part is an
assumption and no bound: a group to which half of the heavy units go misses more. Nor is there anything here of a few
units far larger than all others: noise of one unit's worth hides them by design.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dalenius.measuring.estimates import normal_width
from dalenius.measuring.limits.histogram import (
    CLASSES,
    class_top,
    noise_deviation,
    norm_ends,
    see_classes,
    stands_alone,
)
from dalenius.measuring.limits.tails import FAR, Array, Shown, possible_tails

if TYPE_CHECKING:
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.laplace import Laplace

FAVOUR = 1.0  # of what a group is reckoned to miss: how far heavy units may favour it, as a deviation
_HALF = 0.5  # of the way to the upper end of a class, as a deviation, where its units may be alike
_WIDER = 2.0  # into so many times as many groups heavy units' rows may fall, as a deviation
_ONE_ROW = (0.3, 0.7)  # of values, one row is about the length of the lightest units, of these parts of all
_UPPER = 0.975
_UNSEEN = 1.0  # how far what an extrapolated tail loses may be higher, at the least, as a multiple of it
_RARE = 0.02  # of the groups: fewer than that have units so heavy, and theirs is no chance that all groups take
_UNTOLD = 1.0  # how far a share may be off, as a multiple of it, where the counts that it came from are not kept
_SCATTERED = 2.0  # the same of a share of norms: those of heavy units' totals may be larger
_HEAVY = 4.0  # times the limit: what heavy units lose by the square, for each that they lose, where only that is known
_MODEL = 0.05  # of a total: how far it may be off what classes and spread make of units that are known
_POINTS = 8  # by which a class is gone through
_HALVINGS = 30
_MOST = 0.999  # of all mass may be lost, as far as it is reckoned with
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Spread:
    """Over what units' vectors go.

    Attributes:
        groups: How many there are.
        scattered: Whether a vector may be shorter than its total: its norm is L2, over several groups.
        total: The released groups added up, in steps.
        rows: Whether rows are counted, so that one row is the least.
        rounded: Whether lengths were rounded up to whole numbers before they were counted.
        error: Deviation of the noise in ``total``; None where that is not what the limit left of the units that were
            counted, and so tells nothing about them. It is used where they are scattered.
    """

    groups: int
    scattered: bool
    total: float
    rows: bool
    rounded: bool = True
    error: float | None = None

    @property
    def favour(self) -> float:
        """How far heavy units may favour a group; where there is one, they cannot."""
        return FAVOUR if self.groups > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Loss:
    """What clipping took from a column.

    Attributes:
        factor: Lost for each that was kept.
        deviation: How far that may be off.
        more: What it may be higher besides, at 95%, where a tail was extrapolated.
        chance: Variance of what groups lose by chance, of all together, in squared steps.
        favour: How far heavy units may favour one group, as a part of what it misses.
        kept: What was kept of all units that were counted, in steps; 0 where that is not known.
    """

    factor: float
    deviation: float = 0.0
    more: float = 0.0
    chance: float = 0.0
    favour: float = 0.0
    kept: float = 0.0

    @property
    def share(self) -> float:
        """Of all mass, what was lost."""
        return float(f"{self.factor / (1 + self.factor):.{_DIGITS}g}")

    def missed(self, value: float) -> float:
        """How much a group is reckoned to miss that shows so much."""
        return self.factor * max(0.0, value)

    def reach(self, value: float, error: float, part: float, confidence: float) -> float:
        """How far above its value the raw truth of a group may lie: never less than its noise allows.

        Args:
            value: What it shows, in steps.
            error: Half-width of its noise at ``confidence``.
            part: Its part of all groups.
            confidence: Of the whole.
        """
        missed, z = self.missed(value), normal_width(confidence)
        told = max(0.0, value) * z * (self.deviation + self.more / normal_width(0.95))
        chance = z * math.sqrt(self.chance * part)
        return max(error, missed + math.hypot(error * (1 + self.factor), told, chance, z * self.favour * missed))

    @property
    def most(self) -> float:
        """What may be lost for each that was kept, at 95%."""
        return self.factor + self.deviation * normal_width(0.95) + self.more

    def within(self, other: Loss, total: float) -> Loss:
        """No more than another loss, of which this one is a part.

        Args:
            other: What more rows of the same units lose at the same limit.
            total: What was kept of the rows that are asked about, in steps.
        """
        scale = other.kept / max(total, 1.0)
        most = other.most * scale
        if not other.kept or most >= self.most:
            return self
        factor, deviation = min(self.factor, other.factor * scale), other.deviation * scale
        more = max(0.0, most - factor - deviation * normal_width(0.95))
        return replace(self, factor=factor, deviation=deviation, more=more, chance=min(self.chance, other.chance))


NOTHING = Loss(0.0)


def loss_of_counts(counts: Sequence[int], law: DiscreteGaussian | Laplace, clip: int, spread: Spread) -> Loss | None:
    """From noisy counts of units by length, at the limit that was used; None where no class stands out of the noise.

    Classes that stand out only together are enough to choose a limit, where a wrong one costs accuracy, but not to say
    how much lies beyond it.
    """
    found = see_classes(counts, law)
    if not found or not stands_alone(counts, law):
        return None
    rows = [1.0] if spread.rows else [length_of_part(found, part) for part in _ONE_ROW]
    each = [_loss(found, counts, noise_deviation(law), clip, spread, one) for one in rows]
    factor = math.fsum(one.factor for one in each) / len(each)
    apart = max(one.factor for one in each) - factor
    return Loss(
        factor,
        math.hypot(max(one.deviation for one in each), apart),
        max(one.more for one in each),
        max(one.chance for one in each),
        spread.favour,
        min(one.kept for one in each),
    )


def _loss(
    found: Sequence[float], counts: Sequence[int], deviation: float, clip: int, spread: Spread, one: float
) -> Loss:
    """The same where one row has the length ``one``."""
    size, last = min(CLASSES, len(found) + FAR), len(found)
    seen, noisy = np.array([*found, *[0.0] * (size - last)]), np.array(counts[:size], dtype=float)
    sizes, low, high = class_points(size, rows=spread.rows, scattered=spread.scattered, rounded=spread.rounded)
    most = _effective(lambda each: float(seen @ clip_classes(sizes, clip, one, each).kept), spread)
    ways = []
    for groups in _spreads(most, spread):
        parts = clip_classes(sizes, clip, one, groups)
        least, largest = (np.log(rows_of_length(each, one, groups)) for each in (low, high))
        told = math.hypot(spread.error or 0.0, _MODEL * spread.total)
        shown = None if spread.error is None or not spread.scattered else Shown(spread.total, parts.kept, told)
        ways.append((groups, parts, possible_tails(noisy, last, deviation, least, largest, shown)))
    misfits = np.array([tails.misfit for _, _, tails in ways])
    odds = np.exp((misfits.min() - misfits) / 2)
    odds /= odds.sum()
    units = [(seen + tails.units, parts) for _, parts, tails in ways]  # one row for each tail that the counts allow
    factors = np.concatenate([many @ parts.lost / np.maximum(many @ parts.kept, 1.0) for many, parts in units])
    chances = np.concatenate([way * tails.chances for way, (_, _, tails) in zip(odds, ways, strict=True)])
    factor = float(chances @ factors)
    order = np.argsort(factors)
    upper = factors[order][min(len(order) - 1, int(np.searchsorted(np.cumsum(chances[order]), _UPPER)))]
    groups, parts, tails = ways[int(np.argmax(odds))]
    mean = seen + tails.mean
    whole = max(float(mean @ parts.kept), 1.0)
    unseen = float((mean - seen) @ parts.lost) / whole
    # Each count moves the factor by what its units lose more than others.
    noise = deviation * float(np.linalg.norm((parts.lost - factor * parts.kept)[:last])) / whole
    # All units of a class may have the size of its upper end, unless the classes beside it hold as many.
    pile = np.maximum(seen - np.maximum(np.append(seen[1:], 0.0), np.append(0.0, seen[:-1])), 0.0)
    place = _HALF * float(np.linalg.norm(pile * (parts.highest - parts.lost))) / whole
    wider = clip_classes(sizes, clip, one, min(_WIDER * groups, spread.groups)) if spread.scattered else parts
    wide = float(mean @ wider.lost) / max(float(mean @ wider.kept), 1.0) - factor
    ratio = parts.ratio
    alone = np.maximum(0.0, 1 - ratio**2 / spread.groups)  # of a unit that is in all groups alike, chance moves nothing
    over, within = np.maximum(sizes - clip, 0.0), np.minimum(sizes, clip)
    # So few groups have a unit as large as that or larger that it is not chance, but those groups' own.
    heavier = np.cumsum(mean[::-1])[::-1] * (ratio**2).mean(1) / spread.groups
    chance = float((mean * (heavier >= _RARE)) @ (alone * (over - factor * within) ** 2).mean(1))
    giants = normal_width(0.95) * tails.giants(parts.lost) / whole
    more = max(0.0, math.hypot(float(upper) - factor, giants), _UNSEEN * unseen)
    return Loss(factor, math.hypot(noise, place, max(0.0, wide)), more, chance, kept=whole)


@dataclass(frozen=True, slots=True)
class ClippedClasses:
    """What a unit of each class loses and keeps; what it loses at the upper end; its total per length by points."""

    lost: Array
    kept: Array
    highest: Array
    ratio: Array


def clip_classes(sizes: Array, clip: int, one: float, groups: float) -> ClippedClasses:
    """What a limit takes from units of each class, whose rows of the size ``one`` fall into so many groups."""
    ratio = np.maximum(1.0, rows_of_length(sizes, one, groups) * one / np.maximum(sizes, 0.5))
    lost = ratio * np.maximum(sizes - clip, 0.0)
    return ClippedClasses(lost.mean(1), (ratio * np.minimum(sizes, clip)).mean(1), lost.max(1), ratio)


def rows_of_length(sizes: Array, one: float, groups: float) -> Array:
    """How many rows of the size ``one`` have such a length, where they fall at random into so many groups."""
    length, rest = sizes / one, 1 - 1 / groups
    # the positive root of rows²/groups + rest·rows = length², in the form that does not cancel
    return np.asarray(
        2 * length * length / np.maximum(np.sqrt(rest * rest + 4 * length * length / groups) + rest, 1e-300)
    )


def loss_of_share(share: float, clip: int, spread: Spread) -> Loss:
    """From the share that was reckoned to lie beyond a limit, where the counts that it came from are not kept."""
    factor = share / (1 - min(share, _MOST))
    chance = 0.0 if spread.groups == 1 else _HEAVY * clip * factor * max(spread.total, 0.0)
    return Loss(factor, 0.0, (_SCATTERED if spread.scattered else _UNTOLD) * factor, chance, spread.favour)


def class_points(classes: int, *, rows: bool, scattered: bool, rounded: bool = True) -> tuple[Array, Array, Array]:
    """Sizes within each class, evenly by their logarithm, and its ends.

    Lengths are counted as whole numbers, rounded up, but for norms at `protect` (``rounded``). Those of rows are whole,
    or roots of whole numbers.
    """
    tops = np.array([class_top(place) for place in range(classes)])
    low, high, most = np.append(0.0, tops[:-1]), tops, np.floor(tops)
    if rows and not rounded:
        low, high = (np.array(each) for each in norm_ends(classes))
        most = tops
    elif rows:
        low, high = np.floor(low), np.floor(high)
        low, high = (np.sqrt(each**2 + 0.5) if scattered else each + 0.5 for each in (low, high))
    low, high = np.maximum(low, 0.5), np.maximum(high, 0.5)
    steps = (np.arange(_POINTS) + 0.5) / _POINTS
    sizes = np.minimum(low[:, None] * (high / low)[:, None] ** steps, most[:, None])
    sizes[1] = 1.0
    return sizes, low, high


def _effective(kept: Callable[[float], float], spread: Spread) -> float:
    """Into how many groups rows fall at random, so that what is kept agrees with what was released."""
    if not spread.scattered:
        return 1.0
    low, high = 0.0, math.log(spread.groups)
    if kept(spread.groups) <= spread.total:
        return float(spread.groups)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if kept(math.exp(middle)) < spread.total else (low, middle)
    return math.exp(high)


def _spreads(most: float, spread: Spread) -> list[float]:
    """Into how many groups rows may fall.

    Those who stand out show all that was released where rows fall into ``most`` groups. It may be fewer, if units of a
    tail show the rest.
    """
    return [most] if spread.error is None or most <= 1 else [most, math.sqrt(most), 1.0]


def length_of_part(seen: Sequence[float], part: float) -> float:
    """So long is a unit at most, in that part of them."""
    least, so_far, place = part * sum(seen), 0.0, 0
    while place + 1 < len(seen) and (so_far < least or not place):
        place += 1
        so_far += seen[place]
    return class_top(place)
