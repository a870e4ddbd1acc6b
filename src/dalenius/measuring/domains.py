"""The groups of a question, known without looking at a row (DESIGN, decision 8).

Declared keys, bounded integers and dates, and functions of them have a public set of values. All of them are answered,
also the empty ones: which groups appear says nothing about anyone. A row whose key is NULL is in no group. Groups that
the question itself rules out, whatever the rows hold, are left out: WHERE region = 'north' leaves one (`Facts`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring import fairness
from dalenius.measuring.cache import WeightedCache, weight_of, weight_of_parts
from dalenius.measuring.expressions import (
    Column,
    Expression,
    Scalar,
    Type,
    columns_of,
    written,
)
from dalenius.measuring.function_values import MOST_CELLS, Columns, arrow_type, column_values, sort_key, values_of
from dalenius.measuring.functions import TYPES
from dalenius.measuring.moments import stand_ins
from dalenius.measuring.narrowing import narrow_columns
from dalenius.tables import policy as tables
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.errors import Place

MOST_VALUES = 1_000_000  # of all keys of all groups
MOST_TEXT = 16_000_000  # bytes of the texts among them
_FEW = 1000  # values that are made at once, without being counted first
_MOST_TRIED = 2**18  # combinations of column values that are put into key expressions

Cell = tuple[Scalar, ...]
_KEPT: WeightedCache[list[Cell]] = WeightedCache(MOST_VALUES)


@dataclass(frozen=True)
class Facts:
    """What is known of every row that counts, without looking at one.

    Attributes:
        conditions: What holds for it, made total.
        joint: Columns of public tables, each with all combinations of values that they have together.
    """

    conditions: tuple[Expression, ...] = ()
    joint: tuple[tuple[tuple[str, ...], tuple[Cell, ...]], ...] = ()

    def of(self, names: frozenset[str]) -> Facts:
        """The part that is about these columns alone."""
        conditions = tuple(each for each in self.conditions if columns_of(each) and columns_of(each) <= names)
        return Facts(conditions, tuple(each for each in self.joint if names.intersection(each[0])))


NOTHING = Facts()


def cells(
    keys: Sequence[Expression], columns: Columns, at: Place | None = None, known: Facts = NOTHING
) -> tuple[Cell, ...]:
    """All groups, in the order of declared keys and of values. One empty cell when there are no keys.

    Where ``known`` rules out every one of them, all are answered.

    Raises:
        QuestionRefusedError: They are not public, too many, or none.
    """
    found = Domains(columns).groups(keys, at, known)
    assert found is not None  # noqa: S101 (they are needed)
    return found.cells


class Groups:
    """The groups of one set of keys: how many there are is known before they are made.

    Args:
        parts: Places of keys, and the values that these have together.
    """

    def __init__(self, parts: Sequence[tuple[tuple[int, ...], KeyValues]]) -> None:
        self._parts = parts

    @property
    def count(self) -> int:
        """How many."""
        return math.prod(part.count for _, part in self._parts)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Themselves, in order."""
        combined = product(*(part.cells for _, part in self._parts))
        if all(len(places) == 1 for places, _ in self._parts):  # these are in order as they are
            return tuple(tuple(value for (value,) in parts) for parts in combined)
        if len(self._parts) == 1:
            return tuple(self._parts[0][1].cells)
        places = [at for component, _ in self._parts for at in component]
        order = [places.index(at) for at in range(len(places))]
        found = [tuple(cell[at] for at in order) for cell in (sum(parts, ()) for parts in combined)]
        ranks = [
            {value: rank for rank, value in enumerate(dict.fromkeys(cell[at] for cell in found))}
            for at in range(len(order))
        ]
        found.sort(key=lambda cell: tuple(rank[value] for rank, value in zip(ranks, cell, strict=True)))
        return tuple(found)


