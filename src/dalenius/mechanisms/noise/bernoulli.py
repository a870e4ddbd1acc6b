"""Coins with a probability of exp(−γ) or 1/(1 + exp(−x)), exactly.

A coin compares a uniform number with its probability q. The first 64 bits are compared with ⌊q·2⁶⁴⌋ as
integers; only where they are equal (probability at most 2⁻⁶³) are more bits drawn. No floating point is
involved.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dalenius.mechanisms.noise import _draws, _exact, bits

if TYPE_CHECKING:
    from dalenius.mechanisms.noise._fast import Flags, Words


class Coin(_draws.Sampler):
    """A coin with the probability enclosed."""

    dtype = np.bool_

    def __init__(self, enclosure: _exact.Enclosure) -> None:
        self.enclosure = enclosure
        low, high = enclosure(96)
        self._sure = low >> 32  # words below it lie wholly under q, words from `_open` on wholly above
        self._open = -(-high >> 32)

    def flip(self, words: Words) -> Flags:
        """One coin per word."""
        if _exact.forced():
            return np.array([self._settle(word) for word in words], np.bool_)
        heads = words <= np.uint64(self._open - 1)
        edge = words <= np.uint64(self._sure - 1) if self._sure else np.zeros(len(words), np.bool_)
        edge ^= heads
        if edge.any():
            for i in np.flatnonzero(edge):
                heads[i] = self._settle(words[i])
        return heads

    def _settle(self, word: np.uint64) -> bool:
        return _exact.LazyUniform(int(word), 64).below(self.enclosure)

    def batch(self, candidates: int) -> Flags:
        """Every coin counts."""
        return self.flip(bits.words(candidates))


class ExpCoin(Coin):
    """P(True) = exp(−gamma)."""

    def __init__(self, gamma: Fraction) -> None:
        super().__init__(lambda precision: _exact.exp_minus(gamma, precision))


class LogisticCoin(Coin):
    """P(True) = 1/(1 + exp(−x)), x ≥ 0."""

    def __init__(self, x: Fraction) -> None:
        super().__init__(lambda precision: _exact.logistic(x, precision))


@lru_cache(maxsize=256, typed=True)
def _exp_coin(gamma: Any) -> ExpCoin:
    return ExpCoin(_draws.rational(gamma, "gamma", zero=True))


@lru_cache(maxsize=256, typed=True)
def _logistic_coin(x: Any) -> LogisticCoin:
    return LogisticCoin(_draws.rational(x, "x", zero=True))


@overload
def bernoulli_exp(gamma: float | Fraction, size: None = None) -> bool: ...
@overload
def bernoulli_exp(gamma: float | Fraction, size: int) -> Flags: ...
def bernoulli_exp(gamma: float | Fraction, size: int | None = None) -> bool | Flags:
    """Coins that show True with probability exp(−gamma).

    Guarantee: P(True) = exp(−gamma) exactly, for the rational that `gamma` is; draws are independent.

    Assumes: AES-256 in counter mode under a key from the operating system is indistinguishable from random.

    References:
        Canonne, Kamath, Steinke (2020), "The Discrete Gaussian for Differential Privacy", section 5: the coin
        that all exact noise rests on. Here it is a comparison with a lazily drawn uniform number.

    Args:
        gamma: At least 0; an int, a Fraction, or a float taken as the rational it is.
        size: How many; None for one `bool`.

    Returns:
        A `bool`, or an array of `size` of them.

    Example:
        >>> bernoulli_exp(0)
        True
        >>> 100 < bernoulli_exp(Fraction(1, 2), size=1000).sum() < 900
        np.True_
    """
    coin = _exp_coin(_draws.lookup_key(gamma, "gamma", zero=True))
    return bool(_draws.draw_one(coin)) if size is None else _draws.draw(coin, size)


@overload
def bernoulli_logistic(x: float | Fraction, size: None = None) -> bool: ...
@overload
def bernoulli_logistic(x: float | Fraction, size: int) -> Flags: ...
def bernoulli_logistic(x: float | Fraction, size: int | None = None) -> bool | Flags:
    """Coins that show True with probability 1/(1 + exp(−x)).

    Randomized response on one bit that tells the truth on True is x-DP.

    Guarantee: the probability is exact for the rational that `x` is; draws are independent.

    Assumes: as `bernoulli_exp`.

    References:
        Warner (1965), "Randomized Response"; Dwork, Roth (2014), section 3.2.

    Args:
        x: At least 0; an int, a Fraction, or a float taken as the rational it is.
        size: How many; None for one `bool`.

    Returns:
        A `bool`, or an array of `size` of them.

    Example:
        >>> bernoulli_logistic(2, size=3).dtype
        dtype('bool')
    """
    coin = _logistic_coin(_draws.lookup_key(x, "x", zero=True))
    return bool(_draws.draw_one(coin)) if size is None else _draws.draw(coin, size)
