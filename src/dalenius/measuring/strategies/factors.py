"""One attribute's part of a question: a small matrix with a row for each answer and a column for each class.

Matrices that are large and simple (all ranges of 256 classes have 33 thousand rows) are never written down: what is
asked of them has a closed form. Blocks are runs of `size` classes, from the first class on; they are what hierarchies
and wavelets see of a row.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = NDArray[np.float64]
_AT_ONCE = 2**23  # numbers
Numbers = NDArray[Any]  # whole or not; along one axis of it a factor works


class Factor(ABC):
    """A matrix of answers × classes."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """How many classes the attribute has."""

    @property
    @abstractmethod
    def answers(self) -> int:
        """How many answers there are for each."""

    @abstractmethod
    def apply(self, x: Numbers, axis: int) -> Numbers:
        """The matrix times ``x`` along that axis; whole numbers stay whole."""

    @abstractmethod
    def collect(self, y: Array, axis: int) -> Array:
        """The transposed matrix times ``y`` along that axis: for each class what answers about it add up to."""

    @abstractmethod
    def gram(self) -> Array:
        """The matrix FᵀF, classes × classes."""

    @abstractmethod
    def block_squares(self, size: int) -> Array:
        """For each answer Σ(sum of its row over a block)², over all blocks of that size."""

    @abstractmethod
    def columns(self, norm: str) -> NDArray[np.int64]:
        """For each class Σ F², or Σ|F| where the norm is L1."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """So that `factor_of_json` gives it back."""

    def matrix(self) -> csr_array:
        """All of it, sparse."""
        from scipy.sparse import csr_array

        return csr_array(self.apply(np.eye(self.classes, dtype=np.int64), 0))

    def squares(self) -> Array:
        """For each answer the sum of squares of its row."""
        return self.block_squares(1)

    def sums(self) -> Array:
        """For each answer the sum of its row."""
        return np.asarray(self.apply(np.ones(self.classes), 0), dtype=float)

    def total_block_squares(self, size: int) -> float:
        """The sum of `block_squares`."""
        return float(self.block_squares(size).sum())

    def products(self, root: Array) -> Array:
        """For each answer ‖row · root‖², where ``root`` has a row for each class."""
        step = max(1, _AT_ONCE // max(1, self.answers))  # columns at a time: there may be many answers
        parts = [root[:, at : at + step] for at in range(0, root.shape[1], step)]
        return np.asarray(sum(np.square(self.apply(part, 0)).sum(axis=1) for part in parts))

    @property
    @abstractmethod
    def key(self) -> str:
        """The same for the same matrix, written alike."""

    @property
    def growth(self) -> int:
        """At most so many times can an answer be as large as the largest class, and all that lies between."""
        return self.classes


@dataclass(frozen=True, slots=True)
class _Sized(Factor):
    size: int

    @property
    def classes(self) -> int:
        return self.size

    @property
    def key(self) -> str:
        """Its kind and size."""
        return f"{type(self).__name__} {self.size}"

    def to_json(self) -> dict[str, Any]:
        """So that `factor_of_json` gives it back."""
        return {"kind": type(self).__name__.lower(), "classes": self.size}


@dataclass(frozen=True, slots=True)
class Total(_Sized):
    """All classes together: one answer."""

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return 1

    def apply(self, x: Numbers, axis: int) -> Numbers:
        """The sum along that axis."""
        return np.asarray(x.sum(axis=axis, keepdims=True))

    def collect(self, y: Array, axis: int) -> Array:
        """The same for all classes."""
        return np.repeat(y, self.size, axis=axis)

    def matrix(self) -> csr_array:
        """One row."""
        from scipy.sparse import csr_array

        return csr_array(np.ones((1, self.size), dtype=np.int64))

    def gram(self) -> Array:
        """All ones."""
        return np.ones((self.size, self.size))

    def block_squares(self, size: int) -> Array:
        """Of full blocks, and of a rest."""
        full, rest = divmod(self.size, size)
        return np.array([float(full * size**2 + rest**2)])

    def columns(self, norm: str) -> NDArray[np.int64]:  # noqa: ARG002 - the same in both
        """One of each."""
        return np.ones(self.size, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Identity(_Sized):
    """Each class by itself."""

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return self.size

    @property
    def growth(self) -> int:
        """A class is itself."""
        return 1

    def apply(self, x: Numbers, axis: int) -> Numbers:  # noqa: ARG002 - along any
        """As it is."""
        return x

    def collect(self, y: Array, axis: int) -> Array:  # noqa: ARG002 - along any
        """As it is."""
        return y

    def matrix(self) -> csr_array:
        """Ones on the diagonal."""
        from scipy.sparse import csr_array

        places = np.arange(self.size + 1)
        return csr_array((np.ones(self.size, dtype=np.int64), places[:-1], places), shape=(self.size, self.size))

    def gram(self) -> Array:
        """Ones on the diagonal."""
        return np.eye(self.size)

    def block_squares(self, size: int) -> Array:  # noqa: ARG002 - one class is in one block of any size
        """One of each."""
        return np.ones(self.size)

    def columns(self, norm: str) -> NDArray[np.int64]:  # noqa: ARG002 - the same in both
        """One of each."""
        return np.ones(self.size, dtype=np.int64)


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
class Prefix(_Sized):
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
class AllRange(_Sized):
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


@dataclass(frozen=True, slots=True, eq=False)
class Rows(Factor):
    """Any small matrix of whole numbers."""

    entries: csr_array

    @classmethod
    def of(cls, matrix: Any) -> Rows:
        """From lists, an array or a sparse matrix.

        >>> Rows.of([[1, 0, 1]]).apply(np.array([1, 2, 3]), 0).tolist()
        [4]
        """
        from scipy.sparse import csr_array, issparse

        found: Any = csr_array(matrix if issparse(matrix) else np.atleast_2d(np.asarray(matrix)))  # type: ignore[arg-type]
        found.sum_duplicates()
        found.eliminate_zeros()
        found.sort_indices()
        whole = found.astype(np.int64)
        if (whole != found).nnz:
            raise ValueError("A factor has whole numbers only.")
        return cls(whole)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.entries.shape[1])

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return int(self.entries.shape[0])

    @property
    def growth(self) -> int:
        """The longest row, in L1."""
        return max(1, int(abs(self.entries).sum(axis=1).max(initial=0)))

    def apply(self, x: Numbers, axis: int) -> Numbers:
        """The matrix times ``x`` along that axis."""
        return apply_matrix(self.entries, x, axis)

    def matrix(self) -> csr_array:
        """Itself."""
        return self.entries

    def collect(self, y: Array, axis: int) -> Array:
        """The transposed matrix times ``y``."""
        return apply_matrix(self.entries.T.tocsr(), y, axis)

    def gram(self) -> Array:
        """The matrix FᵀF."""
        return np.asarray((self.entries.T @ self.entries).toarray(), dtype=float)

    def block_squares(self, size: int) -> Array:
        """Of each row, its entries added up by block."""
        from scipy.sparse import csr_array

        rows, blocks = self.entries.nonzero()[0], self.entries.indices // size
        summed = csr_array(
            (self.entries.data.astype(float), (rows, blocks)), shape=(self.answers, -(-self.classes // size))
        )
        summed.sum_duplicates()
        return np.asarray(summed.multiply(summed).sum(axis=1), dtype=float).ravel()

    def columns(self, norm: str) -> NDArray[np.int64]:
        """Squares, or absolute values, added up."""
        parts = abs(self.entries) if norm == "l1" else self.entries.multiply(self.entries)
        return np.asarray(parts.sum(axis=0), dtype=np.int64).ravel()

    @property
    def key(self) -> str:
        """A hash of all entries."""
        matrix = self.entries
        places = (matrix.indptr.astype(np.int64).tobytes(), matrix.indices.astype(np.int64).tobytes())
        told = hashlib.sha256(b"".join((*places, matrix.data.tobytes()))).hexdigest()
        return f"rows {matrix.shape} {matrix.dtype.str} {told}"

    def to_json(self) -> dict[str, Any]:
        """So that `factor_of_json` gives it back."""
        coordinates = self.entries.tocoo()
        entries = [[int(i), int(j), int(v)] for i, j, v in zip(*coordinates.coords, coordinates.data, strict=True)]
        return {"kind": "rows", "classes": self.classes, "answers": self.answers, "entries": entries}


def recognise(factor: Factor) -> Factor:
    """The same rows, as what they are: a total, each class, sums up to, ranges; else as they were.

    >>> recognise(Rows.of([[1, 0, 0], [1, 1, 0], [1, 1, 1]]))
    Prefix(size=3)
    >>> recognise(Rows.of([[0, 1, 1], [1, 1, 0]]))
    Ranges(size=3, starts=(1, 0), ends=(3, 2))
    """
    found = _as_ranges(factor) if isinstance(factor, Rows) else factor
    if not isinstance(found, Ranges):
        return found
    n, starts, ends = found.size, *found.bounds()
    numbers = np.arange(n)
    if len(starts) == 1 and starts[0] == 0 and ends[0] == n:
        return Total(n)
    if len(starts) == n and np.array_equal(starts, numbers) and np.array_equal(ends, numbers + 1):
        return Identity(n)
    if len(starts) == n and not starts.any() and np.array_equal(ends, numbers + 1):
        return Prefix(n)
    if len(starts) == n * (n + 1) // 2 and all(map(np.array_equal, (starts, ends), AllRange(n).bounds())):
        return AllRange(n)
    return found


def _as_ranges(factor: Rows) -> Factor:
    matrix = factor.entries
    matrix.sort_indices()
    counts = np.diff(matrix.indptr)
    if not counts.all() or (matrix.data != 1).any():
        return factor
    starts, lasts = matrix.indices[matrix.indptr[:-1]], matrix.indices[matrix.indptr[1:] - 1]
    if (lasts - starts + 1 != counts).any():
        return factor
    return Ranges(factor.classes, tuple(starts.tolist()), tuple((lasts + 1).tolist()))


def factor_of_json(stored: Mapping[str, Any]) -> Factor:
    """The factor that was written down."""
    kind, n = stored["kind"], int(stored["classes"])
    if kind == "ranges":
        return Ranges(n, tuple(map(int, stored["starts"])), tuple(map(int, stored["ends"])))
    if kind == "rows":
        from scipy.sparse import csr_array

        i, j, v = np.array(stored["entries"], dtype=np.int64).reshape(-1, 3).T
        return Rows.of(csr_array((v, (i, j)), shape=(int(stored["answers"]), n)))
    simple: dict[str, type[Total | Identity | Prefix | AllRange]]
    simple = {"total": Total, "identity": Identity, "prefix": Prefix, "allrange": AllRange}
    return simple[kind](n)


def apply_matrix(matrix: csr_array, x: Numbers, axis: int) -> Numbers:
    """A sparse matrix times an array along one axis of it."""
    front = np.moveaxis(x, axis, 0)
    flat = matrix @ front.reshape(front.shape[0], -1)
    return np.moveaxis(np.asarray(flat).reshape((matrix.shape[0], *front.shape[1:])), 0, axis)


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
