"""smartnoise-sql under attack.

    python bench/peers/attack_smartnoise.py H1

Asked both ways: by its reader for Postgres on a DuckDB connection (as in `smartnoise.py`), which fails where Postgres
would, and by its own reader for data frames, which runs on SQLite. What falls on either has fallen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.peers import attacking
from bench.peers.attacking import DRAWS, PLAIN, ROWS, SPECIAL, Finding, attempt, faulting, report
from bench.peers.attacking_noise import forked, precision, timing
from bench.peers.smartnoise import Connection

snsql: Any = import_module("snsql")
pd: Any = import_module("pandas")
mechanisms: Any = import_module("snsql.sql._mechanisms.laplace")
COLUMNS = ("id", "cell", "name", "s", "x")
ENGINES = ("DuckDB", "SQLite")
DELTA = 1e-6
SUM = "SELECT SUM(x) AS n FROM main.t"
METADATA: dict[str, Any] = {
    "max_ids": 1,
    "sample_max_ids": False,
    "row_privacy": False,
    "censor_dims": False,
    "clamp_counts": False,
    "id": {"type": "int", "private_id": True},
    "cell": {"type": "int"},
    "name": {"type": "string"},
    "s": {"type": "string"},
    "x": {"type": "float", "lower": 0.0, "upper": 1.0},
}


def table(*more: tuple[Any, ...]) -> Any:
    """The plain table and some rows."""
    return pd.DataFrame([*((unit, 0, "a", "1", 0.5) for unit in range(ROWS)), *more], columns=COLUMNS)


def reader(rows: Any, epsilon: Any = 1.0, delta: float = DELTA, engine: str = ENGINES[0]) -> Any:
    """A session."""
    privacy, metadata = snsql.Privacy(epsilon=epsilon, delta=delta), {"": {"main": {"t": METADATA}}}
    if engine == "SQLite":
        return snsql.from_df(rows, privacy=privacy, metadata=metadata)
    plain = duckdb.connect()
    plain.register("frame", rows)
    plain.execute("CREATE TABLE t AS FROM frame")
    return snsql.from_connection(Connection(plain), privacy=privacy, metadata=metadata, engine="postgres")


def number(session: Any, question: str = SUM) -> float:
    """A question with one number."""
    return float(session.execute(question)[1][0])


def each_alone(value: float) -> list[float]:
    """As many releases of one row as there are groups."""
    rows = pd.DataFrame([(unit, unit, "a", "1", value) for unit in range(DRAWS)], columns=COLUMNS)
    session = reader(rows)
    return [float(n) for _, n in session.execute("SELECT cell, SUM(x) AS n FROM main.t GROUP BY cell")[1:]]


VICTIM = (ROWS, 0, "victim", "x", 0.5)


def data_errors() -> Finding:
    """H6."""
    tables = {victim: table(*([VICTIM] if victim else [])) for victim in (False, True)}

    def error(question: str, victim: bool, engine: str) -> str:
        return attempt(lambda: number(reader(tables[victim], engine=engine), question))[1]

    def status(question: str, victim: bool) -> str:
        errors = {engine: error(question, victim, engine) for engine in ENGINES}
        return ", ".join(f"{name} on {engine}" for engine, name in errors.items() if name)

    return attacking.data_errors(faulting("main.t"), status)


def free_failures() -> Finding:
    """H7: what its odometer says after a question that failed in the engine."""
    rows = table(VICTIM)

    def tried(question: str, engine: str) -> tuple[str, float]:
        session = reader(rows, engine=engine)
        error = attempt(lambda: number(session, question))[1]
        return ("" if error == "ValueError" else error), float(session.odometer.spent[0])  # its own refusals come first

    tries = {
        f"{question} on {engine}": partial(tried, question, engine)
        for question in faulting("main.t")
        for engine in ENGINES
    }
    return attacking.failures(tries, 1.0)


def special_values() -> Finding:
    """H8, at an ε that leaves hardly any noise."""

    def asked(value: str, aggregate: str, engine: str) -> float:
        rows = table(*([] if value == PLAIN else [(ROWS, 0, "a", "1", SPECIAL[value])]))
        return number(reader(rows, 1e6, engine=engine), f"SELECT {aggregate}(x) AS n FROM main.t")

    return attacking.worst({name: attacking.special_values(partial(asked, engine=name)) for name in ENGINES})


def fresh_budget() -> Finding:
    """H16: its odometer counts and refuses nothing, so an answer after the whole ε is spent is one too many."""
    rows = table()
    session = reader(rows)

    def asked(one: Any) -> bool:
        return not attempt(lambda: number(one))[1]

    tricks = {
        "a new session": lambda: asked(reader(rows)),
        "a copy of the table": lambda: asked(reader(rows.copy())),
        "another reader": lambda: asked(reader(rows, engine="SQLite")),
    }
    return attacking.fresh_budget(lambda: asked(session), lambda: asked(session), tricks)


def sampler() -> Callable[[], float]:
    """What a reader adds noise to sums with; a whole question would take a thousand times as long."""
    laplace = mechanisms.Laplace(1.0, lower=0.0, upper=1.0, max_contrib=1)
    return lambda: float(laplace.release([0.0])[0])


def drawn() -> list[float]:
    """For H17: from the sampler and from a reader."""
    draw = sampler()
    return [*(draw() for _ in range(20)), number(reader(table(), engine="SQLite"))]


if __name__ == "__main__":
    plain_rows = table()
    report(
        {
            "H1": lambda: precision({"SUM": each_alone}),
            "H3": lambda: timing({"Laplace": sampler()}),
            "H6": data_errors,
            "H7": free_failures,
            "H8": special_values,
            "H12": lambda: attacking.bad_epsilon(lambda epsilon: number(reader(plain_rows, epsilon))),
            "H13": lambda: attacking.bad_delta(lambda delta: number(reader(plain_rows, 1.0, delta))),
            "H16": fresh_budget,
            "H17": lambda: forked(drawn),
        },
        ("smartnoise-sql", "opendp", "duckdb"),
    )
