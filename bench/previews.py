"""Whether previews hold: the error that was previewed, beside the one that was shown, and beside the raw truth.

    python bench/previews.py [--people 20000] [--table NAME …] [--question NAME …] [--runs 1] [--accuracy] [--json]

Three tables that differ in how many rows people have: many have few and some have thousands (Pareto), all have some
(Poisson), each has one. Nothing in [contribution] is declared. Twenty questions are asked of each, first at ε = 0.1,
then at 0.3 and at 1, and previewed before each: the first time from public facts alone, then with the analyst's own
answers. A line is one question at one price: noise and total error as previewed and as shown, both the median over
groups, and which part of the groups lies as near to the raw truth (plain DuckDB on the file) as was previewed. With
several runs it is also told how steady the errors are that are shown: limits are found with noise, and differ.

With ``--accuracy``: questions that are priced by ``error="X%"``. Each is asked in homes of its own; told are the part
of the groups (of at least half the average size) that lies within X% of the raw truth, and the ε that was paid over the
least that would have done, which a search finds by asking at rising prices.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from dalenius.analyst import Analyst
from dalenius.curator import Curator
from dalenius.errors import DaleniusError

PRICES = (0.1, 0.3, 1.0)
WARDS = ("surgery", "heart", "children", "emergency", "eyes", "skin", "bones")
NEAR, HOPEFUL = 1.25, 1.3  # a preview should be within the first, and never below the error by more than the second
SEED = 7
ASKS = 40  # at each price, for the least that would do

POLICY = f"""
[table]
name = "stays"
source = "stays.parquet"
unit = "person"
[budget]
epsilon = 5000
delta = 1e-6
[analysts.ana]
epsilon = 5000
[columns.ward]
type = "category"
keys = {list(WARDS)}
[columns.urgent]
type = "boolean"
[columns.code]
type = "category"
[columns.age]
type = "integer"
bounds = [0, 99]
[columns.day]
type = "date"
bounds = ["2024-01-01", "2025-12-31"]
[columns.cost]
type = "number"
bounds = [0, 100000]
step = 1
""".replace("'", '"')

Random = np.random.Generator

TABLES: Mapping[str, Callable[[Random, int], Any]] = {
    "pareto": lambda random, n: np.minimum(np.floor(random.random(n) ** (-1 / 1.3)), 3000).astype(int),
    "poisson": lambda random, n: np.maximum(random.poisson(8, n), 1),
    "one row": lambda random, n: np.ones(n, dtype=int),  # noqa: ARG005 nothing of it is by chance
}

QUESTIONS: Mapping[str, str] = {
    "count": "SELECT COUNT(*) AS n FROM stays",
    "count by ward": "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward",
    "count by month": "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM stays GROUP BY m",
    "count by ward, urgent": "SELECT ward, urgent, COUNT(*) AS n FROM stays GROUP BY ward, urgent",
    "count by month, ward": "SELECT DATE_TRUNC('month', day) AS m, ward, COUNT(*) AS n FROM stays GROUP BY m, ward",
    "count of one ward": "SELECT COUNT(*) AS n FROM stays WHERE ward = 'heart'",
    "count of old people": "SELECT COUNT(*) AS n FROM stays WHERE age >= 65",
    "count of costly by ward": "SELECT ward, COUNT(*) AS n FROM stays WHERE cost > 500 GROUP BY ward",
    "people": "SELECT COUNT(DISTINCT person) AS n FROM stays",
    "people by ward": "SELECT ward, COUNT(DISTINCT person) AS n FROM stays GROUP BY ward",
    "sum": "SELECT SUM(cost) AS n FROM stays",
    "sum by ward": "SELECT ward, SUM(cost) AS n FROM stays GROUP BY ward",
    "sum by month": "SELECT DATE_TRUNC('month', day) AS m, SUM(cost) AS n FROM stays GROUP BY m",
    "average": "SELECT AVG(cost) AS n FROM stays",
    "average by ward": "SELECT ward, AVG(cost) AS n FROM stays GROUP BY ward",
    "average age by ward": "SELECT ward, AVG(age) AS n FROM stays GROUP BY ward",
    "median": "SELECT MEDIAN(cost) AS n FROM stays",
    "median age by ward": "SELECT ward, MEDIAN(age) AS n FROM stays GROUP BY ward",
    "count by code": "SELECT code, COUNT(*) AS n FROM stays GROUP BY code",
    "deviation": "SELECT STDDEV(cost) AS n FROM stays",
}
ACCURACIES = {
    "count": ("2%", "0.5%"),
    "count by ward": ("5%", "2%"),
    "count by month": ("5%",),
    "count by ward, urgent": ("5%",),
    "people by ward": ("2%",),
    "sum by ward": ("5%",),
    "average": ("2%",),
    "average age by ward": ("5%",),
}


def make_table(name: str, people: int, folder: Path) -> Path:
    """Writes `stays.parquet` and its policy."""
    random = np.random.default_rng([SEED, *name.encode()])
    rows = TABLES[name](random, people)
    person = np.repeat(np.arange(people), rows)
    size = len(person)
    chances = np.array([0.26, 0.2, 0.15, 0.13, 0.11, 0.09, 0.06])
    home, away = random.choice(len(WARDS), people, p=chances), random.choice(len(WARDS), size, p=chances)
    stays = {
        "person": person,
        "ward": np.array(WARDS)[np.where(random.random(size) < 0.5, home[person], away)],
        "urgent": random.random(size) < 0.2,
        "code": np.char.add("c", (random.zipf(1.5, size) % 300).astype(str)),
        "age": np.clip(np.round(random.normal(52, 20, people)), 0, 99).astype(int)[person],
        "day": np.datetime64("2024-01-01") + random.integers(0, 731, size).astype("timedelta64[D]"),
        "cost": np.minimum(np.round(np.exp(random.normal(5, 1.1, size))), 100000.0),
    }
    pq.write_table(pa.table(stays), folder / "stays.parquet")
    (folder / "stays.toml").write_text(POLICY)
    return folder / "stays.toml"


def protected(policy: Path, home: Path) -> Analyst:
    """Somebody who may ask, in a home of its own."""
    curator = Curator(home)
    curator.protect(policy)
    return curator.analyst("ana")


def truth_of(folder: Path, sql: str) -> dict[tuple[Any, ...], float]:
    """What the raw rows give, by key."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW stays AS SELECT * FROM '{folder / 'stays.parquet'}'")
        rows = connection.execute(sql).fetchall()
    return {_key(key): float(value) for *key, value in rows}


