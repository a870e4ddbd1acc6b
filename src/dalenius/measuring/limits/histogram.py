"""A noisy histogram of sizes: which of its classes hold units, and which show noise. Public post-processing.

Class 0 holds size 0, class 1 size 1, class j the sizes above 2^((j−2)/2) up to 2^((j−1)/2). Most of them are empty, and
some of these show a count that is noise. A class is taken for real where all noise of the histogram together would
practically never make such a count; next to real ones, where the noise of that one class would not; and so are several
in a row that hold enough together. So a stray count far out never becomes a limit (`choosing`), and the thin end of a
tail still counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.laplace import Laplace

CLASSES = 129  # sizes 0, 1, …, up to 2⁶⁴, by factors of √2
_ALARM = 1e-6  # chance that noise anywhere is taken for units
_MILD = 1e-4  # the same for one class that lies next to real ones, on either side
_NEAR = 4  # classes past a real one that count as next to it: a factor of four
_WINDOWS = (2, 4, 8)  # classes that are added up where no single one stands out

_TOP = (0.0, *(2 ** ((at - 1) / 2) for at in range(1, CLASSES)))  # the largest size of each class
_FAINT = 0.1  # chance that noise alone passes for the little that is seen where nothing stands out
_WIDTHS = (1, 2, 4, 8)  # classes that are then added up
CANDIDATES = tuple(sorted({math.ceil(2 ** (at / 4)) for at in range(2 * CLASSES)}))


def guess_size(noisy: Sequence[int], law: DiscreteGaussian | Laplace) -> int | None:
    """About how large units are where none stands out of the noise for certain; None: it may all be noise.

    The classes that together exceed their noise by most. A wrong guess costs accuracy, nothing else.

    >>> law = DiscreteGaussian(variance=100, dimension=CLASSES)
    >>> guess_size([0] * 10 + [30, 30] + [0] * 117, law), guess_size([0] * 10 + [20] + [0] * 118, law)
    (32, None)
    """
    sums = {
        (at, width): sum(noisy[at : at + width]) / math.sqrt(width)
        for width in _WIDTHS
        for at in range(1, CLASSES - width + 1)
    }
    best = max(sums, key=lambda each: sums[each])
    if sums[best] <= noise_deviation(law) * math.sqrt(2 * math.log(len(sums) / _FAINT)):
        return None
    start, width = best
    last = max(at for at in range(start, start + width) if noisy[at] > noise_deviation(law))
    return math.ceil(_TOP[last])


def see_classes(noisy: Sequence[int], law: DiscreteGaussian | Laplace) -> list[float]:
    """The classes as far as they stand out of the noise; none where none does."""
    last = _last(noisy, law)
    if last is None:
        return []
    return [float(each) if each > 2 * noise_deviation(law) else 0.0 for each in noisy[: last + 1]]


def stands_alone(noisy: Sequence[int], law: DiscreteGaussian | Laplace) -> bool:
    """Whether a single class surely holds units, and not only several together."""
    return max(noisy[1:]) > law.utility(_ALARM)


def class_top(place: int) -> float:
    """The largest size of a class."""
    return _TOP[place]


def norm_ends(classes: int) -> tuple[list[float], list[float]]:
    """The ends of classes of norms that were counted as they are, as at `protect`; those of questions are rounded up.

    They are roots of whole numbers, so an end lies between two such. √2 is in class 3: as a double, it is above itself.
    """
    squares = [1.0 if place == 2 else _TOP[place] ** 2 for place in range(classes)]
    ends = [math.sqrt(each + 0.5) for each in (0.0, *squares)]
    return ends[:-1], ends[1:]


def _last(noisy: Sequence[int], law: DiscreteGaussian | Laplace) -> int | None:
    """The last class that surely holds units."""
    strict, mild = law.utility(_ALARM), law.noise_error(1 - _MILD)
    last = max((at for at in range(1, CLASSES) if noisy[at] > strict), default=0)
    last = max([last, *_together_past(noisy, law, last)])
    while near := [at for at in range(last + 1, min(last + _NEAR + 1, CLASSES)) if last and noisy[at] > mild]:
        last = near[-1]
    return last or None


def _together_past(noisy: Sequence[int], law: DiscreteGaussian | Laplace, last: int) -> list[int]:
    """The last class of each window past ``last`` that holds units for certain: they are few, or of all sizes.

    In a window, that is the last count that is hardly noise.
    """
    found, sums = [], [0, *accumulate(noisy)]
    for width in _WINDOWS:
        least = _together(law, width)
        for at in range(last + 1, CLASSES - width + 1):
            if sums[at + width] - sums[at] > least:
                window = range(at, at + width)
                there = [each for each in window if noisy[each] > 2 * noise_deviation(law)]
                found.append(there[-1] if there else max(window, key=lambda each: noisy[each]))
    return found


def _together(law: DiscreteGaussian | Laplace, width: int) -> float:
    """What the noise of a window's classes adds up to with chance _ALARM at most, over all windows.

    Chernoff: P(ΣX > t) ≤ e^(−λt)·E[e^(λX)]^w; for scale b at λ = 4/(5b), E ≤ 25/9; for variance σ² at the best λ.
    """
    chance = math.log(len(_WINDOWS) * CLASSES / _ALARM)
    if isinstance(law, DiscreteGaussian):
        return noise_deviation(law) * math.sqrt(2 * width * chance)
    return float(law.scale) * (chance + width * math.log(25 / 9)) / 0.8


def noise_deviation(law: DiscreteGaussian | Laplace) -> float:
    """Of each count."""
    if isinstance(law, DiscreteGaussian):
        return math.sqrt(float(law.variance))
    return math.sqrt(2) * float(law.scale)
