"""A large made-up table, and what it takes to make a synthetic one of it through the curator, in a process of its own.

A million rows of about 450,000 people, and thirty columns: twelve of keys, eight numbers, five whole numbers, three
dates and two truth values. A hidden class and an age decide about most of them; one value in fifty is absent. A person
has 2.2 rows on average; three count in full.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROWS, SEED = 1_000_000, 30
KEYS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 40, 100)  # how many keys each column of keys has
NUMBERS, INTEGERS, DATES, BOOLEANS = 8, 5, 3, 2
ABSENT = 0.02
DELTA = 1e-9
MOST = {"tree": (20.0, 4.0), "adaptive": (np.inf, 4.0)}  # CPU seconds, GiB

_POLICY = f"""
[table]
name = "large"
source = "large.parquet"
unit = "person"
[budget]
epsilon = 20.0
delta = {2 * DELTA}
[analysts.ana]
epsilon = 20.0
[contribution]
rows = 3
[time]
cap = 3600
"""


def policy() -> str:
    """What is declared."""
    parts = [_POLICY]
    for at, size in enumerate(KEYS):
        keys = ", ".join(f'"k{at}-{key:03d}"' for key in range(size))
        parts.append(f'[columns.key{at}]\ntype = "category"\nkeys = [{keys}]\n')
    parts += [f'[columns.number{at}]\ntype = "number"\nbounds = [0, 1000]\nstep = 0.01\n' for at in range(NUMBERS)]
    parts += [f'[columns.integer{at}]\ntype = "integer"\nbounds = [0, {40 * (at + 1)}]\n' for at in range(INTEGERS)]
    parts += [f'[columns.date{at}]\ntype = "date"\nbounds = ["2020-01-01", "2024-12-31"]\n' for at in range(DATES)]
    parts += [f'[columns.flag{at}]\ntype = "boolean"\n' for at in range(BOOLEANS)]
    return "\n".join(parts)


def write(folder: Path, rows: int = ROWS) -> Path:
    """The table and its policy; returns the policy's path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(SEED)
    people = np.repeat(np.arange(rows), rng.geometric(0.45, rows))[:rows]
    people = people[rng.permutation(rows)]
    hidden = rng.integers(0, 6, rows)
    age = np.clip(rng.gamma(6, 4, rows) + 3 * hidden, 0, 99)
    columns: dict[str, Any] = {"person": people}
    for at, size in enumerate(KEYS):
        law = np.cumsum(rng.dirichlet(np.full(size, 0.5), 18), axis=1)[hidden * 3 + (age // 34).astype(int)]
        drawn = np.minimum((rng.random((rows, 1)) > law).sum(axis=1), size - 1)
        columns[f"key{at}"] = np.char.add(f"k{at}-", np.char.zfill(np.arange(size).astype(str), 3))[drawn]
    for at in range(NUMBERS):
        columns[f"number{at}"] = np.round(rng.gamma(2 + hidden, 20 + age, rows), 2)
    for at in range(INTEGERS):
        columns[f"integer{at}"] = (age * 0.4 * (at + 1) + rng.integers(0, 8, rows)).astype(np.int64)
    for at in range(DATES):
        columns[f"date{at}"] = np.datetime64("2020-01-01", "D") + rng.integers(0, 1900 - 100 * hidden, rows)
    for at in range(BOOLEANS):
        columns[f"flag{at}"] = rng.random(rows) < age / (100 + 50 * at)
    masks = {name: rng.random(rows) < ABSENT for name in columns if name != "person"}
    table = pa.table({name: pa.array(each, mask=masks.get(name)) for name, each in columns.items()})
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "large.parquet")
    target = folder / "large.toml"
    target.write_text(policy())
    return target


def measured(folder: Path, method: str, epsilon: float) -> dict[str, Any]:
    """Charge, read, fit, store, draw as many rows and write them: CPU seconds, seconds by the clock, GiB at most.

    In a process of its own, in which nothing else has taken memory before.
    """
    from dalenius.curator import Curator

    with tempfile.TemporaryDirectory(dir=folder) as home:
        curator = Curator(Path(home) / "home")
        curator.protect(folder / "large.toml")
        ana = curator.analyst("ana")
        told = ana.preview_synthetic("large", epsilon=epsilon, method=method)
        cpu, clock = time.process_time(), time.monotonic()
        table = ana.synthesize("large", epsilon=epsilon, method=method)
        fitted = time.process_time() - cpu
        table.write(Path(home) / "rows.parquet")
        spent = {"seconds": time.process_time() - cpu, "fitted": fitted, "clock": time.monotonic() - clock}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in KiB
        most_seconds, most_gib = MOST.get(method, (np.inf, np.inf))
        return {
            "method": method,
            "rows": table.rows,
            "columns": len(table.columns),
            **spent,
            "gib": peak,
            "told_seconds": told.work,
            "told_gib": told.memory / 2**30,
            "held": spent["seconds"] <= most_seconds and peak <= most_gib,
        }


def in_a_process(methods: Sequence[str], rows: int = ROWS) -> list[dict[str, Any]]:
    """Of each method what it takes, each in a process of its own."""
    found = list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        child = [sys.executable, __file__, folder]
        subprocess.run([*child, "--rows", str(rows)], check=True)
        for method in methods:
            ran = subprocess.run([*child, "--method", method], check=True, capture_output=True, text=True)
            found.append(json.loads(ran.stdout))
    return found


def main() -> int:
    """As a child of the benchmark: writes the table, or measures one method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--method", default="")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    if options.method:
        print(json.dumps(measured(options.folder, options.method, options.epsilon)))
    else:
        write(options.folder, options.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
