"""CPU time of one question on a small table, beside that of the plain query, and where it goes.

1,000 rows, so that all of it is overhead; the connection is warm and no question is asked twice.
Target: at most 20 ms of CPU per question.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.analyst import Analyst
from dalenius.curator import Curator
from dalenius.measuring._exact import exact
from dalenius.queries.answering import Answer, measure_plan
from dalenius.queries.rules import plan_question
from dalenius.queries.rules.price import price_plan
from dalenius.releasing.opened import tables_of

ROWS, UNITS, ROUNDS, WARM_UP = 1_000, 200, 40, 5
EPSILON = 0.01
TARGET = 20.0  # ms
REGIONS = ("north", "south", "east", "west")
QUESTIONS = {
    "COUNT(*)": "SELECT COUNT(*) AS n FROM visits WHERE age < {0}.5",
    "AVG": "SELECT AVG(amount) AS a FROM visits WHERE age < {0}.5",
    "three, by region": "SELECT region, COUNT(*) AS n, SUM(amount) AS s, AVG(age) AS a FROM visits "
    "WHERE age < {0}.5 GROUP BY region",
}
POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 1000
delta = 1e-6
[analysts.ana]
epsilon = 1000
[columns.age]
type = "integer"
bounds = [0, 400]
[columns.region]
type = "category"
keys = ["north", "south", "east", "west"]
[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.01
[contribution]
rows = 30
groups = 3
totals = { amount = 20000 }
"""


def main() -> None:
    """Takes turns between the whole, its parts and the plain query."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        curator = Curator(folder / "home")
        draw = random.Random(1)
        rows = {
            "user_id": [draw.randrange(UNITS) for _ in range(ROWS)],
            "age": [draw.randrange(18, 99) for _ in range(ROWS)],
            "region": [draw.choice(REGIONS) for _ in range(ROWS)],
            "amount": [draw.random() * 4000 for _ in range(ROWS)],
        }
        pq.write_table(pa.table(rows), folder / "visits.parquet")
        (folder / "visits.toml").write_text(POLICY)
        curator.protect(folder / "visits.toml")
        plain = duckdb.connect()
        plain.execute(f"CREATE VIEW visits AS FROM read_parquet('{folder / 'visits.parquet'}')")
        print(f"{'CPU ms per question':<20} {'ask':>7} {'plan':>7} {'engine':>7} {'noise':>7} {'ledger':>7}", end="")
        print(f" {'plain':>7} {'ask/plain':>10}")
        worst = 0.0
        for case, text in QUESTIONS.items():
            found = timed(curator.analyst("ana"), plain, text)
            worst = max(worst, found["ask"])
            cells = " ".join(f"{found[part]:7.2f}" for part in ("ask", "plan", "engine", "noise", "ledger", "plain"))
            print(f"{case:<20} {cells} {found['ask'] / found['plain']:10.1f}")
        print(f"most: {worst:.1f} ms (target ≤ {TARGET:g})  {'ok' if worst <= TARGET else 'MISSED'}")


def timed(analyst: Analyst, plain: duckdb.DuckDBPyConnection, text: str) -> dict[str, float]:
    """Median CPU ms of each part. The ledger is what remains of the whole."""
    times: dict[str, list[float]] = {}

    def clock(part: str, run: Callable[[], object]) -> None:
        started = time.process_time()
        run()
        times.setdefault(part, []).append((time.process_time() - started) * 1e3)

    for turn in range(ROUNDS + WARM_UP):
        if turn == WARM_UP:
            times.clear()
        question, other = text.format(100 + 2 * turn), text.format(101 + 2 * turn)
        clock("ask", partial(analyst.ask, question, epsilon=EPSILON))
        clock("plain", partial(plainly, plain, question))
        parts(analyst, other, clock)
    found = {part: statistics.median(each) for part, each in times.items()}
    found["noise"] -= found["engine"]
    found["ledger"] = found["ask"] - sum(found[part] for part in ("plan", "engine", "noise"))
    return found


def plainly(plain: duckdb.DuckDBPyConnection, question: str) -> object:
    """The query as DuckDB alone answers it."""
    return plain.execute(question).fetchall()


def parts(analyst: Analyst, question: str, clock: Callable[[str, Callable[[], object]], None]) -> None:
    """The same path without the ledger. Noise is what pricing, drawing and estimating add to the exact integers."""
    asker = analyst._asker  # noqa: SLF001
    versions = asker.registry.current()
    tables = tables_of(asker, versions)
    clock("plan", lambda: plan_question(question, tables))
    plan = plan_question(question, tables)
    engine = asker.engines.of(versions["visits"].fingerprint)
    clock("engine", lambda: exact(plan, engine, "salt"))

    def noisy() -> None:
        content = measure_plan(plan, price_plan(plan, EPSILON), engine, "salt", 60.0)
        Answer.read(plan, content, 0.95).table()

    clock("noise", noisy)


if __name__ == "__main__":
    main()
