"""pyqrlew under attack: it rewrites SQL, DuckDB runs what comes out, as in `qrlew.py`.

    python bench/peers/attack_qrlew.py H1

Noise is made by the rewritten SQL, from the engine's RANDOM(). There is no budget: the caller gets an event to keep.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.peers import attacking
from bench.peers.attacking import DRAWS, OUT, PLAIN, ROWS, SPECIAL, TOTAL, Finding, attempt, faulting, report
from bench.peers.attacking_noise import forked, precision, timing

pyqrlew: Any = import_module("pyqrlew")
sqlalchemy: Any = import_module("sqlalchemy")
COLUMNS = "id INTEGER, name TEXT, s TEXT, x {}"
SUM = "SELECT SUM(x) AS n FROM t"
DELTA = 1e-6
GROUPS = 100  # it takes no more than 128 values for public

Row = tuple[int, str, str, Any]
TABLE: list[Row] = [(unit, "a", "1", 0.5) for unit in range(ROWS)]
VICTIM: Row = (ROWS, "victim", "x", 0.5)


def described(rows: int = ROWS) -> Any:
    """The schema, and bounds of x; the size is what the owner says."""
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.StaticPool)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(f"CREATE TABLE t ({COLUMNS.format('FLOAT')})"))
    empty = pyqrlew.Dataset.from_database("shop", engine)
    schema, size = json.loads(empty.schema), json.loads(empty.size)
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
    return dataset.with_range(None, "t", "x", 0.0, 1.0)


def rewritten(question: str = SUM, epsilon: Any = 1.0, delta: Any = DELTA, dataset: Any = None) -> Any:
    """The question with noise in it, and its event."""
    dataset = described() if dataset is None else dataset
    return dataset.relation(question).rewrite_with_differential_privacy(
        dataset,
        [("t", [], "id")],
        {"epsilon": epsilon, "delta": delta},
        max_multiplicity=1,
        max_multiplicity_share=1.0,
    )


def sql(question: str = SUM, epsilon: Any = 1.0, delta: Any = DELTA, dataset: Any = None) -> str:
    """The same as SQL."""
    return str(rewritten(question, epsilon, delta, dataset).relation().to_query(pyqrlew.Dialect.PostgreSql))


def engine(rows: Iterable[Row]) -> duckdb.DuckDBPyConnection:
    """A database with these rows."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"CREATE TABLE t ({COLUMNS.format('DOUBLE')})")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", list(rows))
    return connection


def number(rows: Iterable[Row], question: str = SUM, epsilon: Any = 1.0, delta: Any = DELTA) -> float:
    """A question with one number."""
    return float(engine(rows).execute(sql(question, epsilon, delta)).fetchall()[0][0])


def prepared(rows: Iterable[Row], text: str) -> Callable[[], list[Any]]:
    """Runs one rewritten statement again and again: prepared, so that planning takes no time."""
    connection = engine(rows)
    connection.execute(f"PREPARE draw AS {text}")
    return lambda: connection.execute("EXECUTE draw").fetchall()


def sums() -> Callable[[], float]:
    """Releases of the sum of the plain table."""
    draw = prepared(TABLE, sql())
    return lambda: float(draw()[0][0])


def each_alone(value: float) -> list[float]:
    """As many releases of one row as there are groups, several times over."""
    names = [f"group {at}" for at in range(GROUPS)]
    dataset = described().with_possible_values(None, "t", "name", names)
    text = sql("SELECT name, SUM(x) AS n FROM t GROUP BY name", dataset=dataset)
    draw = prepared([(at, name, "1", value) for at, name in enumerate(names)], text)
    return [float(total) for _ in range(DRAWS // GROUPS) for _, total in draw()]


def data_errors() -> Finding:
    """H6."""

    def status(question: str, victim: bool) -> str:
        return attempt(lambda: number(TABLE + [VICTIM] * victim, question))[1]

    return attacking.data_errors(faulting("t"), status)


def free_failures() -> Finding:
    """H7: whether a failed question is charged is the caller's business; here it is shown that nothing is kept."""
    text = next(each for each in faulting("t") if attempt(lambda: sql(each))[0])  # noqa: B023 (called at once)
    event = attempt(lambda: rewritten(text).dp_event())[0]
    errors = [attempt(lambda: number([*TABLE, VICTIM], text))[1] for _ in range(3)]
    why = "no budget is kept: the event is handed out with the SQL, and who runs it has to charge it"
    return Finding(OUT, why, f"{sum(map(bool, errors))} of 3 failed, each time with the event {event}")


def special(value: str, aggregate: str) -> float:
    """One aggregate, at an ε that leaves little noise."""
    rows = TABLE + ([] if value == PLAIN else [(ROWS, "a", "1", SPECIAL[value])])
    return number(rows, f"SELECT {aggregate}(x) AS n FROM t", 1e3)


def fresh_budget() -> Finding:
    """H16."""

    def asked(rows: list[Row] = TABLE) -> bool:
        return not attempt(lambda: number(rows))[1]

    return attacking.fresh_budget(
        asked, asked, {"a new data set": asked, "a copy of the table": lambda: asked(list(TABLE))}
    )


def forks() -> Finding:
    """H17: the connection is opened before the fork, as in a server that forks its workers."""
    draw = sums()
    return forked(lambda: [draw() for _ in range(20)])


if __name__ == "__main__":
    report(
        {
            "H1": lambda: precision({"SUM": each_alone}),
            "H3": lambda: timing({"RANDOM() in SQL": sums()}, truth=TOTAL, whole=True),
            "H6": data_errors,
            "H7": free_failures,
            "H8": lambda: attacking.special_values(special),
            "H12": lambda: attacking.bad_epsilon(lambda epsilon: number(TABLE, SUM, epsilon)),
            "H13": lambda: attacking.bad_delta(lambda delta: number(TABLE, SUM, 1.0, delta)),
            "H16": fresh_budget,
            "H17": forks,
        },
        ("pyqrlew", "duckdb"),
    )
