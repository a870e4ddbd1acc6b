"""What is public, worked out by DuckDB: values of functions on listed values, and what public tables hold.

No row of anybody is read. The functions are what `engines.sources.Reference` asks for: they list public cells, and work
out what comes after a release.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from dalenius.measuring.engines.duckdb.connections import DuckDB, public
from dalenius.measuring.engines.duckdb.files import header, schema
from dalenius.measuring.engines.duckdb.rendering import Renderer, identifier, literal
from dalenius.measuring.engines.duckdb.statements import source
from dalenius.measuring.engines.sources import Combinations
from dalenius.measuring.expressions import Aggregate, Call, Column, Expression, Scalar, Type
from dalenius.measuring.public import kind_seen, zone_of
from dalenius.tables.policy import Column as ColumnPolicy

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.measuring.domains import Cell
    from dalenius.measuring.engines.duckdb.statements import RunSelect
    from dalenius.measuring.relations import Relation
    from dalenius.tables.sources.fingerprint import Fingerprint

_INSIDE = "value"
_SECONDS = 600.0  # the owner, or whoever asks first after a start, waits
_GUESSED = ("BOOLEAN", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP")


def image(key: Call, inside: Expression, given: pa.Array, *, whole: bool) -> list[Any]:
    """The different values of ``key`` where its argument ``inside`` has each of the values ``given``."""
    import pyarrow as pa

    stand_in = Column(_INSIDE, inside.type)
    arguments = tuple(stand_in if each == inside else each for each in key.arguments)
    renderer = Renderer({_INSIDE: "t.v"}, frozenset({_INSIDE}) if whole else frozenset())
    shown = renderer.sql(Call(key.function, arguments, key.type))
    return [row[0] for row in public().run(f"SELECT DISTINCT {shown} FROM d AS t", {"d": pa.table({"v": given})})]  # noqa: S608


def combinations(
    keys: Sequence[Expression],
    values: Sequence[tuple[Sequence[str], pa.Table]],
    integers: frozenset[str],
    conditions: Sequence[Expression],
) -> Combinations:
    """The different values of keys where conditions hold."""
    places = {name: f"t{at}.v{place}" for at, (tied, _) in enumerate(values) for place, name in enumerate(tied)}
    renderer = Renderer(places, integers)
    sql = f"SELECT DISTINCT {', '.join(f'{renderer.sql(key)} AS k{at}' for at, key in enumerate(keys))}"
    if values:
        sql += f" FROM {', '.join(f'd{at} AS t{at}' for at in range(len(values)))}"
    if conditions:
        sql += f" WHERE {' AND '.join(map(renderer.sql, conditions))}"
    given = {f"d{at}": rows for at, (_, rows) in enumerate(values)}
    there = " AND ".join(f"k{at} IS NOT NULL" for at in range(len(keys))) or "true"
    texts = [f"strlen(k{at})" for at, key in enumerate(keys) if key.type is Type.TEXT]
    length = f"coalesce(sum({' + '.join(texts) or '0'}), 0)"

    def size() -> tuple[int, int]:
        ((count, bytes_),) = public().run(f"SELECT count(*), {length} FROM ({sql}) WHERE {there}", given)  # noqa: S608
        return int(count), int(bytes_)

    return Combinations(size, lambda: [tuple(row) for row in public().run(sql, given)])


def evaluated(
    expression: Expression, table: pa.Table, aggregates: Sequence[Aggregate], whole: Container[Expression] = ()
) -> list[Any]:
    """An expression of keys (columns k0, k1 …) and aggregates (a0, a1 …), in the order of the column ``place``."""
    keys = {int(name[1:]): name for name in table.column_names if name.startswith("k")}
    renderer = Renderer({}, keys=keys, aggregates={each: f"a{at}" for at, each in enumerate(aggregates)}, whole=whole)
    sql = f"SELECT {renderer.sql(expression)} AS v FROM released ORDER BY place"  # noqa: S608
    return [row[0] for row in public().run(sql, {"released": table})]


def public_combinations(
    relation: Relation, wanted: tuple[str, ...], most: int, most_rows: int
) -> tuple[Cell, ...] | None:
    """All combinations of the values of some columns in public tables that are joined; None: too many."""
    import pyarrow as pa

    from dalenius.measuring.engines.duckdb.statements.relation import PublicScan
    from dalenius.measuring.function_values import arrow_type
    from dalenius.measuring.functions import TYPES

    scan, held = PublicScan(relation, wanted), {}
    for name, (opened, columns, text) in scan.texts().items():
        rows = cast("DuckDBLookup", opened.table.lookup).run(f"{text} LIMIT {most_rows + 1}")
        if len(rows) > most_rows:
            return None
        kinds = [opened.table.kinds[each] for each in columns]
        arrays = [pa.array([row[at] for row in rows], arrow_type(TYPES[kind])) for at, kind in enumerate(kinds)]
        held[name] = pa.table(arrays, names=columns)
    found = public().run(f"{scan.combinations()} LIMIT {most + 1}", held)
    return tuple(map(tuple, found)) if len(found) <= most else None


# --- public tables


class DuckDBLookup:
    """One public table. ``types`` are those of ``scan``; a number with leading zeros in a CSV file stays a text."""

    def __init__(self, types: Mapping[str, str], scan: str, run: RunSelect) -> None:
        self.types: Mapping[str, str] = MappingProxyType(dict(types))
        self.scan, self._run = scan, run

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of one SELECT over `scan`."""
        return self._run(sql, seconds=_SECONDS)

    def rows(self) -> int:
        """How many rows there are."""
        return int(self.run(f"SELECT count(*) FROM {self.scan}")[0][0])  # noqa: S608

    def multiplicity(self, columns: Sequence[str]) -> int:
        """The most rows that share one combination of values of some columns."""
        names = [f"v{at}" for at in range(len(columns))]
        read = ", ".join(f"{self._read(each)} AS {name}" for each, name in zip(columns, names, strict=True))
        there = " AND ".join(f"{name} IS NOT NULL" for name in names)
        rows = f"SELECT {read} FROM {self.scan}"  # noqa: S608
        groups = f"SELECT count(*) AS n FROM ({rows}) WHERE {there} GROUP BY {', '.join(names)}"  # noqa: S608
        return int(self.run(f"SELECT max(n) FROM ({groups})")[0][0] or 0)  # noqa: S608

    def _read(self, name: str) -> str:
        """A column as questions read it."""
        kind = kind_seen(self.types[name])
        if kind is None:
            return identifier(name)
        column = ColumnPolicy(name, kind, zone=zone_of(self.types[name]))
        return source.clean(column, source.cast(column, self.types))

    def extremes(self, column: ColumnPolicy) -> tuple[Any, Any]:
        """The least and the largest value; None twice where there is none."""
        low, high = self._selected("min(x), max(x)", column)[0]
        return low, high

    def estimate(self, column: ColumnPolicy) -> tuple[int, int]:
        """How many values there are, and about how many different ones."""
        rows, about = self._selected("count(*), approx_count_distinct(x)", column)[0]
        return int(rows), int(about)

    def values(self, column: ColumnPolicy, most: int) -> list[Any]:
        """Different values, at most so many."""
        return [row[0] for row in self._selected("DISTINCT x", column, f"LIMIT {most}")]

    def _selected(self, selected: str, column: ColumnPolicy, end: str = "") -> list[tuple[Any, ...]]:
        read = f"SELECT {source.cast(column, self.types)} AS v FROM {self.scan}"  # noqa: S608
        values = f"SELECT {source.clean(column, 'v')} AS x FROM ({read})"  # noqa: S608
        return self.run(f"SELECT {selected} FROM ({values}) WHERE x IS NOT NULL {end}")  # noqa: S608


