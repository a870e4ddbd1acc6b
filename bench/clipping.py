"""How often answers cover the raw truth: the interval of the noise, and the one that allows for clipping.

    python bench/clipping.py [--runs 3] [--people 40000] [--table NAME …] [--question NAME …] [--json]

Each table has another law of rows per person, and nothing in [contribution] is declared, so all limits are found: by a
question, or at `protect`. A person has a home ward and comes on any weekday; amounts are log-normal. The truth is plain
DuckDB's on the file. A line is one table, one question and one price: the cells inside `interval` and inside
`total_interval`, the width of the second in that of the first, and the share that clipping took, as estimated and in
truth. Then the best single limit that could be chosen with the truth in hand, for all of the price: the root mean
squared error of what is shown, in that limit's, and the mean width of total intervals, in that of |bias| + 1.96 σ. Runs
are of one table, each in a home of its own, with noise and limits of their own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from dalenius.curator import Curator

WARDS = tuple(f"w{number:02d}" for number in range(1, 25))
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
PRICES = (0.1, 0.3, 1.0)
AIM = 0.93  # of the cells, inside the total interval
SEED = 18
HEAVY = 0.31  # of all rows are those of heavy people, half of whom are at home in the first ward, where they favour one

POLICY = f"""
[table]
name = "stays"
source = "stays.parquet"
unit = "person"
[budget]
epsilon = 100
delta = 1e-6
accounting = "zcdp"
[analysts.ana]
epsilon = 100
[columns.ward]
type = "category"
keys = {list(WARDS)}
[columns.weekday]
type = "category"
keys = {list(DAYS)}
[columns.code]
type = "category"
[columns.cost]
type = "number"
bounds = [0, 100000]
step = 1
""".replace("'", '"')

Random = np.random.Generator
Rows = Callable[[Random, int], Any]


def pareto(random: Random, people: int) -> Any:
    """Rows per person, of Pareto's law 1.3, at most 3,000."""
    return np.minimum(np.floor(random.random(people) ** (-1 / 1.3)), 3000).astype(int)


TABLES: Mapping[str, Rows] = {
    "pareto": pareto,
    "pareto favouring": pareto,
    "pareto mixed": pareto,
    "pareto mixed favouring": pareto,
    "lognormal": lambda random, n: np.minimum(np.ceil(np.exp(random.normal(1.5, 1.3, n))), 2000).astype(int),
    "poisson": lambda random, n: np.maximum(random.poisson(8, n), 1),
    "daily": lambda random, n: np.full(n, 30),  # noqa: ARG005 nothing of it is by chance
    "geometric": lambda random, n: random.geometric(0.1, n),
}

QUESTIONS: Mapping[str, str] = {
    "weekday × ward": "SELECT weekday, ward, COUNT(*) AS n FROM stays GROUP BY weekday, ward",
    "ward": "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward",
    "condition": "SELECT weekday, COUNT(*) AS n FROM stays WHERE ward = 'w02' GROUP BY weekday",
    "sum": "SELECT weekday, ward, SUM(cost) AS n FROM stays GROUP BY weekday, ward",
    "all": "SELECT COUNT(*) AS n FROM stays",
    "found keys": "SELECT code, COUNT(*) AS n FROM stays GROUP BY code",
}


def make_table(name: str, people: int, folder: Path) -> Path:
    """Writes `stays.parquet` and its policy."""
    random = np.random.default_rng([SEED, *name.encode()])
    rows = TABLES[name](random, people)
    chances = random.gamma(4, size=len(WARDS))
    home = random.choice(len(WARDS), people, p=chances / chances.sum())
    if name.endswith("favouring"):
        order = np.sort(rows)[::-1]
        heavy = rows >= order[np.searchsorted(np.cumsum(order), HEAVY * rows.sum())]
        home = np.where(heavy & (random.random(people) < 0.5), 0, home)
    person = np.repeat(np.arange(people), rows)
    ward = home[person]
    if "mixed" in name:  # each row is in any ward; of heavy people's, half in the first
        ward = random.choice(len(WARDS), len(person), p=chances / chances.sum())
        if name.endswith("favouring"):
            ward = np.where(heavy[person] & (random.random(len(person)) < 0.5), 0, ward)
    day = np.arange(len(person)) % 30 if name == "daily" else random.integers(0, len(DAYS), len(person))
    stays = {
        "person": person,
        "ward": np.array(WARDS)[ward],
        "weekday": np.array(DAYS)[day % len(DAYS)],
        "code": np.char.add("c", (random.zipf(1.4, len(person)) % 300).astype(str)),
        "cost": np.minimum(np.round(np.exp(random.normal(5, 1, len(person)))), 100000.0),
    }
    pq.write_table(pa.table(stays), folder / "stays.parquet")
    (folder / "stays.toml").write_text(POLICY)
    return folder / "stays.toml"