def _key(cells: Sequence[Any]) -> tuple[str, ...]:
    """Keys as both write them: of dates, the day."""
    return tuple(str(each)[:10] for each in cells)


@dataclass
class Line:
    """One question at one price."""

    table: str
    question: str
    epsilon: float
    noise: float | None
    noise_shown: float | None
    total: float | None
    total_shown: float | None
    inside: float | None
    at_most: bool

    @property
    def ratio(self) -> float | None:
        """The error that was previewed over the one that was shown: with clipping where both tell it."""
        if self.total is not None and self.total_shown is not None:
            return self.total / self.total_shown
        return None if not self.noise or not self.noise_shown else self.noise / self.noise_shown

    @property
    def noise_ratio(self) -> float | None:
        """The same of the noise alone."""
        return None if not self.noise or not self.noise_shown else self.noise / self.noise_shown


def ask_all(table: str, folder: Path, home: Path, questions: Sequence[str]) -> Iterator[Line]:
    """Every question at every price, the cheapest first."""
    ana = protected(folder / "stays.toml", home)
    for name in questions:
        sql, truth = QUESTIONS[name], truth_of(folder, QUESTIONS[name])
        for epsilon in PRICES:
            (choice,) = (preview := ana.preview(sql, epsilon=epsilon)).choices
            at = preview.columns.index("n")
            release = ana.ask(sql, epsilon=epsilon)
            noise = [each for row in release.noise_error if (each := row[at]) is not None]
            shown = [(row[at], ends[at]) for row, ends in zip(release.rows, release.total_interval, strict=True)]
            totals = [max(value - ends[0], ends[1] - value) for value, ends in shown if ends and value is not None]
            expected = choice.noise_error[at] if choice.total_error[at] is None else choice.total_error[at]
            off = [abs(row[at] - truth.get(_key(row[:at]), 0.0)) for row in release.rows if row[at] is not None]
            yield Line(
                table,
                name,
                epsilon,
                choice.noise_error[at],
                statistics.median(noise) if noise else None,
                choice.total_error[at],
                float(statistics.median(totals)) if totals else None,
                statistics.fmean(each <= (expected or 0.0) for each in off) if off else None,
                choice.at_most[at],
            )


