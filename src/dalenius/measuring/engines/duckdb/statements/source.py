"""How every statement begins: rows that belong to somebody, columns cast without failing and within their policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dalenius.measuring.engines.duckdb.opening import quoted
from dalenius.measuring.engines.duckdb.rendering import double, each_row, identifier, literal, numeral
from dalenius.measuring.expressions import Type, columns_of
from dalenius.measuring.functions import TYPES
from dalenius.measuring.periods import unit_part
from dalenius.measuring.work import LONGEST_BYTES, LONGEST_NUMBER, LONGEST_TEXT, LONGEST_TIME
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan
    from dalenius.tables.policy import Column, Policy

_FLOATS = frozenset({"FLOAT", "DOUBLE", "REAL"})
_FEW, _BETWEEN = 50, "\x1f"  # more keys than that are written as one text, with this (unit separator) between them


def source_sql(plan: Plan, scan: str, types: Mapping[str, str], salt: str) -> str:
    """The beginning of the statement: the columns as they lie in the file, cast without failing.

    Args:
        plan: What will run.
        scan: The engine's name for the files.
        types: The types of their columns.
        salt: The secret that decides which groups of a unit count, where it is in too many.
    """
    policy = plan.table.policy
    parts = [f"{identifier(name)} AS u{at}" for at, name in enumerate(policy.unit)]
    parts += [f"{cast(policy.columns[name], types)} AS {column}" for name, column in columns_read(plan).items()]
    if plan.groups is not None:
        parts.append(f"{seed(policy, types, salt, [identifier(name) for name in policy.unit])} AS seed")
    return f"source AS (SELECT {', '.join(parts)} FROM {scan} WHERE {there(policy.unit, types)})"  # noqa: S608


def seed(policy: Policy, types: Mapping[str, str], salt: str, units: Sequence[str]) -> str:
    """The part of the keyed hash that is a unit's own; ``units`` are its columns, as the statement calls them."""
    named = zip(policy.unit, units, strict=True)
    unit = " || '|' || ".join(f"coalesce({_text(shown, types.get(name, ''))}, '')" for name, shown in named)
    return f"md5({quoted(salt)} || {unit})"


def hash_order(seed: str, names: Sequence[str]) -> str:
    """ORDER BY a keyed hash of a unit's seed and some values: fixed, whatever the order of rows; nobody's choice."""
    hashed = " || '|' || ".join([seed, *(f"CAST({name} AS VARCHAR)" for name in names)])
    return ", ".join([f"md5({hashed})", *names])


def columns_read(plan: Plan) -> dict[str, str]:
    """The columns that the plan reads, each with a name that nobody chose."""
    measured = [each for measure in plan.measures for each in (measure.value, measure.where) if each is not None]
    part = unit_part(plan.table)
    expressions = [plan.where, *plan.keys, *measured, *([part] if part is not None else [])]
    names = sorted(frozenset().union(*map(columns_of, expressions)))
    return {name: f"c{at}" for at, name in enumerate(names)}


def text_lengths(columns: Mapping[str, Column]) -> dict[str, int]:
    """How much of each category a function gets: categories are not cut when they are read, and keys must fit."""
    return {name: _longest(each) for name, each in columns.items() if each.kind is Kind.CATEGORY}


def _longest(column: Column) -> int:
    known = [*(column.keys or ()), *([] if column.default is None else [column.default])]
    return max(LONGEST_TEXT, *(len(str(each)) for each in known)) if column.keys else LONGEST_TEXT


def there(unit: Sequence[str], types: Mapping[str, str]) -> str:
    """A row without a unit belongs to nobody."""
    there = [f"{identifier(name)} IS NOT NULL" for name in unit]
    # Not isnan: DuckDB settles that by a Parquet file's least and largest value, which leave NaN out.
    floats = [identifier(name) for name in unit if types.get(name, "").upper() in _FLOATS]
    there += [f"CAST({name} AS VARCHAR) NOT IN ('nan', '-nan')" for name in floats]
    # Nor does one whose unit is a text without measure: to hash and compare it would take as long as that is.
    there += [f"strlen({identifier(name)}) <= {LONGEST_BYTES}" for name in unit if _is_text(types.get(name, ""))]
    return " AND ".join(there)


