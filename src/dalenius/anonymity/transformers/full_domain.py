"""The best full-domain generalisation: one level for each column; every class is published or suppressed, as a whole.

Best first. Every node has a floor: what it would lose if nothing had to be suppressed. Floors never fall on the way to
coarser nodes, and a node never loses less than its floor, since a suppressed row costs the most that a row can. So
nodes are taken by ascending floor, and when the next floor reaches the best loss so far, no other node is better.
Two things keep the search short:

- *A good table early*: it starts with what the greedy descent finds (`greedy`).
- *Hopeless nodes*: where a node fails for a reason that all finer ones share (`Lattice._hopeless`), it climbs to a
  coarsest such node and everything below it is passed over without a look.

Then the best loss is the optimum, **proved**, but where some node might do better with a set of suppressed classes that
was not tried (`hiding`): the least that it may lose is the bound then. That cannot be with k-anonymity and distinct
l-diversity. When time is over, the best so far is returned, and the floor of the next node is a bound as well.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from dalenius.anonymity.transformers.greedy import coarse_start, descend, settle
from dalenius.anonymity.transformers.lattice import Lattice, Node
from dalenius.anonymity.transformers.problem import Problem, Recoding

_EXACT = 1e-12  # two ways to add up one loss may differ by that share


def full_domain(task: Problem) -> Recoding:
    """The optimum, or the best found in time.

    Raises:
        InputError: Not even the coarsest table does.
    """
    lattice = Lattice(task)
    best, node, bound = _search(lattice, *descend(lattice, *coarse_start(lattice)))
    if node is None:
        raise task.unreachable(lattice.at(lattice.top).groups, certain=math.isinf(bound))
    node = settle(lattice, best, node)
    return Recoding(lattice.levels(node), node, bound, best)


def _search(lattice: Lattice, best: float, node: Node | None) -> tuple[float, Node | None, float]:
    """The least loss, a node that has it, and what no node is below: infinite where none can do."""
    task, top = lattice.task, lattice.top
    cells = task.loss in {"ncp", "entropy"}
    start: Node = (0,) * len(top)
    # Each node is reached once: from the node with its last level lowered.
    waiting = [(lattice.floor(start) if cells else 0.0, start, 0)]
    done, untried = 0.0, math.inf  # the least that sets of suppressed classes may lose that were not tried
    hopeless = np.zeros((0, len(top)), np.int64)
    while waiting:
        floor, here, first = heapq.heappop(waiting)
        if floor >= best * (1 - _EXACT):
            break
        if task.late:
            return best, node, min(floor, untried, best)
        if node is not None:
            done = max(done, floor / best)
            task.progress(done, "searched")
        if not (np.asarray(here) <= hopeless).all(axis=1).any():
            found = lattice.evaluate(here)
            floor = max(floor, found.floor)
            if found.loss is None or found.least < found.loss * (1 - _EXACT):
                untried = min(untried, found.least)
            if found.loss is not None and (node is None or (found.loss, here) < (best, node)):
                best, node = found.loss, here
            elif found.hopeless:
                coarsest = _climb(lattice, here)
                hopeless = np.vstack([hopeless[~(hopeless <= coarsest).all(axis=1)], coarsest])
        for at in range(first, len(top)):
            if here[at] < top[at]:
                coarser = (*here[:at], here[at] + 1, *here[at + 1 :])
                heapq.heappush(waiting, (lattice.floor(coarser) if cells else floor, coarser, at))
    return best, node, min(best, untried)


def _climb(lattice: Lattice, node: Node) -> Node:
    """A coarsest node above that is hopeless, too."""
    for at in sorted(range(len(node)), key=lambda place: lattice.column_costs[place][-1]):
        for level in range(lattice.top[at], node[at], -1):
            coarser = (*node[:at], level, *node[at + 1 :])
            found = lattice.evaluate(coarser)
            if found.hopeless:
                node = coarser
                break
    return node
