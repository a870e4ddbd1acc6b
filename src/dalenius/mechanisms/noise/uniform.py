"""Uniform integers below n, exactly."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dalenius.mechanisms.noise import _draws, bits

if TYPE_CHECKING:
    from numpy.typing import NDArray


def below(n: int, count: int) -> list[int]:
    """Uniform integers in [0, n): ⌊n·U⌋ for uniform reals U, of which 64 bits more than n has are drawn.

    The bits not drawn yet decide with probability at most 2⁻⁶⁴; then more are drawn.
    """
    length = n.bit_length() + 64
    results = []
    for first in bits.integers(length, count):
        u, known = first, length
        while (n * u) >> known != (n * u + n - 1) >> known:
            u = u << 64 | bits.integers(64, 1)[0]
            known += 64
        results.append((n * u) >> known)
    return results


class UniformSampler(_draws.Sampler):
    """Uniform on [0, n)."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._narrow = n <= 2**63
        self._full = 2**64 // n * n  # words from here on would favour small values
        self.dtype = np.int64 if self._narrow else object
        self.acceptance = self._full / 2**64 if self._narrow else 1.0

    def batch(self, candidates: int) -> NDArray[Any]:
        """Words modulo n, without those in the last, incomplete round of n."""
        if not self._narrow:
            values = np.empty(candidates, object)
            values[:] = below(self._n, candidates)
            return values
        words = bits.words(candidates)
        quotient = words // np.uint64(self._n)
        values = (words - quotient * np.uint64(self._n)).view(np.int64)
        return values if self._full == 2**64 else values[words < np.uint64(self._full)]


@lru_cache(maxsize=256)
def _sampler(n: int) -> UniformSampler:
    return UniformSampler(n)


@overload
def uniform_int(n: int, size: None = None) -> int: ...
@overload
def uniform_int(n: int, size: int) -> NDArray[Any]: ...
def uniform_int(n: int, size: int | None = None) -> int | NDArray[Any]:
    """Uniform integers in {0, …, n − 1}.

    Guarantee: every value has probability 1/n exactly; draws are independent.

    Assumes: AES-256 in counter mode under a key from the operating system is indistinguishable from random.

    References:
        Lemire (2019), "Fast Random Integer Generation in an Interval", on why plain modulo is biased.

    Args:
        n: At least 1.
        size: How many; None for one `int`.

    Returns:
        An `int`, or an array of `size` integers: int64 for n ≤ 2⁶³, above it Python integers (dtype object).

    Example:
        >>> 0 <= uniform_int(6) < 6
        True
        >>> sorted(set(uniform_int(2, size=1000).tolist()))
        [0, 1]
    """
    number = _draws.whole(n, "n", least=1)
    return below(number, 1)[0] if size is None else _draws.draw(_sampler(number), size)
