"""Full-domain generalisation for many quasi-identifiers: from the coarsest table down, one level at a time.

Each step lowers the one column that brings the least loss, among those that keep the models and the limit; it ends
where none does. It looks at some d²·h nodes for d columns of h levels, where the lattice has hᵈ. Since every table on
the way keeps the models, it may be stopped at any moment. What it finds need not be the optimum; the sum of what each
column must lose at least, seen by itself, is a bound.
"""

from __future__ import annotations

import math

from dalenius.anonymity.transformers.lattice import Lattice, Node
from dalenius.anonymity.transformers.problem import Problem, Recoding

_STARTS = 1000  # nodes that are tried where the coarsest fails


def greedy(task: Problem) -> Recoding:
    """A good full-domain table, fast.

    Raises:
        InputError: Not even the coarsest table does.
    """
    lattice = Lattice(task)
    loss, node = descend(lattice, *coarse_start(lattice))
    if node is None:
        raise task.unreachable(lattice.at(lattice.top).groups)
    node = settle(lattice, loss, node)
    bound = _bound(lattice) if task.loss in {"ncp", "entropy"} else None
    return Recoding(lattice.levels(node), node, None if bound is None else min(bound, loss), loss)


def coarse_start(lattice: Lattice) -> tuple[float, Node | None]:
    """The coarsest node that keeps the models; None where none was found.

    That is the coarsest of all, but where hierarchies lack a highest label: then a few rows may have to be suppressed
    there that are too few for a class of their own, while a finer node suppresses more. Some such nodes are tried.
    """
    waiting, seen = [lattice.top], {lattice.top}
    for number, node in enumerate(waiting):
        found = lattice.evaluate(node)
        if found.loss is not None:
            return found.loss, node
        if (not number and found.hopeless) or number >= _STARTS or lattice.task.late:
            break
        for at in range(len(node)):
            finer = (*node[:at], node[at] - 1, *node[at + 1 :])
            if finer[at] >= 0 and not found.hopeless and finer not in seen:
                seen.add(finer)
                waiting.append(finer)
    return math.inf, None


def descend(lattice: Lattice, best: float, node: Node | None) -> tuple[float, Node | None]:
    """The loss and the node that steps down lead to."""
    while node is not None and not lattice.task.late:
        steps = list[tuple[float, Node]]()
        for at in range(len(node)):
            for level in range(node[at] - 1, -1, -1):
                finer = (*node[:at], level, *node[at + 1 :])
                found = lattice.evaluate(finer)
                if found.loss is not None:
                    steps.append((found.loss, finer))
                    break
                if found.hopeless:
                    break
        better = [step for step in steps if step[0] < best]
        if not better:
            break
        best, node = min(better)
    return best, node


def settle(lattice: Lattice, loss: float, node: Node) -> Node:
    """The finest node below that loses no more: of labels over the same rows the smaller ones."""
    at = 0
    while at < len(node):
        finer = (*node[:at], node[at] - 1, *node[at + 1 :])
        found = lattice.evaluate(finer).loss if finer[at] >= 0 else None
        if found is not None and found <= loss * (1 + 1e-12):
            node, at = finer, 0
        else:
            at += 1
    return node


def _bound(lattice: Lattice) -> float:
    """What each column must lose even if all others were at their highest level, summed."""
    found = 0.0
    for at, own in enumerate(lattice.column_costs):
        level = 0
        while level < lattice.top[at] and lattice.evaluate((*lattice.top[:at], level, *lattice.top[at + 1 :])).hopeless:
            level += 1
        found += own[level]
    return found
