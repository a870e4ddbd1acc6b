"""The one place where floating point is used: −ln U for many U at once, with a proved error bound.

Only IEEE additions, subtractions, multiplications, divisions, conversions and a table of correctly rounded
logarithms take part, so the bound rests on no libm. `docs/explanation/exact-noise.md` proves it (Lemma 1),
and a test compares it with integer arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.noise import _exact

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

BITS = 63
"""Bits of U that are looked at first."""

UNIT = 2.0**-50
"""Lemma 1: the float is within UNIT·(1 + value) + 2/v of −ln U, where v = ⌊2⁶³U⌋."""

LARGEST = 64.0
"""Exponents are capped here, above every −ln U with v ≥ 1 (at most 43.7); v = 0 is always settled exactly."""

_CELLS = 6  # table cells per octave: 2⁶
_SHIFT = 52 - _CELLS
_FIRST = 1023 << _CELLS


def to_float(x: Fraction) -> float:
    """The float nearest to x > 0, kept within 2^±1000: beyond it, every use here is far from any decision."""
    if x >= 2**1000:
        return 2.0**1000
    return max(2.0**-1000, x.numerator / x.denominator)


def _table() -> Floats:
    """63·ln 2 − ln c for the centre c = 2^octave·(1 + (2·cell + 1)/2⁷) of each cell, correctly rounded."""

    def twice_atanh(p: int, q: int) -> int:
        """ln((q + p)/(q − p)) in units of 2⁻²⁵⁶; floors cost less than a unit per term."""
        power, total, k = (p << 257) // q, 0, 1
        while power:
            total += power // k
            power, k = power * p * p // (q * q), k + 2
        return total

    ln2 = twice_atanh(1, 3)
    size = 2 ** (_CELLS + 1)
    centres = [twice_atanh(2 * cell + 1, 2 * size + 2 * cell + 1) for cell in range(size // 2)]
    return np.array([((BITS - octave) * ln2 - c) / 2**256 for octave in range(BITS + 1) for c in centres])


_TABLE = _table()


def lazy_uniform(word: np.uint64) -> _exact.LazyUniform:
    """The uniform number that `exponentials` sees in this word."""
    return _exact.LazyUniform(int(word) >> 1, BITS)


def exponentials(words: Words) -> tuple[Floats, Floats]:
    """−ln U for the uniform U in each word, and how far off each may be (infinite where v = 0).

    With f = float(v) in a cell with centre c: ln f = ln c + 2·atanh z, z = (f − c)/(f + c), |z| < 2⁻⁸.
    """
    f = (words >> np.uint64(1)).view(np.int64).astype(np.float64)
    pattern = f.view(np.int64)
    centre = ((pattern & np.int64(-1 << _SHIFT)) | np.int64(1 << (_SHIFT - 1))).view(np.float64)
    value = _TABLE.take((pattern >> np.int64(_SHIFT)) - np.int64(_FIRST), mode="clip")

    z = f - centre
    centre += f
    z /= centre
    square = z * z
    series = square * 0.4  # 2·atanh z ≈ z·(2 + z²·(2/3 + z²·2/5))
    series += 2 / 3
    series *= square
    series += 2.0
    series *= z
    value -= series

    with np.errstate(divide="ignore"):
        tolerance = np.divide(2.0, f, out=f)
    np.multiply(value, UNIT, out=series)
    tolerance += series
    tolerance += UNIT
    return value, tolerance


def geometric(words: Words, scale: Fraction) -> Floats:
    """⌊−scale·ln U⌋ for the U in each word, as whole floats; exact for every scale ≤ 16."""
    factor = to_float(scale)
    value, tolerance = exponentials(words)
    value *= factor
    tolerance *= factor
    highest = value + tolerance
    np.floor(highest, out=highest)
    value -= tolerance
    np.floor(value, out=value)
    np.maximum(value, 0.0, out=value)
    unsettled = highest != value
    if _exact.forced():
        unsettled[:] = True
    if unsettled.any():
        for i in np.flatnonzero(unsettled):
            value[i] = lazy_uniform(words[i]).geometric(scale)
    return value


def survive(words: Words, exponent: Floats, exact: Callable[[int], Fraction]) -> Flags:
    """Independent coins with P(True) = exp(−exponent): is −ln U above it?

    Args:
        words: One word per coin.
        exponent: Floats within 2⁻⁴⁸·(1 + exponent) of the true exponents, or at least `LARGEST` if those are.
        exact: The true exponent of the coin at a place.
    """
    capped = np.minimum(exponent, LARGEST)
    value, tolerance = exponentials(words)
    value -= capped
    capped *= 2.0**-48
    tolerance += capped
    tolerance += 2.0**-48
    heads = value > 0
    np.abs(value, out=value)
    unsettled = value <= tolerance
    if _exact.forced():
        unsettled[:] = True
    if unsettled.any():
        for i in np.flatnonzero(unsettled):
            heads[i] = lazy_uniform(words[i]).below_exp(exact(int(i)))
    return heads
