"""TPC-H under a curator: which of its 22 queries are answered, how exactly at ε = 1, and how fast beside plain DuckDB.

    python bench/tpch.py [--scale 0.1] [--runs 5] [--only 1 5 6] [--json]

The unit is the customer; orders and items belong to the customer who placed them, everything else is public
(`bench/shop`). An error is relative to DuckDB's answer on the same files: the median over all numbers of all rows and
over all runs. A number that is missing in the answer counts as 100% off. Every run asks for a little more ε than the
one before, since anything else would be a stored answer. Times are medians, on two threads; the ratio is one of CPU
time, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import duckdb
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.ask import two_cores
from bench.population import CACHE
from bench.shop.questions import KEYS, LIMITED, OUTCOMES, QUESTIONS
from bench.shop.tables import TABLES, Shop, shop

from dalenius.analyst import Analyst
from dalenius.curator import Curator
from dalenius.errors import DaleniusError

THREADS = 2
EPSILON, MORE = 1.0, 0.001
Rows = Sequence[Sequence[Any]]


@dataclass
class Result:
    """What came of one query."""

    query: int
    outcome: str  # answered, public or refused
    seconds: float
    cpu: float
    plain_seconds: float
    plain_cpu: float
    error: float | None = None
    worst: float | None = None  # run
    cells: int = 0
    why: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.outcome == "refused" else self.cpu / self.plain_cpu


def plain(made: Shop) -> duckdb.DuckDBPyConnection:
    """DuckDB on the same files, with nothing between."""
    found = duckdb.connect(config={"threads": THREADS})
    for name in TABLES:
        found.read_parquet(str(made.data(name))).create_view(name)
    return found


class Clock:
    """Wall and CPU time of what is done within, also by processes that it starts and waits for."""

    def __enter__(self) -> Self:
        self._started = time.perf_counter(), _cpu()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds, self.cpu = time.perf_counter() - self._started[0], _cpu() - self._started[1]


def _cpu() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def measured(query: int, analyst: Analyst, raw: duckdb.DuckDBPyConnection, runs: int) -> Result:
    """One query: asked some times, and compared."""
    text, own, beside = QUESTIONS[query], [], []
    errors: list[list[float]] = []
    for _ in range(runs):
        with Clock() as clock:
            raw.execute(text).fetchall()
        beside.append(clock)
    truth = raw.execute(text.replace(f"limit {LIMITED[query]}", "") if query in LIMITED else text).fetchall()
    outcome, why = "answered" if query in KEYS else "public", ""
    for run in range(runs):
        try:
            with Clock() as clock:
                release = analyst.ask(text, epsilon=EPSILON + MORE * run)
        except DaleniusError as error:
            outcome, why = "refused", error.message
        own.append(clock)
        if outcome == "answered":
            errors.append(list(off(release.rows, truth, KEYS[query], limited=query in LIMITED)))
    found = Result(query, outcome, *_medians(own), *_medians(beside))
    found.why = why
    if errors:
        found.error = statistics.median(each for run in errors for each in run)
        found.worst = max(map(statistics.median, errors))
        found.cells = len(errors[0])
    return found


def _medians(clocks: Sequence[Clock]) -> tuple[float, float]:
    return statistics.median(each.seconds for each in clocks), statistics.median(each.cpu for each in clocks)


def off(answer: Rows, truth: Rows, keys: int, *, limited: bool = False) -> Iterable[float]:
    """How far every number of an answer is off, relative to the truth; ``keys`` columns say which row it is.

    Where LIMIT cuts the answer off, only its own rows count.
    """
    held = {tuple(map(_plain, row[:keys])): row[keys:] for row in answer}
    for row in truth:
        own = held.get(tuple(map(_plain, row[:keys])))
        if own is None and limited:
            continue
        for at, true in enumerate(row[keys:]):
            said = None if own is None else own[at]
            if true is not None and true != 0:
                yield 1.0 if said is None else abs(float(said) - float(true)) / abs(float(true))


def _plain(key: Any) -> Any:
    return float(key) if isinstance(key, int) else key


def table(results: Sequence[Result], scale: float) -> Table:
    """For people."""
    shown = Table(title=f"TPC-H at scale {scale:g}, ε = {EPSILON:g}", title_justify="left")
    for name in ("query", "outcome", "median error", "worst run", "numbers", "seconds", "DuckDB", "CPU ratio", ""):
        shown.add_column(name, justify="left" if name in {"outcome", ""} else "right")
    for each in results:
        shown.add_row(
            f"Q{each.query}",
            each.outcome + ("" if each.outcome == OUTCOMES[each.query] else f", expected {OUTCOMES[each.query]}"),
            _percent(each.error),
            _percent(each.worst),
            str(each.cells) if each.cells else "",
            f"{each.seconds:.3f}",
            f"{each.plain_seconds:.3f}",
            "" if each.ratio is None else f"{each.ratio:.1f}",
            each.why,
        )
    return shown


def _percent(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:.1%}" if value < 10 else f"{value:.0%}"


def report(results: Sequence[Result], scale: float, protecting: float) -> Mapping[str, Any]:
    """For machines."""
    return {
        "scale": scale,
        "epsilon": EPSILON,
        "protect_seconds": protecting,
        "versions": {"python": platform.python_version(), "duckdb": duckdb.__version__},
        "queries": [{**asdict(each), "ratio": each.ratio} for each in results],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", type=int, nargs="+", default=list(QUESTIONS), metavar="QUERY")
    parser.add_argument("--data", type=Path, default=CACHE, help="folder in which the generated tables are kept")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    options = parser.parse_args()
    made = shop(options.data / f"tpch-{options.scale:g}", options.scale)
    console = Console(stderr=options.json, width=None if sys.stdout.isatty() else 200)
    with tempfile.TemporaryDirectory() as name, two_cores():
        curator = Curator(home=Path(name) / "home")
        started = time.perf_counter()
        curator.protect(*made.policies, yes=True)
        protecting = time.perf_counter() - started
        analyst, raw = curator.analyst("ana"), plain(made)
        results = [measured(query, analyst, raw, options.runs) for query in options.only]
    console.print(f"Python {platform.python_version()}, DuckDB {duckdb.__version__}, {THREADS} threads")
    console.print(table(results, options.scale), f"protect: {protecting:.1f} s", sep="\n")
    if options.json:
        print(json.dumps(report(results, options.scale, protecting), indent=2))
    return 0 if all(each.outcome == OUTCOMES[each.query] for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
