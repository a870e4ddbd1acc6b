"""What a tight limit takes, as far as noisy counts of units by length tell: public post-processing.

Clipping tightly makes little noise and takes the same part from groups alike, but for those that heavy units favour.
Where their total is known as well (`question_total`), groups that were clipped tightly are scaled up to it. To see
where heavy units are, the same vectors are measured a second time at a higher limit
(`choose_limits`, `heavy_band`).

What is reckoned with here, at a limit C: f = what is lost for each that is kept; how far that may be off; and chance,
which is who happens to be where, over all groups.
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
from dalenius.measuring.limits.tails import FAR, Tails, possible_tails

if TYPE_CHECKING:
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.laplace import Laplace

FAVOUR = 0.35  # how far heavy units may favour a group, as a part of what it misses
_OWN = 2.0  # how far lengths may be off about what is lost, as a part of it
_UNSEEN = 3.0  # the same of what an extrapolated tail loses
_PLACE = 0.5  # of the way to the upper end of a class, as a deviation, where its units may be alike
_TIGHTER = 16  # times below the heavy limit is the tight one: found by trying, and flat between 8 and 16
_DISTORTED = 0.01  # of a group: so far off tight limits leave one beside another, if units are alike; else twice that
_HIDDEN = 0.25  # of a group: with more noise than that hardly any favour shows
_HIGHER = 6  # times the tight limit: a lower one tells nothing that the tight one does not
_ALIKE = 0.03  # of `Taken.unequal`: less than that is nobody heavier than others
_NEARLY = 1.01  # times the least noise
_FEW = 1.0  # times the root of their number
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
        self.mean = self.seen + self._tails(self.spread).mean
        # Where units lie within a class is not known: that explains a little of what the lengths do not add up to.
        whole = max(float(self.mean @ clip_classes(self.sizes, 2**62, self.one, self.spread).kept), 1.0)
        self.within = min(max(total.mean / whole, 1.0), _WITHIN)

    @property
    def longest(self) -> float:
        """The largest size that stands out of the noise."""
        return float(self.sizes[self.last - 1].max())

    def _tails(self, spread: float) -> Tails:
        low, high = (np.log(rows_of_length(each, self.one, spread)) for each in (self.low, self.high))
        return possible_tails(self.noisy, self.last, self.deviation, low, high)

    def _spread(self) -> float:
        """Over how many groups rows are spread at random, so that the lengths add up to the total."""

        def whole(spread: float) -> float:
            everything = clip_classes(self.sizes, 2**62, self.one, spread).kept
            return float((self.seen + self._tails(spread).mean) @ everything)

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
class TwoLimits:
    """At which limit groups are measured, and at which higher one again; None: once is enough."""

    tight: int
    heavy: int | None


def choose_limits(lengths: Lengths, plain: int, heavy: int, noise: float) -> TwoLimits:
    """The limits at which groups are measured, to be scaled up.

    A tight limit makes little noise, and the same for all that are beyond it: scaled up, that is least where the limit
    over what it keeps is least. Beside it the heavy one tells where heavy units are, unless its noise hides that. Where
    all units are about alike, a tight limit is as good as any for them, and it is the highest of those. And where noise
    is next to nothing the plain limit is the only one: groups in which units happen to be longer lose a little more to
    a tight one than others do.

    Args:
        lengths: What units add here.
        plain: The limit that one measure would have alone.
        heavy: A limit up to which it is worth seeing heavy units.
        noise: The deviation of the noise at the heavy one, as a part of an average group.
    """
    tight = max(1, round(heavy / _TIGHTER))
    alike = lengths.taken(tight).unequal < _ALIKE
    if noise < _DISTORTED * (1 if alike else 2):
        return TwoLimits(plain, None)
    if alike:
        limits = [each for each in CANDIDATES if tight <= each <= heavy]
        scaled = [each / lengths.taken(each).kept for each in limits]
        least = _NEARLY * min(scaled)
        return TwoLimits(max(each for each, one in zip(limits, scaled, strict=True) if one <= least), None)
    seen = min(heavy, math.floor(heavy * _HIDDEN / noise))
    return TwoLimits(tight, seen if seen >= _HIGHER * tight else None)


def favoured_groups(groups: int) -> int:
    """Among how many groups heavy units are reckoned to be, where it is to be seen which: a few of many."""
    return math.ceil(_FEW * math.sqrt(groups))


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
