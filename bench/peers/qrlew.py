"""pyqrlew rewrites each question, DuckDB answers it: the same engine as ours, on the same file.

    python bench/peers/qrlew.py PURCHASES.parquet

A user counts with 10 rows (`max_multiplicity`); how many groups is qrlew's own default. Qrlew clips sums to the
bounds of 10 rows instead of sampling. It gives each of several columns the noise of the whole ε (its event for COUNT
and AVG by region is three Gaussians at 5.3, each of them (1, 1e-6)-DP), so that question costs it more than ours.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import duckdb
import pyqrlew  # type: ignore[import-not-found]
import sqlalchemy  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.peers.timing import DELTA, EPSILON, QUESTIONS, REGIONS, ROWS_PER_USER, THREADS, Question, Rows, report

TABLE = "purchases"
COLUMNS = "user_id INTEGER, region TEXT, age INTEGER, product TEXT, amount FLOAT, channel TEXT"


def described(rows: int) -> pyqrlew.Dataset:
    """The schema and size of the table, with the same bounds and keys as in our policy."""
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.StaticPool)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(f"CREATE TABLE {TABLE} ({COLUMNS})"))
    empty = pyqrlew.Dataset.from_database("shop", engine)
    schema, size = json.loads(empty.schema), json.loads(empty.size)
    # The limit on rows is capped by a share of the size, so an empty table would be answered with noughts.
    size["statistics"]["union"]["fields"][0]["statistics"]["struct"]["size"] = str(rows)
    origin = {"transformed": {"transform": uuid4().hex, "arguments": [], "named_arguments": {}}}
    spec = {
        "@type": "sarus_data_spec/sarus_data_spec.Dataset",
        "uuid": schema["dataset"],
        "name": "Transformed",
        "spec": origin,
        "properties": {},
    }
    dataset = pyqrlew.Dataset.from_str(json.dumps(spec), json.dumps(schema), json.dumps(size))
    return (
        dataset.with_range(None, TABLE, "age", 0, 120)
        .with_range(None, TABLE, "amount", 0.0, 5000.0)
        .with_possible_values(None, TABLE, "region", list(REGIONS))
    )


def main() -> None:
    """Times all questions."""
    connection = duckdb.connect(config={"threads": THREADS})
    connection.execute(f"CREATE VIEW {TABLE} AS FROM read_parquet('{sys.argv[1]}')")
    size = connection.execute(f"SELECT COUNT(*) FROM {TABLE}").fetchall()[0][0]
    dataset = described(size)

    def question(text: str) -> Question:
        def prepare() -> Callable[[], Rows]:
            private = dataset.relation(text).rewrite_with_differential_privacy(
                dataset,
                [(TABLE, [], "user_id")],
                {"epsilon": EPSILON, "delta": DELTA},
                max_multiplicity=ROWS_PER_USER,
                max_multiplicity_share=1.0,
            )
            sql = private.relation().to_query(pyqrlew.Dialect.PostgreSql)
            return lambda: connection.execute(sql).fetchall()

        return prepare

    report({name: question(text) for name, text in QUESTIONS.items()}, ("pyqrlew", "duckdb"))


if __name__ == "__main__":
    main()
