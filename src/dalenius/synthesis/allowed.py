"""Which values of one column a condition allows, as runs of places, and drawing among them.

A place is a position (`grid`) where a column has classes, a code where it has keys, and −1 where the value is absent.
So what a comparison with constants says of a column is a set of places, whatever its type.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.domain import Codes
from dalenius.tables.conditions import Absent, Among, Columns, Compare, compared

if TYPE_CHECKING:
    from dalenius.synthesis.grid import Grid
    from dalenius.synthesis.modelled import Modelled
    from dalenius.tables.conditions import Atom

Runs = NDArray[np.int64]  # first and last places, in order, apart from one another
Places = NDArray[np.signedinteger[Any]]
ABSENT = -1


@dataclass(frozen=True, eq=False)
class Allowed:
    """Places of one column.

    Attributes:
        runs: Of values that are there.
        absent: Whether the value may be absent.
    """

    runs: Runs
    absent: bool

    @property
    def empty(self) -> bool:
        """Whether there is none."""
        return not len(self.runs) and not self.absent

    def has(self, places: Places) -> NDArray[np.bool_]:
        """Which of these are among them.

        >>> Allowed(runs_of([(2, 5), (9, 9)]), False).has(np.array([-1, 2, 6, 9])).tolist()
        [False, True, False, True]
        """
        found = np.zeros(len(places), bool)
        if len(self.runs):
            at = np.searchsorted(self.runs[:, 0], places, side="right") - 1
            found = (at >= 0) & (places <= self.runs[np.maximum(at, 0), 1])
        return found | (places == ABSENT) if self.absent else found

    def within(self, other: Allowed) -> Allowed:
        """The places of both."""
        first = np.maximum.outer(self.runs[:, 0], other.runs[:, 0])
        last = np.minimum.outer(self.runs[:, 1], other.runs[:, 1])
        both = first <= last
        return Allowed(np.stack([first[both], last[both]], axis=1), self.absent and other.absent)


def joined(parts: Sequence[Allowed]) -> Allowed:
    """The places of any of them.

    >>> joined([Allowed(runs_of([(4, 9)]), False), Allowed(runs_of([(0, 5), (11, 11)]), True)]).runs.tolist()
    [[0, 9], [11, 11]]
    """
    found = list[tuple[int, int]]()
    for first, last in sorted((int(run[0]), int(run[1])) for each in parts for run in each.runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return Allowed(runs_of(found), any(each.absent for each in parts))


def runs_of(runs: Iterable[tuple[int, int]]) -> Runs:
    """Runs as an array; those without a place fall out."""
    return np.array([each for each in runs if each[0] <= each[1]], np.int64).reshape(-1, 2)


def everything(column: Modelled) -> Allowed:
    """All places of a column."""
    return Allowed(runs_of([(0, _places(column) - 1)]), column.absent)


def allowed(column: Modelled, atom: Atom) -> Allowed:
    """The places for which a comparison holds."""
    last = _places(column) - 1
    match atom:
        case Absent(_, absent):
            return Allowed(runs_of([] if absent else [(0, last)]), absent and column.absent)
        case Compare(_, op, value):
            runs = _of_grid(column.grid, op, value) if column.grid is not None else _of_keys(column, [(op, value)])
        case Among(_, values, inside):
            runs = _among(column, values)
            if not inside:
                edges = [-1, *(int(each) for run in runs for each in run), last + 1]
                runs = runs_of((edges[at] + 1, edges[at + 1] - 1) for at in range(0, len(edges), 2))
        case Columns():
            raise RuntimeError("What two columns have to do with one another is no set of one column's values.")
    return Allowed(runs, False)


def fraction(column: Modelled, among: Allowed) -> NDArray[np.float64]:
    """Of each code, the part of its places that is among these: the chance of a row with that code to have one."""
    found = np.zeros(column.column.size)
    if column.classes is None:
        known = column.column.size - column.absent
        found[:known] = among.has(np.arange(known))
    else:
        pieces = _Pieces.of(column, among)
        lengths = np.array([last - first + 1 for first, last in column.classes.runs], np.float64)
        found[: len(lengths)] = pieces.counts / lengths
    if column.absent:
        found[-1] = among.absent
    return found


def drawn_places(column: Modelled, codes: Codes, among: Allowed | None, rng: np.random.Generator) -> Places:
    """A place for each code, of all that the code and ``among`` leave alike."""
    absent = codes == column.column.size - 1 if column.absent else None
    if column.classes is None:
        found: Places = codes.astype(np.int64)
    else:
        there = codes if absent is None else np.where(absent, 0, codes)
        found = column.classes.draw(there, rng) if among is None else _Pieces.of(column, among).draw(there, rng)
    if absent is not None:
        found[absent] = ABSENT
    return found


def places_of(
    columns: Sequence[Modelled], codes: Codes, among: Mapping[int, Allowed], rng: np.random.Generator
) -> Places:
    """A place for each code of a table (rows × columns), in as few bytes as they need."""
    widest = max(each.grid.size if each.grid is not None else each.column.size for each in columns)
    found: Places = np.empty(codes.shape, np.int32 if widest < 2**31 else np.int64, order="F")
    for at, column in enumerate(columns):
        found[:, at] = drawn_places(column, codes[:, at], among.get(at), rng)
    return found


@dataclass(frozen=True, eq=False)
class _Pieces:
    """What is left of each class, in order.

    Attributes:
        runs: The pieces.
        ends: How many places there are up to each of them, itself included.
        counts: How many places of each class are left.
    """

    runs: Runs
    ends: Places
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, column: Modelled, among: Allowed) -> _Pieces:
        classes = np.array(() if column.classes is None else column.classes.runs, np.int64).reshape(-1, 2)
        first = np.maximum.outer(classes[:, 0], among.runs[:, 0])
        last = np.minimum.outer(classes[:, 1], among.runs[:, 1])
        whose, _ = np.nonzero(first <= last)  # in the order of classes
        runs = np.stack([first[first <= last], last[first <= last]], axis=1)
        lengths = runs[:, 1] - runs[:, 0] + 1
        counts = np.zeros(len(classes), np.int64)
        np.add.at(counts, whose, lengths)
        return cls(runs, np.cumsum(lengths), counts)

    def draw(self, codes: Codes, rng: np.random.Generator) -> Places:
        """A place for each class; for one of which nothing is left (it is never drawn) any."""
        if not len(self.runs):
            return np.zeros(len(codes), np.int64)
        before = np.cumsum(self.counts) - self.counts
        number = before[codes] + rng.integers(0, np.maximum(self.counts[codes], 1))
        at = np.minimum(np.searchsorted(self.ends, number, side="right"), len(self.runs) - 1)
        found: Places = self.runs[at, 1] - (self.ends[at] - 1 - number)
        return found


def _places(column: Modelled) -> int:
    return column.grid.size if column.grid is not None else column.column.size - column.absent


def _among(column: Modelled, values: Sequence[Any]) -> Runs:
    if column.grid is None:
        return _of_keys(column, [("=", each) for each in values])
    runs = sorted((int(first), int(last)) for each in set(values) for first, last in _of_grid(column.grid, "=", each))
    return runs_of(runs)


def _of_keys(column: Modelled, any_of: Sequence[tuple[str, Any]]) -> Runs:
    keys = column.shown_keys
    if all(op == "=" for op, _ in any_of):
        wanted = {value for _, value in any_of}
        places = [at for at, key in enumerate(keys) if key in wanted]
    else:
        places = [at for at, key in enumerate(keys) if any(compared(key, op, value) for op, value in any_of)]
    return runs_of((each, each) for each in places)


def _of_grid(grid: Grid, op: str, value: Any) -> Runs:
    """Positions all of whose values compare so: by bisection, since values grow with their positions."""
    at_least, above = (_first(grid, 0, each, value) for each in (">=", ">"))
    up_to, below = (_first(grid, 1, each, value) - 1 for each in (">", ">="))
    match op:
        case "=":
            return runs_of([(at_least, up_to)])
        case "<>":
            return runs_of([(0, below), (above, grid.size - 1)])
        case "<":
            return runs_of([(0, below)])
        case "<=":
            return runs_of([(0, up_to)])
        case ">":
            return runs_of([(above, grid.size - 1)])
    return runs_of([(at_least, grid.size - 1)])


def _first(grid: Grid, end: int, op: str, value: Any) -> int:
    """The first position whose lowest value (``end`` 0), or highest (1), compares so; all after it do as well."""

    def compares(position: int) -> bool:
        return bool(compared(grid.span(position)[end], op, value))

    return bisect_left(range(grid.size), True, key=compares)
