"""The quality path: a tree first, then the pairs that the tree gets wrong, all raked into one pool of rows.

In the manner of AIM (McKenna et al., 2022) what is measured next depends on what the model gets wrong; but all
candidates are scored at once, two times, with noise that is small against distances of thousands of rows, instead of
one exponential mechanism per table. And the model is a pool of weighted rows (`models/pool.py`), which takes any set of
tables: no clique is too large, and forty pairs are no harder than the thirteen of a tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.synthesis.domain import Codes
from dalenius.synthesis.effort import FIRST_ROUNDS, FULL, Effort
from dalenius.synthesis.generators.tree import Grown, best_levels, grow
from dalenius.synthesis.measurer import Measurer, shares
from dalenius.synthesis.models.pool import Pool
from dalenius.synthesis.sampling import ancestral
from dalenius.synthesis.scores import Distance
from dalenius.synthesis.start import Candidate, Start, one_ways, pairs
from dalenius.synthesis.views import View

WEIGHTS = (0.20, 0.02, 0.23, 0.02, 0.53)  # of ρ: one-way tables, scores, the tree's pairs, scores, further pairs
TARGET = 3.0  # how much more a pair with the target column gets
PULL = 0.05


@dataclass(frozen=True, eq=False)
class PoolModel:
    """A raked pool: as many rows as wanted may be drawn for nothing."""

    rows: float
    pool: Pool

    def sample(self, rows: int | None, rng: np.random.Generator) -> Codes:
        """So many rows, or as many as there are by noisy count."""
        return self.pool.sample(round(self.rows) if rows is None else rows, rng)


def adaptive(
    measurer: Measurer, rng: np.random.Generator, target: str | None = None, effort: Effort = FULL
) -> PoolModel:
    """Spends all that is left of ρ on a tree, and on the pairs that it gets wrong.

    Args:
        measurer: The door to the data.
        rng: For post-processing only.
        target: A column that will be predicted: tables with it are measured more exactly.
        effort: How much is tried out; from public sizes.

    Guarantee:
        ρ-zCDP with ρ what the measurer had left: five calls, whose shares add up to it. All else is post-processing.

    References:
        Composition: Bun & Steinke (2016), Lemma 2.3.
    """
    goal = None if target is None else measurer.domain.place(target)
    *first, scoring, further = shares(measurer.left, WEIGHTS)
    grown = grow(measurer, first, effort.levels, PULL)
    start = grown.start
    pool = first_pool(grown, effort, rng)
    if len(start.shares) > 1:
        known = {each.view for each in grown.measured}
        most = max(1, round(effort.pairs * len(start.shares)))
        chosen = worst_pairs(measurer, start, pool, (scoring, further), known, goal, most)
        if chosen:
            more = [TARGET if goal in view.columns else 1.0 for view in chosen]
            weights = [each * view.cells ** (2 / 3) for each, view in zip(more, chosen, strict=True)]
            measured = measurer.measure(list(zip(chosen, shares(further, weights), strict=True)))
            pool.add(measured, PULL)
    if measurer.left:  # nothing is worth its price but what is known best already
        pool.add(one_ways(measurer, measurer.left), PULL)
    pool.fit(effort.rounds)
    return PoolModel(start.rows, pool)


def first_pool(grown: Grown, effort: Effort, rng: np.random.Generator) -> Pool:
    """Rows drawn from the tree, raked to all that has been measured."""
    pool = Pool(ancestral(grown.steps, effort.pool_size(grown.start.rows), rng), grown.start.rows)
    pool.add(grown.start.measured, PULL)
    pool.add(grown.measured, PULL)
    pool.fit(FIRST_ROUNDS)
    return pool


def worst_pairs(
    measurer: Measurer,
    start: Start,
    pool: Pool,
    price: tuple[Fraction, Fraction],
    known: Iterable[View],
    goal: int | None,
    most: int,
) -> list[View]:
    """The ``most`` pairs that promise the most, each at its best level; ``price``: of scores, of tables."""
    held = {(view.columns, view.shape) for view in known}
    views = [view for view in pairs(start) if (view.columns, view.shape) not in held]
    if not views:
        return []
    asked = [Distance(view, np.rint(pool.table(view)).astype(np.int64)) for view in views]
    found = measurer.scores(asked, price[0])
    sigma = math.sqrt(most / (2 * price[1]))
    candidates = [Candidate(view, float(each)) for view, each in zip(views, found.values, strict=True)]
    worth = [
        each
        for each in best_levels(candidates, sigma)
        if each.gain(sigma) > found.sigma or (goal is not None and goal in each.view.columns)
    ]
    return [each.view for each in worth[:most]]