def lookup(found: Fingerprint) -> DuckDBLookup:
    """The lookup of some files."""
    engine = DuckDB(found)
    types, scan = dict(engine.columns), engine.scan
    if found.form == "csv":
        types = _guessed(found, engine)
        shown = [_typed(each, type_) for each, type_ in types.items()]
        scan = f"(SELECT {', '.join(shown)} FROM {engine.scan})"  # noqa: S608
    return DuckDBLookup(types, scan, engine.run)


def listed(types: Mapping[str, str], rows: Sequence[Sequence[Scalar]]) -> DuckDBLookup:
    """The lookup of rows that stand in a question."""
    shown = ", ".join(f"CAST(c{at} AS {type_}) AS {identifier(name)}" for at, (name, type_) in enumerate(types.items()))
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
    names = ", ".join(f"c{at}" for at in range(len(types)))
    scan = f"(SELECT {shown} FROM (VALUES {values}) AS listed({names}))"  # noqa: S608
    return DuckDBLookup(types, scan, public().run)


def _guessed(found: Fingerprint, engine: DuckDB) -> dict[str, str]:
    """The types of a CSV file's columns: what DuckDB guesses from the first rows, where all rows can be read so."""
    names = header(found.paths).names
    likely = dict(schema(found.paths, "csv", guess=True))
    tried = [(name, type_) for name in names for type_ in _candidates(likely.get(name, "VARCHAR"))]
    if not tried:
        return dict.fromkeys(names, "VARCHAR")
    tests = [f"coalesce(bool_and({_fits(identifier(name), type_)}), false)" for name, type_ in tried]
    fits = engine.run(f"SELECT {', '.join(tests)} FROM {engine.scan}", seconds=_SECONDS)[0]  # noqa: S608
    types = dict.fromkeys(names, "VARCHAR")
    for (name, type_), fit in reversed(list(zip(tried, fits, strict=True))):
        types[name] = type_ if fit else types[name]
    return types


def _candidates(guess: str) -> tuple[str, ...]:
    if guess == "BIGINT":  # a later row may have decimals
        return ("BIGINT", "DOUBLE")
    return (guess,) if guess in _GUESSED else ()


def _fits(name: str, type_: str) -> str:
    fits = f"TRY_CAST({name} AS {type_}) IS NOT NULL"
    if type_ == "BIGINT":  # the cast alone would round
        fits += rf" AND regexp_full_match({name}, '\s*[+-]?[0-9]+\s*')"
    if type_ in {"BIGINT", "DOUBLE"}:
        fits += rf" AND NOT regexp_matches({name}, '^\s*[+-]?0[0-9]')"  # 01234 is a code
    return f"{name} IS NULL OR ({fits})"


def _typed(name: str, type_: str) -> str:
    shown = identifier(name)
    return shown if type_ == "VARCHAR" else f"TRY_CAST({shown} AS {type_}) AS {shown}"
