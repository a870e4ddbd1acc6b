"""Several tables seen as one: what a plan over a relation, or over a table with a path, needs of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dalenius.measuring.engines.duckdb.connections import Pool, scan_of
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.engines.duckdb.schema import schema
from dalenius.measuring.engines.duckdb.statements import relation

if TYPE_CHECKING:
    from dalenius.measuring.plan import Table
    from dalenius.measuring.public import PublicTable
    from dalenius.tables.sources.fingerprint import Fingerprint


class View(Measuring):
    """A made-up table over the files of several. It never has a contribution index: that knows single tables."""

    index = None
    fingerprint = None

    def __init__(
        self,
        table: Table,
        fingerprints: Mapping[str, Fingerprint],
        publics: Sequence[PublicTable],
        engines: Pool,
    ) -> None:
        self._engine = engines.several([*fingerprints.values(), *(each.fingerprint for each in publics)])
        held = relation.Files({name: _held(each) for name, each in fingerprints.items()})
        self.scan, self.columns = relation.scan_of(table, held)

    def ready(self) -> None:
        """As `DuckDB.ready`."""
        self._engine.ready()

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """The rows of one SELECT. Raises what `DuckDB.run` does."""
        return self._engine.run(sql, seconds=seconds)


@lru_cache(maxsize=256)
def _held(fingerprint: Fingerprint) -> tuple[str, Mapping[str, str]]:
    """The files of one data version, in FROM, and the types of their columns, which stay as they are."""
    return scan_of(fingerprint), MappingProxyType(dict(schema(fingerprint.paths, fingerprint.form)))
