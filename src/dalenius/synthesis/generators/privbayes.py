"""S3, PrivBayes: a Bayesian network in which each column depends on up to k others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dalenius.errors import InputError
from dalenius.synthesis.domain import Codes
from dalenius.synthesis.measurer import Measured, Measurer, by_cells, shares
from dalenius.synthesis.models.raking import soft_target
from dalenius.synthesis.models.tree import PULL
from dalenius.synthesis.sampling import Step, ancestral, given
from dalenius.synthesis.scores import Dependence
from dalenius.synthesis.start import Start, begin

WEIGHTS = (0.15, 0.25, 0.60)  # of ρ: one-way tables, the network, its tables
LEVELS = (16,)
USEFUL = 4.0  # θ: a table is looked at only where a cell is expected to hold so many times its noise


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A network over groups of values, and the share of each value of a column within its group."""

    rows: float
    steps: Sequence[Step]
    start: Start

    def sample(self, rows: int | None, rng: np.random.Generator) -> Codes:
        """So many rows, or as many as there are by noisy count."""
        grouped = ancestral(self.steps, round(self.rows) if rows is None else rows, rng)
        found = np.empty_like(grouped)
        for at, share in enumerate(self.start.shares):
            group = self.start.groups[at][0]
            within = np.where(np.arange(group.max() + 1)[:, None] == group, share, 0.0)
            empty = within.sum(axis=1) == 0  # a group without mass spreads evenly over its values
            within[empty] = np.arange(group.max() + 1)[empty, None] == group
            found[:, at] = given(grouped[:, at].astype(np.int64), within, rng)
        return found


def privbayes(measurer: Measurer, rng: np.random.Generator, parents: int = 2) -> NetworkModel:  # noqa: ARG001
    """Spends all that is left of ρ on a network, its columns joined one by one, and its tables.

    Guarantee:
        ρ-zCDP with ρ what the measurer had left. Each column but the first is chosen, together with its parents, by
        the exponential mechanism on `Dependence`, R of PrivBayes in whole numbers, whose sensitivity is 4 for one row
        more or less; the choices cost the same each. The tables are measured in one call.

    References:
        Zhang, Cormode, Procopiuc, Srivastava & Xiao, PrivBayes (2014; 2017): algorithms 1, 2, 4 and the score R;
        θ-usefulness (§4.5), here with Gaussian noise.
    """
    if parents < 1:
        raise InputError("A network needs at least one parent.", why="k counts parents.", fix="Give k = 1 or more.")
    columns = len(measurer.domain)
    if columns == 1:
        only = begin(measurer, measurer.left, LEVELS)
        return NetworkModel(only.rows, [_first(only, 0)], only)
    first, second, third = shares(measurer.left, WEIGHTS)
    start = begin(measurer, first, LEVELS)
    most_cells = start.rows / (USEFUL * (columns / (2 * float(third))) ** 0.5)
    root = int(np.argmax([_mass_spread(share) for share in start.shares]))
    drawn, chosen = [root], list[Dependence]()
    for rho in shares(second, [1.0] * (columns - 1)):
        candidates = _candidates(start, drawn, parents, most_cells)
        chosen.append(candidates[measurer.choose(candidates, rho)])
        drawn.append(chosen[-1].column)
    views = [each.view for each in chosen]
    measured = measurer.measure(list(zip(views, by_cells(third, views), strict=True)))
    steps = [_first(start, root)]
    steps += [_step(start, each, table) for each, table in zip(chosen, measured, strict=True)]
    return NetworkModel(start.rows, steps, start)


def _mass_spread(share: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Entropy of a one-way table: the network begins where there is most to know."""
    held = share[share > 0]
    return float(-(held * np.log(held)).sum())


def _candidates(start: Start, drawn: Sequence[int], parents: int, most_cells: float) -> list[Dependence]:
    """Every column not drawn yet, with as many parents as useful tables allow (and always with one)."""
    found = list[Dependence]()
    for column in range(len(start.shares)):
        if column in drawn:
            continue
        for count in range(min(parents, len(drawn)), 0, -1):
            views = [start.view((column, *some), 0) for some in combinations(drawn, count)]
            useful = [view for view in views if view.cells <= most_cells or count == 1]
            found += [Dependence(view, column) for view in useful]
            if useful:
                break
    return found


def _first(start: Start, column: int) -> Step:
    weights = np.bincount(start.groups[column][0], start.shares[column]).astype(np.float64)
    return Step(column, (), weights)


def _step(start: Start, chosen: Dependence, measured: Measured) -> Step:
    """The column given its parents, from a noisy table."""
    view = chosen.view
    base = np.maximum(start.rows * view.of_product(start.shares), 1e-6)
    table = soft_target(base, measured.values, PULL * measured.variance).reshape(view.shape)
    at = view.columns.index(chosen.column)
    parents = tuple(place for place in view.columns if place != chosen.column)
    return Step(chosen.column, parents, np.moveaxis(table, at, -1))
