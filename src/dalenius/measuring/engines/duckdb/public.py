"""Public tables, looked up by DuckDB: their types, their bounds, their values and how often those repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.engines.duckdb.csv import header
from dalenius.measuring.engines.duckdb.rendering import identifier
from dalenius.measuring.engines.duckdb.schema import schema
from dalenius.measuring.engines.duckdb.statements.source import cast, clean
from dalenius.measuring.public import kind_seen, zone_of
from dalenius.tables.policy import Column

if TYPE_CHECKING:
    from dalenius.tables.sources.fingerprint import Fingerprint

_SECONDS = 600.0  # the owner, or whoever asks first after a start, waits
_GUESSED = ("BOOLEAN", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP")


class Runs(Protocol):
    """What looks up: it runs one SELECT."""

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """The rows of one SELECT."""


class Lookup:
    """One public table. ``types`` are those of ``scan``; a number with leading zeros in a CSV file stays a text."""

    def __init__(self, types: Mapping[str, str], scan: str, engine: Runs) -> None:
        self.types: Mapping[str, str] = MappingProxyType(dict(types))
        self.scan, self._engine = scan, engine

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of one SELECT over `scan`."""
        return self._engine.run(sql, seconds=_SECONDS)

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
        column = Column(name, kind, zone=zone_of(self.types[name]))
        return clean(column, cast(column, self.types))

    def extremes(self, column: Column) -> tuple[Any, Any]:
        """The least and the largest value; None twice where there is none."""
        low, high = self._selected("min(x), max(x)", column)[0]
        return low, high

    def estimate(self, column: Column) -> tuple[int, int]:
        """How many values there are, and about how many different ones."""
        rows, about = self._selected("count(*), approx_count_distinct(x)", column)[0]
        return int(rows), int(about)

    def values(self, column: Column, most: int) -> list[Any]:
        """Different values, at most so many."""
        return [row[0] for row in self._selected("DISTINCT x", column, f"LIMIT {most}")]

    def _selected(self, selected: str, column: Column, end: str = "") -> list[tuple[Any, ...]]:
        source = f"SELECT {clean(column, 'v')} AS x FROM (SELECT {cast(column, self.types)} AS v FROM {self.scan})"  # noqa: S608
        return self.run(f"SELECT {selected} FROM ({source}) WHERE x IS NOT NULL {end}")  # noqa: S608


def lookup(found: Fingerprint) -> Lookup:
    """The lookup of some files."""
    engine = DuckDB(found)
    types, scan = dict(engine.columns), engine.scan
    if found.form == "csv":
        types = _guessed(found, engine)
        shown = [_typed(each, type_) for each, type_ in types.items()]
        scan = f"(SELECT {', '.join(shown)} FROM {engine.scan})"  # noqa: S608
    return Lookup(types, scan, engine)


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
