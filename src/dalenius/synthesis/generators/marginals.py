"""S2: tables of n columns that somebody names, all measured at once, and rows that fit them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dalenius.errors import InputError
from dalenius.synthesis.effort import FULL, Effort
from dalenius.synthesis.generators.adaptive import PoolModel
from dalenius.synthesis.measurer import Measurer, by_cells, shares
from dalenius.synthesis.models.pool import Pool
from dalenius.synthesis.sampling import Step, ancestral
from dalenius.synthesis.start import begin

WEIGHTS = (0.2, 0.8)  # of ρ: one-way tables, the others
LEVELS = (16,)
PULL = 0.05
MOST_CELLS = 1_000_000


def marginals(
    measurer: Measurer,
    rng: np.random.Generator,
    tables: Sequence[Sequence[str]] | None = None,
    effort: Effort = FULL,
) -> PoolModel:
    """Spends all that is left of ρ on one-way tables and on ``tables``; None: all pairs.

    Values of a column are merged down to sixteen groups, and further where they are rare.

    Guarantee:
        ρ-zCDP with ρ what the measurer had left: two calls, whose shares add up to it. All else is post-processing.
    """
    domain = measurer.domain
    named = combinations(domain.names, 2) if tables is None else tables
    cliques = list(dict.fromkeys(tuple(sorted({domain.place(name) for name in each})) for each in named))
    cliques = [each for each in cliques if len(each) > 1]
    first, second = shares(measurer.left, WEIGHTS) if cliques else (measurer.left, None)
    for each in cliques:
        if np.prod([min(domain.sizes[at], LEVELS[0]) for at in each], dtype=float) > MOST_CELLS:
            raise InputError(
                f"The table of {', '.join(domain.names[at] for at in each)} has more than {MOST_CELLS:,} cells.",
                why="Nearly all of them would be noise.",
                fix="Name fewer columns in one table.",
            )
    start = begin(measurer, first, LEVELS)
    steps = [Step(at, (), share) for at, share in enumerate(start.shares)]
    pool = Pool(ancestral(steps, effort.pool_size(start.rows), rng), start.rows)
    pool.add(start.measured, PULL)
    if second is not None:
        views = [start.view(each, 0) for each in cliques]
        pool.add(measurer.measure(list(zip(views, by_cells(second, views), strict=True))), PULL)
    pool.fit(effort.rounds)
    return PoolModel(start.rows, pool)
