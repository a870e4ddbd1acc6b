"""Workloads: a dashboard against asking one by one, and all pairs of many columns.

    python bench/workloads.py [--columns 100] [--rows 1000000] [--json]

The dashboard has thirty questions about the visits table of the samples. Told is the total squared error of all its
numbers over that of asking one by one at the same ε, for rows and for sums, as `preview_many` reckons them; one third
is asked for. Then all pairs of so many columns of ten values: seconds to plan them, to measure them, and to read one
table back; and the memory of the whole process. Asked for are 120 s for the first two together, and 4 GiB.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.curator import Curator
from dalenius.queries.workloads.kind import plan_asked
from dalenius.queries.workloads.measuring import measure_workload
from dalenius.queries.workloads.pricing import price_workload
from dalenius.queries.workloads.request import WorkloadAsk
from dalenius.queries.workloads.showing import StoredWorkload
from dalenius.samples.visits import visits

VISITS = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 9.0
delta = 1e-6
[analysts.ana]
epsilon = 9.0
[columns.age]
type = "integer"
bounds = [18, 90]
[columns.region]
type = "category"
keys = ["north", "south", "east", "west"]
[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.01
[columns.when]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
"""
SECOND_HALF = "\"when\" >= DATE '2025-07-01'"
DASHBOARD = [
    *("SELECT COUNT(*) AS n FROM visits", "SELECT SUM(amount) AS s FROM visits", "SELECT AVG(amount) AS a FROM visits"),
    *(f"SELECT region, {each} FROM visits GROUP BY region" for each in ("COUNT(*)", "SUM(amount)", "AVG(amount)")),
    *(f"SELECT COUNT(*) FROM visits WHERE age < {each}" for each in (25, 30, 40, 50, 60)),
    *(f"SELECT COUNT(*) FROM visits WHERE amount > {each}" for each in (50, 100, 200)),
    *(f"SELECT SUM(amount) FROM visits WHERE age {each}" for each in ("< 30", ">= 50")),
    *(f"SELECT region, COUNT(*) FROM visits WHERE age {each} GROUP BY region" for each in ("< 30", ">= 50")),
    *(f"SELECT FLOOR(age / 10), {each} FROM visits GROUP BY 1" for each in ("COUNT(*)", "SUM(amount)")),
    "SELECT DATE_TRUNC('month', \"when\"), COUNT(*) FROM visits GROUP BY 1",
    "SELECT COUNT(*) FROM visits WHERE age BETWEEN 30 AND 49",
    "SELECT region, COUNT(*) FROM visits WHERE amount > 100 GROUP BY region",
    "SELECT COUNT(*) FILTER (WHERE amount > 100) AS large, COUNT(*) AS n FROM visits",
    f"SELECT COUNT(*) FROM visits WHERE {SECOND_HALF}",
    f"SELECT region, COUNT(*) FROM visits WHERE {SECOND_HALF} GROUP BY region",
    "SELECT COUNT(*) FROM visits WHERE region = 'north' AND age < 30",
    "SELECT COUNT(*) FROM visits WHERE region IN ('north', 'south')",
    "SELECT SUM(amount) FROM visits WHERE region = 'west'",
    "SELECT region, COUNT(*) FILTER (WHERE age < 40) AS young, COUNT(*) AS n FROM visits GROUP BY region",
]


def protected(folder: Path, name: str, table: pa.Table, policy: str) -> Curator:
    """A table, protected under a home of its own."""
    place = folder / name
    place.mkdir()
    pq.write_table(table, place / f"{name}.parquet")
    (place / f"{name}.toml").write_text(policy)
    curator = Curator(place / "home")
    curator.protect(place / f"{name}.toml")
    return curator


def dashboard(folder: Path) -> dict[str, Any]:
    """How much less the total squared error of the dashboard is."""
    made = visits()
    names = ("user_id", "age", "region", "amount", "when")
    table = pa.table({name: [getattr(each, name) for each in made] for name in names})
    ana = protected(folder, "visits", table, VISITS).analyst("ana")
    start = time.process_time()
    found = ana.preview_many(DASHBOARD, epsilon=1.0).expected
    return {
        "questions": len(DASHBOARD),
        "preview_cpu_seconds": time.process_time() - start,
        "strategy": found.strategy,
        "ratios": {each.of: each.squared_error / each.one_by_one for each in found.parts},
    }


def pairs(folder: Path, columns: int, rows: int) -> dict[str, Any]:
    """All pairs of many columns."""
    chance = np.random.default_rng(1)
    values = pa.array([f"v{each}" for each in range(10)])
    made: dict[str, Any] = {"person": pa.array(np.arange(rows) // 2)}
    for at in range(columns):
        codes = pa.array(chance.integers(0, 10, rows).astype(np.int8))
        made[f"a{at}"] = pa.DictionaryArray.from_arrays(codes, values).cast(pa.string())
    policy = '[table]\nname = "wide"\nsource = "wide.parquet"\nunit = "person"\n[budget]\nepsilon = 9.0\ndelta = 1e-6\n'
    policy += "[analysts.ana]\nepsilon = 9.0\n[contribution]\nrows = 2\n"
    for at in range(columns):
        policy += f'[columns.a{at}]\ntype = "category"\nkeys = {json.dumps(values.to_pylist())}\ndefault = "v0"\n'
    asker = protected(folder, "wide", pa.table(made), policy).analyst("ana")._asker  # noqa: SLF001
    del made
    asked = [
        f"SELECT a{one}, a{other}, COUNT(*) AS n FROM wide GROUP BY 1, 2"
        for one, other in combinations(range(columns), 2)
    ]
    start, busy = time.monotonic(), time.process_time()
    workload = plan_asked(asker, WorkloadAsk.of({"questions": asked, "epsilon": 1.0})).plan
    planned = time.monotonic()
    content = measure_workload(workload, price_workload(workload, 1.0), asker, "salt", 600.0)
    measured, busy = time.monotonic(), time.process_time() - busy
    StoredWorkload.read(content).shown(workload.keys[0], workload.plans[0].plan, 0.95)
    return {
        "tables": len(asked),
        "rows": rows,
        "strategy": workload.parts[0].strategy.name,
        "measured_integers": workload.parts[0].strategy.rows,
        "plan_seconds": planned - start,
        "measure_seconds": measured - planned,
        "read_seconds": time.monotonic() - measured,
        "cpu_seconds": busy,  # of planning and measuring, on all cores: other work on the machine does not count
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Prints what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {"dashboard": dashboard(Path(folder)), "pairs": pairs(Path(folder), given.columns, given.rows)}
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for name, each in found.items():
        print(name)
        for key, value in each.items():
            print(f"  {key}: {value}")


if __name__ == "__main__":
    main()
