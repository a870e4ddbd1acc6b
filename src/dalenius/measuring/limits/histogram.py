"""Where a limit is put, from a noisy histogram of sizes: public post-processing, which costs nothing.

Most of the 129 classes are empty, and some of them show a count that is noise. A class is taken for real where all
noise of the histogram together would practically never make such a count; next to real ones, where the noise of that
one class would not. So a stray count far out never becomes a limit, and the thin end of a tail still counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.laplace import Laplace

CLASSES = 129  # sizes 0, 1, …, up to 2⁶⁴, by factors of √2
_ALARM = 1e-6  # chance that noise anywhere is taken for units
_MILD = 1e-4  # the same for one class that lies next to real ones, on either side
_NEAR = 4  # classes past a real one that count as next to it: a factor of four
_FALL, _FEW = 0.8, 4  # a tail is believed until one of size^(−2.3) would have fallen to so many units
_WINDOW = 8  # classes that are added up where no single one stands out
_SMOOTH = 7  # from here on a class holds several whole sizes, so that counts fall evenly
_CURVED = 8  # classes that are needed to see a tail bend
_STRAIGHT = 6
_STEEPER = 0.1  # log of the ratio of two classes, by which a tail falls faster where it cannot fall as it did
_SLOWEST = -0.25 * math.log(2)  # log of the ratio of two classes: a tail of size^(−½) has no mean any more

_TOP = (0.0, *(2 ** ((at - 1) / 2) for at in range(1, CLASSES)))  # the largest size of each class
_SPREAD = math.log(2) / 2  # of the logarithm of sizes within a class
_FAINT = 0.1  # chance that noise alone passes for the little that is seen where nothing stands out
_WIDTHS = (1, 2, 4, 8)  # classes that are then added up
_CANDIDATES = tuple(sorted({math.ceil(2 ** (at / 4)) for at in range(2 * CLASSES)}))


@dataclass(frozen=True, slots=True)
class ChosenLimit:
    """A limit, and about which share of all mass lies beyond it; None where the noise hides all units."""

    limit: int
    clipped: float | None


def choose_limit(
    noisy: Sequence[int], law: DiscreteGaussian | Laplace, noise: Callable[[int], float], cells: int = 1
) -> ChosenLimit:
    """The limit at which bias and noise are least.

    Class 0 holds size 0, class 1 size 1, class j the sizes above 2^((j−2)/2) up to 2^((j−1)/2).

    Args:
        noisy: Units by class.
        law: What noise they have.
        noise: What a limit costs in noise.
        cells: Over how many groups the bias is spread.

    >>> law = DiscreteGaussian(variance=100, dimension=CLASSES)
    >>> choose_limit([0, 5000, *[0] * 127], law, lambda limit: 3.0 * limit)
    ChosenLimit(limit=1, clipped=0.0)
    """
    seen, tail = see_classes(noisy, law)
    if not seen:
        return ChosenLimit(1, None)
    # An extrapolation decides only as far as it can be trusted; what may lie beyond is told twice as far.
    believed = [*seen, *tail[: len(tail) // 2]]
    limit = min(_CANDIDATES, key=lambda each: _beyond(believed, each) / cells + noise(each))
    return ChosenLimit(limit, share_beyond(noisy, law, limit))


def share_beyond(noisy: Sequence[int], law: DiscreteGaussian | Laplace, limit: int) -> float | None:
    """About which share of all mass lies beyond a limit; None where the noise hides all units."""
    seen, tail = see_classes(noisy, law)
    return _beyond([*seen, *tail], limit) / max(_beyond([*seen, *tail], 0), 1.0) if seen else None


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


def see_classes(noisy: Sequence[int], law: DiscreteGaussian | Laplace) -> tuple[list[float], list[float]]:
    """The classes as far as they stand out of the noise, and what may be in those after them; none where none does."""
    last = _last(noisy, law)
    if last is None:
        return [], []
    seen = [float(each) if each > 2 * noise_deviation(law) else 0.0 for each in noisy[: last + 1]]
    return seen, _tail(noisy, last, law)


def stands_alone(noisy: Sequence[int], law: DiscreteGaussian | Laplace) -> bool:
    """Whether a single class surely holds units, and not only several together."""
    return max(noisy[1:]) > law.utility(_ALARM)


def class_top(place: int) -> float:
    """The largest size of a class."""
    return _TOP[place]


def _beyond(counts: Sequence[float], limit: int) -> float:
    """The mass that a limit cuts off."""
    return sum(count * _excess(top, limit) for count, top in zip(counts, _TOP, strict=False) if count and top > limit)


def _excess(top: float, limit: int) -> float:
    """By how much sizes of a class are above a limit, on average.

    They are reckoned to spread over the class, evenly by their logarithm: all of them may have one size, so a limit
    within a class that holds many units must not pass for one above them.
    """
    if top <= 1:
        return top - limit
    low = max(top / math.sqrt(2), float(limit))
    # ∫ (size − limit) d log size over what lies above the limit
    return (top - low - limit * math.log(top / low)) / _SPREAD


def _last(noisy: Sequence[int], law: DiscreteGaussian | Laplace) -> int | None:
    """The last class that surely holds units."""
    strict, mild = law.utility(_ALARM), law.noise_error(1 - _MILD)
    sure = [at for at in range(1, CLASSES) if noisy[at] > strict]
    if not sure:  # few units, or much noise: several classes together
        sums = {at: sum(noisy[at : at + _WINDOW]) for at in range(1, CLASSES - _WINDOW + 1)}
        best = max(sums, key=lambda at: sums[at])
        if sums[best] <= _together(law):
            return None
        window = range(best, best + _WINDOW)
        sure = [at for at in window if noisy[at] > 2 * noise_deviation(law)] or [max(window, key=lambda at: noisy[at])]
    last = sure[-1]
    while near := [at for at in range(last + 1, min(last + _NEAR + 1, CLASSES)) if noisy[at] > mild]:
        last = near[-1]
    return last


def _together(law: DiscreteGaussian | Laplace) -> float:
    """What the noise of a window's classes adds up to with chance _ALARM at most, over all windows.

    Chernoff: P(ΣX > t) ≤ e^(−λt)·E[e^(λX)]^w; for scale b at λ = 4/(5b), E ≤ 25/9; for variance σ² at the best λ.
    """
    chance = math.log(CLASSES / _ALARM)
    if isinstance(law, DiscreteGaussian):
        return noise_deviation(law) * math.sqrt(2 * _WINDOW * chance)
    return float(law.scale) * (chance + _WINDOW * math.log(25 / 9)) / 0.8


def _tail(noisy: Sequence[int], last: int, law: DiscreteGaussian | Laplace) -> list[float]:
    """What may be in the classes past the last real one.

    In log count against class, the last real ones lie about a line (Pareto) or a parabola that bends down (log-normal
    and most that people do). A line past a bend overshoots by a factor of two, so the bend is followed where there are
    classes enough to see it.
    """
    mild = law.noise_error(1 - _MILD)
    real = [at for at in range(1, last + 1) if noisy[at] > mild]
    curve = _curve(noisy, real, last, noise_deviation(law) ** 2)
    if curve is None:
        return []
    start, slope, bend = curve
    reach = max(2, round(math.log(max(mild, _FEW) / _FEW) / _FALL))
    while True:
        tail = [math.exp(start + slope * at + bend * at * at) for at in range(1, 2 * reach + 1)]
        if not _refuted(tail, noisy[last + 1 :], mild):
            return tail
        slope -= _STEEPER


def _refuted(tail: Sequence[float], noisy: Sequence[int], mild: float) -> bool:
    """Whether so many units could not have stayed hidden: sizes end at an edge, such as a quota."""
    return any(sum(tail[:width]) > max(0, sum(noisy[:width])) + mild * math.sqrt(width) for width in (1, _NEAR))


def _curve(noisy: Sequence[int], real: Sequence[int], last: int, variance: float) -> tuple[float, float, float] | None:
    """Log count at ``last``, its slope and its bend, per class; None where fewer than three classes are real."""
    bent = real[-_CURVED:]
    if len(bent) == _CURVED and bent[0] >= _SMOOTH:
        start, slope, bend = _fitted(noisy, bent, last, variance, 2)
        if bend < 0:
            return start, min(slope, _SLOWEST), bend
    if len(real) < 3:
        return None
    _, slope, _ = _fitted(noisy, real[-_STRAIGHT:], last, variance, 1)
    return math.log(noisy[real[-1]]), min(slope, _SLOWEST), 0.0


def _fitted(
    noisy: Sequence[int], points: Sequence[int], last: int, variance: float, degree: int
) -> tuple[float, float, float]:
    """Least squares of log count on class, around ``last``, by how well each count is known."""
    from numpy.polynomial import polynomial

    weights = [noisy[at] / math.sqrt(variance + noisy[at]) for at in points]
    found = polynomial.polyfit(
        [at - last for at in points], [math.log(noisy[at]) for at in points], degree, w=weights
    ).tolist()
    return found[0], found[1], found[2] if degree == 2 else 0.0


def noise_deviation(law: DiscreteGaussian | Laplace) -> float:
    """Of each count."""
    if isinstance(law, DiscreteGaussian):
        return math.sqrt(float(law.variance))
    return math.sqrt(2) * float(law.scale)