@dataclass(frozen=True)
class Best:
    """The best single limit with the truth in hand, its root mean squared error, and its mean width."""

    limit: float
    error: float
    width: float


# What one person adds to each cell, for questions whose cells are all public.
VECTORS = {
    "weekday × ward": "SELECT person, weekday || ward AS cell, COUNT(*) AS w FROM stays GROUP BY ALL",
    "ward": "SELECT person, ward AS cell, COUNT(*) AS w FROM stays GROUP BY ALL",
    "sum": "SELECT person, weekday || ward AS cell, SUM(cost) AS w FROM stays GROUP BY ALL",
}


def best_limit(plain: duckdb.DuckDBPyConnection, question: str, rho: float) -> Best:
    """Each person's vector is scaled to at most the limit, and the noise is made for it."""
    found = plain.execute(f"SELECT person, dense_rank() OVER (ORDER BY cell) - 1 AS at, w FROM ({VECTORS[question]})")
    person, at, w = (np.asarray(each) for each in found.fetchnumpy().values())
    length = np.sqrt(np.bincount(person, w.astype(float) ** 2))[person]
    truth, tries = np.bincount(at, w.astype(float)), []
    for limit in np.unique(np.quantile(length, 1 - np.geomspace(1e-5, 0.9, 80))):
        off = truth - np.bincount(at, w * np.minimum(1.0, limit / length))
        deviation = limit / (2 * rho) ** 0.5
        tries.append(
            Best(
                float(limit),
                float(np.sqrt((off**2).mean() + deviation**2)),
                float(2 * (off.mean() + 1.96 * deviation)),
            )
        )
    by_error, by_width = min(tries, key=lambda each: each.error), min(tries, key=lambda each: each.width)
    return Best(round(by_error.limit, 1), round(by_error.error, 1), round(by_width.width, 1))


@dataclass
class Line:
    """What the runs gave for one table, question and price."""

    table: str
    question: str
    epsilon: float
    inside: list[float] = field(default_factory=list)  # of the cells, for each run
    within_total: list[float] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    estimated: list[float] = field(default_factory=list)
    clipped: list[float] = field(default_factory=list)
    unknown: int = 0  # runs that say nothing of clipping
    squares: list[float] = field(default_factory=list)  # mean squared error of each run
    widths: list[float] = field(default_factory=list)  # mean width of total intervals
    best: Best | None = None

    @property
    def verdict(self) -> str:
        """Whether enough cells are inside, over all runs."""
        return "unknown" if not self.width else "pass" if statistics.fmean(self.within_total) >= AIM else "miss"

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        found = {name: getattr(self, name) for name in ("table", "question", "epsilon", "unknown", "verdict")}
        lists = ("inside", "within_total", "width", "estimated", "clipped")
        found |= {name: _mean(getattr(self, name)) for name in lists}
        if self.best is None:
            return found
        error, width = statistics.fmean(self.squares) ** 0.5, _mean(self.widths)
        found |= {"rmse": round(error, 1), "best": self.best.__dict__, "error_ratio": round(error / self.best.error, 3)}
        return found | {"width_ratio": None if width is None else round(width / self.best.width, 3)}

    def add(self, release: Any, truth: Mapping[tuple[Any, ...], float]) -> None:
        """One run."""
        keys = [tuple(row[:-1]) for row in release.rows]
        true, noise, total = (
            [each[-1] for each in part] for part in (release.rows, release.interval, release.total_interval)
        )
        raw = [float(truth.get(key, 0.0)) for key in keys]
        self.squares.append(statistics.fmean((a - b) ** 2 for a, b in zip(true, raw, strict=True)) if raw else 0.0)
        if release.clipping[-1] is not None:
            self.widths.append(statistics.fmean(b - a for a, b in total))
        self.inside.append(_covered(raw, noise))
        self.clipped.append(1 - sum(true) / max(sum(raw), 1.0))
        if release.clipping[-1] is None:
            self.unknown += 1
            return
        self.within_total.append(_covered(raw, total))
        self.estimated.append(release.clipping[-1])
        self.width.append(sum(b - a for a, b in total) / max(sum(b - a for a, b in noise), 1e-9))


