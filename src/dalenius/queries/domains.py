"""The groups of a question, known without looking at a row (DESIGN, decision 8).

Declared keys, bounded integers and dates, and functions of them have a public set of values. All of them are answered,
also the empty ones: which groups appear says nothing about anyone. A row whose key is NULL is in no group. Groups that
the question itself rules out, whatever the rows hold, are left out: WHERE region = 'north' leaves one (`Known`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.queries import images
from dalenius.queries.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    Scalar,
    Type,
    columns_of,
    written,
)
from dalenius.queries.functions import Range, bounded, ranges_of, whole
from dalenius.queries.rendering import Renderer, identifier
from dalenius.tables import policy as tables
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.errors import Place

MOST_CELLS = 100_000
_MOST_TRIED = 2**18  # combinations of column values that are put into key expressions

Cell = tuple[Scalar, ...]
Columns = Mapping[str, tables.Column]


@dataclass(frozen=True)
class Known:
    """What is known of every row that counts, without looking at one.

    Attributes:
        conditions: What holds for it, made total.
        joint: Columns of public tables, each with all combinations of values that they have together.
    """

    conditions: tuple[Expression, ...] = ()
    joint: tuple[tuple[tuple[str, ...], tuple[Cell, ...]], ...] = ()

    def of(self, names: frozenset[str]) -> Known:
        """The part that is about these columns alone."""
        conditions = tuple(each for each in self.conditions if columns_of(each) and columns_of(each) <= names)
        return Known(conditions, tuple(each for each in self.joint if names.intersection(each[0])))


NOTHING = Known()


def public_cells(
    keys: Sequence[Expression], columns: Columns, at: Place | None = None, known: Known = NOTHING
) -> tuple[Cell, ...] | None:
    """All groups where they are public, as `cells` gives them; None where they would have to be found."""
    try:
        return cells(keys, columns, at, known)
    except QuestionRefusedError as error:
        if isinstance(error.__cause__, _TooManyError | _UnknownError):
            return None
        raise


def cells(
    keys: Sequence[Expression], columns: Columns, at: Place | None = None, known: Known = NOTHING
) -> tuple[Cell, ...]:
    """All groups, in the order of declared keys and of values. One empty cell when there are no keys.

    Where ``known`` rules out every one of them, all are answered.

    Raises:
        QuestionRefusedError: They are not public, too many, or none.
    """
    read = frozenset().union(*(columns_of(key) for key in keys))
    specs = tuple(columns[name] for name in sorted(read))
    try:
        found = _cells(tuple(keys), specs, known.of(read)) or _cells(tuple(keys), specs, NOTHING)
    except _TooManyError as error:
        raise QuestionRefusedError(
            "The question has too many groups.",
            why=f"It has more than {MOST_CELLS:,}; every one of them is answered.",
            fix="Group by fewer keys, or by coarser ones such as DATE_TRUNC('month', d).",
            at=at,
        ) from error
    except _UnknownError as error:
        raise QuestionRefusedError(
            f"The groups of {written(error.expression)} are not public.",
            why="Which values exist would tell about the people who have them.",
            fix=_advice(error.expression, columns),
            at=at,
        ) from error
    if not found:
        raise QuestionRefusedError(
            "The question has no groups.",
            why="A key of GROUP BY is NULL whatever the row holds, and a row without a key is in no group.",
            fix="Group by something that can have a value.",
            at=at,
        )
    return found


class _TooManyError(Exception):
    pass


class _UnknownError(Exception):
    def __init__(self, expression: Expression) -> None:
        super().__init__()
        self.expression = expression


@lru_cache(maxsize=64)
def _cells(keys: tuple[Expression, ...], read: tuple[tables.Column, ...], known: Known) -> tuple[Cell, ...]:
    columns = {each.name: each for each in read}
    found: list[tuple[tuple[int, ...], list[Cell]]] = []
    for component in _components(keys, known):
        found.append((component, _component([keys[at] for at in component], columns, known)))
        if math.prod(len(values) for _, values in found) > MOST_CELLS:
            raise _TooManyError
    places = [at for component, _ in found for at in component]
    order = [places.index(at) for at in range(len(keys))]
    combined = (sum(parts, ()) for parts in product(*(values for _, values in found)))
    cells_ = [tuple(cell[at] for at in order) for cell in combined]
    if len(found) > 1:
        ranks = [
            {cell: rank for rank, cell in enumerate(dict.fromkeys(c[at] for c in cells_))} for at in range(len(keys))
        ]
        cells_.sort(key=lambda cell: tuple(rank[value] for rank, value in zip(ranks, cell, strict=True)))
    return tuple(cells_)


def _components(keys: Sequence[Expression], known: Known) -> list[tuple[int, ...]]:
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


def _component(keys: list[Expression], columns: Columns, known: Known) -> list[Cell]:
    known = known.of(frozenset().union(*map(columns_of, keys)))
    # Of all years, only those within the bounds are groups; so values are tried before shapes are looked at.
    if len(keys) == 1 and isinstance(keys[0], Column):
        simple = _simple(keys[0], columns)
        if simple is not None:
            tried = None if known == NOTHING else _tried(keys, columns, known)
            left = None if tried is None else {value for (value,) in tried}
            return [(value,) for value in simple if left is None or value in left]
    tried = _tried(keys, columns, known)
    if tried is not None:
        return tried
    found = []
    for key in keys:
        values = _simple(key, columns)
        if values is None:
            raise _UnknownError(key)
        found.append(values)
    if math.prod(map(len, found)) > MOST_CELLS:
        raise _TooManyError
    return list(product(*found))


def _tried(keys: Sequence[Expression], columns: Columns, known: Known) -> list[Cell] | None:
    """The keys' values on all combinations of their columns' values, by the engine itself; None: not to be had so."""
    import pyarrow as pa

    from dalenius.queries.engines.duckdb import public

    names = sorted(frozenset().union(*(columns_of(key) for key in keys)))
    values: list[tuple[tuple[str, ...], Sequence[Cell]]] = list(known.joint)
    for name in names:
        if any(name in tied for tied, _ in values):
            continue
        domain = column_values(columns[name])
        if domain is None:
            return None
        # a value may be absent, and a function of that is a value again: COALESCE(region, 'unknown')
        absent = [None] if columns[name].default is None else []
        values.append(((name,), [(each,) for each in (*domain, *absent)]))
    if math.prod(len(rows) for _, rows in values) > _MOST_TRIED:
        return None
    integers = frozenset(name for name in names if columns[name].kind is Kind.INTEGER)
    places = {name: f"t{at}.v{place}" for at, (tied, _) in enumerate(values) for place, name in enumerate(tied)}
    renderer = Renderer(places, integers)
    sql = f"SELECT DISTINCT {', '.join(f'{renderer.sql(key)} AS k{at}' for at, key in enumerate(keys))}"
    if values:
        sql += f" FROM {', '.join(f'd{at} AS t{at}' for at in range(len(values)))}"
    if known.conditions:
        sql += f" WHERE {' AND '.join(map(renderer.sql, known.conditions))}"
    given = {
        f"d{at}": pa.table(
            {
                f"v{place}": pa.array([row[place] for row in rows], _arrow(columns[name].kind))
                for place, name in enumerate(tied)
            }
        )
        for at, (tied, rows) in enumerate(values)
    }
    found = [tuple(row) for row in public().run(sql, given) if None not in row]
    return list(in_order(found))


def column_values(column: tables.Column) -> list[Scalar] | None:
    """All values that a column can have, in order; None where they are not public or too many."""
    if column.public_keys is not None:
        return [_scalar(key) for key in column.public_keys]
    if column.bounds is None:
        return None
    low, high = column.bounds.low, column.bounds.high
    if column.kind is Kind.INTEGER and high - low < MOST_CELLS:
        return [float(value) for value in range(low, high + 1)]
    if column.kind is Kind.DATE and (high - low).days < MOST_CELLS:
        return [low + timedelta(days=day) for day in range((high - low).days + 1)]
    return None


def _scalar(key: tables.Value) -> Scalar:
    return float(key) if isinstance(key, int) and not isinstance(key, bool) else key  # type: ignore[return-value]


def _simple(key: Expression, columns: Columns) -> list[Scalar] | None:
    """All values that an expression can have, or more, by its shape alone; None where they are not public."""
    match key:
        case Literal(value=value):
            return [] if value is None else [value]
        case Column(name=name):
            return column_values(columns[name])
        case Call(function="case"):
            return _union(images.reachable(key, ranges_of(columns)), columns)
        case Call(function="coalesce", arguments=arguments):
            return _union(arguments, columns)
        case Call(function="finite", arguments=(inner,)):
            return _simple(inner, columns)
        case Call(function="date_part", arguments=(Literal(value="year"), Column(name=name))):
            return _years(columns[name])
        case Call(function="date_trunc", arguments=(Literal(value=unit), Column(name=name))):
            return _truncations(str(unit), columns[name])
        case Call(function="to_date", arguments=(Column(name=name),)):
            return _truncations("day", columns[name], days=True)
        case Call(type=Type.BOOLEAN):
            return [False, True]
        case Call():
            integers = frozenset(name for name, each in columns.items() if each.kind is Kind.INTEGER)
            ranges = ranges_of(columns)
            found = images.values(key, lambda inside: _simple(inside, columns), ranges, integers)
            if found is None and key.type is Type.NUMBER and whole(key, integers):
                return _whole_range(bounded(key, ranges))
            return found
    return None


def _years(column: tables.Column) -> list[Scalar] | None:
    bounds = column.bounds
    return None if bounds is None else [float(year) for year in range(bounds.low.year, bounds.high.year + 1)]


def _whole_range(found: Range | None) -> list[Scalar] | None:
    if found is None or found[1] - found[0] > 2 * MOST_CELLS:
        return None
    return [float(value) for value in range(math.ceil(found[0]), math.floor(found[1]) + 1)]


def _union(parts: Sequence[Expression], columns: Columns) -> list[Scalar] | None:
    found: dict[Scalar, None] = {}
    for part in parts:
        values = _simple(part, columns)
        if values is None:
            return None
        found.update(dict.fromkeys(values))
    return sorted(found, key=_sortable)


def _truncations(unit: str, column: tables.Column, *, days: bool = False) -> list[Scalar] | None:
    """The beginnings of all units of time between a datetime's bounds."""
    if column.kind is not Kind.DATETIME or column.bounds is None:
        return None
    low, high = column.bounds.low, column.bounds.high
    seconds = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604_800}
    if (high - low).total_seconds() / seconds.get(unit, 86400) > 2 * MOST_CELLS:
        return None
    moments = dict.fromkeys(_floored(unit, low + timedelta(seconds=at)) for at in _marks(unit, low, high, seconds))
    return [moment.date() if days else moment for moment in moments]


