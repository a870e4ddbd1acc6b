"""How much is done for a synthetic table, what that takes, and what fits into less time: all from public sizes.

Seconds are those of the machine of bench/RESULTS.md. `--time` is counted in them and never read off a clock: what a
model looks like must not depend on how fast rows happened to be read, and the same request must mean the same model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dalenius.measuring.pace import FIXED

MILLION = 1_000_000
LEAST_POOL, MOST_POOL = 20_000, 400_000
POOL_ROWS = 4  # of a pool, for each row of the table
FIRST_ROUNDS = 5  # in which a pool is raked to a tree

_READ = 0.1  # seconds for a million values to be read and coded
_SEEK = 0.1  # seconds for the keys or classes of one column of a million rows to be found
_COUNT = 0.0025  # seconds for a million rows to be counted in one table
_RAKE = 0.004  # seconds for a million rows of a pool to be raked to one table
_CELL = 0.15  # seconds for a million cells to be raked once
_WHOLE = 0.007  # seconds for a million bytes of tables with all values to be worked on

_BASE = 450 * 2**20  # bytes of the program and its libraries
_ENGINE_ROW, _ENGINE_VALUE, _ENGINE_MOST = 64, 16, 2 * 10**9  # bytes that the engine holds of a row, of a value; in all
_COPIES = 2.0  # of all codes: once as they are read, and once put together
_WEIGHT = 32  # bytes of each row for its weight, in several forms
_SCRATCH = 24  # bytes of each row while it is counted
_CELL_OF = 8  # bytes of each row of a pool for each table that it is raked to
_DECIMALS = 4  # as much as a code counts a number with decimals, where a model is read (`stored`)
_PAIR_CELL = 32  # bytes of each cell of the largest table of two columns, which trees spell out value by value
_TREE_LEVEL = 32  # groups of a column's values in a table of two, from which on it is spelt out
_DRAWN = 20  # bytes of a drawn value: as code, as number, as it stands in a file


@dataclass(frozen=True)
class Effort:
    """What a generator may do that tries things out.

    Attributes:
        levels: Of merging, at which each pair of columns is scored.
        pool: Rows of a pool, at most.
        rounds: In which a pool is raked, after the first few.
        pairs: How many pairs of columns besides those of a tree are measured, at most, for each column.
    """

    levels: tuple[int, ...] = (8, 16, 32, 100)
    pool: int = MOST_POOL
    rounds: int = 30
    pairs: float = 3.25

    def pool_size(self, rows: float) -> int:
        """How many rows a pool has, for a table of so many."""
        return min(self.pool, max(LEAST_POOL, round(POOL_ROWS * rows)))

    def to_json(self) -> dict[str, Any]:
        """What tells one request from another."""
        return asdict(self) | {"levels": list(self.levels)}


# From the most to the least: what costs the least quality is given up first (bench/RESULTS.md).
FULL = Effort()
EFFORTS = (
    FULL,
    Effort(rounds=15),
    Effort(pool=200_000, rounds=15),
    Effort((16, 32), 200_000, 10),
    Effort((32,), 100_000, 10),
    Effort((32,), LEAST_POOL, 5),
)


@dataclass(frozen=True)
class Counted:
    """What a method counts and rakes, by the number of columns.

    Attributes:
        tables: Tables of the rows, at most.
        pool: Tables of a pool, before it is raked.
        raked: Tables that a pool is raked to.
        level: The most groups of a column's values in a table.
        whole: Bytes for each cell of a tree's tables of two columns, which have all values of both; 0: there are none.
        cells: Of all tables that are stored besides, at most.
    """

    tables: float
    pool: float = 0.0
    raked: float = 0.0
    level: int = 32
    whole: int = 0
    cells: float = 0.0


@dataclass(frozen=True)
class Sizes:
    """What is public of a table.

    Attributes:
        rows: How many there are, by a released number, as a class; of several tables, of all together.
        codes: How many each column has.
        sought: Columns whose keys or classes are yet to be found.
        units: Rows are read once more, unit by unit.
    """

    rows: int
    codes: tuple[int, ...]
    sought: int = 0
    units: bool = False

    @property
    def columns(self) -> int:
        """How many are modelled."""
        return len(self.codes)

    def cells(self, level: int) -> float:
        """Of the table of a pair of columns, on average."""
        widths = [min(each, level) for each in self.codes]
        pairs = len(widths) * (len(widths) - 1) / 2
        return (sum(widths) ** 2 - sum(each**2 for each in widths)) / 2 / pairs if pairs else 0.0

    @property
    def whole(self) -> int:
        """Cells of the tables of a tree of columns with all their values, at most: each beside the widest."""
        widest = max(self.codes)
        return widest * (sum(self.codes) - widest)


Count = Callable[[int, Effort], Counted]


def seconds(count: Count, sizes: Sizes, effort: Effort = FULL) -> float:
    """For rows to be read, measured and fitted."""
    found, rows = count(sizes.columns, effort), sizes.rows / MILLION
    pool = effort.pool_size(sizes.rows) / MILLION
    reading = rows * (_READ * sizes.columns * (2 if sizes.units else 1) + _SEEK * sizes.sought)
    counting = _COUNT * (rows * found.tables + pool * found.pool)
    raking = found.raked * (effort.rounds + FIRST_ROUNDS) * (_RAKE * pool + _CELL * sizes.cells(found.level) / MILLION)
    return FIXED + reading + counting + raking + _WHOLE * found.whole * sizes.whole / MILLION


def counting_seconds(sizes: Sizes, tables: float) -> float:
    """For rows to be read, and counted in so many tables."""
    return FIXED + sizes.rows / MILLION * (_READ * sizes.columns + _COUNT * tables)


def memory(count: Count, sizes: Sizes, effort: Effort = FULL) -> int:
    """Bytes at most, also for as many rows to be drawn as there are."""
    found, rows, columns = count(sizes.columns, effort), sizes.rows, sizes.columns
    code = 8 if sizes.sought else 1 if max(sizes.codes) <= 256 else 2  # what is sought is read as positions
    pool = effort.pool_size(rows) if found.raked else 0
    table = rows * (_COPIES * code * columns + _WEIGHT)
    engine = min(_ENGINE_MOST, rows * (_ENGINE_ROW + _ENGINE_VALUE * columns))
    merged = (rows + pool) * code * columns * len(effort.levels)
    held = pool * (8 * columns + 16 + _CELL_OF * found.raked)
    whole = found.whole * sizes.whole
    if found.tables > columns > 1 and found.level >= _TREE_LEVEL:
        whole += _PAIR_CELL * math.prod(sorted(sizes.codes)[-2:])
    reading, fitting = engine + table, table + merged + rows * _SCRATCH + held + whole
    return round(_BASE + max(reading, fitting, held + whole + rows * columns * _DRAWN))


def numbers(count: Count, sizes: Sizes, effort: Effort = FULL) -> float:
    """What a model holds at most, as it is counted where it is read: a pool's rows with weights, or a tree's tables."""
    found = count(sizes.columns, effort)
    if found.raked:  # how many rows a pool has is known with noise alone
        views = found.raked * (2 * sum(sizes.codes) / sizes.columns + sizes.cells(found.level))
        return effort.pool * (sizes.columns + _DECIMALS) + views
    return _DECIMALS * (2 * sum(sizes.codes) + found.cells + (sizes.whole if found.whole else 0))


def fitting(count: Count, sizes: Sizes, most: float | None) -> Effort | None:
    """The greatest effort that takes so many seconds; None: none does."""
    return next((each for each in EFFORTS if most is None or seconds(count, sizes, each) <= most), None)


def least_seconds(counts: Sequence[Count], sizes: Sizes) -> float:
    """What the least effort takes, by the fastest of some methods."""
    return min(seconds(count, sizes, EFFORTS[-1]) for count in counts)
