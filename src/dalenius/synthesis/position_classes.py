"""Classes of a column's positions: runs of them, each drawn from evenly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.domain import Codes
from dalenius.synthesis.grid import Positions


@dataclass(frozen=True)
class Classes:
    """Runs of positions, in order.

    A position belongs to the last run that begins at or below it, or else to the first one; but what is drawn for a
    run lies between its ends. So a value where hardly anybody is counts with the run below, and is not drawn.

    Attributes:
        runs: The first and the last position of each.

    >>> classes = Classes(((2, 5), (9, 9)))
    >>> classes.codes(np.array([0, 2, 7, 9, 12])).tolist()
    [0, 0, 0, 1, 1]
    """

    runs: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.runs)

    @classmethod
    def equal(cls, size: int, most: int) -> Classes:
        """So many classes of equal width, or fewer where there are fewer positions.

        >>> Classes.equal(10, 4).runs
        ((0, 1), (2, 4), (5, 6), (7, 9))
        """
        count = min(size, most)
        edges = [size * at // count for at in range(count + 1)]
        return cls(tuple((low, high - 1) for low, high in pairwise(edges)))

    def codes(self, positions: Positions) -> NDArray[np.int32]:
        """The class of each position."""
        begins = np.array([first for first, _ in self.runs], np.int64)
        found = np.searchsorted(begins, positions, side="right").astype(np.int32) - 1
        return np.maximum(found, 0, out=found)

    def draw(self, codes: Codes, rng: np.random.Generator) -> Positions:
        """A position for each code, each of its run alike."""
        first, last = np.array(self.runs, np.int64).T
        found: Positions = rng.integers(first[codes], last[codes], endpoint=True)
        return found

    def to_json(self) -> list[list[int]]:
        """As it is stored."""
        return [list(each) for each in self.runs]

    @classmethod
    def of_json(cls, data: Sequence[Sequence[int]]) -> Classes:
        """As `to_json` wrote it."""
        return cls(tuple((int(first), int(last)) for first, last in data))
