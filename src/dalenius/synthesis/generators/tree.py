"""The fast path: one-way tables, distances of all pairs, a tree of pair tables, ancestral sampling.

In the manner of MST (McKenna, Miklau & Sheldon, Winning the NIST contest, 2021), but the tree is chosen from distances
that are all released at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.synthesis.domain import Codes
from dalenius.synthesis.measurer import Measured, Measurer, by_cells, shares
from dalenius.synthesis.models.raking import Floats
from dalenius.synthesis.models.tree import PULL, pair_table, spanning, steps
from dalenius.synthesis.sampling import Step, ancestral
from dalenius.synthesis.start import Candidate, Start, again, begin, from_independence

LEVELS = (32,)
WEIGHTS = (0.35, 0.05, 0.60)  # of ρ: one-way tables, distances, pair tables


@dataclass(frozen=True, eq=False)
class TreeModel:
    """A fitted tree: as many rows as wanted may be drawn for nothing."""

    rows: float
    steps: Sequence[Step]

    def sample(self, rows: int | None, rng: np.random.Generator) -> Codes:
        """So many rows, or as many as there are by noisy count."""
        return ancestral(self.steps, round(self.rows) if rows is None else rows, rng)


@dataclass(frozen=True, eq=False)
class Grown:
    """A tree, and what was measured for it."""

    start: Start
    measured: Sequence[Measured]
    steps: Sequence[Step]


def best_levels(candidates: Sequence[Candidate], sigma: float) -> list[Candidate]:
    """Of each pair the level that promises the most at σ, best pair first."""
    best = dict[tuple[int, ...], Candidate]()
    for each in candidates:
        held = best.get(each.view.columns)
        if held is None or each.gain(sigma) > held.gain(sigma):
            best[each.view.columns] = each
    return sorted(best.values(), key=lambda each: -each.gain(sigma))


def grow(measurer: Measurer, rhos: Sequence[Fraction], levels: Sequence[int], pull: float) -> Grown:
    """A tree for three prices: one-way tables, scores, pair tables. All three are spent, whatever is found."""
    before = measurer.left
    start = begin(measurer, rhos[0], levels)
    columns = len(start.shares)
    sigma = math.sqrt(max(1, columns - 1) / (2 * rhos[2]))
    candidates = best_levels(from_independence(measurer, start, rhos[1]), sigma)
    edges = spanning(candidates, lambda each: (each.view.columns[0], each.view.columns[1]), columns)
    views = [edge.view for edge in edges if edge.gain(sigma) > 0]
    measured = measurer.measure(list(zip(views, by_cells(rhos[2], views), strict=True))) if views else []
    if not views:
        start = again(measurer, start, sum(rhos) - (before - measurer.left), levels)
    tables = dict[tuple[int, int], Floats]()
    for each in measured:
        tables[each.view.columns[0], each.view.columns[1]] = pair_table(each, start.shares, start.rows, pull)
    degrees = [sum(at in pair for pair in tables) for at in range(columns)]
    return Grown(start, measured, steps(tables, start.shares, int(np.argmax(degrees))))


def tree(measurer: Measurer, rng: np.random.Generator) -> TreeModel:  # noqa: ARG001 — nothing is drawn
    """Spends all that is left of ρ on a tree.

    Guarantee:
        ρ-zCDP with ρ what the measurer had left: three calls, whose shares add up to it. All else is post-processing.

    References:
        Composition: Bun & Steinke (2016), Lemma 2.3.
    """
    grown = grow(measurer, shares(measurer.left, WEIGHTS), LEVELS, PULL)
    return TreeModel(grown.start.rows, grown.steps)
