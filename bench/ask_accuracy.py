"""How far answers at ε = 1 are from the raw truth, on a million rows for which no limit was declared.

    python bench/ask_accuracy.py [--runs 50] [--rows 1000000] [--json]

Each run has a home of its own, so `protect` finds its limits anew. The error is against plain DuckDB on the file: it
holds the noise, what clipping cuts off, and keys that were not found. A line is the median of the runs.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.population import CACHE, Population, stored

from dalenius.curator import Curator
from dalenius.errors import DaleniusError

EPSILON = 1.0
KEY_DELTA = 5e-7  # all that the budget has for finding keys
LARGEST = 20

Rows = Sequence[Sequence[Any]]
Measure = Callable[[Rows, Rows], float]


def off(answer: Rows, truth: Rows) -> float:
    """Relative error of the one number."""
    return _relative(answer[0][-1], truth[0][-1])


def away(answer: Rows, truth: Rows) -> float:
    """Absolute error of the one number."""
    value = answer[0][-1]
    return math.inf if value is None else abs(float(value) - float(truth[0][-1]))


def groups_off(answer: Rows, truth: Rows, column: int = 1) -> float:
    """Mean relative error over all true groups; one that is missing is off by 100%."""
    found = {row[0]: row[column] for row in answer}
    return statistics.fmean(_relative(found.get(row[0], 0), row[column]) for row in truth)


def averages_off(answer: Rows, truth: Rows) -> float:
    """As `groups_off`, of the last column."""
    return groups_off(answer, truth, -1)


def largest_off(answer: Rows, truth: Rows) -> float:
    """Mean relative error of the groups that are truly largest."""
    return groups_off(answer, sorted(truth, key=lambda row: -row[1])[:LARGEST])


def found(answer: Rows, truth: Rows) -> float:
    """How many of the true groups were found."""
    return float(len({row[0] for row in answer} & {row[0] for row in truth}))


def _relative(value: Any, truth: Any) -> float:
    return math.inf if value is None else abs(float(value) / float(truth) - 1)


@dataclass(frozen=True)
class Aim:
    """A measure and what it should be."""

    name: str
    measure: Measure
    target: float
    unit: str = "%"
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value >= self.target if self.at_least else value <= self.target

    def shown(self, value: float) -> str:
        """A value with its unit."""
        return f"{value * 100:.2f}%" if self.unit == "%" else f"{value:g} {self.unit}"

    @property
    def wanted(self) -> str:
        """The target, as text."""
        return f"{'≥' if self.at_least else '≤'} {self.shown(self.target)}"


@dataclass(frozen=True)
class Line:
    """A question and what its answer should be like."""

    sql: str
    aims: tuple[Aim, ...]
    delta: float | None = None


LINES = (
    Line("SELECT COUNT(*) AS n FROM purchases", (Aim("COUNT(*)", off, 0.008),)),
    Line("SELECT SUM(amount) AS s FROM purchases", (Aim("SUM(amount)", off, 0.01),)),
    Line("SELECT AVG(amount) AS a FROM purchases", (Aim("AVG(amount)", off, 0.01),)),
    Line(
        "SELECT region, COUNT(*) AS n FROM purchases GROUP BY region",
        (Aim("COUNT by region, mean error", groups_off, 0.025),),
    ),
    Line("SELECT MEDIAN(age) AS m FROM purchases", (Aim("MEDIAN(age)", away, 1.0, "years"),)),
    Line(
        "SELECT product, COUNT(*) AS n FROM purchases GROUP BY product",
        (
            Aim("products found", found, 600, "keys", at_least=True),
            Aim(f"COUNT of the {LARGEST} largest products", largest_off, 0.06),
        ),
        KEY_DELTA,
    ),
    Line(
        "SELECT COUNT(*) AS n FROM purchases WHERE channel = 'kiosk'", (Aim("COUNT(*) of 2% of the rows", off, 0.06),)
    ),
)


def truths(data: Path, questions: Sequence[str]) -> list[Rows]:
    """What plain DuckDB says."""
    plain = duckdb.connect()
    plain.read_parquet(str(data)).create_view("purchases")
    return [plain.execute(question).fetchall() for question in questions]


@dataclass
class Found:
    """What the runs gave for one aim."""

    aim: Aim
    values: list[float]
    error: str = ""

    @property
    def median(self) -> float | None:
        """Of the runs; None if none was answered."""
        return statistics.median(self.values) if self.values else None

    @property
    def verdict(self) -> str:
        """Pass or miss; a question that was refused in any run is a miss."""
        middle = self.median
        return "pass" if middle is not None and not self.error and self.aim.met(middle) else "miss"

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        middle = self.median
        finite = middle is not None and math.isfinite(middle)
        return {
            "name": self.aim.name,
            "median": middle if finite else None,
            "worst": _finite((min if self.aim.at_least else max)(self.values)) if self.values else None,
            "runs": len(self.values),
            "target": self.aim.target,
            "at_least": self.aim.at_least,
            "unit": self.aim.unit,
            "error": self.error or None,
            "verdict": self.verdict,
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def one_run(made: Population, truth: Mapping[str, Rows], home: Path) -> Iterator[tuple[Aim, float | str]]:
    """Protects the table in a home of its own and asks everything once: a value per aim, or why there is none."""
    curator = Curator(home=home)
    curator.protect(made.policy)
    analyst = curator.analyst("ana")
    for line in LINES:
        try:
            answer: Rows | str = analyst.ask(line.sql, epsilon=EPSILON, delta=line.delta).rows
        except DaleniusError as error:
            answer = str(error)
        for aim in line.aims:
            yield aim, answer if isinstance(answer, str) else aim.measure(answer, truth[line.sql])
    curator.engines.close()


def measured(made: Population, runs: int, progress: Progress) -> list[Found]:
    """All runs, one after the other."""
    questions = [line.sql for line in LINES]
    truth = dict(zip(questions, truths(made.data, questions), strict=True))
    lines = {aim.name: Found(aim, []) for line in LINES for aim in line.aims}
    for run in progress.track(range(runs), description="runs"):
        with tempfile.TemporaryDirectory() as folder:
            for aim, value in one_run(made, truth, Path(folder) / f"home-{run}"):
                if isinstance(value, str):
                    lines[aim.name].error = value
                else:
                    lines[aim.name].values.append(value)
    return list(lines.values())


def table(lines: Sequence[Found], title: str) -> Table:
    """For people."""
    shown = Table(title=title, title_justify="left")
    for name in ("error", "median", "worst", "target", "runs", ""):
        shown.add_column(name, justify="left" if name in {"error", ""} else "right")
    for line in lines:
        worst = (min if line.aim.at_least else max)(line.values, default=math.nan)
        cells = ("-", "-") if line.median is None else (line.aim.shown(line.median), line.aim.shown(worst))
        said = line.verdict + (f": {line.error}" if line.error else "")
        shown.add_row(line.aim.name, *cells, line.aim.wanted, str(len(line.values)), said)
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=CACHE, help="folder in which the made-up tables are kept")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    options = parser.parse_args()
    with Progress(console=Console(stderr=True)) as progress:
        lines = measured(stored(options.rows, options.data), options.runs, progress)
    if options.json:
        found = {"rows": options.rows, "epsilon": EPSILON, "lines": [line.to_dict() for line in lines]}
        print(json.dumps(found, indent=2))
    else:
        title = f"{options.rows:,} rows, ε = {EPSILON:g}, {options.runs} runs; error against the raw truth"
        Console(width=None if sys.stdout.isatty() else 140).print(table(lines, title))
    return 0 if all(line.verdict == "pass" for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
