"""How fast this machine is, on rows that are nobody's."""

from __future__ import annotations

import time

from dalenius.measuring.engines.duckdb.locked import locked

_SQL = "SELECT count(*), sum(hash(i) % 1000), max(i % 77) FROM range(2000000) AS t(i)"
_RUNS = 9


def seconds() -> float:
    """The least time of one aggregate over two million made-up rows: others who work meanwhile only make it longer."""
    connection = locked(())
    taken = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        connection.execute(_SQL).fetchall()
        taken.append(time.perf_counter() - start)
    connection.close()
    return min(taken)