def _marks(unit: str, low: datetime, high: datetime, seconds: Mapping[str, int]) -> list[float]:
    step, span = seconds.get(unit, 86400), (high - low).total_seconds()
    return [*(at * step for at in range(int(span // step) + 1)), span]


def _floored(unit: str, moment: datetime) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - timedelta(days=day.weekday())
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case "second":
            return moment.replace(microsecond=0)
    return day


def in_order(found: Iterable[Cell]) -> tuple[Cell, ...]:
    """Groups in the order of their keys, which says nothing about how they were come by."""
    return tuple(sorted(found, key=lambda row: tuple(map(_sortable, row))))


def _sortable(value: Any) -> tuple[int, Any]:
    ranks = {bool: 0, float: 1, int: 1, str: 2, datetime: 3, date: 3}
    return ranks.get(type(value), 4), value


def _arrow(kind: Kind) -> Any:
    import pyarrow as pa

    return {Kind.INTEGER: pa.float64(), Kind.BOOLEAN: pa.bool_(), Kind.DATE: pa.date32()}.get(kind, pa.string())


def _advice(key: Expression, columns: Columns) -> str:
    names = sorted(columns_of(key))
    kinds = {name: columns[name].kind for name in names}
    if any(kind is Kind.NUMBER for kind in kinds.values()):
        return f"Group a number into classes: FLOOR({names[0]} / 100)."
    if any(kind is Kind.DATETIME for kind in kinds.values()):
        return f"Group a datetime coarsely: DATE_TRUNC('month', {names[0]})."
    if names:
        return f"Ask the owner to declare keys or bounds for {identifier(names[0])}, or group by another column."
    return "Group by a column of the policy."
