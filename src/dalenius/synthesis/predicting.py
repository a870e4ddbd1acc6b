"""A classifier that is learned from synthetic rows: how well it does on real ones says what they are good for.

Multinomial logistic regression on all columns but one, each of whose values (or classes of them) has a weight. What is
predicted are at most `MOST_CLASSES` classes of a column: its most frequent keys and the rest, or a number's quarters.
All of it follows from the synthetic rows, so that it is a public function of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.synthesis.describing import ABSENT, label
from dalenius.synthesis.scoring import MOST_CLASSES as MOST_VALUES
from dalenius.synthesis.views import Groups

if TYPE_CHECKING:
    from dalenius.synthesis.domain import Codes
    from dalenius.synthesis.modelled import Modelled

MOST_CLASSES = 8
QUARTERS = 4
MOST_ROWS = 50_000  # of synthetic ones, to learn from
_RIDGE = 1e-5
_ROUNDS = 100
REST = "others"
_AT_ONCE = 100_000  # rows
_SHARES = np.arange(1, QUARTERS) / QUARTERS


@dataclass(frozen=True, eq=False)
class Classes:
    """What is predicted: the class of each code of a column, and what the classes are called."""

    groups: Groups
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Predictor:
    """A classifier of rows of codes.

    Attributes:
        target: The place of the column that it predicts.
        classes: What it tells apart.
        groups: Of each other column the group of every code that has a weight of its own.
        weights: For each group of each such column, one after the other, and class; the last row: of every row.
    """

    target: int
    classes: Classes
    groups: dict[int, Groups]
    weights: NDArray[np.float64]

    def scores(self, table: Codes) -> NDArray[np.float64]:
        """For each row (columns × rows) and class a score: the logarithm of a chance, up to a constant."""
        found: NDArray[np.float64] = design(table, self.groups) @ self.weights
        return found

    def predict(self, table: Codes) -> NDArray[np.int32]:
        """The likeliest class of each row: a function of that row alone."""
        parts = range(0, table.shape[1], _AT_ONCE)
        found = [np.argmax(self.scores(table[:, at : at + _AT_ONCE]), axis=1).astype(np.int32) for at in parts]
        return np.concatenate([np.zeros(0, np.int32), *found])

    def truth(self, table: Codes) -> NDArray[np.int32]:
        """The class that each row has."""
        found: NDArray[np.int32] = self.classes.groups[table[self.target]]
        return found


def learned(table: Codes, columns: Sequence[Modelled], target: int, classes: Classes | None = None) -> Predictor:
    """Learns from rows of codes (columns × rows) to tell classes of a column; None: those that these rows suggest.

    Raises:
        InputError: Nothing can be told apart, or there is no other column.
    """
    classes = classes or check_predictable(table, columns, target)
    some = table[:, :MOST_ROWS]
    groups = {at: _groups(each, some[at]) for at, each in enumerate(columns) if at != target}
    weights = _fitted(design(some, groups), classes.groups[some[target]], len(classes.names))
    return Predictor(target, classes, groups, weights)


def check_predictable(table: Codes, columns: Sequence[Modelled], target: int) -> Classes:
    """The classes that would be predicted.

    Raises:
        InputError: Nothing can be told apart, or there is no other column.
    """
    classes = classes_of(columns[target], table[target])
    if len(classes.names) < 2 or len(columns) < 2:
        raise InputError(
            f"Column {columns[target].name!r} cannot be predicted.",
            why="It has one value in the synthetic rows, or there is no other column.",
            fix="Name another one.",
        )
    return classes


def classes_of(column: Modelled, codes: Codes) -> Classes:
    """At most `MOST_CLASSES` classes of a column, by the rows at hand; absent values are one of their own."""
    inside = column.column
    named = inside.size - inside.absent  # keys or classes, and the rest of the keys
    counts = np.bincount(codes, minlength=inside.size)[:named]
    if named <= MOST_CLASSES - 1:
        groups, names = np.arange(named), [label(column, at, at + 1) for at in range(named)]
    elif inside.ordered:
        below = (np.cumsum(counts) - counts / 2) / max(1, counts.sum())
        groups = np.searchsorted(_SHARES, below)
        groups = np.unique(groups, return_inverse=True)[1]  # a quarter that one value fills leaves none for others
        ends = [np.flatnonzero(groups == each) for each in range(int(groups.max()) + 1)]
        names = [label(column, int(each[0]), int(each[-1]) + 1) for each in ends]
    else:
        first = np.sort(np.argsort(-counts, kind="stable")[: MOST_CLASSES - 2])
        groups = np.full(named, len(first))
        groups[first] = np.arange(len(first))
        names = [*(label(column, int(at), int(at) + 1) for at in first), REST]
    if inside.absent:
        groups, names = np.append(groups, len(names)), [*names, ABSENT]
    return Classes(groups.astype(np.int32), tuple(names))


def design(table: Codes, groups: dict[int, Groups]) -> Any:
    """A sparse table with a one where a row has a group, and a one in each row at the end."""
    from scipy import sparse

    rows, width, places = table.shape[1], 0, list[NDArray[np.int64]]()
    for at, group in groups.items():
        places.append(group[table[at]].astype(np.int64) + width)
        width += int(group.max()) + 1
    places.append(np.full(rows, width))
    inside = np.stack(places, axis=1).ravel()
    begins = np.arange(0, len(inside) + 1, len(places))
    return sparse.csr_array((np.ones(len(inside)), inside, begins), shape=(rows, width + 1))


def _groups(column: Modelled, codes: Codes) -> Groups:
    """A weight for each value; of many, for equal classes, or for the most frequent keys and the rest."""
    inside = column.column
    size, named = inside.size, inside.size - inside.absent
    if size <= MOST_VALUES:
        return np.arange(size, dtype=np.int32)
    if inside.ordered:
        found = np.arange(size) * (MOST_VALUES - 1) // named
    else:
        first = np.argsort(-np.bincount(codes, minlength=size)[:named], kind="stable")[: MOST_VALUES - 2]
        found = np.full(size, MOST_VALUES - 2)
        found[first] = np.arange(len(first))
    found[named:] = MOST_VALUES - 1
    return found.astype(np.int32)


def _fitted(rows: Any, truth: NDArray[np.int32], classes: int) -> NDArray[np.float64]:
    """The weights that make what is true likeliest, held back a little where there are few rows."""
    from scipy import optimize, special

    count, width = rows.shape
    turned = rows.T.tocsr()
    wanted = np.zeros((count, classes))
    wanted[np.arange(count), truth] = 1.0

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.reshape(width, classes)
        scores = rows @ weights
        sums = special.logsumexp(scores, axis=1)
        value = (sums - (scores * wanted).sum(axis=1)).mean() + _RIDGE * float(flat @ flat)
        slope = turned @ (np.exp(scores - sums[:, None]) - wanted) / count
        return float(value), slope.ravel() + 2 * _RIDGE * flat

    begin = np.zeros(width * classes)
    found = optimize.minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": _ROUNDS})
    weights: NDArray[np.float64] = np.asarray(found.x).reshape(width, classes)
    return weights
