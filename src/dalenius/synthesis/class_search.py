"""Classes that fit a column, found with noise: narrow where many values are, and single values that many rows have.

From the outside in. First *scales*: positions are counted in runs that double in width away from 0 (amounts differ by
factors, not by sums). A run with many rows is then counted in sixteen parts, a part with many in sixteen again, and so
on down to single positions: so a spike at 0 or 99999 ends as a class of its own, and an even stretch ends at once.
Parts in which too few are to be seen are put together with their neighbours of the same run, or left to the class
below. What lies in a class is taken to be even; the generator counts every class again.

Guarantee:
    Each step is one table of counts through the one door (`Measurer`), at a stated ρ, of runs that the answers before
    decide; a row is in one run of each table. So the search is (Σρ)-zCDP with Σρ ≤ ``rho``, by composition [1, Lemma
    2.3]; the rest is post-processing. What one unit changes is the door's affair: the vector over the runs of a table
    is a margin of what it adds to the finest one.

References:
    [1] Bun & Steinke, Concentrated differential privacy (2016).
    Zhang, Xiao & Xie, PrivTree (2016), for the descent into parts where many are; here with Gaussian noise, and to
    the depth that the bounds have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from dalenius.synthesis.measurer import Measured, shares
from dalenius.synthesis.position_classes import Classes

PARTS = 16  # into which a run is divided
FIRST, SECOND = 0.3, 0.3  # of ρ: the scales, their parts; what is left is for the depths, where only spikes are
WANTED = 64  # classes, if all had as many rows
MOST = 100  # classes, whatever is found
SEEN = 3.0  # deviations above which a count is more than noise
PARTED = 4.0  # deviations above which a run is worth dividing
DISTINCT = 6.0  # deviations that a class should hold
LEAST = 12.0  # deviations: with fewer rows in all nothing can be found

Count = Callable[[Sequence[int], Fraction], Measured]


@dataclass
class _Run:
    """Positions from ``first`` to before ``end``, with how many rows they have by noisy count."""

    first: int
    end: int
    rows: float

    @property
    def single(self) -> bool:
        """Whether it is one position."""
        return self.end - self.first == 1


@dataclass(frozen=True)
class _Level:
    """What counts as many, at one step: by the rows there are, and by the noise."""

    wanted: float
    sigma: float

    def parted(self, run: _Run) -> bool:
        """Whether a run is worth dividing."""
        return not run.single and run.rows >= max(self.wanted, PARTED * self.sigma)

    def enough(self, run: _Run) -> bool:
        """Whether a run is large enough for a class."""
        return run.rows >= max(self.wanted, SEEN * self.sigma)

    def spike(self, run: _Run) -> bool:
        """Whether it is one value that many rows have."""
        return run.single and run.rows >= max(self.wanted / 2, SEEN * self.sigma)

    def seen(self, run: _Run, parts: int = 1) -> bool:
        """Whether anybody is there, as far as the noise of so many counts lets see."""
        return run.rows >= SEEN * self.sigma * math.sqrt(parts)


def find_classes(count: Count, size: int, zero: int, rho: Fraction, later: float) -> Classes | None:
    """Classes for positions 0 to ``size`` − 1; None where too few rows are to be seen.

    Args:
        count: Noisy counts of rows between some positions, ascending, at a price: one fewer than positions.
        size: How many positions there are.
        zero: The one from which scales are taken.
        rho: What may be spent, at most.
        later: The deviation of the noise with which the generator will count classes: it can tell finer ones apart.
    """
    edges = scales(size, zero)
    first, *further = _prices(rho, max(end - begin for begin, end in pairwise(edges)))
    runs, level = _counted(count, edges, first)
    if sum(run.rows for run in runs) < LEAST * level.sigma:
        return None
    upper, lower = [run for run in runs if run.first >= zero], [run for run in runs if run.first < zero]
    found = [*_by_scale(upper, level), *_by_scale(lower[::-1], level)]
    many = [run for run in found if level.parted(run)]
    found = [run for run in found if not level.parted(run)]
    for price in further:
        if many:
            even, many = _divided(count, size, many, price, level.wanted)
            found += even
    fine = [part for run in [*found, *many] for part in _finer(run, level.wanted, later)]
    kept = sorted(sorted(fine, key=lambda run: -run.rows)[:MOST], key=lambda run: run.first)
    return Classes(tuple((run.first, run.end - 1) for run in kept)) if kept else None


def scales(size: int, zero: int) -> list[int]:
    """Where runs begin that double in width away from ``zero``, and where the last one ends; the ends stand alone.

    >>> scales(20, 0), scales(20, 8)
    ([0, 1, 2, 4, 8, 16, 19, 20], [0, 1, 5, 7, 8, 9, 10, 12, 16, 19, 20])
    """
    found = {0, min(1, size), size - 1, size, zero, zero + 1}
    step = 1
    while step < size:
        found |= {zero + 1 + (step - 1), zero - (step - 1)}
        step *= 2
    return sorted(each for each in found if 0 <= each <= size)


def _prices(rho: Fraction, width: int) -> list[Fraction]:
    """What each step may spend: the scales, and as many divisions as lead from such a width to single positions.

    >>> [round(float(each), 6) for each in _prices(Fraction(1), 256)], len(_prices(Fraction(1), 257))
    ([0.3, 0.3, 0.4], 4)
    """
    depth, reach = 0, 1
    while reach < width:
        depth, reach = depth + 1, reach * PARTS
    deeper = [(1 - FIRST - SECOND) / (depth - 1)] * (depth - 1) if depth else []
    return shares(rho, [FIRST, SECOND, *deeper][: depth + 1])


def _counted(
    count: Count, edges: Sequence[int], rho: Fraction, wanted: float | None = None
) -> tuple[list[_Run], _Level]:
    measured = count(edges, rho)
    rows = measured.values.tolist()
    runs = [_Run(begin, end, each) for (begin, end), each in zip(pairwise(edges), rows, strict=True)]
    return runs, _Level(max(1.0, sum(rows)) / WANTED if wanted is None else wanted, measured.sigma)


def _by_scale(side: Sequence[_Run], level: _Level) -> list[_Run]:
    """The scales at which rows are, from the smallest on.

    A scale at which nobody is to be seen goes with the next larger one, which is as wide as all smaller ones together;
    and not with a smaller one: what is drawn for a class is even, and the largest scales would spread a little noise
    over all that the bounds allow.
    """
    found, waiting = list[_Run](), list[_Run]()
    for run in side:
        if not level.seen(run):
            waiting.append(run)
            continue
        if run.single:
            found += [_joined(waiting)] if waiting and level.seen(_joined(waiting), len(waiting)) else []
            waiting.clear()
        found.append(_joined([*waiting, run]))
        waiting.clear()
    return found


def _divided(
    count: Count, size: int, runs: Sequence[_Run], rho: Fraction, wanted: float
) -> tuple[list[_Run], list[_Run]]:
    """Runs in parts: those that are classes now, and those to be divided again."""
    edges = [_edges(run, PARTS) for run in runs]
    counted, level = _counted(count, sorted({0, size}.union(*edges)), rho, wanted)
    by_first = {each.first: each for each in counted}
    found, many = list[_Run](), list[_Run]()
    for run, own in zip(runs, edges, strict=True):
        even, heavy = _together([by_first[first] for first in own[:-1]], level)
        found += even if even or heavy else [run]
        many += [part for part in heavy if level.parted(part)]
        found += [part for part in heavy if not level.parted(part)]
    return found, many


def _edges(run: _Run, parts: int) -> list[int]:
    count = min(parts, run.end - run.first)
    return [run.first + (run.end - run.first) * at // count for at in range(count + 1)]


def _together(parts: Sequence[_Run], level: _Level) -> tuple[list[_Run], list[_Run]]:
    """Neighbours put together until they are enough for a class; and parts that stand alone, with very many rows."""
    even, heavy, waiting = list[_Run](), list[_Run](), list[_Run]()

    def settle() -> None:
        if waiting:
            run = _joined(waiting)
            if level.enough(run) or (level.seen(run, len(waiting)) and not _touch(even, run)):
                even.append(run)
            elif _touch(even, run):  # what is left over goes with the class before
                even[-1] = _joined([even[-1], run])
            waiting.clear()

    for part in parts:
        if level.parted(part) or level.spike(part):
            settle()
            heavy.append(part)
        else:
            waiting.append(part)
            if level.enough(_joined(waiting)):
                settle()
    settle()
    return even, heavy


def _joined(runs: Sequence[_Run]) -> _Run:
    """Runs with what lies between them."""
    return _Run(min(run.first for run in runs), max(run.end for run in runs), sum(run.rows for run in runs))


def _touch(before: Sequence[_Run], run: _Run) -> bool:
    return bool(before) and before[-1].end == run.first


def _finer(run: _Run, wanted: float, later: float) -> list[_Run]:
    """A run in equal parts, as many as the generator's own noise lets it tell apart."""
    edges = _edges(run, int(min(PARTS, max(1.0, run.rows / max(wanted, DISTINCT * later)))))
    rows = run.rows / (len(edges) - 1)
    return [_Run(begin, end, rows) for begin, end in pairwise(edges)]
