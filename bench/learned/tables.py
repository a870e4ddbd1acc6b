"""The tables of the benchmark: features with public bounds or keys, a target, and the splits that all methods share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.learning.fitted import encode_features
from dalenius.learning.task import Task, task_of
from dalenius.tables.policy import Bounds, Column, Kind

SPLITS = 10
HELD = 0.2  # of the units, to test on


@dataclass(frozen=True, eq=False)
class Learned:
    """A table, declared.

    Attributes:
        name: Of the table.
        values: Columns, row by row.
        columns: What the policy would say.
        target: The column to predict.
        owner: Whose each row is.
    """

    name: str
    values: Mapping[str, NDArray[Any]]
    columns: Mapping[str, Column]
    target: str
    owner: NDArray[np.int64]

    @cached_property
    def task(self) -> Task:
        """Logistic regression from everything else."""
        return task_of(self.columns, self.target, "logistic")[0]

    @property
    def units(self) -> int:
        """How many there are."""
        return int(self.owner[-1]) + 1

    def split(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Units to train on, and units held out."""
        order = np.random.default_rng(seed).permutation(self.units)
        held = round(HELD * self.units)
        return np.sort(order[held:]), np.sort(order[:held])

    def rows(self, units: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of some units, unit by unit."""
        return np.flatnonzero(np.isin(self.owner, units))

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """What peers are given: the same numbers as ours, from −1 to 1, without the intercept."""
        return encode_features(self.task, self.values)[:, :-1].astype(np.float64) / 2**14

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """The place of each row's class."""
        places = {key: at for at, key in enumerate(self.task.classes)}
        return np.array([places[each] for each in self.values[self.target].tolist()], np.int64)


def bounded(name: str, x: NDArray[np.float64], y: NDArray[np.int64], low: Any, high: Any) -> Learned:
    """Numbers between bounds, and a class."""
    columns, values = dict[str, Column](), dict[str, NDArray[Any]]()
    for at in range(x.shape[1]):
        ends = Bounds(Fraction(float(low[at])), Fraction(float(high[at])))
        columns[f"x{at}"] = Column(f"x{at}", Kind.NUMBER, ends, Fraction(1, 1000), None, ends.low)
        values[f"x{at}"] = x[:, at]
    columns["y"] = Column("y", Kind.INTEGER, keys=tuple(range(int(y.max()) + 1)))
    values["y"] = y.astype(np.float64)
    return Learned(name, values, columns, "y", np.arange(len(y)))


def of_scikit(path: Path) -> list[Learned]:
    """Digits, breast cancer, iris and made-up classes, as `peers/learning_tables.py` wrote them.

    Pixels lie between 0 and 16; the bounds of cancer and iris are those in scikit-learn's description of the table,
    which are the least and the greatest values. The rules of training were chosen without the last two.
    """
    found = np.load(path)
    tables = [bounded("digits", found["digits_x"], found["digits_y"], np.zeros(64), np.full(64, 16.0))]
    for name in ("cancer", "iris", "made"):
        x = found[f"{name}_x"]
        tables.append(bounded(name, x, found[f"{name}_y"], x.min(axis=0), x.max(axis=0)))
    return tables


def adult(folder: Path | None) -> Learned:
    """UCI Adult as in the ARX repository (30,162 rows, nine columns), or a made-up table of that shape."""
    if folder is None:
        return _made()
    lines = [line.split(";") for line in (folder / "adult.csv").read_text().splitlines()]
    table = dict(zip(lines[0], map(list, zip(*lines[1:], strict=True)), strict=True))
    columns, values = dict[str, Column](), dict[str, NDArray[Any]]()
    for name, column in table.items():
        if name == "age":
            columns[name] = Column(name, Kind.INTEGER, Bounds(17, 90), Fraction(1), None, 17)
            values[name] = np.array(column, np.float64)
        else:
            keys = tuple(sorted(set(column)))
            columns[name] = Column(name, Kind.CATEGORY, keys=keys, default=keys[0])
            values[name] = np.array(column, object)
    return Learned("adult", values, columns, "salary-class", np.arange(len(lines) - 1))


def _made() -> Learned:
    """Thirty thousand made-up people."""
    chance = np.random.default_rng(25)
    count = 30_000
    x = chance.random((count, 20))
    score = (x - 0.5) @ chance.normal(size=20) * 3 + chance.logistic(size=count)
    return bounded("made up", x, (score > 0).astype(np.int64), np.zeros(20), np.ones(20))


def jittered(table: Learned, rows: int, seed: int = 0) -> Learned:
    """Each person with so many rows: numbers moved by a tenth of their range, one key in twenty another one."""
    chance, count = np.random.default_rng(seed), len(table.owner) * rows
    values = dict[str, NDArray[Any]]()
    for name, column in table.columns.items():
        each = np.repeat(table.values[name], rows)
        if name != table.target and column.keys is not None:
            other = chance.random(count) < 0.05
            each[other] = np.array(column.keys, object)[chance.integers(0, len(column.keys), int(other.sum()))]
        elif name != table.target and column.bounds is not None:
            low, high = float(column.bounds.low), float(column.bounds.high)
            each = np.clip(each + chance.normal(size=count) * (high - low) / 10, low, high)
        values[name] = each
    return Learned(f"{table.name}, {rows} rows each", values, table.columns, table.target, np.repeat(table.owner, rows))
