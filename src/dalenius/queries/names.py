"""Names of tables and columns as people write them in SQL."""

from __future__ import annotations

from sqlglot.dialects.duckdb import DuckDB


def as_written(name: str) -> str:
    """A name as it stands in SQL: in quotes where it needs them.

    >>> as_written("region"), as_written("order"), as_written('5" disk')
    ('region', '"order"', '"5"" disk"')
    """
    plain = name.isidentifier() and name.isascii() and name.lower() not in DuckDB.Generator.RESERVED_KEYWORDS
    return name if plain else '"' + name.replace('"', '""') + '"'