def _covered(raw: Sequence[float], intervals: Sequence[tuple[float, float]]) -> float:
    return (
        statistics.fmean(low <= each <= high for each, (low, high) in zip(raw, intervals, strict=True)) if raw else 1.0
    )


def _mean(values: Sequence[float]) -> float | None:
    return round(statistics.fmean(values), 4) if values else None


def measure(name: str, questions: Sequence[str], people: int, runs: int) -> Iterator[Line]:
    """All lines of one table."""
    with tempfile.TemporaryDirectory() as at:
        policy = make_table(name, people, Path(at))
        plain = duckdb.connect()
        plain.read_parquet(str(Path(at) / "stays.parquet")).create_view("stays")
        truths = {
            each: {tuple(row[:-1]): row[-1] for row in plain.execute(QUESTIONS[each]).fetchall()} for each in questions
        }
        lines = {(each, epsilon): Line(name, each, epsilon) for each in questions for epsilon in PRICES}
        for run in range(runs):
            curator = Curator(home=Path(at) / f"home-{run}")
            curator.protect(policy)
            for epsilon in PRICES:  # rising, so that each is measured anew
                for each in questions:
                    delta = 1e-8 if each == "found keys" else None
                    release = curator.analyst("ana").ask(QUESTIONS[each], epsilon=epsilon, delta=delta)
                    line = lines[each, epsilon]
                    line.add(release, truths[each])
                    if each in VECTORS and line.best is None:
                        line.best = best_limit(plain, each, release.charge["rho"])
            curator.engines.close()
        yield from lines.values()


HEADS = (
    "table",
    "question",
    "ε",
    "inside ±",
    "inside total",
    "width",
    "estimated",
    "clipped",
    "error/best",
    "width/best",
    "",
)


def shown(lines: Sequence[Line], title: str) -> Table:
    """For people."""
    table = Table(title=title, title_justify="left")
    for name in HEADS:
        table.add_column(name, justify="left" if name in {"table", "question", ""} else "right")
    for line in lines:
        found = line.to_dict()
        numbers = ["–" if found[name] is None else f"{found[name]:.1%}" for name in ("inside", "within_total")]
        width = "–" if found["width"] is None else f"{found['width']:.2f}"
        shares = ["–" if found[name] is None else f"{found[name]:.1%}" for name in ("estimated", "clipped")]
        ratios = ["–" if found.get(name) is None else f"{found[name]:.2f}" for name in ("error_ratio", "width_ratio")]
        table.add_row(line.table, line.question, f"{line.epsilon:g}", *numbers, width, *shares, *ratios, line.verdict)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--people", type=int, default=40_000)
    parser.add_argument("--table", action="append", choices=list(TABLES))
    parser.add_argument("--question", action="append", choices=list(QUESTIONS))
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    options = parser.parse_args()
    questions = options.question or list(QUESTIONS)
    lines = [
        line for name in options.table or TABLES for line in measure(name, questions, options.people, options.runs)
    ]
    if options.json:
        print(
            json.dumps(
                {"people": options.people, "runs": options.runs, "lines": [each.to_dict() for each in lines]}, indent=2
            )
        )
    else:
        title = f"{options.people:,} people, {options.runs} runs; cells that cover the raw truth"
        Console(width=None if sys.stdout.isatty() else 140).print(shown(lines, title))
    return 0 if all(line.verdict != "miss" for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
