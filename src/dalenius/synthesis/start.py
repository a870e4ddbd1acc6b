"""What generators do first: one-way tables, groups of values at several levels, distances of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from dalenius.synthesis.domain import Column
from dalenius.synthesis.measurer import Measured, Measurer, by_cells
from dalenius.synthesis.models.margins import Shares, on_simplex, total_rows
from dalenius.synthesis.scores import Distance
from dalenius.synthesis.views import Groups, View, merged, whole

LEVELS = (8, 16, 32)
RARE = 3.0  # values below so many σ are merged
MARGIN = 1.96  # deviations within which noise alone lies, with chance 95%
NOISE_KEPT = 0.4  # error per cell and σ: noise itself has √(2/π) ≈ 0.8, and raking takes about half of it back


@dataclass(frozen=True, eq=False)
class Start:
    """One-way tables as measured and as shares, the number of rows, and groups of each column's values by level."""

    measured: tuple[Measured, ...]
    rows: float
    shares: tuple[Shares, ...]
    groups: tuple[tuple[Groups, ...], ...]

    def view(self, columns: Sequence[int], level: int) -> View:
        """The table of some columns at a level; -1: the finest."""
        places = tuple(sorted(columns))
        return View(places, tuple(self.groups[at][level] for at in places))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A table that might be measured, and how far it is from what is believed, with noise."""

    view: View
    distance: float

    def gain(self, sigma: float) -> float:
        """What measuring it at σ would take off the error of this table, in rows: what it is off, less the noise."""
        return self.distance - NOISE_KEPT * sigma * self.view.cells


def one_ways(measurer: Measurer, rho: Fraction) -> list[Measured]:
    """The one-way tables of all columns, for ``rho`` together."""
    sizes = measurer.domain.sizes
    views = [whole([at], sizes) for at in range(len(sizes))]
    return measurer.measure(list(zip(views, by_cells(rho, views), strict=True)))


def begin(measurer: Measurer, rho: Fraction, levels: Sequence[int] = LEVELS) -> Start:
    """All one-way tables, for ``rho`` together, and what follows from them."""
    return _start(measurer, one_ways(measurer, rho), levels)


def again(measurer: Measurer, start: Start, rho: Fraction, levels: Sequence[int] = LEVELS) -> Start:
    """One-way tables a second time, where nothing else is worth its price; both weigh by their variances."""
    both = list[Measured]()
    for first, second in zip(start.measured, one_ways(measurer, rho), strict=True):
        weight = second.variance / (first.variance + second.variance)
        values = weight * first.values + (1 - weight) * second.values
        both.append(Measured(first.view, values, weight * first.variance))
    return _start(measurer, both, levels)


def _start(measurer: Measurer, measured: Sequence[Measured], levels: Sequence[int]) -> Start:
    rows = total_rows(measured)
    shares = column_shares(measurer, measured, rows)
    groups = list[tuple[Groups, ...]]()
    for each, share, column in zip(measured, shares, measurer.domain, strict=True):
        by_level = [merged(share * rows, RARE * each.sigma, most, ordered=column.ordered) for most in levels]
        closed = [code for code in column.doubtful if share[code] == 0]
        groups.append(tuple(_joined(group, closed, int(share.argmax())) for group in by_level))
    return Start(tuple(measured), rows, shares, tuple(groups))


def column_shares(measurer: Measurer, measured: Sequence[Measured], rows: float) -> tuple[Shares, ...]:
    """One-way tables as shares that add up to 1."""
    return tuple(_shares(each, column, rows) for each, column in zip(measured, measurer.domain, strict=True))


def _shares(measured: Measured, column: Column, rows: float) -> Shares:
    """A code that is doubtful has a share only where its noisy count is above the noise's 95% margin.

    So a table without absent values gets none from noise, with chance 97.5% for each column.
    """
    held = np.ones(column.size, bool)
    doubtful = list(column.doubtful)
    held[doubtful] = measured.values[doubtful] > MARGIN * measured.sigma
    found = np.zeros(column.size)
    found[held] = on_simplex(measured.values[held], rows) / rows
    return found


def _joined(group: Groups, closed: Sequence[int], at: int) -> Groups:
    """Codes that no row will have are counted with one that rows have: no model can draw them from a group of theirs.

    >>> _joined(np.array([0, 1, 2, 3]), [2], 1).tolist()
    [0, 1, 1, 2]
    """
    found = group.copy()
    found[list(closed)] = group[at]
    return np.unique(found, return_inverse=True)[1].astype(np.int32)


def pairs(start: Start) -> list[View]:
    """Every pair of columns, at every level that differs from the ones before."""
    found = list[View]()
    for pair in combinations(range(len(start.shares)), 2):
        seen = set[tuple[int, ...]]()
        for level in range(len(start.groups[0])):
            view = start.view(pair, level)
            if view.shape not in seen and min(view.shape) > 1:
                seen.add(view.shape)
                found.append(view)
    return found


def from_independence(measurer: Measurer, start: Start, rho: Fraction) -> list[Candidate]:
    """Every pair at every level, with its noisy distance from independence."""
    views = pairs(start)
    if not views:
        return []
    asked = [Distance(view, np.rint(start.rows * view.of_product(start.shares)).astype(np.int64)) for view in views]
    found = measurer.scores(asked, rho)
    return [Candidate(view, float(each)) for view, each in zip(views, found.values, strict=True)]
