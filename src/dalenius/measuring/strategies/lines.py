"""Strategies for one attribute alone: what `products` are made of."""

from __future__ import annotations

import base64
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.measuring.strategies.asked import AskedOf
from dalenius.measuring.strategies.factors import Array, Factor, Numbers


class Line(ABC):
    """A matrix of whole numbers over the classes of one attribute; it determines each of them.

    Attributes:
        kind: As stored.
        name: For people.
    """

    kind: ClassVar[str]
    name: ClassVar[str]

    @property
    @abstractmethod
    def classes(self) -> int:
        """How many classes there are."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many numbers are measured."""

    @property
    @abstractmethod
    def growth(self) -> int:
        """No measured number, nor anything on the way to it, is more times as large as the largest class."""

    @property
    def signed(self) -> bool:
        """Whether there are entries below zero."""
        return False

    @property
    def disjoint(self) -> bool:
        """Whether there are ones only, and one in each column at the most."""
        return False

    @abstractmethod
    def change(self, norm: str) -> int:
        """The largest column: its sum of squares, or of absolute values where the norm is L1."""

    @abstractmethod
    def apply(self, x: Numbers, axis: int) -> Numbers:
        """What is measured, exactly."""

    @abstractmethod
    def solve(self, noisy: Array, axis: int) -> Array:
        """Least squares: the classes."""

    @abstractmethod
    def variances(self, factor: Factor) -> Array:
        """Of the factor's answers, for noise of variance 1."""

    def total_variance(self, factor: Factor) -> float:
        """The sum of `variances`."""
        return float(self.variances(factor).sum())

    def totals(self, asked: AskedOf) -> Array:
        """For each question `total_variance` of its factor."""
        return asked.sums(self.total_variance, self.variances)

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """All of it, exactly, with its kind."""

    @classmethod
    @abstractmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Line:
        """The one that was written down."""


@dataclass(frozen=True)
class EachClass(Line):
    """Each class by itself."""

    kind: ClassVar[str] = "each"
    name: ClassVar[str] = "disjoint cells"
    size: int

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.size

    @property
    def rows(self) -> int:
        """How many numbers are measured."""
        return self.size

    @property
    def growth(self) -> int:
        """How many times as large a number can become."""
        return 1

    @property
    def disjoint(self) -> bool:
        """It is just that."""
        return True

    def change(self, norm: str) -> int:  # noqa: ARG002 - the same in both
        """One."""
        return 1

    def apply(self, x: Numbers, axis: int) -> Numbers:  # noqa: ARG002 - along any
        """As they are."""
        return x

    def solve(self, noisy: Array, axis: int) -> Array:  # noqa: ARG002 - along any
        """As they are."""
        return noisy

    def variances(self, factor: Factor) -> Array:
        """An answer adds up so many."""
        return factor.squares()

    def total_variance(self, factor: Factor) -> float:
        """The sum of all squares."""
        return factor.total_block_squares(1)

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {"kind": self.kind, "classes": self.size}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> EachClass:
        """The one that was written down."""
        return cls(int(stored["classes"]))


@dataclass(frozen=True, eq=False)
class MatrixLine(Line):
    """A matrix that is written down; for at most a few hundred classes.

    Attributes:
        entries: Whole numbers, of full column rank.
    """

    kind: ClassVar[str] = "matrix"
    name: ClassVar[str] = "optimised matrix"
    entries: NDArray[np.int64]

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.entries.shape[1])

    @property
    def rows(self) -> int:
        """How many numbers are measured."""
        return int(self.entries.shape[0])

    @cached_property
    def growth(self) -> int:
        """How many times as large a number can become."""
        return max(1, int(np.abs(self.entries).sum(axis=1).max()))

    @cached_property
    def signed(self) -> bool:
        """Whether there are entries below zero."""
        return bool((self.entries < 0).any())

    def change(self, norm: str) -> int:
        """Added up in Python's integers where need be: entries are below 2³⁰, so 2⁴ rows or more might not fit."""
        if norm == "l1":
            return int(np.abs(self.entries).sum(axis=0).max())
        high, low = np.divmod(np.abs(self.entries), 2**15)  # below 2¹⁵ each: 2³³ rows fit
        sums = [(high * high).sum(axis=0), (high * low).sum(axis=0), (low * low).sum(axis=0)]
        return max(int(a) * 2**30 + int(b) * 2**16 + int(c) for a, b, c in zip(*sums, strict=True))

    def apply(self, x: Numbers, axis: int) -> Numbers:
        """The matrix times ``x`` along that axis."""
        return np.moveaxis(np.tensordot(self.entries, x, axes=(1, axis)), 0, axis)

    @cached_property
    def _inverse(self) -> tuple[Array, Array]:
        """R and A⁺ with (AᵀA)⁻¹ = RRᵀ."""
        from scipy.linalg import solve_triangular

        q, r = np.linalg.qr(self.entries.astype(float))
        root = np.asarray(solve_triangular(r, np.eye(self.classes)))
        return root, np.asarray(root @ q.T)

    @property
    def root(self) -> Array:
        """R with (AᵀA)⁻¹ = RRᵀ."""
        return self._inverse[0]

    def solve(self, noisy: Array, axis: int) -> Array:
        """By the pseudoinverse."""
        return np.asarray(np.moveaxis(np.tensordot(self._inverse[1], noisy, axes=(1, axis)), 0, axis))

    def variances(self, factor: Factor) -> Array:
        """The diagonal of F(AᵀA)⁻¹Fᵀ."""
        return factor.products(self._inverse[0])

    def total_variance(self, factor: Factor) -> float:
        """The trace of (AᵀA)⁻¹FᵀF."""
        if factor.answers < self.classes:
            return float(self.variances(factor).sum())
        root = self._inverse[0]
        return float(((factor.gram() @ root) * root).sum())

    def to_json(self) -> dict[str, Any]:
        """All of it: the numbers as packed bytes, for they are many."""
        packed = base64.b64encode(zlib.compress(self.entries.astype("<i4").tobytes(), 9)).decode()
        return {"kind": self.kind, "shape": list(self.entries.shape), "entries": packed}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> MatrixLine:
        """The one that was written down."""
        raw = zlib.decompress(base64.b64decode(stored["entries"]))
        return cls(np.frombuffer(raw, dtype="<i4").astype(np.int64).reshape(stored["shape"]))
