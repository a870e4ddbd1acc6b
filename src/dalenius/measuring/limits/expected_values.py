"""How far the values of rows are reckoned to differ, from how far units' totals do: public post-processing.

`protect` released noisy counts of units by their rows and by their total of a column. If all values were alike, totals
would differ as rows do. They differ by more, and that tells how far values do: units are made up whose rows are as many
as were counted, with log-normal values, and those are taken whose totals spread as far as the counted ones. Where
bounds forbid that the values of rows differ so much, those of units do: people have an age, and all their rows have it.

A vector of a unit over the groups is the longer the more its values differ: one large value is in one group. So N rows
with values x are as good as (Σx)²/Σx² ≤ N rows that are alike; that is how many a unit is given here.

All of that is a model, for previews; what is charged, chosen and measured does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dalenius.measuring.limits.expected_lengths import Lengths
from dalenius.measuring.limits.tails import Array

_MADE_UP = 3000  # units
_BESIDE = 4  # of them that stand for one kind of unit
_MOST = 200  # rows of one of them that are drawn; of more, the mean says enough
_FAR, _NEAR = 0.9, 0.1  # the parts of all units between whose totals the spread is measured
_GRID = np.geomspace(1.02, 16.0, 24)
_SEED = 19
_EVEN = 1.001  # a mean square so near to the squared mean is that of values that are alike


@dataclass(frozen=True, slots=True)
class Variety:
    """How far values differ.

    Attributes:
        square: Their mean square, in that of their mean: 1 where they are alike.
        of_units: Whether those of one unit are alike, and units differ.
    """

    square: float
    of_units: bool = False


@dataclass(frozen=True, slots=True)
class _Units:
    """Units that are made up: rows, Σx and Σx² of each, by Σx; the mean of x is 1."""

    rows: Array
    totals: Array
    squares: Array

    @classmethod
    def of(cls, rows: Lengths, variety: Variety) -> _Units:
        chance = np.random.default_rng(_SEED)
        order = np.argsort(rows.sizes)
        reached = np.cumsum(rows.units[order]) / rows.number
        evenly = (np.arange(_MADE_UP) + 0.5) / _MADE_UP
        places = np.minimum(np.searchsorted(reached, evenly), len(order) - 1)
        number = np.maximum(1.0, np.round(rows.sizes[order][places]))
        drawn = np.ones_like(number) if variety.of_units else np.minimum(number, _MOST)
        sigma = math.sqrt(math.log(max(variety.square, _EVEN)))
        values = np.exp(sigma * chance.standard_normal(int(drawn.sum())) - sigma * sigma / 2)
        starts = np.append(0, np.cumsum(drawn)[:-1]).astype(int)
        more = number / drawn
        totals, squares = (more * np.add.reduceat(each, starts) for each in (values, values**2))
        by_total = np.argsort(totals)
        return cls(number[by_total], totals[by_total], squares[by_total])

    @property
    def spread(self) -> float:
        return math.log(self.totals[int(_FAR * _MADE_UP)] / self.totals[int(_NEAR * _MADE_UP)])


def tell_variety(totals: Lengths, rows: Lengths, possible: Callable[[float], bool]) -> Variety:
    """How far values differ, so that totals spread as they do.

    Args:
        totals: Units by their total of a column.
        rows: Units by their rows.
        possible: Whether the bounds of the column allow values with such a mean square, beside that of the mean.
    """
    order = np.argsort(totals.sizes)
    reached = (np.cumsum(totals.units[order]) - totals.units[order] / 2) / totals.number
    near, far = np.interp([_NEAR, _FAR], reached, np.log(totals.sizes[order])).tolist()
    by_row = _square(rows, far - near, of_units=False)
    if possible(by_row):
        return Variety(by_row)
    return Variety(_square(rows, far - near, of_units=True), of_units=True)


def _square(rows: Lengths, spread: float, *, of_units: bool) -> float:
    """The mean square of values with which totals spread so far."""
    spreads = _spreads(rows.units.astype(float).tobytes(), rows.sizes.astype(float).tobytes(), of_units)
    return float(np.exp(np.interp(spread, np.maximum.accumulate(spreads), np.log(_GRID))))


@lru_cache(maxsize=64)  # of a few tables: many questions ask for the same
def _spreads(units: bytes, sizes: bytes, of_units: bool) -> tuple[float, ...]:
    own = np.frombuffer(sizes)
    rows = Lengths(np.frombuffer(units), own, own, own)
    return tuple(_Units.of(rows, Variety(float(each), of_units)).spread for each in _GRID)


def with_values(totals: Lengths, rows: Lengths, variety: Variety, *, squared: bool = False) -> Lengths:
    """Units by their total, or by their sum of squares, each with as many rows as would do if they were alike."""
    made = _Units.of(rows, variety)
    order = np.argsort(totals.sizes)
    reached = np.empty_like(totals.units)
    reached[order] = (np.cumsum(totals.units[order]) - totals.units[order] / 2) / totals.number
    places = np.minimum(np.floor(reached * _MADE_UP).astype(int), _MADE_UP - 1)
    parts = []
    for beside in range(_BESIDE):
        at = np.clip(places + beside - _BESIDE // 2, 0, _MADE_UP - 1)
        alike = np.maximum(1.0, made.totals[at] ** 2 / made.squares[at])
        sizes = totals.sizes**2 / alike if squared else totals.sizes
        parts.append(replace(totals, units=totals.units / _BESIDE, sizes=sizes, rows=alike, lengths=sizes))
    return Lengths(
        *(np.concatenate([getattr(each, name) for each in parts]) for name in ("units", "sizes", "rows", "lengths"))
    )
