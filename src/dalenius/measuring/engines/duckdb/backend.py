"""DuckDB as a backend of sources (`engines.sources.Backend`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius.measuring.engines.duckdb.connections import DuckDB, Pool
from dalenius.measuring.engines.duckdb.decoding import check_decodes
from dalenius.measuring.engines.duckdb.public import lookup
from dalenius.measuring.engines.duckdb.rendering import identifier
from dalenius.measuring.engines.duckdb.schema import schema

if TYPE_CHECKING:
    from pathlib import Path

    from dalenius.tables.sources.fingerprint import Fingerprint

__all__ = ["check_decodes", "lookup", "pool", "repeats", "schema"]

_SECONDS = 3600.0  # the owner waits


def pool(storage: Path | None) -> Pool:
    """A new pool of connections."""
    return Pool(storage=storage)


def repeats(fingerprint: Fingerprint, column: str) -> bool:
    """Whether some value of a column is there twice."""
    engine, name = DuckDB(fingerprint), identifier(column)
    try:
        counted = f"SELECT 1 FROM {engine.scan} WHERE {name} IS NOT NULL GROUP BY {name} HAVING count(*) > 1"  # noqa: S608
        return bool(engine.run(f"SELECT 1 FROM ({counted}) LIMIT 1", seconds=_SECONDS))  # noqa: S608
    finally:
        engine.close()
