"""Exact draws from any law on a finite set whose weights are m·exp(−x), m a whole number and x rational.

A uniform word is compared with the cumulative probabilities as integers of 64 bits. A word equal to one of
these leaves the comparison open (probability at most 2⁻⁶³ per boundary); it is then extended, bit by bit,
against enclosures of growing precision, so the law is exact. The work does not depend on which rows are
asked for nor on what is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dalenius.mechanisms.noise import _exact, bits

Weight = tuple[int, Fraction]  # (m, x) for m·exp(−x), x ≥ 0
_CHUNK = 2**21


@dataclass(frozen=True)
class FiniteLaw:
    """One law per row; each row is a sequence of weights, all of the same length."""

    rows: tuple[tuple[Weight, ...], ...]

    def cumulative(self, row: int, column: int, precision: int) -> tuple[int, int]:
        """Integers low ≤ P(Y ≤ column)·2^precision ≤ high."""
        return self._ends(row, precision)[column]

    def _ends(self, row: int, precision: int) -> list[tuple[int, int]]:
        """The same for all columns but the last."""
        weights = self.rows[row]
        fine = precision + 16 + sum(m for m, _ in weights).bit_length()
        lows = list(accumulate(m * _exp_minus(x, fine)[0] for m, x in weights))
        highs = list(accumulate(m * _exp_minus(x, fine)[1] for m, x in weights))
        # the part up to a column over the whole: least when it is small and the rest large, and the other way round
        return [
            (
                (low << precision) // (low + highs[-1] - high),
                -((-high << precision) // (high + lows[-1] - low)),
            )
            for low, high in zip(lows[:-1], highs[:-1], strict=True)
        ]

    @cached_property
    def _boundaries(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Per row and boundary: the first word not surely below it, and the last word not surely above it."""
        first = np.empty((len(self.rows), len(self.rows[0]) - 1), dtype=np.uint64)
        last = np.empty_like(first)
        for row in range(len(self.rows)):
            ends = self._ends(row, 96)
            first[row] = [low >> 32 for low, _ in ends]
            last[row] = [max(0, -(-high >> 32) - 1) for _, high in ends]
        return first, last

    def draw(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """One draw for each row asked for."""
        first, last = self._boundaries
        drawn = np.empty(len(rows), dtype=np.int64)
        step = max(1, _CHUNK // max(1, first.shape[1]))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            words = bits.words(len(part))
            above = words[:, None] > last[part]
            open_ = (words[:, None] >= first[part]) & ~above
            drawn[start : start + step] = above.sum(axis=1)
            for at in np.flatnonzero(open_.any(axis=1) | _exact.forced()):
                drawn[start + at] = self._settle(int(part[at]), int(words[at]))
        return drawn

    def _settle(self, row: int, word: int) -> int:
        uniform = _exact.LazyUniform(word, 64)
        for column in range(len(self.rows[row]) - 1):
            if uniform.below(lambda precision, c=column: self.cumulative(row, c, precision)):  # type: ignore[misc]
                return column
        return len(self.rows[row]) - 1

    def probabilities(self, precision: int = 120) -> list[list[Fraction]]:
        """P(column | row), each within 2^(2−precision) of the truth."""
        found = []
        for row in range(len(self.rows)):
            ends = [Fraction(low + high, 2 << precision) for low, high in self._ends(row, precision)]
            found.append([end - start for start, end in zip([Fraction(0), *ends], [*ends, Fraction(1)], strict=True)])
        return found


@lru_cache(maxsize=2**12)
def _exp_minus(x: Fraction, precision: int) -> tuple[int, int]:
    """The rows of a matrix of scores share most of their weights; both are public."""
    return _exact.exp_minus(x, precision)
