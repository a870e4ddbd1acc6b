"""What attacks over HTTP share: tables behind a server, many clients at once, and what the disk says afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.attack.hostile import POLICY, people, protected

from dalenius.ledger import Ledger, verify

QUICK = "rate = 100000\nburst = 100000\nconcurrency = 100\nwait = 60"  # the limits are not what is tested
TIMED = POLICY + "\n[time]\nanswer = {answer}\n"


def behind(
    folder: Path,
    name: str = "visits",
    *,
    units: int = 120,
    answer: float = 1.0,
    analysts: Mapping[str, float] | None = None,
    epsilon: float = 3.0,
    accounting: str = "pure",
) -> Path:
    """Protects a table whose answers leave after ``answer`` seconds; returns the home."""
    policy = TIMED.replace("{answer}", str(answer))
    curator = protected(
        folder,
        people(victim=False, units=units, rows=4 * units),
        name=name,
        epsilon=epsilon,
        analysts=analysts,
        accounting=accounting,
        policy=policy,
    )
    curator.ledger.database.close()
    return curator.home


def at_once(number: int, work: Callable[[int], Any]) -> list[Any]:
    """Runs ``work(i)`` in so many threads that start together; results in order, an exception as itself."""
    results: list[Any] = [None] * number
    barrier = threading.Barrier(number, timeout=60)

    def run(place: int) -> None:
        barrier.wait()
        try:
            results[place] = work(place)
        except BaseException as error:  # noqa: BLE001 (the caller looks at it)
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def charges(home: Path, analyst: str = "", dataset: str = "visits") -> int:
    """Charges of a data set, or of an analyst in it, on disk, in a ledger that verifies."""
    ledger = Ledger.open(home)
    try:
        verify(ledger)
        return ledger.balance(dataset, analyst).charges
    finally:
        ledger.database.close()


def count(at: int, name: str = "visits") -> str:
    """A question for every number."""
    return f"SELECT COUNT(*) AS n FROM {name} WHERE amount > {at}"
