"""How a peer's questions are timed; runs inside the peer's own environment, so it needs nothing but Python.

Each question is a function that prepares it (parse, rewrite, calibrate: no data) and returns the function that runs it.
One round goes first to warm up; then the median of some more. Out comes one JSON object:
``{"versions": {...}, "answers": {question: {"seconds", "run_seconds", "rows"} or {"error"}}}``.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

ROUNDS = 2
EPSILON, DELTA, ROWS_PER_USER, THREADS = 1.0, 1e-6, 10, 2
REGIONS = tuple(f"r{number:02d}" for number in range(1, 17))
QUESTIONS = {
    "count": "SELECT COUNT(*) AS n FROM purchases",
    "sum": "SELECT SUM(amount) AS s FROM purchases",
    "region": "SELECT region, COUNT(*) AS n, AVG(amount) AS a FROM purchases GROUP BY region",
    "median": "SELECT MEDIAN(age) AS m FROM purchases",
    "product": "SELECT product, COUNT(*) AS n FROM purchases GROUP BY product",
}

Rows = Iterable[Sequence[Any]]
Question = Callable[[], Callable[[], Rows]]


def report(questions: Mapping[str, Question], packages: Sequence[str]) -> None:
    """Times every question and prints what came out."""
    answers = {}
    for name, question in questions.items():
        print(name, file=sys.stderr, flush=True)
        answers[name] = _answer(question)
    found = {"versions": {package: version(package) for package in packages}, "answers": answers}
    print(json.dumps(found, default=str))


def _answer(question: Question) -> dict[str, Any]:
    times, runs = [], []
    rows: Rows = ()
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        try:
            run = question()
            prepared = time.perf_counter()
            rows = run()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 (a panic of a Rust library is no Exception)
            return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
        ended = time.perf_counter()
        times.append(ended - started)
        runs.append(ended - prepared)
    return {
        "seconds": statistics.median(times[1:]),
        "run_seconds": statistics.median(runs[1:]),
        "rows": [list(row) for row in rows],
    }
