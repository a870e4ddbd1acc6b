"""Where a tight limit and a total together tell more than any one limit: which limits, and what is off then.

Clipping tightly makes little noise and takes the same part from groups alike, but for those that heavy units favour.
Where their total is known as well (`question_total`), groups that were clipped tightly are scaled up to it. To see
where heavy units are, the same vectors may be measured a second time at a higher limit, with less of the price
(`heavy_band`).

Reckoned with, per group and in squares, at a limit C with factor f = what is lost for each that is kept:

    noise (1 + f)²  +  what the total may be off  +  chance (who is where)  +  (FAVOUR·f·kept)² for favoured groups.

Units that are all alike lose the same part wherever they are; nothing is allowed for favour then.

*Guarantee.* Limits are chosen from noisy counts: post-processing. What is measured has noise for the
limits that were chosen (`in_question`); the second measure is the first one at another limit, and the two share its
price, so they compose by addition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalenius.measuring.limits.clipping import class_points, clip_classes, length_of_part, rows_of_length
from dalenius.measuring.limits.histogram import CANDIDATES, CLASSES, noise_deviation, see_classes, stands_alone
from dalenius.measuring.limits.rescaled import FEWEST, Total
from dalenius.measuring.limits.tails import FAR, Array, possible_tails

if TYPE_CHECKING:
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.laplace import Laplace

FAVOUR = 0.35  # how far heavy units may favour a group, as a part of what it misses
_OWN = 2.0  # how far lengths may be off about what is lost, as a part of it
_UNSEEN = 3.0  # the same of what an extrapolated tail loses
_PLACE = 0.5  # of the way to the upper end of a class, as a deviation, where its units may be alike
_EVEN = 1.1  # times the squared error of a plain limit: scaled groups do not depend on where in a class units lie
_PAYS = 0.12  # of the squared error, from which on favour is worth measuring
_LOST = 0.12  # for each that is kept, likewise
_MOST_LOST = 3.0  # likewise: so little of all units is not enough to go by, even where all seem alike
_TIGHTER, _HIGHER = 1.5, 4  # so many times below and above the one best limit are the two
_RARE = 0.02  # of the groups: fewer have units so heavy, and theirs is no chance that all groups take
_WITHIN = 1.1  # half the width of a class, about
_HALVINGS = 14


@dataclass(frozen=True, slots=True)
class Taken:
    """What a limit takes, as far as noisy counts tell.

    Attributes:
        factor: Lost for each that is kept.
        deviation: How far that may be off.
        kept: What is left, in steps, over all groups.
        chance: Variance of what groups lose by chance, of all together, in squared steps.
        unequal: How unequally it takes: 0 where all units are alike, nearly 1 where few lose nearly all.
    """

    factor: float
    deviation: float
    kept: float
    chance: float
    unequal: float

    def with_total(self, total: Total, kept: float | None = None) -> Taken:
        """The same by what all adds up to, and by what was kept of it in fact.

        Lengths say well that little is lost, and badly how much it is where units are few and heavy: they are a bound,
        and below it the total decides. To average the two was tried, and left out too many groups.
        """
        kept = max(self.kept if kept is None else kept, 1.0)
        most = self.factor + self.deviation
        factor, deviation = max(0.0, total.mean / kept - 1), total.deviation / kept
        # What is less than it may be off is better left alone.
        factor *= min(1.0, (factor / max(deviation, 1e-12)) ** 2)
        return Taken(min(factor, most), min(deviation, most), kept, self.chance, self.unequal)

    def favour(self, groups: int) -> float:
        """What is allowed for favoured groups, on average, as a deviation."""
        return FAVOUR * math.sqrt(self.unequal) * self.factor * self.kept / groups


class Lengths:
    """Noisy counts of units by length, and a total that says over how many groups their rows are spread."""

    def __init__(
        self, noisy: Sequence[int], law: DiscreteGaussian | Laplace, groups: int, total: Total, *, rows: bool
    ) -> None:
        found = see_classes(noisy, law)
        self.groups, self.total, self.deviation = groups, total, noise_deviation(law)
        self.last, size = len(found), min(CLASSES, len(found) + FAR)
        self.seen = np.array([*found, *[0.0] * (size - self.last)])
        self.noisy = np.array(noisy[:size], dtype=float)
        self.one = 1.0 if rows else length_of_part(found, 0.5)
        self.sizes, self.low, self.high = class_points(size, rows=rows, scattered=True)
        self.spread = self._spread()
        tails, chances = self._tails(self.spread)
        self.mean = self.seen + chances @ tails
        # Where units lie within a class is not known: that explains a little of what the lengths do not add up to.
        whole = max(float(self.mean @ clip_classes(self.sizes, 2**62, self.one, self.spread).kept), 1.0)
        self.within = min(max(total.mean / whole, 1.0), _WITHIN)

    @property
    def longest(self) -> float:
        """The largest size that stands out of the noise."""
        return float(self.sizes[self.last - 1].max())

    def _tails(self, spread: float) -> tuple[Array, Array]:
        ends = (np.log(rows_of_length(each, self.one, spread)) for each in (self.low, self.high))
        return possible_tails(self.noisy, self.last, self.deviation, *ends)

    def _spread(self) -> float:
        """Over how many groups rows are spread at random, so that the lengths add up to the total."""

        def whole(spread: float) -> float:
            tails, chances = self._tails(spread)
            everything = clip_classes(self.sizes, 2**62, self.one, spread).kept
            return float((self.seen + chances @ tails) @ everything)

        return math.exp(_halved(lambda each: whole(math.exp(each)) < self.total.mean, math.log(self.groups)))

    def taken(self, clip: int) -> Taken:
        """What a limit takes."""
        parts, mean = clip_classes(self.sizes, clip, self.one, self.spread), self.mean
        kept = max(float(mean @ parts.kept), 1.0)
        factor, unseen = float(mean @ parts.lost) / kept, float((mean - self.seen) @ parts.lost) / kept
        noise = self.deviation * float(np.linalg.norm((parts.lost - factor * parts.kept)[: self.last])) / kept
        beside = np.maximum(np.append(self.seen[1:], 0.0), np.append(0.0, self.seen[:-1]))
        place = float(np.linalg.norm(np.maximum(self.seen - beside, 0.0) * (parts.highest - parts.lost))) / kept
        deviation = math.hypot(noise, _PLACE * place, _OWN * factor, _UNSEEN * unseen)
        over, within = np.maximum(self.sizes - clip, 0.0).mean(1), np.minimum(self.sizes, clip).mean(1)
        ratio = (parts.ratio**2).mean(1)
        heavier = np.cumsum(mean[::-1])[::-1] * ratio / self.groups
        alone = np.maximum(0.0, 1 - ratio / self.groups)
        chance = float((mean * (heavier >= _RARE)) @ (alone * (over - factor * within) ** 2))
        squares = float(mean @ within) * float(mean @ over**2)
        unequal = max(0.0, 1 - float(mean @ over) ** 2 * clip / squares) if squares > 0 else 0.0
        return Taken(factor, deviation, kept * self.within, chance, unequal)


@dataclass(frozen=True, slots=True)
class ChosenLimits:
    """A limit, and a higher one at which to measure again; None: that would not pay."""

    clip: int
    heavy: int | None


def choose_limits(lengths: Lengths, noise: float, most: int) -> ChosenLimits | None:
    """The limits at which scaled-up groups are nearest to the truth; None where one plain limit is expected to do.

    Args:
        lengths: What units add here.
        noise: The deviation of the measure's noise, for a limit of 1.
        most: The measure's own limit.
    """
    groups = lengths.groups
    scaled: list[tuple[float, int, float, float]] = []
    plain = []
    for clip in (each for each in CANDIDATES if each <= max(1, min(most, 4 * lengths.longest))):
        taken = lengths.taken(clip).with_total(lengths.total)
        if taken.factor > _MOST_LOST:
            continue
        known, average = clip * noise, taken.kept / groups
        favour = taken.favour(groups) ** 2
        error = (known * (1 + taken.factor)) ** 2 + (average * taken.deviation) ** 2 + taken.chance / groups + favour
        scaled.append((error, clip, favour / max(error, 1e-18), taken.factor))
        plain.append(known**2 + average**2 * (taken.factor**2 + taken.deviation**2) + taken.chance / groups)
    if not scaled:
        return None
    error, clip, favour, factor = min(scaled)
    if error >= _EVEN * min(plain):
        return None
    heavy = min(most, _HIGHER * clip)
    if favour < _PAYS or factor < _LOST or heavy <= clip:
        return ChosenLimits(clip, None)
    return ChosenLimits(max(1, round(clip / _TIGHTER)), heavy)


def tellable(noisy: Sequence[int], law: DiscreteGaussian | Laplace, groups: int) -> bool:
    """Whether counts say enough, and groups are many enough, to scale anything up."""
    return groups >= FEWEST and stands_alone(noisy, law) and bool(see_classes(noisy, law))


def _halved(less: Callable[[float], bool], high: float) -> float:
    """Where something that grows from 0 to ``high`` is no longer less."""
    low = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if less(middle) else (low, middle)
    return high
