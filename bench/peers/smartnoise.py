"""smartnoise-sql over DuckDB.

    python bench/peers/smartnoise.py PURCHASES.parquet

SmartNoise has no reader for DuckDB. Its reader for Postgres runs here on a DuckDB connection, which is kinder to it
than its own reader for data frames: that one copies all rows into SQLite first. DuckDB is the last 1.x, because 2.0
refuses the ORDER BY RANDOM() with which SmartNoise samples rows. Its ε is per column, so it is divided until the
whole question costs 1. Where keys are public, none are censored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
from snsql import Privacy, from_connection  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.peers.timing import DELTA, EPSILON, QUESTIONS, ROWS_PER_USER, THREADS, Question, Rows, report

UNKNOWN_KEYS = ("product",)


class Cursor:
    """What SmartNoise asks of a psycopg2 cursor."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def execute(self, sql: str) -> None:
        """Runs it."""
        self._cursor.execute(sql)

    @property
    def description(self) -> Any:
        """Names of the columns."""
        return self._cursor.description

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor.fetchall())


class Connection:
    """What SmartNoise asks of a psycopg2 connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def cursor(self) -> Cursor:
        """A cursor of its own."""
        return Cursor(self._connection.cursor())

    def commit(self) -> None:
        """Nothing was written."""

    def rollback(self) -> None:
        """Nothing was written."""


def described(*, censor: bool) -> dict[str, Any]:
    """The same bounds as in our policy."""
    table = {
        "max_ids": ROWS_PER_USER,
        "sample_max_ids": True,
        "row_privacy": False,
        "censor_dims": censor,
        "clamp_counts": False,
        "user_id": {"type": "int", "private_id": True},
        "region": {"type": "string"},
        "age": {"type": "int", "lower": 0, "upper": 120},
        "product": {"type": "string"},
        "amount": {"type": "float", "lower": 0.0, "upper": 5000.0},
        "channel": {"type": "string"},
    }
    return {"": {"main": {"purchases": table}}}


def main() -> None:
    """Times all questions."""
    plain = duckdb.connect(config={"threads": THREADS})
    plain.execute(f"CREATE VIEW purchases AS FROM read_parquet('{sys.argv[1]}')")
    connection = Connection(plain)

    def question(name: str, text: str) -> Question:
        sql = text.replace("FROM purchases", "FROM main.purchases")
        metadata = described(censor=name in UNKNOWN_KEYS)

        def reader(epsilon: float) -> Any:
            privacy = Privacy(epsilon=epsilon, delta=DELTA)
            return from_connection(connection, privacy=privacy, metadata=metadata, engine="postgres")

        def prepare() -> Callable[[], Rows]:
            columns = reader(1.0).get_privacy_cost(sql)[0]
            private = reader(EPSILON / columns)
            return lambda: private.execute(sql)[1:]

        return prepare

    report({name: question(name, text) for name, text in QUESTIONS.items()}, ("smartnoise-sql", "opendp", "duckdb"))


if __name__ == "__main__":
    main()
