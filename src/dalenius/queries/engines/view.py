"""Several tables seen as one: what a plan over a relation, or over a table with a path, needs of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dalenius.queries.engines.duckdb import Engines, scan_of
from dalenius.queries.engines.schema import schema
from dalenius.queries.statements import relation

if TYPE_CHECKING:
    from dalenius.queries.plan import Table
    from dalenius.queries.public import PublicTable
    from dalenius.tables.fingerprint import Fingerprint


class View:
    """A made-up table over the files of several. It never has a contribution index: that knows single tables."""

    index = None
    fingerprint = None

    def __init__(
        self,
        table: Table,
        fingerprints: Mapping[str, Fingerprint],
        publics: Sequence[PublicTable],
        engines: Engines,
    ) -> None:
        self._engine = engines.several([*fingerprints.values(), *(each.fingerprint for each in publics)])
        held = {name: (scan_of(each), dict(schema(each.paths, each.form))) for name, each in fingerprints.items()}
        self.scan, self.columns = relation.scan_of(table, relation.Files(held))

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """The rows of one SELECT. Raises what `DuckDB.run` does."""
        return self._engine.run(sql, seconds=seconds)
