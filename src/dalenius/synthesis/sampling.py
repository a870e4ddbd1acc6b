"""Ancestral sampling: one column after another, each given the columns it depends on, with systematic rounding.

Rows with the same parents are *shuffled* before they get their values. Without that two children of one parent would
both stand in the order of their values, row by row: each right with the parent, and wrong with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.domain import Codes
from dalenius.synthesis.rounding import systematic


@dataclass(frozen=True, eq=False)
class Step:
    """A column drawn given others.

    Attributes:
        column: Its place.
        parents: Places of the columns it depends on, drawn before it.
        table: Weights, shaped (parents in this order …, column).
    """

    column: int
    parents: tuple[int, ...]
    table: NDArray[np.float64]


def ancestral(steps: Sequence[Step], rows: int, rng: np.random.Generator) -> Codes:
    """A table (rows × columns) drawn step by step."""
    found = np.zeros((len(steps), rows), np.int32)
    for step in steps:
        if step.parents:
            shape = step.table.shape[:-1]
            parent = np.ravel_multi_index(tuple(found[at] for at in step.parents), shape)
        else:
            parent = np.zeros(rows, np.int64)
        found[step.column] = given(parent, step.table.reshape(-1, step.table.shape[-1]), rng)
    return np.ascontiguousarray(found.T)


def given(parent: NDArray[np.int64], table: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int32]:
    """A value for each row by the row of ``table`` that its parent says; those alike share them out exactly.

    Where a parent's row is all nought, the values are drawn as if there were no parent.
    """
    if not len(parent):
        return np.zeros(0, np.int32)
    every = np.bincount(parent, minlength=len(table))
    present = np.flatnonzero(every)
    count = every[present]
    weights = normalised(table, present) * count[:, None]
    # each row of weights adds up to a whole number, so that one running sum rounds every row to its own total
    drawn = systematic(weights.ravel(), len(parent), rng).reshape(weights.shape)
    short = count - drawn.sum(axis=1)
    if short.any():  # rounding of floats at the ends of rows
        at = np.arange(len(short)), weights.argmax(axis=1)
        drawn[at] += short
    found = np.empty(len(parent), np.int32)
    values = np.tile(np.arange(table.shape[1], dtype=np.int32), len(present))
    found[_shuffled(parent, every, rng)] = np.repeat(values, drawn.ravel())
    return found


def normalised(table: NDArray[np.float64], rows: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """Rows of weights (those of some places) as shares; a row that is all nought gets the shares of all together.

    >>> normalised(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.25, 0.75]]
    """
    weights = np.maximum(table if rows is None else table[rows], 0.0)
    sums = weights.sum(axis=1, keepdims=True)
    margin = np.maximum(table, 0.0).sum(axis=0)
    fallback = margin if margin.sum() > 0 else np.ones_like(margin)
    weights = np.where(sums > 0, weights, fallback)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _shuffled(parent: NDArray[np.int64], every: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The rows by their parent, those with the same in random order: all in random order first, then sorted stably.

    Small numbers are sorted in time that only their count decides.
    """
    place = np.cumsum(every > 0) - 1
    order: NDArray[np.int64] = rng.permutation(len(parent))
    sorted_ = np.argsort(place.astype(np.min_scalar_type(int(place[-1])))[parent][order], kind="stable")
    return order[sorted_]