@dataclass
class Accuracy:
    """One question that was priced by per cent."""

    table: str
    question: str
    error: str
    epsilon: float | None
    met: float | None
    least: float | None
    refusals: int = 0
    refused: str = ""
    answered: int = 0

    @property
    def ratio(self) -> float | None:
        """What was paid over the least that would have done."""
        return None if self.epsilon is None or self.least is None else self.epsilon / self.least


def price_all(table: str, folder: Path, place: Path, runs: int, questions: Sequence[str]) -> Iterator[Accuracy]:
    """Every question at every accuracy, in ``runs`` homes."""
    policy = folder / "stays.toml"
    homes = [protected(policy, place / f"{table} {at}") for at in range(runs)]
    for name in questions:
        sql, truth = QUESTIONS[name], truth_of(folder, QUESTIONS[name])
        for error in ACCURACIES.get(name, ()):
            most, paid, met, refused = float(error.rstrip("%")) / 100, list[float](), list[bool](), ""
            for ana in homes:
                try:
                    release = ana.ask(sql, error=error)
                except DaleniusError as reason:
                    refused = reason.why
                    continue
                paid.append(release.guarantee["epsilon"])
                met += _within(release, truth, most).values()
            line = Accuracy(table, name, error, None, None, None, len(homes) - len(paid), refused)
            if paid:
                line.epsilon, line.met, line.answered = statistics.median(paid), statistics.fmean(met), len(paid)
                search = protected(policy, place / f"{table} {name} {error}")  # where nothing was asked before
                line.least = _least(search, sql, truth, most, line.epsilon)
            yield line


def _within(release: Any, truth: Mapping[tuple[Any, ...], float], most: float) -> dict[tuple[Any, ...], bool]:
    """Of the groups that are at least half as large as the average one, which lie near enough to the raw truth."""
    at, average = release.columns.index("n"), sum(truth.values()) / len(truth)
    shown = {_key(row[:at]): row[at] for row in release.rows}
    return {
        key: shown.get(key) is not None and abs(shown[key] - true) <= most * true
        for key, true in truth.items()
        if true >= average / 2
    }


def _least(ana: Analyst, sql: str, truth: Mapping[tuple[Any, ...], float], most: float, paid: float) -> float | None:
    """The least ε at which the smallest of those groups is near enough in 95% of asks, by asking at rising prices.

    Each price is asked at many times, a millionth above the time before: else the stored answer would be given.
    """
    average = sum(truth.values()) / len(truth)
    smallest = min((each for each in truth if truth[each] >= average / 2), key=lambda each: truth[each])
    epsilon = paid / 6
    while epsilon < 3 * paid:
        missed = 0
        for at in range(ASKS):
            release = ana.ask(sql, epsilon=epsilon * (1 + 1e-6 * (at + 1)))
            missed += not _within(release, truth, most)[smallest]
            if missed > 0.05 * ASKS:
                break
        else:
            return epsilon
        epsilon *= 1.12
    return None


# --- telling