def one_spelling(shown: str, type_: str) -> str:
    """A unit or a key as it is, but never −0.0, which equals 0.0.

    Rows of one unit that are alike but for that tie wherever they are put in order, and the one that stands for a group
    is chance; other units' rows would decide which, and with it on the hash that chooses groups.
    """
    return f"({shown} + CAST(0 AS {type_}))" if type_.upper() in _FLOATS else shown


def extent_sql(scan: str, column: str, types: Mapping[str, str]) -> str:
    """How many rows a table has, and how many bytes the texts in one of its columns; 0 where they are none."""
    text = types.get(column, "").upper() == "VARCHAR"
    length = f"coalesce(sum(strlen({identifier(column)})), 0)" if text else "0"
    return f"SELECT count(*), {length} FROM {scan}"  # noqa: S608


def _text(shown: str, type_: str) -> str:
    """A column as text. A time beyond DuckDB's calendar, which a file can hold, has none: to print it is fatal."""
    type_ = type_.upper()
    if type_.startswith("TIMESTAMP"):
        first, last = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.9'"
        inside = f"TRY_CAST({shown} AS TIMESTAMP) BETWEEN {first} AND {last}"
        if type_ != "TIMESTAMP_NS":  # whose calendar is small enough
            # Moved inside as well: a filter that DuckDB hands to the scan casts the column's extremes, chosen or not.
            shown = f"CAST(greatest({first}, least({last}, TRY_CAST({shown} AS TIMESTAMP))) AS {type_})"
    elif type_.startswith("TIME"):
        inside = f"TRY_CAST({shown} AS TIME) BETWEEN TIME '00:00:00' AND TIME '23:59:59.999999'"
    else:
        return f"CAST({shown} AS VARCHAR)"
    # The cast around the choice, not in it: of a column with few values DuckDB casts all of them, chosen or not.
    return f"CAST(CASE WHEN {inside} THEN {shown} END AS VARCHAR)"


def _is_text(type_: str) -> bool:
    return type_.upper() == "VARCHAR"


def _short(shown: str, most: int = LONGEST_BYTES) -> str:
    """A text, or NULL where it has more bytes: what is done with it later takes no longer than with any other.

    Said so that a NULL, which anybody may have, takes the same way as a text: DuckDB is quicker where all rows do.
    """
    return f"CASE WHEN strlen({shown}) > {most} THEN NULL ELSE {shown} END"


def shortened(column: Column, types: Mapping[str, str]) -> str:
    """A column as it lies in the file, but for texts without measure, which are NULL."""
    name = identifier(column.name)
    return f"{_short(name, _most(column))} AS {name}" if _is_text(types.get(column.name, "")) else name


def _most(column: Column) -> int:
    """Bytes of a value that can count."""
    return max(LONGEST_BYTES, *(len(str(key).encode()) for key in column.keys)) if column.keys else LONGEST_BYTES


def cast(column: Column, types: Mapping[str, str], name: str = "") -> str:
    """A column in its declared type; NULL where it cannot be. ``name``: how the statement calls it."""
    name, type_ = name or identifier(column.name), types.get(column.name, "")
    if column.kind is Kind.TEXT:
        return each_row(_text(name, type_), Type.TEXT, LONGEST_TEXT)
    if column.kind is Kind.CATEGORY:
        return _short(_text(name, type_), _most(column))
    if _is_text(type_):
        # Row by row: DuckDB casts a column with few values once for each, until one person has too many of them.
        if column.kind in {Kind.INTEGER, Kind.NUMBER}:
            name = each_row(numeral(name), Type.TEXT, LONGEST_NUMBER)
        else:
            name = each_row(_short(name, LONGEST_TIME), Type.TEXT, LONGEST_TIME)
    match column.kind:
        case Kind.INTEGER | Kind.NUMBER:
            return f"TRY_CAST({name} AS DOUBLE)"
        case Kind.BOOLEAN:
            return f"TRY_CAST({name} AS BOOLEAN)"
        case Kind.DATE:
            return f"TRY_CAST({name} AS DATE)"
    if column.zone is not None and "TIME ZONE" in types.get(column.name, "").upper():
        # At the ends of DuckDB's calendar the conversion itself would fail.
        inside = f"{name} BETWEEN TIMESTAMPTZ '0001-01-01 00:00:00+00' AND TIMESTAMPTZ '10000-01-01 00:00:00+00'"
        return f"timezone({quoted(column.zone)}, CASE WHEN {inside} THEN {name} END)"
    return f"TRY_CAST({name} AS TIMESTAMP)"