class Domains:
    """What keys can be, for all sets of keys of one question: what they share is worked out once.

    Nothing is made before it is counted: 100 characters can ask for billions of groups.

    Args:
        columns: Of the policy.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._found: dict[tuple[tuple[Expression, ...], Facts], KeyValues | Exception] = {}
        self._tables: dict[Any, Any] = {}

    def groups(
        self, keys: Sequence[Expression], at: Place | None = None, known: Facts = NOTHING, *, needed: bool = True
    ) -> Groups | None:
        """The groups of these keys.

        Args:
            keys: The keys; none: one empty group.
            at: Where the question stands, for errors.
            known: What is known of the rows. Where it rules out every group, all are answered.
            needed: False: None where they are not public, or too many.

        Raises:
            QuestionRefusedError: They are not public, too many, or none.
        """
        read = frozenset().union(*(columns_of(key) for key in keys))
        try:
            found = self._groups(tuple(keys), known.of(read))
            if not found.count:
                found = self._groups(tuple(keys), NOTHING)
        except _TooManyError as error:
            if not needed:
                return None
            raise QuestionRefusedError(
                "The question has too many groups.",
                why=f"It has more than {MOST_CELLS:,}, or their keys have more than {MOST_VALUES:,} values in all; "
                "every one of them is answered.",
                fix="Group by fewer keys, or by coarser ones such as DATE_TRUNC('month', d).",
                at=at,
            ) from error
        except _UnknownError as error:
            if not needed:
                return None
            raise QuestionRefusedError(
                f"The groups of {written(error.expression)} are not public.",
                why="Which values exist would tell about the people who have them.",
                fix=_advice(error.expression, self._columns),
                at=at,
            ) from error
        if not found.count:
            raise QuestionRefusedError(
                "The question has no groups.",
                why="A key of GROUP BY is NULL whatever the row holds, and a row without a key is in no group.",
                fix="Group by something that can have a value.",
                at=at,
            )
        return found

    def _groups(self, keys: tuple[Expression, ...], known: Facts) -> Groups:
        found: list[tuple[tuple[int, ...], KeyValues]] = []
        most = most_cells(len(keys))
        for component in _components(keys, known):
            found.append((component, self._part(tuple(keys[at] for at in component), known)))
            if math.prod(part.count for _, part in found) > most:
                raise _TooManyError
        return Groups(found)

    def _part(self, keys: tuple[Expression, ...], known: Facts) -> KeyValues:
        """The values of keys that belong together; also that there are none is worked out once."""
        read = frozenset().union(*map(columns_of, keys))
        known = known.of(read)
        key = keys, known
        if key not in self._found:
            fairness.check_patience()
            specs = tuple(self._columns[name] for name in sorted(read))
            try:
                self._found[key] = self._made(keys, specs, known)
            except (_TooManyError, _UnknownError) as error:
                self._found[key] = error
        found = self._found[key]
        if isinstance(found, Exception):
            raise found
        return found

    def _made(self, keys: tuple[Expression, ...], specs: tuple[tables.Column, ...], known: Facts) -> KeyValues:
        key = keys, specs, known
        kept = _KEPT.get(key)
        if kept is not None:
            return KeyValues(len(kept), lambda: kept)
        found = _component(keys, self._columns, known, self._tables)

        def made() -> list[Cell]:
            again = _KEPT.get(key)
            if again is not None:
                return again
            cells_ = found.cells
            rest = weight_of_parts((*keys, *known.conditions)) + sum(weight_of(rows) for _, rows in known.joint)
            _KEPT.put(key, cells_, weight_of(cells_) + rest)
            return cells_

        return KeyValues(found.count, made)


def most_cells(keys: int) -> int:
    """How many groups there may be of so many keys."""
    return min(MOST_CELLS, MOST_VALUES // max(1, keys))


class _TooManyError(Exception):
    pass


class _UnknownError(Exception):
    def __init__(self, expression: Expression) -> None:
        super().__init__()
        self.expression = expression


class KeyValues:
    """Keys that belong together, and how many combinations of values they have; these are made when they are needed."""

    def __init__(self, count: int, made: Callable[[], list[Cell]]) -> None:
        self.count, self._made = count, made

    @classmethod
    def of(cls, made: Callable[[], list[Cell]]) -> KeyValues:
        """From what makes them: it is done again where there are too many to keep them for nothing."""
        found = made()
        return cls(len(found), (lambda: found) if len(found) <= _FEW else made)

    @property
    def cells(self) -> list[Cell]:
        """The combinations, in order."""
        return self._made()


def _components(keys: Sequence[Expression], known: Facts) -> list[tuple[int, ...]]:
    """Keys that read the same columns belong together: not every combination of year and month of one date exists.

    So do those whose columns one condition, or one public table, ties together.
    """
    tied = [columns_of(each) for each in known.conditions] + [frozenset(names) for names, _ in known.joint]
    groups: list[tuple[set[str], list[int]]] = []
    for at, names in [*((at, columns_of(key)) for at, key in enumerate(keys)), *((None, each) for each in tied)]:
        read, places = set(names), [] if at is None else [at]
        for other in [each for each in groups if each[0] & read]:
            groups.remove(other)
            read |= other[0]
            places += other[1]
        groups.append((read, sorted(places)))
    return sorted(tuple(places) for _, places in groups if places)


def _component(keys: tuple[Expression, ...], columns: Columns, known: Facts, held: dict[Any, Any]) -> KeyValues:
    columns = narrow_columns(columns, sorted(frozenset().union(*map(columns_of, keys))), known.conditions)
    # Of all years, only those within the bounds are groups; so values are tried before shapes are looked at.
    if len(keys) == 1 and isinstance(keys[0], Column):
        key = keys[0]
        simple = values_of(key, columns)
        if simple is not None:
            tried = None if known == NOTHING else _tried(keys, columns, known, held)
            left = None if tried is None else {value for (value,) in tried.cells}
            return KeyValues.of(
                lambda: [(value,) for value in values_of(key, columns) or () if left is None or value in left]
            )
    tried = _tried(keys, columns, known, held)
    if tried is not None:
        return tried
    try:
        return KeyValues.of(lambda: _shaped(keys, columns))
    except _UnknownError:  # such as YEAR(t) || '-' || MONTH(t): moments are tried, where these are few enough
        tried = _tried(keys, columns, known, held, always=True)
        if tried is None:
            raise
        return tried


def _shaped(keys: Sequence[Expression], columns: Columns) -> list[Cell]:
    found = []
    for key in keys:
        fairness.check_patience()
        values = values_of(key, columns)
        if values is None:
            raise _UnknownError(key)
        found.append(values)
        if math.prod(map(len, found)) > MOST_CELLS:
            break
    if math.prod(map(len, found)) > most_cells(len(keys)):
        raise _TooManyError
    return list(product(*found))


def _tried(
    keys: Sequence[Expression], columns: Columns, known: Facts, held: dict[Any, Any], *, always: bool = False
) -> KeyValues | None:
    """The keys' values on all combinations of their columns' values, by the engine itself; None: not to be had so.

    ``always``: also on moments of which no condition speaks.
    """
    from dalenius.measuring.engines.sources import reference

    names = sorted(frozenset().union(*(columns_of(key) for key in keys)))
    values: list[tuple[tuple[str, ...], pa.Table]] = [
        (tied, _table(held, ("joint", tied, rows), tied, partial(tuple, rows), columns)) for tied, rows in known.joint
    ]
    conditions: Sequence[Expression] = known.conditions
    for name in names:
        if any(name in tied for tied, _ in values):
            continue
        domain = _table(held, (name, bool(conditions)), (name,), partial(_column_rows, columns[name]), columns)
        if domain is None:
            moments = stand_ins(columns[name], keys, conditions, name, _MOST_TRIED, always=always)
            if moments is None:
                return None
            found_moments, conditions = moments
            rows = partial(_with_absent, columns[name], found_moments)
            domain = _table(held, ("moments", name, tuple(found_moments)), (name,), rows, columns)
        values.append(((name,), domain))
    tries = math.prod(len(rows) for _, rows in values)
    if tries > _MOST_TRIED:
        return None
    integers = frozenset(name for name in names if columns[name].kind is Kind.INTEGER)
    found = reference().combinations(keys, values, integers, conditions)

    def made() -> list[Cell]:
        return list(in_order(row for row in found.rows() if None not in row))

    if tries <= _FEW and not any(key.type is Type.TEXT for key in keys):
        return KeyValues.of(made)
    count, characters = found.size()
    if characters > MOST_TEXT:
        raise _TooManyError
    return KeyValues(count, made)


def _table(
    held: dict[Any, Any],
    key: object,
    names: Sequence[str],
    rows: Callable[[], Sequence[Cell] | None],
    columns: Columns,
) -> Any:
    """Values of columns for the engine, made once for all sets of a question; None: they cannot be listed."""
    import pyarrow as pa

    if key not in held:
        found = rows()
        held[key] = (
            None
            if found is None
            else pa.table(
                {
                    f"v{place}": pa.array([row[place] for row in found], arrow_type(TYPES[columns[name].kind]))
                    for place, name in enumerate(names)
                }
            )
        )
    return held[key]


def _column_rows(column: tables.Column) -> list[Cell] | None:
    domain = column_values(column)
    return None if domain is None else _with_absent(column, domain)


def _with_absent(column: tables.Column, domain: Sequence[Scalar]) -> list[Cell]:
    # a value may be absent, and a function of that is a value again: COALESCE(region, 'unknown')
    absent = [None] if column.default is None else []
    return [(each,) for each in (*domain, *absent)]


def in_order(found: Iterable[Cell]) -> tuple[Cell, ...]:
    """Groups in the order of their keys, which says nothing about how they were come by."""
    return tuple(sorted(found, key=lambda row: tuple(map(sort_key, row))))


def _advice(key: Expression, columns: Columns) -> str:
    names = sorted(columns_of(key))
    kinds = {name: columns[name].kind for name in names}
    if any(kind is Kind.NUMBER for kind in kinds.values()):
        return f"Group a number into classes: FLOOR({names[0]} / 100)."
    if any(kind is Kind.DATETIME for kind in kinds.values()):
        return f"Group a datetime coarsely: DATE_TRUNC('month', {names[0]})."
    if names:
        column = '"' + names[0].replace('"', '""') + '"'  # as it would stand in a question
        return f"Ask the owner to declare keys or bounds for {column}, or group by another column."
    return "Group by a column of the policy."
