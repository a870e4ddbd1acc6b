"""Mondrian: a table is cut in two, and each part again, as long as both sides satisfy the models.

All parts are cut at once, in rounds; no loop goes over rows or parts. For each part the columns are tried by what their
label costs now, the dearest first. A cut falls where a label below the part's own label ends, as near to the middle as
the models allow; where no such place does, between any two values. So numbers and categories go the same way: values
stand in an order in which everything under one label stands together.

*Strict*: rows with the same value stay on one side. *Relaxed*: where no cut between two values is allowed, rows with
the middle value go to both sides.

References: LeFevre, DeWitt & Ramakrishnan (2006), "Mondrian multidimensional k-anonymity".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.transformers.covers import blocks, covered, positions
from dalenius.anonymity.transformers.problem import Problem, Recoding


def mondrian(task: Problem) -> Recoding:
    """Strict Mondrian."""
    return _run(task, strict=True)


def relaxed_mondrian(task: Problem) -> Recoding:
    """Relaxed Mondrian."""
    return _run(task, strict=False)


def _run(task: Problem, *, strict: bool) -> Recoding:
    start, suppressed = blocks(task)
    return covered(task, parts(task, start, suppressed, strict=strict), suppressed)


def parts(
    task: Problem, start: NDArray[np.int64], fixed: NDArray[np.bool_], *, strict: bool = True
) -> NDArray[np.int64]:
    """Cuts classes into smaller ones.

    Args:
        task: The table and its models.
        start: The class of each row, each of which satisfies the models, but for those of fixed rows.
        fixed: Rows that are left alone.
        strict: Whether equal values stay together.

    Returns:
        The class of each row.
    """
    places = positions(task)
    found = start * 2 + fixed
    # rows in an order that does not depend on how they came
    sensitive = [task.table[name].codes for name in task.sensitive]
    rows = np.flatnonzero(~fixed)
    keys: list[NDArray[Any]] = [*sensitive, *places[::-1], start]
    rows = rows[np.lexsort([own[rows] for own in keys])]
    next_class = int(found.max()) + 1 if len(found) else 0
    sizes = np.diff(np.append(_starts(start[rows]), len(rows)))
    while len(rows) and not task.late:
        cut = _cut(task, places, rows, sizes, strict=strict)
        # parts that were not cut are done
        which = np.repeat(np.arange(len(cut.sizes)), cut.sizes)
        found[cut.rows] = next_class + which
        next_class += len(cut.sizes)
        going = cut.going
        rows, sizes = cut.rows[going[which]], cut.sizes[going]
        task.progress(1 - len(rows) / task.rows, "cut")
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Cut:
    """Rows in the order of their parts, sizes of parts, and which parts are new."""

    rows: NDArray[np.intp]
    sizes: NDArray[np.int64]
    going: NDArray[np.bool_]


def _starts(labels: NDArray[np.int64]) -> NDArray[np.intp]:
    return np.flatnonzero(np.diff(labels, prepend=labels[:1] - 1))


def _cut(
    task: Problem, places: list[NDArray[np.int64]], rows: NDArray[np.intp], sizes: NDArray[np.int64], *, strict: bool
) -> _Cut:
    """One round: each part is cut once, or not at all."""
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    scores = np.empty((len(sizes), len(places)))
    levels = np.empty((len(sizes), len(places)), np.int64)
    for at, (own, hierarchy) in enumerate(zip(places, task.hierarchies, strict=True)):
        mine = own[rows]
        low, high = np.minimum.reduceat(mine, starts), np.maximum.reduceat(mine, starts)
        levels[:, at] = hierarchy.cover(low, high)
        widest = np.zeros(len(sizes))
        for level in range(hierarchy.levels):
            here = levels[:, at] == level
            widest[here] = task.costs.labels[at][level][hierarchy.at_position[level][low[here]]]
            widest[here] -= task.costs.labels[at][0].min()
        scores[:, at] = np.where(low < high, widest, -1.0)
    scores[sizes < 2 * task.least] = -1.0
    rows, at_cut = rows.copy(), np.full(len(sizes), -1, np.int64)
    while True:
        best = np.argmax(scores, axis=1)
        trying = (at_cut < 0) & (scores[np.arange(len(sizes)), best] >= 0)
        if not trying.any():
            break
        for at in range(len(places)):
            mine = np.flatnonzero(trying & (best == at))
            if len(mine):
                scores[mine, at] = -1.0
                _cut_column(task, places[at], at, levels[mine, at], mine, rows, starts, sizes, at_cut, strict=strict)
    going = at_cut >= 0
    new = np.where(going[:, None], np.stack([at_cut, sizes - at_cut], axis=1), np.stack([sizes, sizes * 0], axis=1))
    keep = new.ravel() > 0
    return _Cut(rows, new.ravel()[keep], np.repeat(going, 2)[keep])


def _cut_column(
    task: Problem,
    place: NDArray[np.int64],
    at: int,
    level: NDArray[np.int64],
    mine: NDArray[np.intp],
    rows: NDArray[np.intp],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    at_cut: NDArray[np.int64],
    *,
    strict: bool,
) -> None:
    """Tries to cut some parts in one column; writes the new order of their rows and how many come first."""
    many = sizes[mine]
    which = np.repeat(np.arange(len(mine)), many)
    first = np.concatenate(([0], np.cumsum(many)[:-1]))
    inside = np.arange(len(which)) - first[which]  # how many rows of the part come before
    spot = starts[mine][which] + inside
    old = rows[spot]
    own = place[old]
    order = np.argsort(which * (int(place.max()) + 1) + own, kind="stable")
    own, new = own[order], old[order]
    hierarchy = task.hierarchies[at]
    # a cut before a row: another value than the row before it, best where another label below the part's own begins
    differs = np.diff(own, prepend=own[:1]) != 0
    child = np.zeros(len(own), np.bool_)
    for each in np.unique(level):
        labels = hierarchy.at_position[max(int(each) - 1, 0)][own]
        child |= (np.diff(labels, prepend=labels[:1]) != 0) & (level[which] == each)
    enough = (inside >= task.least) & (many[which] - inside >= task.least)
    half = many[which] / 2
    cost = np.abs(inside - half) + np.where(child, 0, np.where(differs, 1, 2)) * many[which]
    cost[~(enough & (differs | (not strict)))] = np.inf
    least = np.minimum.reduceat(cost, first)
    hits = np.flatnonzero((cost == least[which]) & np.isfinite(cost))
    chosen = np.full(len(mine), -1, np.int64)
    chosen[which[hits][::-1]] = inside[hits][::-1]  # of two that are as near the first
    if (chosen >= 0).any() and len(task.models) > 0:
        side = which * 2 + (inside >= chosen[which])
        judged = (chosen >= 0)[which]
        groups = task.groups(side[judged], 2 * len(mine), new[judged])
        good = task.good(groups).reshape(-1, 2).all(axis=1)
        chosen[~good] = -1
    taken = chosen >= 0
    rows[spot[taken[which]]] = new[taken[which]]
    at_cut[mine[taken]] = chosen[taken]
