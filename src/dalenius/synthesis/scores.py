"""Whole-number scores of tables of counts, with what one row more or less can change in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.views import View

Counts = NDArray[np.int64]
_MOST = 2**60  # of all cells of a reference together: their sum must not run over 63 bits, whatever the noise was


class Score(Protocol):
    """What a candidate is chosen by."""

    @property
    def view(self) -> View:
        """The table of counts that it looks at."""

    @property
    def sensitivity(self) -> int:
        """By how much one row more or less changes `of`, at most."""

    def of(self, counts: Counts) -> int:
        """The score, from the exact table (flat)."""

    def in_parts(self, parts: int) -> Score:
        """The same score of tables that count each row as so many, as near as whole numbers allow, times ``parts``.

        Its sensitivity is for one such part more or less.
        """


@dataclass(frozen=True, eq=False)
class Distance:
    """Σ|count − reference| − penalty, against public whole numbers.

    Guarantee:
        Sensitivity 1: one row changes one count by one, and the reference not at all (triangle inequality).
    """

    view: View
    reference: Counts
    penalty: int = 0
    sensitivity: ClassVar[int] = 1

    def of(self, counts: Counts) -> int:
        """The score, from the exact table (flat)."""
        return int(np.abs(counts - self.reference).sum()) - self.penalty

    def in_parts(self, parts: int) -> Distance:
        """Against a reference in parts too, whatever its size."""
        most = _MOST // (parts * max(1, self.reference.size))
        reference = np.clip(self.reference, -most, most) * parts
        return Distance(self.view, reference, self.penalty * parts)


@dataclass(frozen=True, eq=False)
class Dependence:
    """⌊Σ|c(x, π) − c(x)·c(π)/n|⌋: how far a column is from being independent of others, R of PrivBayes times 2n.

    Guarantee:
        Sensitivity 4 for one row more or less. Let Q = c(x)·c(π)/n, and let a row be added at (x₀, π₀). Then c − Q
        changes by δ = [x₀, π₀] + Q/(n+1) − (c(x)[π₀] + [x₀]c(π) + [x₀, π₀])/(n+1), whose positive parts add up to at
        most 2n/(n+1), and so do the negative ones, since Σδ = 0. Σ|c − Q| = 2·Σ max(0, c − Q), as Σ(c − Q) = 0; so it
        changes by at most 4n/(n+1) < 4, and its floor by at most 4.

    References:
        Zhang et al., PrivBayes (2017), §5.2: R, there with n public and a row exchanged (3/n + 2/n²).
    """

    view: View
    column: int
    sensitivity: ClassVar[int] = 4

    def of(self, counts: Counts) -> int:
        """The score, from the exact table (flat); whole numbers all the way, so that its floor is exact.

        >>> view = View((0, 1), (np.array([0, 1]), np.array([0, 1])))
        >>> Dependence(view, 0).of(np.array([5, 0, 0, 5])), Dependence(view, 0).of(np.array([4, 4, 2, 2]))
        (10, 0)
        """
        at = self.view.columns.index(self.column)
        table = np.moveaxis(counts.reshape(self.view.shape), at, 0).reshape(self.view.shape[at], -1)
        rows = int(table.sum())
        if not rows:
            return 0
        if rows > 2**24:  # n·Σ|…| ≤ 2n² must fit into 63 bits
            table = table.astype(object)
        product = np.multiply.outer(table.sum(axis=1), table.sum(axis=0))
        return int(np.abs(rows * table - product).sum()) // rows

    def in_parts(self, parts: int) -> Dependence:  # noqa: ARG002
        """Itself: a table of parts is a table of rows, of which one more or less changes it by 4."""
        return self
