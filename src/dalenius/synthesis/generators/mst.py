"""S4, MST: a spanning tree whose edges are chosen one after another by the exponential mechanism.

The tree path chooses all edges from scores released at once; this one is the published algorithm, with a table of pairs
at one level for each edge, and rare values merged.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from dalenius.synthesis.generators.tree import TreeModel
from dalenius.synthesis.measurer import Measurer, by_cells, shares
from dalenius.synthesis.models.raking import Floats
from dalenius.synthesis.models.tree import pair_table, steps
from dalenius.synthesis.scores import Distance
from dalenius.synthesis.start import Start, begin
from dalenius.synthesis.views import View

WEIGHTS = (1.0, 1.0, 1.0)  # of ρ: one-way tables, edges, pair tables
LEVELS = (32,)


def mst(measurer: Measurer, rng: np.random.Generator) -> TreeModel:  # noqa: ARG001 — nothing is drawn
    """Spends all that is left of ρ on a tree.

    Guarantee:
        ρ-zCDP with ρ what the measurer had left. An edge is chosen by its distance from independence, Σ|count −
        reference| with a reference from the noisy one-way tables: sensitivity 1. Of d columns, d − 1 edges are chosen,
        each at the same part of ρ.

    References:
        McKenna, Miklau & Sheldon, Winning the NIST contest (2021), algorithms 1 to 3.
    """
    columns = len(measurer.domain)
    if columns == 1:
        only = begin(measurer, measurer.left, LEVELS)
        return TreeModel(only.rows, steps({}, only.shares, 0))
    first, second, third = shares(measurer.left, WEIGHTS)
    start = begin(measurer, first, LEVELS)
    part = list(range(columns))
    views = list[View]()
    for rho in shares(second, [1.0] * (columns - 1)):
        open_pairs = [pair for pair in combinations(range(columns), 2) if part[pair[0]] != part[pair[1]]]
        scores = [from_independence(start, start.view(pair, 0)) for pair in open_pairs]
        at = measurer.choose(scores, rho)
        views.append(scores[at].view)
        joined, gone = (part[place] for place in open_pairs[at])
        part = [joined if each == gone else each for each in part]
    tables = dict[tuple[int, int], Floats]()
    for each in measurer.measure(list(zip(views, by_cells(third, views), strict=True))):
        tables[each.view.columns[0], each.view.columns[1]] = pair_table(each, start.shares, start.rows)
    degrees = [sum(at in pair for pair in tables) for at in range(columns)]
    return TreeModel(start.rows, steps(tables, start.shares, int(np.argmax(degrees))))


def from_independence(start: Start, view: View) -> Distance:
    """How far a pair is from what its one-way tables say."""
    return Distance(view, np.rint(start.rows * view.of_product(start.shares)).astype(np.int64))
