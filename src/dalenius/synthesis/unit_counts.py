"""What units are like, counted with noise: how many rows they have, and how often two rows of one are alike.

Units are a table of their own, with one row each: its number of rows, and for every column whether two of its rows,
chosen by its tag, have the same value there.

Guarantee:
    A unit's row in that table is a function of its own rows and of the salt, and every unit has one. So adding or
    removing a unit adds or removes one row, whatever it holds, and exchanging one exchanges one: the guarantee of
    `UnitMeasurer` holds with a limit of one row: one call, whose parts add up to ρ.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalenius.measuring._exact import exact_batches
from dalenius.measuring.batches import MOST_ROWS, UnitBatch, UnitRows
from dalenius.synthesis.domain import Codes, Column, Domain
from dalenius.synthesis.measurer import Measured, shares
from dalenius.synthesis.models.margins import on_simplex, total_rows
from dalenius.synthesis.position_classes import Classes
from dalenius.synthesis.rows import Limit, UnitMeasurer
from dalenius.synthesis.start import MARGIN
from dalenius.synthesis.units import MadeUpUnits
from dalenius.synthesis.views import whole

if TYPE_CHECKING:
    from dalenius.accounting.neighbors import Neighbors
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.plan import Table
    from dalenius.synthesis.policy_domain import PolicyDomain

PART = Fraction(1, 20)  # of ρ
OF_SIZES = 0.5  # of that; the rest for how alike rows are, in all columns
SEEN = 4.3  # deviations above which one of ninety counts is of units; of noise alone with chance 0.1%
TAIL = 2.0  # deviations above which it is next to those
LONE, SAME, NEAR, DIFFERENT = range(4)  # one row alone; two of one value; of one class; of two classes
_UNITS = 2**15  # in one batch

Habits = NDArray[np.int8]


def size_classes(most: int) -> Classes:
    """Classes of numbers of rows, less one: up to 12 each, then four for each doubling.

    >>> size_classes(20).runs[-3:]
    ((12, 13), (14, 16), (17, 19))
    """
    firsts, first = list(range(12)), 12.0
    while first < most:
        firsts.append(int(first))
        first = (first + 1) * 2**0.25 - 1
    return Classes(tuple((low, high - 1) for low, high in pairwise([*firsts, most])))


SIZES = size_classes(MOST_ROWS)


def read_units(
    table: Table, domain: PolicyDomain, where: Expression, engine: Engine, salt: str, seconds: float
) -> tuple[NDArray[np.int64], Habits]:
    """How many rows each unit has, and whether two of them are alike (columns × units). Inside of a look alone."""
    reading = UnitRows(table, domain.expressions, MOST_ROWS, where)
    held, habits = [np.zeros(0, np.int64)], [np.zeros((len(domain.columns), 0), np.int8)]
    for batch in exact_batches(reading, engine, salt, units=_UNITS, seconds=seconds):
        held.append(np.diff(batch.starts))
        habits.append(_habits(batch, domain))
    return np.concatenate(held), np.concatenate(habits, axis=1)


def _habits(batch: UnitBatch, domain: PolicyDomain) -> Habits:
    """Of each unit, by columns: whether two different rows of it are alike. Its tag decides which two."""
    held = np.diff(batch.starts).astype(np.uint64)
    first = batch.tags % held
    step = batch.tags // held % np.maximum(held - np.uint64(1), np.uint64(1)) + np.uint64(1)
    pair = [batch.starts[:-1] + each.astype(np.int64) for each in (first, (first + step) % held)]
    found = np.zeros((len(domain.columns), len(held)), np.int8)
    for at, column in enumerate(domain.columns):
        two = [(batch.values[at][rows], batch.absent[at][rows]) for rows in pair]
        one, other = (column.codes(*each) for each in two)
        found[at] = np.where(one == other, SAME, DIFFERENT)
        if column.grid is not None:
            first_, second = (np.where(absent, -1, column.grid.positions(values)) for values, absent in two)
            found[at][(one == other) & (first_ != second)] = NEAR
        found[at][held == 1] = LONE
    return found


@dataclass(frozen=True, eq=False)
class UnitCounts:
    """What was counted of units.

    Attributes:
        by_size: By classes of their numbers of rows (`SIZES`).
        alike: For each column, how many have one row, two of one value there, of one class, of two.
    """

    by_size: Measured
    alike: tuple[Measured, ...]

    def made_up(self, name: str, rows: float, limit: int) -> MadeUpUnits:
        """What made-up units are like.

        Args:
            name: Of the column that says whose a row is.
            rows: How many the table has, as the model counted them.
            limit: So many rows of a unit count in full there.
        """
        count = total_rows([self.by_size, *self.alike])  # each of them counts every unit once
        sizes, numbers = _sizes(self.by_size, count, rows, limit)
        fixed = tuple(map(_fixed, self.alike))
        return MadeUpUnits(name, count, sizes, numbers / numbers.sum(), tuple(map(_alike, self.alike)), fixed)


def count_units(held: NDArray[np.int64], habits: Habits, neighbors: Neighbors, rho: Fraction) -> UnitCounts:
    """Counts units, for all of ``rho``.

    Args:
        held: How many rows each unit has.
        habits: Whether two of them are alike, columns × units.
        neighbors: Which two tables the guarantee compares.
        rho: What is spent.
    """
    limit = Limit(1, neighbors)
    columns = [
        Column("rows", classes=len(SIZES)),
        *(Column(f"{at}", classes=DIFFERENT + 1) for at in range(len(habits))),
    ]
    codes: Codes = np.stack([SIZES.codes(held - 1), *habits.astype(np.int32)])
    weights = np.full(len(held), limit.whole, np.int64)
    measurer = UnitMeasurer(Domain(tuple(columns)), codes, weights, limit, rho)
    parts = shares(rho, [OF_SIZES, *([(1 - OF_SIZES) / max(1, len(habits))] * len(habits))])
    views = [whole([at], measurer.domain.sizes) for at in range(len(columns))]
    by_size, *alike = measurer.measure(list(zip(views, parts, strict=True)))
    return UnitCounts(by_size, tuple(alike))


def _sizes(measured: Measured, count: float, rows: float, limit: int) -> tuple[Classes, NDArray[np.float64]]:
    """The classes up to the last in which units are to be seen, and how many units each has.

    Noise alone would make units of a million rows now and then. So one class that stands out must begin; the thin end
    of a tail follows, as far as the next few together are more than noise. If units and rows are left over then, these
    units have those rows, in one class more.
    """
    seen = np.flatnonzero(measured.values > SEEN * measured.sigma)
    if not len(seen):
        usual = max(1, min(limit, round(2 * rows / count) - 1))
        return Classes(((0, usual - 1),)), np.ones(1)
    last = int(seen[-1]) + 1
    while further := next((width for width in (1, 2, 4, 8) if _more(measured, last, width)), 0):
        last += further
    runs, values = SIZES.runs[:last], measured.values[:last]
    left = count - float(values.sum())
    least = runs[-1][1] + 2
    if left > measured.sigma * last**0.5 and least < limit:  # a wrong guess stays within the limit
        middle = np.array([min(limit, (low + high) / 2 + 1) for low, high in runs])
        mean = (rows - float((middle * values).sum())) / left
        most = min(limit, round(2 * mean - least))
        if most > least:
            runs, values = (*runs, (least - 1, most - 1)), np.append(values, left)
    return Classes(runs), on_simplex(values, count)


def _more(measured: Measured, start: int, width: int) -> bool:
    """Whether so many classes from one on hold more together than noise."""
    values = measured.values[start : start + width]
    return len(values) == width and float(values.sum()) > TAIL * measured.sigma * width**0.5


def _alike(measured: Measured) -> float | None:
    """How often two rows of a unit are alike; always, where that is within the margin of the noise."""
    _, equal, near, different = measured.values.tolist()
    same = equal + near
    both = same + different
    margin = MARGIN * measured.sigma * 2**0.5
    if both <= 2 * margin or same <= margin:
        return None
    return 1.0 if different <= margin and different < 0.1 * both else min(1.0, same / both)


def _fixed(measured: Measured) -> bool:
    """Whether two rows of a unit that are of one class there are of one value, as far as the noise lets see."""
    _, equal, near, _ = measured.values.tolist()
    return bool(near <= MARGIN * measured.sigma and near < 0.1 * max(equal, 0.0))
