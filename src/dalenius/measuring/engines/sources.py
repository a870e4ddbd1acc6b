"""Which engine reads a source, by its form: the one place where another is added.

A source is known by its fingerprint (what it is, and whether it is still the same: `tables.sources`), and by its
schema: names, and types in the words of `tables.compatibility`, whatever its engine calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from dalenius.errors import NotAllowedError

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.measuring.domains import Cell
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.expressions import Aggregate, Call, Expression, Scalar
    from dalenius.measuring.plan import Table
    from dalenius.measuring.public import Lookup, PublicTable
    from dalenius.measuring.relations import Relation
    from dalenius.tables.sources.fingerprint import Fingerprint

Columns = tuple[tuple[str, str], ...]  # names and types

FOLDER = "storage"  # of a home: what makes questions faster
_DUCKDB = "dalenius.measuring.engines.duckdb.backend"
# The module that has what `Backend` asks for, by form.
BACKENDS = {"parquet": _DUCKDB, "csv": _DUCKDB}


class Pool(Protocol):
    """Engines of one kind, kept open."""

    def of(self, fingerprint: Fingerprint, table: Table | None = None) -> Engine:
        """The engine of one source; for questions about a table, if it is named."""

    def over(self, table: Table, files: Mapping[str, Fingerprint], publics: Sequence[PublicTable]) -> Engine:
        """The engine of what a table is made of: its own source, or several seen as one (`Table.relation`)."""

    def close(self) -> None:
        """Closes all of them."""


class Backend(Protocol):
    """What a kind of engine brings besides: a module with these functions."""

    def pool(self, storage: Path | None) -> Pool:
        """A new one; ``storage``: a folder for what makes questions faster."""

    def schema(self, files: Sequence[Path], form: str, *, guess: bool = False) -> tuple[tuple[str, str], ...]:
        """As `schema`."""

    def check_decodes(self, fingerprint: Fingerprint, columns: Callable[[Columns], Sequence[str]]) -> None:
        """As `check_decodes`."""

    def repeats(self, fingerprint: Fingerprint, column: str) -> bool:
        """As `repeats`."""

    def lookup(self, fingerprint: Fingerprint) -> Lookup:
        """Of a public table."""


class Reference(Protocol):
    """Values of functions on listed values, where no row is read. Every engine must give the same, to the bit.

    Else a group that is listed by one would be missed by the other (`tests/function_values.py` has the table).
    """

    def image(self, key: Call, inside: Expression, given: pa.Array, *, whole: bool) -> list[Any]:
        """The different values of ``key`` where its argument ``inside`` has each of the values ``given``."""

    def combinations(
        self,
        keys: Sequence[Expression],
        values: Sequence[tuple[Sequence[str], pa.Table]],
        integers: frozenset[str],
        conditions: Sequence[Expression],
    ) -> Combinations:
        """The different values of keys, on all combinations of some columns' values, where conditions hold.

        Args:
            keys: The expressions.
            values: Columns, and a table of the values that they have together: v0, v1 …
            integers: The columns that hold whole numbers only.
            conditions: What holds for all rows.
        """

    def evaluated(
        self,
        expression: Expression,
        table: pa.Table,
        aggregates: Sequence[Aggregate],
        whole: Container[Expression] = (),
    ) -> list[Any]:
        """An expression of keys (columns k0, k1 …) and aggregates (a0, a1 …), in the order of the column ``place``.

        Those of ``whole`` have whole values, and are printed without a point.
        """

    def public_combinations(
        self, relation: Relation, wanted: tuple[str, ...], most: int, most_rows: int
    ) -> tuple[Cell, ...] | None:
        """All combinations of the values of some columns in public tables that are joined; None: too many."""

    def listed(self, types: Mapping[str, str], rows: Sequence[Sequence[Scalar]]) -> Lookup:
        """Of rows that stand in a question: the columns' types, and the values of each row."""


class Combinations(NamedTuple):
    """Keys on all combinations of some values: counted before they are made."""

    size: Callable[[], tuple[int, int]]  # how many, and the bytes of their texts
    rows: Callable[[], list[Cell]]  # all of them; a key may be NULL


def reference() -> Reference:
    """DuckDB's values, whichever engine measures."""
    return cast("Reference", import_module("dalenius.measuring.engines.duckdb.public_values"))


def backend_of(form: str) -> Backend:
    """The backend of a form; it is imported when it is first needed."""
    return cast("Backend", import_module(BACKENDS[form]))


def schema(files: Sequence[Path], form: str, *, guess: bool = False) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns of a source, never a value.

    Args:
        files: Absolute paths, all of one form.
        form: "parquet" or "csv".
        guess: Guess the types of CSV columns, for a draft. Otherwise they are all text: a guess depends on the rows,
            and what may be asked must not.
    """
    return backend_of(form).schema(files, form, guess=guess)


def repeats(fingerprint: Fingerprint, column: str) -> bool:
    """Whether some value of a column is there twice."""
    return backend_of(fingerprint.form).repeats(fingerprint, column)


def check_decodes(fingerprint: Fingerprint, columns: Callable[[Columns], Sequence[str]]) -> None:
    """Reads some columns of a source once, keeps nothing of them, and refuses what cannot be read.

    Args:
        fingerprint: The source.
        columns: Which ones, by its schema, to which it may object.
    """
    backend_of(fingerprint.form).check_decodes(fingerprint, columns)


def public_lookup(fingerprint: Fingerprint) -> Lookup:
    """Who looks up what a public table holds."""
    return backend_of(fingerprint.form).lookup(fingerprint)


class Engines:
    """The open engines of a home, whatever their kind.

    Args:
        storage: The folder for what makes questions faster, if there is one.
    """

    def __init__(self, storage: Path | None = None) -> None:
        self._storage = storage
        self._pools: dict[str, Pool] = {}

    def of(self, fingerprint: Fingerprint, table: Table | None = None) -> Engine:
        """The engine of one source; for questions about a table, if it is named."""
        return self._pool(fingerprint.form).of(fingerprint, table)

    def over(self, table: Table, files: Mapping[str, Fingerprint], publics: Sequence[PublicTable]) -> Engine:
        """The engine of what a table is made of: its own source, or several seen as one."""
        forms = [each.form for each in (*files.values(), *(public.fingerprint for public in publics))]
        if len({BACKENDS[form] for form in forms}) > 1:
            raise NotAllowedError(
                "These tables cannot be asked about together.",
                why="They lie in different systems, and rows of one would have to be copied to the other.",
                fix="Ask about each by itself, or have the owner keep them in one place.",
            )
        return self._pool(forms[0]).over(table, files, publics)

    def _pool(self, form: str) -> Pool:
        name = BACKENDS[form]
        if name not in self._pools:
            self._pools[name] = backend_of(form).pool(self._storage)
        return self._pools[name]

    def close(self) -> None:
        """Closes all of them."""
        for each in self._pools.values():
            each.close()
