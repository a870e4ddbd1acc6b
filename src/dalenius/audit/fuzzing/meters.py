"""What a plan takes on one side: processor time, time, memory. The whole way of an answer, from the charge to bytes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.audit.fuzzing.engines import SALT, OnDisk, write_parquet
from dalenius.errors import EngineTimeoutError
from dalenius.measuring._exact import exact, exact_lengths
from dalenius.measuring.domains import in_order
from dalenius.measuring.engines.duckdb.backend import DuckDBPool
from dalenius.measuring.engines.duckdb.index import IndexFiles
from dalenius.measuring.engines.duckdb.indexing import build_index
from dalenius.measuring.limits.in_question import cut_plan, lower_clips, totals_plan
from dalenius.queries.answering import measure_plan
from dalenius.queries.rules.price import price_plan

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.measuring.plan import Plan, Table

EPSILON, DELTA = 1.0, 1e-9
SECONDS = 10.0  # what takes longer is stopped, and counts as so long
_CELLS = 1000  # keys that were found, at most, where all of them are taken
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds."""

    cpu: float
    wall: float

    def least(self, other: Spent) -> Spent:
        """The smaller of each."""
        return Spent(min(self.cpu, other.cpu), min(self.wall, other.wall))


class MeteredSide:
    """The files of one neighbour, in the engines that a curator would use, with their settings.

    Args:
        folder: Where its files lie.
        made: The tables.
        indexed: With a contribution index for these tables.
    """

    def __init__(self, folder: Path, made: Mapping[str, pa.Table], indexed: Mapping[str, Table]) -> None:
        folder.mkdir(parents=True)
        files = {name: write_parquet(table, folder / f"{name}.parquet") for name, table in made.items()}
        self._engines = DuckDBPool(storage=folder / "storage" if indexed else None)
        self.tables = OnDisk(files, self._engines)
        for name, each in indexed.items():
            (folder / "storage").mkdir(exist_ok=True)
            build_index(IndexFiles(folder / "storage", each, files[name]), DuckDBPool().of(files[name]))

    def run(self, plan: Plan) -> None:
        """Looks at the data, draws noise, and forgets all of it."""
        measure_plan(plan, price_plan(plan, EPSILON, DELTA), self.tables.of(plan.table), SALT, SECONDS)

    def look(self, plan: Plan) -> None:
        """The same without noise: the weights of keys, the lengths of units, and the integers of all keys.

        What may be measured again, to be scaled up, is.
        """
        engine, held = self.tables.of(plan.table), None
        if plan.selection is not None:
            held = engine.hold(plan, SALT, seconds=SECONDS)
            cells, _ = engine.weights(plan, SALT, seconds=SECONDS, held=held)
            plan = replace(plan, cells=in_order([*plan.cells, *cells[:_CELLS]]))
        if plan.searched:
            exact_lengths(plan, engine, SALT, seconds=SECONDS)
            if (totals := totals_plan(plan)) is not None:
                exact_lengths(totals, engine, SALT, seconds=SECONDS)
                for at in totals.searched:
                    exact(cut_plan(plan, at, plan.measures[at].clip), engine, SALT, seconds=SECONDS)
            clips = {at: plan.measures[at].clip for at in plan.searched}
            single = {plan.start(at) for at, each in enumerate(plan.statistics) if each.kind in {"rows", "sum"}}
            plan = lower_clips(plan, clips, {at: clip for at, clip in clips.items() if at in single})
        exact(plan, engine, SALT, seconds=SECONDS, held=held)

    def spent(self, plan: Plan, *, looks: bool = False) -> Spent:
        """The time of one run, which is stopped after some seconds: that long it took, at least.

        ``looks``: only what is done with rows. Noise takes its time as well, which no row decides (ATTACKS, H3).
        """
        cpu, wall = time.process_time(), time.perf_counter()
        with suppress(EngineTimeoutError):
            self.look(plan) if looks else self.run(plan)
        return Spent(time.process_time() - cpu, time.perf_counter() - wall)

    def close(self) -> None:
        """Lets go of its engines."""
        self._engines.close()


def peak(work: Callable[[], object]) -> int | None:
    """The bytes that some work adds to the memory of a process, at most; None where that cannot be seen.

    In a forked child, whose allocators have kept nothing of earlier questions: DuckDB's counters know its buffers, not
    its strings and hash tables, and nothing of ours.
    """
    if not _STATUS.exists():
        return None
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover (another process)
        code = 1
        try:
            before = _memory("VmRSS")
            with suppress(EngineTimeoutError):
                work()
            os.write(writing, str(_memory("VmHWM") - before).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as opened:
        found = opened.read()
    os.waitpid(child, 0)
    return int(found) if found else None


def _memory(name: str) -> int:
    line = next(each for each in _STATUS.read_text("ascii").splitlines() if each.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
