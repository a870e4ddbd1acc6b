"""What generators do first: one-way tables, groups of values at several levels, distances of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from dalenius.synthesis.measurer import Measured, Measurer, by_cells
from dalenius.synthesis.models.margins import Shares, as_shares, total_rows
from dalenius.synthesis.scores import Distance
from dalenius.synthesis.views import Groups, View, merged, whole

LEVELS = (8, 16, 32)
RARE = 3.0  # values below so many σ are merged
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
    shares = tuple(as_shares(each, rows) for each in measured)
    groups = list[tuple[Groups, ...]]()
    for each, share, column in zip(measured, shares, measurer.domain, strict=True):
        by_level = [merged(share * rows, RARE * each.sigma, most, ordered=column.ordered) for most in levels]
        groups.append(tuple(by_level))
    return Start(tuple(measured), rows, shares, tuple(groups))


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
