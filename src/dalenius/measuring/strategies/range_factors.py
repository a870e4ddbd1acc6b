"""Runs of classes as one attribute's part of a question: some of them, sums up to each class, or every run.

None of them is written down as a matrix: a run is a difference of two sums up to a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.measuring.strategies.factors import Array, Factor, Numbers, Sized

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class Ranges(Factor):
    """Runs of classes: answer i is about the classes from ``starts[i]`` up to, and without, ``ends[i]``."""

    size: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.size

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return len(self.starts)

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where they start, and where they end."""
        return np.array(self.starts, dtype=np.int64), np.array(self.ends, dtype=np.int64)

    def apply(self, x: Numbers, axis: int) -> Numbers:
        """Differences of sums up to."""
        starts, ends = self.bounds()
        upto = _upto(x, axis)
        return np.asarray(np.take(upto, ends, axis=axis) - np.take(upto, starts, axis=axis))

    def collect(self, y: Array, axis: int) -> Array:
        """What starts before a class and ends after it."""
        return _collect_ranges(y, axis, *self.bounds(), self.size)

    def gram(self) -> Array:
        """How many of them hold both classes: corners of rectangles, added up."""
        starts, ends = self.bounds()
        corners = np.zeros((self.size + 1, self.size + 1))
        for one, other, sign in ((starts, starts, 1), (starts, ends, -1), (ends, starts, -1), (ends, ends, 1)):
            np.add.at(corners, (one, other), sign)
        return np.asarray(corners.cumsum(axis=0).cumsum(axis=1)[: self.size, : self.size])

    def block_squares(self, size: int) -> Array:
        """Of the two ends, and the full blocks between them."""
        return _range_block_squares(*self.bounds(), size)

    def columns(self, norm: str) -> NDArray[np.int64]:  # noqa: ARG002 - the same in both
        """How many of them hold the class."""
        starts, ends = self.bounds()
        change = np.bincount(starts, minlength=self.size + 1) - np.bincount(ends, minlength=self.size + 1)
        return np.asarray(change.cumsum()[: self.size], dtype=np.int64)

    def matrix(self) -> csr_array:
        """All of it, sparse."""
        from scipy.sparse import csr_array

        starts, ends = self.bounds()
        counts = ends - starts
        upto = np.concatenate([[0], counts.cumsum()])
        columns = np.arange(upto[-1]) - np.repeat(upto[:-1] - starts, counts)
        return csr_array((np.ones(upto[-1], dtype=np.int64), columns, upto), shape=(self.answers, self.size))

    @property
    def key(self) -> str:
        """The same for the same ranges."""
        return f"ranges {self.size} {self.starts} {self.ends}"

    def to_json(self) -> dict[str, Any]:
        """So that `factor_of_json` gives it back."""
        return {"kind": "ranges", "classes": self.size, "starts": list(self.starts), "ends": list(self.ends)}


@dataclass(frozen=True, slots=True)
class Prefix(Sized):
    """Each class with all before it: cumulative counts."""

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return self.size

    def apply(self, x: Numbers, axis: int) -> Numbers:
        """Sums up to."""
        return np.asarray(x.cumsum(axis=axis))

    def collect(self, y: Array, axis: int) -> Array:
        """Sums from a class on."""
        return np.asarray(np.flip(np.flip(y, axis).cumsum(axis=axis), axis))

    def gram(self) -> Array:
        """G[i, j] = n − max(i, j)."""
        at = np.arange(self.size)
        return np.asarray(self.size - np.maximum.outer(at, at), dtype=float)

    def block_squares(self, size: int) -> Array:
        """Of full blocks, and of a rest."""
        full, rest = np.divmod(np.arange(1, self.size + 1), size)
        return np.asarray(full * float(size) ** 2 + rest.astype(float) ** 2)

    def columns(self, norm: str) -> NDArray[np.int64]:  # noqa: ARG002 - the same in both
        """How many hold the class."""
        return np.arange(self.size, 0, -1)


@dataclass(frozen=True, slots=True)
class AllRange(Sized):
    """Every run of classes: by its first class, then by its last."""

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return self.size * (self.size + 1) // 2

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where they start, and where they end (without)."""
        first, last = np.triu_indices(self.size)
        return first, last + 1

    def apply(self, x: Numbers, axis: int) -> Numbers:
        """Differences of sums up to."""
        starts, ends = self.bounds()
        upto = _upto(x, axis)
        return np.asarray(np.take(upto, ends, axis=axis) - np.take(upto, starts, axis=axis))

    def collect(self, y: Array, axis: int) -> Array:
        """What starts before a class and ends after it."""
        return _collect_ranges(y, axis, *self.bounds(), self.size)

    def gram(self) -> Array:
        """G[i, j] = (min + 1)(n − max): a range holds both if it starts before the first and ends after the last."""
        at = np.arange(self.size, dtype=float)
        return np.asarray((np.minimum.outer(at, at) + 1) * (self.size - np.maximum.outer(at, at)))

    def block_squares(self, size: int) -> Array:
        """Of the two ends, and the full blocks between them."""
        return _range_block_squares(*self.bounds(), size)

    def total_block_squares(self, size: int) -> float:
        """Of each block ΣG[i, j] over its classes: 2·Σ_{i<j}(i + 1)(n − j) + Σ_i (i + 1)(n − i)."""
        at = np.arange(self.size, dtype=float)
        before, after = at + 1, self.size - at
        upto = np.concatenate([[0.0], before.cumsum()])[:-1]  # Σ of (i + 1) over i < j
        start = (np.arange(self.size) // size) * size
        return float((2 * (upto - upto[start]) * after + before * after).sum())

    def products(self, root: Array) -> Array:
        """‖P[j + 1] − P[i]‖² with P the sums up to: from their inner products, so that no range is written down."""
        upto = _upto(root, 0)
        inner = upto @ upto.T
        starts, ends = self.bounds()
        own = inner.diagonal()
        return np.asarray(own[ends] + own[starts] - 2 * inner[starts, ends])

    def columns(self, norm: str) -> NDArray[np.int64]:  # noqa: ARG002 - the same in both
        """How many hold the class."""
        at = np.arange(self.size)
        return np.asarray((at + 1) * (self.size - at))


def _upto(x: Numbers, axis: int) -> Numbers:
    """Sums up to each class, with the empty one first."""
    shape = list(x.shape)
    shape[axis] = 1
    return np.concatenate([np.zeros(shape, dtype=x.dtype), x.cumsum(axis=axis)], axis=axis)


def _collect_ranges(y: Array, axis: int, starts: NDArray[np.int64], ends: NDArray[np.int64], classes: int) -> Array:
    front = np.moveaxis(y, axis, 0)
    steps = np.zeros((classes + 1, *front.shape[1:]))
    np.add.at(steps, starts, front)
    np.subtract.at(steps, ends, front)
    return np.moveaxis(np.asarray(steps.cumsum(axis=0)[:classes]), 0, axis)


def _range_block_squares(starts: NDArray[np.int64], ends: NDArray[np.int64], size: int) -> Array:
    first, last = starts // size, (ends - 1) // size
    head, tail = (first + 1) * size - starts, ends - last * size
    apart = head.astype(float) ** 2 + tail.astype(float) ** 2 + (last - first - 1) * float(size) ** 2
    return np.where(first == last, (ends - starts).astype(float) ** 2, apart)
