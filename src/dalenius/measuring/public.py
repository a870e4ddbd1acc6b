"""Public tables as questions see them: exact bounds, exact keys, exact multiplicities.

Nothing here is about anyone who is protected, so everything may be looked up in the files, and guessed from them.
Values are read as those of protected tables are: numbers as doubles, texts without what the
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
from typing import TYPE_CHECKING, Any, Protocol

from dalenius.errors import UnknownColumnError
from dalenius.measuring.engines.sources import public_lookup
from dalenius.tables.columns import default_step, power_of_ten
from dalenius.tables.compatibility import base_type, kind_of_type
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import BOUNDED, KEYED, NUMERIC, Bounds, Column, Kind
from dalenius.tables.sources.fingerprint import Fingerprint, fingerprint

if TYPE_CHECKING:
    from dalenius.tables.policy import PublicSpec

MOST_KEYS = 20_000
_LONGEST_KEYS = 2**22  # characters in all: keys stand in the statements
_MANY = 1_000_000  # rows; from there on an estimate first says whether it is worth to list the values
_MOST = 64  # tables kept
_TEXTS = frozenset({"VARCHAR", "ENUM", "UUID", "TIME"})


class Lookup(Protocol):
    """What a public table needs of an engine. A column's values are those that questions see, absent ones aside."""

    @property
    def types(self) -> Mapping[str, str]:
        """The type of every column."""

    def rows(self) -> int:
        """How many rows there are."""

    def multiplicity(self, columns: Sequence[str]) -> int:
        """The most rows that share one combination of values of some columns."""

    def extremes(self, column: Column) -> tuple[Any, Any]:
        """The least and the largest value; None twice where there is none."""

    def estimate(self, column: Column) -> tuple[int, int]:
        """How many values there are, and about how many different ones."""

    def values(self, column: Column, most: int) -> list[Any]:
        """Different values, at most so many."""


@dataclass(frozen=True)
class PublicTable:
    """One public table.

    Attributes:
        name: Its name in questions.
        fingerprint: Its files; `fingerprint.content` changes with what is in them.
        columns: What a policy would say about each column, exactly; looked up when first asked for. Columns of nested
            and other odd types are left out.
        lookup: Who looks up what its files hold, and how its engine names them.
    """

    name: str
    fingerprint: Fingerprint
    columns: Mapping[str, Column] = field(repr=False, compare=False)
    lookup: Lookup = field(repr=False, compare=False)
    _measured: dict[frozenset[str], int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def types(self) -> Mapping[str, str]:
        """The type of every column. Those of CSV files are guessed, and hold for all rows."""
        return self.lookup.types

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of each column that can be asked about, without a look at its values (a text may be a category)."""
        return {each: kind for each, type_ in self.types.items() if (kind := kind_seen(type_)) is not None}

    @cached_property
    def rows(self) -> int:
        """How many rows it has."""
        return self.lookup.rows()

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
            self._measured[key] = self.lookup.multiplicity(sorted(key))
        return self._measured[key]


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
    table = looked_up(spec.name, found, public_lookup(found))
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


def looked_up(name: str, found: Fingerprint, lookup: Lookup) -> PublicTable:
    """The public table that an engine can look up, whatever the engine."""
    return PublicTable(name, found, _Columns(lookup), lookup)


def kind_seen(type_: str) -> Kind | None:
    """The kind of a public column of a type; None: it cannot be asked about."""
    return Kind.TEXT if base_type(type_) in _TEXTS else kind_of_type(type_)


def zone_of(type_: str) -> str | None:
    """The time zone that a public column is read in."""
    return "UTC" if "TIME ZONE" in type_ and base_type(type_).startswith("TIMESTAMP") else None


class _Columns(Mapping[str, Column]):
    """Columns, each looked up when first asked for: a question reads few of them."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._kinds = {each: kind for each, type_ in lookup.types.items() if (kind := kind_seen(type_)) is not None}
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
        zone = zone_of(self._lookup.types[name])
        bounds = self._bounds(Column(name, kind, zone=zone)) if kind in BOUNDED else None
        keys = self._keys(Column(name, Kind.CATEGORY if kind is Kind.TEXT else kind)) if kind in KEYED else None
        if kind is Kind.TEXT and keys is not None:
            kind = Kind.CATEGORY
        return Column(name, kind, bounds, _step(kind, bounds), keys, zone=zone)

    def _bounds(self, column: Column) -> Bounds | None:
        low, high = self._lookup.extremes(column)
        return None if low is None else Bounds(_value(column.kind, low), _value(column.kind, high))

    def _keys(self, column: Column) -> tuple[Any, ...] | None:
        rows, about = self._lookup.estimate(column)
        if rows > _MANY and about > 2 * MOST_KEYS:
            return None
        keys = sorted(_value(column.kind, each) for each in self._lookup.values(column, MOST_KEYS + 1))
        if not keys or len(keys) > MOST_KEYS:
            return None
        if column.kind is Kind.CATEGORY and (sum(map(len, keys)) > _LONGEST_KEYS or any("\0" in key for key in keys)):
            return None
        return tuple(keys)


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
