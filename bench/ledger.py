"""Durable charges per second, against a bare durable SQLite insert in the same run, and against a history of a million.

Targets: at least 0.5 of the bare insert; at 10⁶ entries at most 1.5 times the cost at 10³.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dalenius.accounting.events import Zcdp
from dalenius.ledger import Budget, Ledger, Request
from dalenius.ledger.chain import Head, canonical, link

ROUNDS, BLOCK, WARM_UP = 12, 25, 200
SMALL, LARGE = 1_000, 1_000_000


def bare(folder: Path) -> Callable[[], None]:
    """One row of the size of a charge, committed to disk."""
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, body TEXT)")

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (body) VALUES (?)", ("x" * 500,))
        connection.execute("COMMIT")

    return insert


def charging(ledger: Ledger) -> Callable[[], None]:
    """One charge, never the same question twice."""
    asked = 0

    def charge() -> None:
        nonlocal asked
        asked += 1
        ledger.charge(Request("students", "ana", f"question {asked}", 0.01, Zcdp(1e-6), question="SELECT 1"))

    return charge


def seeded(folder: Path, entries: int) -> Ledger:
    """A ledger with so many entries, written in one transaction as real charges would have written them."""
    ledger = Ledger.create(folder)
    ledger.set_budget("students", Budget(1e6, 1e-6))
    ledger.set_allotment("students", "ana", 1e6)
    charging(ledger)()
    with ledger.database.writing() as connection:
        number, hashed, body = connection.execute(
            "SELECT number, hash, body FROM entries ORDER BY number DESC LIMIT 1"
        ).fetchone()
        template, when = json.loads(body), "2026-01-01T00:00:00.000+00:00"
        rows, questions = [], []
        for extra in range(number + 1, entries + 1):
            text = canonical(template | {"key": f"seed {extra}"})
            hashed = link(ledger.keys.chain, hashed, extra, "charge", when, text)
            rows.append((extra, "charge", when, text, hashed))
            questions.append((extra, "students", f"seed {extra}", "ana", 0.01, 0.0, "claimed", "-", 0.0, 1, None))
        connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", rows)
        connection.executemany("INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", questions)
        charges = len(rows) + 1
        units = [int(each) * charges for each in template["units"]]
        connection.execute("UPDATE totals SET loss = ?, delta = ?, charges = ?", (*map(str, units), charges))
    ledger.anchor.advance(Head(entries, hashed))
    return ledger


def main() -> None:
    """Takes turns, so that a slow moment of the disk hits all three alike."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = {
            "bare insert": bare(folder),
            f"charge at {SMALL:,}": charging(seeded(folder / "small", SMALL)),
            f"charge at {LARGE:,}": charging(seeded(folder / "large", LARGE)),
        }
        for run in cases.values():  # first rows are slow on every side: files grow, pages are read
            for _ in range(WARM_UP):
                run()
        times: dict[str, list[float]] = {case: [] for case in cases}
        for _ in range(ROUNDS):
            for case, run in cases.items():
                started = time.perf_counter()
                for _ in range(BLOCK):
                    run()
                times[case].append((time.perf_counter() - started) / BLOCK)
        median = {case: statistics.median(each) for case, each in times.items()}
        for case, seconds in median.items():
            print(f"{case:<22} {seconds * 1e3:8.2f} ms  {1 / seconds:8.0f} /s")
        insert, small, large = median.values()
        print(f"charges per bare insert: {insert / small:.2f} (target ≥ 0.50)  {_verdict(insert / small >= 0.5)}")
        print(f"cost at 10⁶ / at 10³:    {large / small:.2f} (target ≤ 1.50)  {_verdict(large / small <= 1.5)}")


def _verdict(holds: bool) -> str:
    return "ok" if holds else "MISSED"


if __name__ == "__main__":
    main()