def clean(column: Column, name: str) -> str:
    """A column within its policy: a finite value between its bounds and among its keys, or NULL, or the default."""
    bounds, value = column.bounds, name
    conditions = []
    match column.kind:
        case Kind.INTEGER | Kind.NUMBER:
            value = f"floor({value} + 0.5e0)" if column.kind is Kind.INTEGER else value
            conditions.append(f"isfinite({name})")
            ends = None if bounds is None else (double(bounds.low), double(bounds.high))
        case Kind.DATE:
            conditions.append(f"{name} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'")
            ends = None if bounds is None else (literal(bounds.low), literal(bounds.high))
        case Kind.DATETIME:
            conditions.append(f"{name} BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59'")
            ends = None if bounds is None else (literal(bounds.low), literal(bounds.high))
        case _:
            ends = None
    if ends is not None:
        value = f"greatest({ends[0]}, least({ends[1]}, {value}))"
    if column.keys is not None:
        conditions.append(f"{value} IN ({_listed(column)})")
    if conditions:
        value = f"CASE WHEN {' AND '.join(conditions)} THEN {value} END"
    if column.default is not None:
        default = column.default
        shown = literal(float(default) if column.kind in {Kind.INTEGER, Kind.NUMBER} else default)  # type: ignore[arg-type]
        value = f"coalesce({value}, {each_row(shown, TYPES[column.kind])})"
    return value


def _listed(column: Column) -> str:
    """A column's keys, for IN. DuckDB parses a list of 10⁵ in 20 seconds, and one long text in no time."""
    keys = [float(key) if isinstance(key, int) else key for key in column.keys or ()]
    shown = [key if isinstance(key, str) else repr(key) if isinstance(key, float) else str(key) for key in keys]
    if len(keys) <= _FEW or any(_BETWEEN in each for each in shown):
        return ", ".join(literal(key) for key in keys)  # type: ignore[arg-type]
    type_ = {Kind.INTEGER: "DOUBLE", Kind.DATE: "DATE"}.get(column.kind, "VARCHAR")
    text = quoted(_BETWEEN.join(shown))
    return f"SELECT CAST(unnest(string_split({text}, {quoted(_BETWEEN)})) AS {type_})"


def as_read(
    name: str, columns: Mapping[str, Column], types: Mapping[str, str], scan: str, raw: Sequence[str | None]
) -> str:
    """A table as its policy reads it, for WITH, and the columns that say whose its rows are, as they are (audits)."""
    own = {each: column for each, column in columns.items() if each not in raw}
    reads = [f"{cast(column, types)} AS c{at}" for at, column in enumerate(own.values())]
    reads += [f"{identifier(each or '')} AS r{at}" for at, each in enumerate(raw)]
    shown = [f"{clean(column, f'c{at}')} AS {identifier(each)}" for at, (each, column) in enumerate(own.items())]
    shown += [f"r{at} AS {identifier(each or '')}" for at, each in enumerate(raw)]
    inner = f"SELECT {', '.join(reads) or '1'} FROM {scan}"  # noqa: S608
    return f"{identifier(name)} AS (SELECT {', '.join(shown) or '1'} FROM ({inner}))"  # noqa: S608
