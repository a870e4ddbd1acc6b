"""One attribute's part of a question: a small matrix with a row for each answer and a column for each class.

Matrices that are large and simple (all ranges of 256 classes have 33 thousand rows) are never written down: what is
asked of them has a closed form (`range_factors`). Blocks are runs of `size` classes, from the first class on; they are
what hierarchies and wavelets see of a row.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
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
class Sized(Factor):
    """A matrix that its kind and the number of classes say all of."""

    size: int

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.size

    @property
    def key(self) -> str:
        """Its kind and size."""
        return f"{type(self).__name__} {self.size}"

    def to_json(self) -> dict[str, Any]:
        """So that `factor_of_json` gives it back."""
        return {"kind": type(self).__name__.lower(), "classes": self.size}


@dataclass(frozen=True, slots=True)
class Total(Sized):
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
class Identity(Sized):
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
        return {"kind": "rows", "classes": self.classes, "answers": self.answers, "runs": self._runs()}

    def _runs(self) -> list[list[int]]:
        """Of each row the runs of one number: where it starts, how long it is, the number."""
        found = []
        for start, end in pairwise(self.entries.indptr):
            places, numbers = self.entries.indices[start:end].astype(np.int64), self.entries.data[start:end]
            firsts = np.flatnonzero(np.append(True, (np.diff(places) != 1) | (np.diff(numbers) != 0))[: len(places)])
            lengths = np.diff(np.append(firsts, len(places)))
            found.append(np.stack([places[firsts], lengths, numbers[firsts]], axis=1).ravel().tolist())
        return found

    @classmethod
    def of_runs(cls, answers: int, classes: int, runs: Sequence[Sequence[int]]) -> Rows:
        """As `to_json` wrote them."""
        from scipy.sparse import csr_array

        own = np.array([each for row in runs for each in row], dtype=np.int64).reshape(-1, 3)
        row = np.repeat(np.arange(len(runs)), [len(each) // 3 for each in runs])
        starts, lengths, numbers = own.T
        ends = lengths.cumsum()
        places = np.arange(lengths.sum()) + np.repeat(starts - (ends - lengths), lengths)
        entries = (np.repeat(numbers, lengths), (np.repeat(row, lengths), places))
        return cls.of(csr_array(entries, shape=(answers, classes)))


def apply_matrix(matrix: csr_array, x: Numbers, axis: int) -> Numbers:
    """A sparse matrix times an array along one axis of it."""
    front = np.moveaxis(x, axis, 0)
    flat = matrix @ front.reshape(front.shape[0], -1)
    return np.moveaxis(np.asarray(flat).reshape((matrix.shape[0], *front.shape[1:])), 0, axis)
