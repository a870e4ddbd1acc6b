"""The DuckDB behind an engine, for tests that look behind the seam."""

from __future__ import annotations

from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.engines.engine import Engine


def duckdb_of(engine: Engine) -> DuckDB:
    """The same, known to be DuckDB's."""
    assert isinstance(engine, DuckDB)
    return engine
