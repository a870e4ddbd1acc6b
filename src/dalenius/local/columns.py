"""How many rows of packed bits have each bit set, without unpacking them.

Blocks of rows are added bit by bit with carry-save adders over 64-bit lanes: three planes of weight 2ˡ become one of
weight 2ˡ and one of weight 2ˡ⁺¹, at five operations. Each row costs about five operations a lane in all, and only the
few planes left at the end are unpacked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK_BYTES = 2**15

Plane = NDArray[np.uint64]


class _Level:
    """Planes of one weight: a running sum and at most one that waits for a third."""

    __slots__ = ("total", "waiting")

    def __init__(self, lanes: int) -> None:
        self.total: Plane = np.zeros(lanes, np.uint64)
        self.waiting: Plane | None = None

    def add(self, plane: Plane) -> Plane | None:
        """Take in one more plane; return the carry if there is one."""
        if self.waiting is None:
            self.waiting = plane
            return None
        carry = self.total & self.waiting
        self.total ^= self.waiting
        both = self.total & plane
        carry |= both
        self.total ^= plane
        self.waiting = None
        return carry


def column_sums(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The number of rows in which each bit is set; bit x%8 of byte x//8 is column x.

    >>> column_sums(np.array([[1, 128], [3, 128]], np.uint8)).tolist()
    [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    """
    count, width = rows.shape
    sums = np.zeros(8 * width, np.int64)
    block = max(8, _BLOCK_BYTES // width // 8 * 8)  # rows whose bytes are whole lanes
    levels: list[_Level] = []
    whole = count // block * block
    for at in range(0, whole, block):
        plane: Plane | None = np.ascontiguousarray(rows[at : at + block]).reshape(-1).view(np.uint64)
        level = 0
        while plane is not None:
            if level == len(levels):
                levels.append(_Level(len(plane)))
            plane = levels[level].add(plane)
            level += 1
    for level, planes in enumerate(levels):
        for left in (planes.total, planes.waiting):
            if left is not None:
                sums += _unpacked(left.view(np.uint8).reshape(block, width)) << level
    if whole < count:
        sums += _unpacked(rows[whole:])
    return sums


def _unpacked(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    sums: NDArray[np.int64] = np.unpackbits(rows, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    return sums
