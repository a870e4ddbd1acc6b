"""Public tables as questions see them: exact bounds, exact keys, exact multiplicities.

Nothing here is about anyone who is protected, so everything may be looked up in the files, and guessed from them.
Values are read as those of protected tables are (`statements.source`): numbers as doubles, texts without what the
engine cannot print. What is said about a column holds for the values as they are read that way.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from dalenius.errors import UnknownColumnError
from dalenius.measuring.engines.csv import header
from dalenius.measuring.engines.duckdb import DuckDB
from dalenius.measuring.engines.schema import schema
from dalenius.measuring.rendering import identifier
from dalenius.measuring.statements.source import cast, clean
from dalenius.tables.compatibility import base_type, kind_of
from dalenius.tables.fingerprint import Fingerprint, fingerprint
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import BOUNDED, KEYED, NUMERIC, Bounds, Column, Kind
from dalenius.tables.steps import default_step, power_of_ten

if TYPE_CHECKING:
    from dalenius.tables.policy import PublicSpec

MOST_KEYS = 20_000
_LONGEST_KEYS = 2**22  # characters in all: keys stand in the statements
_MANY = 1_000_000  # rows; from there on an estimate first says whether it is worth to list the values
_SECONDS = 600.0  # the owner, or whoever asks first after a start, waits
_MOST = 64  # tables kept
_GUESSED = ("BOOLEAN", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP")
_TEXTS = frozenset({"VARCHAR", "ENUM", "UUID", "TIME"})


class Runs(Protocol):
    """What a public table needs of an engine."""

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """The rows of one SELECT."""


@dataclass(frozen=True)
class PublicTable:
    """One public table.

    Attributes:
        name: Its name in questions.
        fingerprint: Its files; `fingerprint.content` changes with what is in them.
        columns: What a policy would say about each column, exactly; looked up when first asked for. Columns of nested
            and other odd types are left out.
        types: The DuckDB type of every column, as `scan` gives it. Those of CSV files are guessed, and hold for all
            rows; a number with leading zeros stays a text.
    """

    name: str
    fingerprint: Fingerprint
    columns: Mapping[str, Column] = field(repr=False, compare=False)
    types: Mapping[str, str] = field(compare=False)
    scan: str = field(repr=False, compare=False)
    _engine: Runs = field(repr=False, compare=False)
    _measured: dict[frozenset[str], int] = field(default_factory=dict, repr=False, compare=False)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of one SELECT over `scan`."""
        return self._engine.run(sql, seconds=_SECONDS)

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of each column that can be asked about, without a look at its values (a text may be a category)."""
        return {each: kind for each, type_ in self.types.items() if (kind := _kind(type_)) is not None}

    @cached_property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self._engine.run(f"SELECT count(*) FROM {self.scan}", seconds=_SECONDS)[0][0])  # noqa: S608

    def multiplicity(self, columns: Sequence[str]) -> int:
        """The most rows that share one combination of values of these columns, all of them there (not NULL).

        Of each row of another table, a join on equality with all of them keeps at most so many copies. Measured on
        values as questions read them (doubles, texts cut at the longest), which tells no more values apart than the
        files do, so it holds for a join on either. NaN counts as absent, as everywhere. No columns: all rows.
        """
        for name in columns:
            if name not in self.types:
                raise _no_column(self.name, name, self.types)
        key = frozenset(columns)
        if not key:
            return self.rows
        if key not in self._measured:
            self._measured[key] = self._multiplicity(sorted(key))
        return self._measured[key]

    def _multiplicity(self, columns: Sequence[str]) -> int:
        names = [f"v{at}" for at in range(len(columns))]
        read = ", ".join(f"{_read(each, self.types)} AS {name}" for each, name in zip(columns, names, strict=True))
        there = " AND ".join(f"{name} IS NOT NULL" for name in names)
        rows = f"SELECT {read} FROM {self.scan}"  # noqa: S608
        groups = f"SELECT count(*) AS n FROM ({rows}) WHERE {there} GROUP BY {', '.join(names)}"  # noqa: S608
        found = self._engine.run(f"SELECT max(n) FROM ({groups})", seconds=_SECONDS)  # noqa: S608
        return int(found[0][0] or 0)


_KEPT: OrderedDict[tuple[str, Fingerprint], PublicTable] = OrderedDict()
_LOCK = threading.Lock()


def _forked() -> None:
    global _LOCK  # noqa: PLW0603 (a forked child inherits a lock that nobody there may release)
    _LOCK = threading.Lock()


os.register_at_fork(after_in_child=_forked)


def public_table(spec: PublicSpec, found: Fingerprint | None = None) -> PublicTable:
    """The public table that a policy declares; kept within the process as long as its files stay the same.

    Args:
        spec: What the policy says.
        found: What its files are, where that is known (`Version.public`); else every file is read to find out.

    Raises:
        SourceUnavailableError: A file is missing or cannot be read.
    """
    found = fingerprint(spec.source) if found is None else found
    key = (spec.name, found)
    with _LOCK:
        if key in _KEPT:
            _KEPT.move_to_end(key)
            return _KEPT[key]
    table = _made(spec.name, found)
    with _LOCK:
        while len(_KEPT) >= _MOST:
            _KEPT.popitem(last=False)
        return _KEPT.setdefault(key, table)


class Publics(Mapping[str, PublicTable]):
    """Public tables by name, each read when it is first asked for."""

    def __init__(self, specs: Mapping[str, tuple[PublicSpec, Fingerprint | None]]) -> None:
        self._specs = specs

    def __getitem__(self, name: str) -> PublicTable:
        return public_table(*self._specs[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)


def _made(name: str, found: Fingerprint) -> PublicTable:
    engine = DuckDB(found)
    types, scan = dict(engine.columns), engine.scan
    if found.form == "csv":
        types = _guessed(found, engine)
        shown = [_typed(each, type_) for each, type_ in types.items()]
        scan = f"(SELECT {', '.join(shown)} FROM {engine.scan})"  # noqa: S608
    return looked_up(name, found, types, scan, engine)


def looked_up(name: str, found: Fingerprint, types: Mapping[str, str], scan: str, engine: Runs) -> PublicTable:
    """The public table that an engine has under ``scan``, whatever the engine."""
    kinds = {each: kind for each, type_ in types.items() if (kind := _kind(type_)) is not None}
    frozen = MappingProxyType(dict(types))
    return PublicTable(name, found, _Columns(kinds, frozen, scan, engine), frozen, scan, engine)


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


def _kind(type_: str) -> Kind | None:
    return Kind.TEXT if base_type(type_) in _TEXTS else kind_of(type_)


def _zone(type_: str) -> str | None:
    return "UTC" if "TIME ZONE" in type_ and base_type(type_).startswith("TIMESTAMP") else None


def _read(name: str, types: Mapping[str, str]) -> str:
    """A column as questions read it."""
    kind = _kind(types[name])
    if kind is None:
        return identifier(name)
    column = Column(name, kind, zone=_zone(types[name]))
    return clean(column, cast(column, types))


class _Columns(Mapping[str, Column]):
    """Columns, each looked up when first asked for: a question reads few of them."""

    def __init__(self, kinds: Mapping[str, Kind], types: Mapping[str, str], scan: str, engine: Runs) -> None:
        self._kinds = kinds
        self._types = types
        self._scan = scan
        self._engine = engine
        self._found: dict[str, Column] = {}

    def __getitem__(self, name: str) -> Column:
        if name not in self._found:
            self._found[name] = self._column(name, self._kinds[name])
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def _column(self, name: str, kind: Kind) -> Column:
        zone = _zone(self._types[name])
        bounds = self._bounds(Column(name, kind, zone=zone)) if kind in BOUNDED else None
        keys = self._keys(Column(name, Kind.CATEGORY if kind is Kind.TEXT else kind)) if kind in KEYED else None
        if kind is Kind.TEXT and keys is not None:
            kind = Kind.CATEGORY
        return Column(name, kind, bounds, _step(kind, bounds), keys, zone=zone)

    def _bounds(self, column: Column) -> Bounds | None:
        low, high = self._run("SELECT min(x), max(x)", column)[0]
        return None if low is None else Bounds(_value(column.kind, low), _value(column.kind, high))

    def _keys(self, column: Column) -> tuple[Any, ...] | None:
        ((rows, about),) = self._run("SELECT count(*), approx_count_distinct(x)", column)
        if rows > _MANY and about > 2 * MOST_KEYS:
            return None
        found = [row[0] for row in self._run("SELECT DISTINCT x", column, f"LIMIT {MOST_KEYS + 1}")]
        keys = sorted(_value(column.kind, each) for each in found)
        if not keys or len(keys) > MOST_KEYS:
            return None
        if column.kind is Kind.CATEGORY and (sum(map(len, keys)) > _LONGEST_KEYS or any("\0" in key for key in keys)):
            return None
        return tuple(keys)

    def _run(self, selected: str, column: Column, end: str = "") -> list[tuple[Any, ...]]:
        source = f"SELECT {clean(column, 'v')} AS x FROM (SELECT {cast(column, self._types)} AS v FROM {self._scan})"  # noqa: S608
        return self._engine.run(f"{selected} FROM ({source}) WHERE x IS NOT NULL {end}", seconds=_SECONDS)


def _value(kind: Kind, value: Any) -> Any:
    """A value as a policy writes it: a number is the shortest decimal that means its double."""
    if kind is Kind.INTEGER:
        return int(value)
    return Fraction(repr(value)) if kind is Kind.NUMBER else value


def _step(kind: Kind, bounds: Bounds | None) -> Fraction | None:
    if kind not in NUMERIC or bounds is None:
        return None
    if kind is Kind.INTEGER:
        return Fraction(1)
    if bounds.low < bounds.high:
        return default_step(bounds.low, bounds.high)
    # One value: a step so fine that rounding does not matter.
    return default_step(Fraction(0), abs(bounds.low)) if bounds.low else power_of_ten(Fraction(1))


def _no_column(table: str, name: str, known: Mapping[str, str]) -> UnknownColumnError:
    meant = nearest(name, known)
    return UnknownColumnError(
        f"The public table {table!r} has no column {name!r}.",
        why=f"It has: {', '.join(known)}.",
        fix=f"Did you mean {meant!r}?" if meant else "Correct the name.",
    )