def print_lines(console: Console, lines: Sequence[Line]) -> None:
    """One row for each, and what is aimed at."""
    table = Table("table", "question", "ε", "noise ±", "shown", "in all ±", "shown", "ratio", "inside", box=None)
    for each in lines:
        numbers = [each.noise, each.noise_shown, each.total, each.total_shown]
        cells = ["–" if number is None else f"{number:,.3g}" for number in numbers]
        ratio = "–" if each.ratio is None else f"{each.ratio:.2f}" + ("*" if each.at_most else "")
        inside = "–" if each.inside is None else f"{each.inside:.0%}"
        table.add_row(each.table, each.question, f"{each.epsilon:g}", *cells, ratio, inside)
    console.print(table)
    for what, ratios in (
        ("error", [each.ratio for each in lines if each.ratio is not None]),
        ("noise", [each.noise_ratio for each in lines if each.noise_ratio is not None]),
        ("first look", [each.ratio for each in lines if each.ratio is not None and each.epsilon == PRICES[0]]),
    ):
        near = statistics.fmean(1 / NEAR <= each <= NEAR for each in ratios)
        hopeful = sum(each < 1 / HOPEFUL for each in ratios)
        console.print(
            f"{what}: {len(ratios)} previews, {near:.0%} within {NEAR - 1:.0%}; "
            f"{hopeful} too hopeful by more than {HOPEFUL - 1:.0%} (least {min(ratios):.2f}, most {max(ratios):.1f})"
        )
    steady = _steadiness(lines)
    if steady is not None:
        console.print(f"answers to one question at one price within {NEAR - 1:.0%} of their own middle: {steady:.0%}")
    parts = [each.inside for each in lines if each.inside is not None]
    console.print(f"groups within what was previewed, of the raw truth: {statistics.fmean(parts):.1%}")


def _steadiness(lines: Sequence[Line]) -> float | None:
    """How often the error that one run shows is near the middle of all runs: no preview can be near it more often."""
    runs: dict[tuple[str, str, float], list[float]] = {}
    for each in lines:
        error = each.noise_shown if each.total is None or each.total_shown is None else each.total_shown
        if error:
            runs.setdefault((each.table, each.question, each.epsilon), []).append(error)
    several = [(statistics.median(errors), error) for errors in runs.values() if len(errors) > 2 for error in errors]
    return statistics.fmean(1 / NEAR <= middle / error <= NEAR for middle, error in several) if several else None


def print_accuracies(console: Console, lines: Sequence[Accuracy]) -> None:
    """One row for each, and what is aimed at."""
    table = Table("table", "question", "error", "ε paid", "met", "least ε", "ratio", "refused", box=None)
    for each in lines:
        ratio = "–" if each.ratio is None else f"{each.ratio:.2f}"
        least = "–" if each.least is None else f"{each.least:.3g}"
        paid = "–" if each.epsilon is None else f"{each.epsilon:.3g}"
        met_by = "–" if each.met is None else f"{each.met:.0%}"
        table.add_row(each.table, each.question, each.error, paid, met_by, least, ratio, str(each.refusals))
    console.print(table)
    met = [each.met for each in lines if each.met is not None for _ in range(each.answered)]
    ratios = [each.ratio for each in lines if each.ratio is not None]
    if met and ratios:
        near = statistics.fmean(1 / 1.3 <= each <= 1.3 for each in ratios)
        console.print(
            f"met: {statistics.fmean(met):.1%} of groups in {len(met)} answers, {sum(each.refusals for each in lines)} "
            f"refused; ε within 30% of the least: {near:.0%} of questions "
            f"(geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f})"
        )


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--table", action="append", choices=TABLES)
    parser.add_argument("--question", action="append", choices=QUESTIONS)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    tables, questions = given.table or list(TABLES), given.question or list(QUESTIONS)
    lines, accuracies = list[Line](), list[Accuracy]()
    with tempfile.TemporaryDirectory() as place:
        for name in tables:
            folder = Path(place, name)
            folder.mkdir()
            make_table(name, given.people, folder)
            if given.accuracy:
                accuracies += price_all(name, folder, Path(place), given.runs, questions)
                continue
            for run in range(given.runs):
                lines += ask_all(name, folder, folder / f"home {run}", questions)
    console = Console(width=150)
    if given.json:
        json.dump([*map(asdict, lines), *map(asdict, accuracies)], sys.stdout, indent=1)
    elif given.accuracy:
        print_accuracies(console, accuracies)
    else:
        print_lines(console, lines)


if __name__ == "__main__":
    main()
