"""What all questions of a workload ask of one attribute: each factor kept once, and small ones worked on together.

A workload may have thousands of questions with a condition each. Their rows are stacked into one matrix, so that a line
is tried on all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dalenius.measuring.strategies.factors import Array, Factor, Rows, Total
from dalenius.measuring.strategies.range_factors import Ranges

Asked = Sequence[tuple[float, Factor]]  # what is asked of an attribute, each with what its squared errors count
_SMALL = 64  # answers, up to which rows are stacked


@dataclass(frozen=True, eq=False)
class AskedOf:
    """All questions' factors of one attribute.

    Attributes:
        factors: The different ones.
        of: For each question the number of its own.
    """

    factors: tuple[Factor, ...]
    of: NDArray[np.int64]

    @classmethod
    def all(cls, classes: int, questions: int, named: Iterable[tuple[int, Factor]]) -> AskedOf:
        """By the number of the question; those that are not named count in total."""
        factors: list[Factor] = [Total(classes)]
        numbers = {factors[0].key: 0}
        of = np.zeros(questions, dtype=np.int64)
        for question, factor in named:
            number = numbers.setdefault(factor.key, len(factors))
            if number == len(factors):
                factors.append(factor)
            of[question] = number
        return cls(tuple(factors), of)

    @cached_property
    def _stacked(self) -> NDArray[np.int64]:
        """The numbers of those whose rows are stacked."""
        small = [isinstance(each, Rows | Ranges) and 0 < each.answers <= _SMALL for each in self.factors]
        return np.flatnonzero(small) if sum(small) > 1 else np.zeros(0, dtype=np.int64)

    @cached_property
    def _alone(self) -> NDArray[np.int64]:
        return np.setdiff1d(np.arange(len(self.factors)), self._stacked)

    @cached_property
    def _stack(self) -> Rows:
        from scipy.sparse import csr_array, vstack

        return Rows(csr_array(vstack([self.factors[at].matrix() for at in self._stacked], format="csr")))

    @cached_property
    def _answers(self) -> NDArray[np.int64]:
        """Of each that is stacked."""
        return np.array([self.factors[at].answers for at in self._stacked], dtype=np.int64)

    def sums(self, of_one: Callable[[Factor], float], of_each: Callable[[Factor], Array]) -> Array:
        """For each question a sum over its answers: of a factor alone, and of each answer."""
        found = np.zeros(len(self.factors))
        for at in self._alone:
            found[at] = of_one(self.factors[at])
        if len(self._stacked):
            starts = np.concatenate([[0], self._answers.cumsum()[:-1]])
            found[self._stacked] = np.add.reduceat(of_each(self._stack), starts)
        return np.asarray(found[self.of])

    def weighted(self, counts: Array) -> Asked:
        """What is asked, where each question's squared errors count so much."""
        from scipy.sparse import diags_array

        sums = np.bincount(self.of, weights=counts, minlength=len(self.factors))
        found: list[tuple[float, Factor]] = [(float(sums[at]), self.factors[at]) for at in self._alone if sums[at] > 0]
        if len(self._stacked) and sums[self._stacked].any():
            roots = np.sqrt(np.repeat(sums[self._stacked], self._answers))
            found.append((1.0, Rows((diags_array(roots) @ self._stack.entries).tocsr())))
        return found

    def block_squares(self, size: int) -> Array:
        """For each question Σ(sum of a row over a block)², over all rows and blocks of that size."""
        return self.sums(lambda one: one.total_block_squares(size), lambda stack: stack.block_squares(size))
