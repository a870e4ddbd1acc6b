"""Noise that is the same each time, for tests of what follows from it: which limits `protect` finds, and a workload."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.noise import bits


class SeededWords:
    """Words that a seed decides. They protect nobody."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next ones."""
        return self._chance.integers(0, 2**64, count, dtype=np.uint64)


def seeded_noise(seed: int = 1) -> AbstractContextManager[None]:
    """This thread's noise is drawn from a seed until the block ends."""
    return bits._injected(SeededWords(seed))
