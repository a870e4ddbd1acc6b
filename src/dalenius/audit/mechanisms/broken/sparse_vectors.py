"""Sparse vectors as they were published, and as they are easily mistaken; not one keeps its ε.

Of the six algorithms that Lyu, Su & Li compared, two are right (their own, and Dwork & Roth 2014); the other four are
here under the numbers that their paper gives them, with two more mistakes of the same kind. Noise is discrete, as ours.

References:
    Lyu, Su & Li, Understanding the sparse vector technique for differential privacy (2017), fig. 1 and §3.3.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dalenius.accounting import events
from dalenius.audit.lower_bounds.claims import Claim
from dalenius.audit.lower_bounds.features import Outputs
from dalenius.audit.mechanisms.streams import answers
from dalenius.audit.mechanisms.subject import Subject
from dalenius.mechanisms.laws import DiscreteLaplaceLaw

_ANY = 10**6  # hits without end
Sides = tuple[list[int], list[int]]


def _noise(scale: Fraction, *shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    drawn = DiscreteLaplaceLaw(scale).draw(int(np.prod(shape)))
    return np.asarray(drawn, dtype=np.int64).reshape(shape)


def _rising(count: int) -> Sides:
    """Values that are to be below move up, those that are to be above move down."""
    return [0] * count + [1] * count, [1] * count + [0] * count


def _roth_2011(epsilon: Fraction) -> Callable[[int, int], Outputs]:
    """Algorithm 3: a hit is answered with the noisy value that was compared."""
    misses = 6
    sides = [0] * misses + [1], [1] * misses + [0]

    def draw(side: int, size: int) -> Outputs:
        noisy = np.array(sides[side]) + _noise(2 / epsilon, size, misses + 1)
        above = noisy >= _noise(2 / epsilon, size)[:, None]
        first = np.where(above.any(axis=1), above.argmax(axis=1), misses + 1)
        values = np.column_stack([noisy, np.zeros(size, dtype=np.int64)])[np.arange(size), first]
        return np.column_stack([first, values])

    return draw


def _lee_2014(epsilon: Fraction) -> Callable[[int, int], Outputs]:
    """Algorithm 4: the noise of values does not grow with the number of hits."""
    sides = _rising(4)

    def draw(side: int, size: int) -> Outputs:
        values = np.array(sides[side]) + _noise(Fraction(4, 3) / epsilon, size, 8)
        return answers(values >= _noise(4 / epsilon, size)[:, None], 4)

    return draw


def _stoddard_2014(epsilon: Fraction) -> Callable[[int, int], Outputs]:
    """Algorithm 5: values get no noise at all."""
    sides = _rising(1)

    def draw(side: int, size: int) -> Outputs:
        return answers(np.array(sides[side])[None, :] >= _noise(2 / epsilon, size)[:, None], _ANY)

    return draw


def _chen_2015(epsilon: Fraction) -> Callable[[int, int], Outputs]:
    """Algorithm 6: hits without end, for the price of one."""
    sides = _rising(5)

    def draw(side: int, size: int) -> Outputs:
        values = np.array(sides[side]) + _noise(2 / epsilon, size, 10)
        return answers(values >= _noise(2 / epsilon, size)[:, None], _ANY)

    return draw


def _redrawn(epsilon: Fraction) -> Callable[[int, int], Outputs]:
    """The threshold's noise is drawn anew for each value: then every no costs something."""
    width, threshold = 18, 3
    sides = [0] * width, [1] * width

    def draw(side: int, size: int) -> Outputs:
        values = np.array(sides[side]) + _noise(4 / epsilon, size, width)
        return answers(values >= threshold + _noise(2 / epsilon, size, width), 1)

    return draw


def _exact_threshold(epsilon: Fraction) -> Callable[[int, int], Outputs]:
    """The threshold gets no noise: every no costs something."""
    width = 8
    sides = [0] * width, [1] * width

    def draw(side: int, size: int) -> Outputs:
        return answers(np.array(sides[side]) + _noise(2 / epsilon, size, width) >= 1, 1)

    return draw


_VARIANTS = {
    "sparse-vector-roth-2011": (_roth_2011, "answers a hit with its noisy value (Roth 2011)"),
    "sparse-vector-lee-2014": (_lee_2014, "noise that does not grow with the hits (Lee & Clifton 2014)"),
    "sparse-vector-stoddard-2014": (_stoddard_2014, "no noise on the values (Stoddard et al. 2014)"),
    "sparse-vector-chen-2015": (_chen_2015, "any number of hits for the price of one (Chen et al. 2015)"),
    "sparse-vector-redrawn": (_redrawn, "a new noisy threshold for each value"),
    "sparse-vector-exact-threshold": (_exact_threshold, "no noise on the threshold"),
}


def _made(name: str) -> Callable[[float], Subject]:
    variant, about = _VARIANTS[name]

    def made(epsilon: float) -> Subject:
        claim = Claim(events.Pure(epsilon))
        wrong = (variant.__doc__ or "").strip()
        return Subject(name, about, claim, variant(Fraction(epsilon)), broken=True, wrong=wrong)

    return made


MADE = {name: _made(name) for name in _VARIANTS}
