"""Which classes of a node are suppressed: those that fail, and others with them where they are not enough.

The suppressed rows must satisfy all models together. Where failing classes do not, good ones are suppressed as well.
Each costs something, so the cheapest set is looked for: sets are tried by ascending cost, and the first one that does
is the best there is. With models that only need more rows or values that is the first one tried. With others it may not
be among the first few; then the cheapest classes go one after another until it does, and what the next set would have
cost is how little the best may cost: a bound, no proof.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Groups

_TRIES = 64  # sets that are tried in the order of their costs


@dataclass(frozen=True, eq=False)
class Hidden:
    """What was found.

    Attributes:
        kept: Which classes stay; None where no set was found that does.
        least: No set that does costs less, beside the failing classes; infinite where there is none.
    """

    kept: NDArray[np.bool_] | None
    least: float


def hide(
    groups: Groups,
    good: NDArray[np.bool_],
    limit: int,
    costs: NDArray[np.float64],
    satisfied: Callable[[Groups], NDArray[np.bool_]],
) -> Hidden:
    """The cheapest set of classes that holds all failing ones and satisfies the models.

    Args:
        groups: All classes of a node.
        good: Which of them satisfy the models.
        limit: How many rows may be suppressed.
        costs: What it costs to suppress each class, from 0 up.
        satisfied: Which classes satisfy the models.
    """
    # people of whom there is no row look for themselves among the suppressed, too
    must = ~good | (groups.sizes == 0)
    cap = limit - int(groups.sizes[must].sum())
    others = np.flatnonzero(~must & (groups.sizes <= cap)) if cap >= 0 else np.zeros(0, np.intp)
    others = others[np.argsort(costs[others], kind="stable")]
    # class 0: all that must go; then the others, the cheapest first
    new = np.full(len(must), -1, np.int64)
    new[must], new[others] = 0, np.arange(1, len(others) + 1)
    some = merged(groups, new, len(others) + 1)
    sizes, prices = groups.sizes[others].tolist(), costs[others].tolist()

    def does(which: tuple[int, ...]) -> bool:
        own = some.take(np.array([0, *(each + 1 for each in which)]))
        return bool(satisfied(merged(own, np.zeros(len(which) + 1, np.int64), 1))[0])

    def found(which: tuple[int, ...], least: float) -> Hidden:
        kept = ~must
        kept[others[list(which)]] = False
        return Hidden(kept, least)

    if cap < 0:
        return Hidden(None, math.inf)
    if does(()):
        return found((), 0.0)
    waiting: list[tuple[float, tuple[int, ...]]] = [(prices[0], (0,))] if prices else []
    for _ in range(_TRIES):
        if not waiting:
            return Hidden(None, math.inf)
        cost, which = heapq.heappop(waiting)
        fits, after = sum(sizes[each] for each in which) <= cap, which[-1] + 1
        if fits and does(which):
            return found(which, cost)
        if after < len(prices):
            for more in ((*which[:-1], after), *([(*which, after)] if fits else [])):
                heapq.heappush(waiting, (math.fsum(prices[each] for each in more), more))
    least = waiting[0][0] if waiting else math.inf
    return found(which, least) if (which := _one_after_another(sizes, cap, does)) else Hidden(None, least)


def _one_after_another(sizes: list[int], cap: int, does: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """The first classes that fit, twice as many each time; none where that does not help."""
    fitting, rows, many = list[int](), 0, 1
    for each, size in enumerate(sizes):
        if rows + size > cap:
            continue
        fitting.append(each)
        rows += size
        if len(fitting) == many:
            many *= 2
            if does(tuple(fitting)):
                return tuple(fitting)
    return tuple(fitting) if fitting and does(tuple(fitting)) else ()


def merged(groups: Groups, new: NDArray[np.int64], classes: int) -> Groups:
    """With class c become part of class `new[c]`; below 0: dropped."""
    counts = {name: each.merged(new, classes) for name, each in groups.counts.items()}
    kept = new >= 0
    people = None if groups.population is None else _summed(new[kept], groups.population[kept], classes)
    return Groups(_summed(new[kept], groups.sizes[kept], classes), counts, people)


def _summed(new: NDArray[np.int64], many: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    return np.bincount(new, many, minlength=classes).astype(np.int64)
