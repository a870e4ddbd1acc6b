"""Four counts by way of their disjoint cells: a total squared error of 12/ε² instead of 128/ε² one by one.

Males and females, with BMI below 25 and all. One by one under pure accounting each gets ε/4: four times Laplace noise
of variance 2(4/ε)² = 32/ε². One GROUP BY over sex and BMI class is about disjoint people: every cell gets noise of
variance 2/ε², and the counts are sums of one or two cells: 2·(2 + 4)/ε².

Squared noise X² of Laplace noise has mean 2b² and variance 20b⁴. So the mean over n runs has a relative deviation of
√5/√(4n) one by one; a sex's error 2L² + 2LH + H² has mean 6b² and variance 116b⁴, so through cells it is
√116/6/√(2n), the larger one: 1.42% of 8,000 runs and 6.35% of 400. The tolerance is 10% of the former and 45% of the
latter, seven deviations. With the skewness (Edgeworth: e^(γz³/6√n)) the false-alarm rate is below 1e-7 in both forms.
At ε = 0.1 discrete noise has a variance 0.1% below the continuous one, which is inside the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.opened import duckdb_of

from dalenius.analyst import Analyst
from dalenius.curator import Curator
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.plan import Plan
from dalenius.queries.answering import Answer, measure_plan
from dalenius.queries.rules import plan_question
from dalenius.queries.rules.price import price_plan
from dalenius.releasing.opened import tables_of

pytestmark = pytest.mark.statistical

EPSILON = 0.1
RUNS, END_TO_END = 8000, 200
DEVIATIONS = 7
POLICY = """
[table]
name = "people"
source = "people.parquet"
unit = "person"
[budget]
epsilon = 1000
accounting = "pure"
[analysts.ana]
epsilon = 1000
[columns.sex]
type = "category"
keys = ["female", "male"]
[columns.bmi]
type = "number"
bounds = [10, 60]
[contribution]
rows = 1
groups = 1
"""
COUNTS = {
    (sex, slim): f"SELECT COUNT(*) AS n FROM people WHERE sex = '{sex}'" + (" AND bmi < 25" if slim else "")
    for sex in ("female", "male")
    for slim in (True, False)
}
CELLS = "SELECT sex, bmi < 25 AS slim, COUNT(*) AS n FROM people GROUP BY sex, slim"
Ask = Callable[[str, float], tuple[tuple[Any, ...], ...]]


@dataclass
class Remembered(Measuring):
    """An engine that computes each statement once; the noise is drawn anew every time."""

    engine: DuckDB
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    index: None = None

    @property
    def scan(self) -> str:
        return self.engine.scan

    @property
    def columns(self) -> Mapping[str, str]:
        return self.engine.columns

    def run(self, sql: str, **options: Any) -> list[tuple[Any, ...]]:
        if sql not in self.rows:
            self.rows[sql] = self.engine.run(sql, **options)
        return self.rows[sql]


@dataclass
class People:
    """Two ways to ask about one table, and the true counts."""

    analyst: Analyst
    truth: dict[tuple[str, bool], int]
    plans: dict[str, Plan] = field(default_factory=dict)
    asked: int = 0

    def end_to_end(self, question: str, epsilon: float) -> tuple[tuple[Any, ...], ...]:
        """By the front door. A little more ε each time, or the answer would be the one given before."""
        self.asked += 1
        release = self.analyst.ask(question, epsilon=epsilon * (1 + self.asked * 1e-6), fresh=True)
        assert not release.free
        return release.rows

    def below_the_ledger(self, engine: Remembered, question: str, epsilon: float) -> tuple[tuple[Any, ...], ...]:
        """The same plan, price, integers and noise, without a charge."""
        if question not in self.plans:
            asker = self.analyst._asker
            self.plans[question] = plan_question(question, tables_of(asker, asker.registry.current()))
        plan = self.plans[question]
        return Answer.read(plan, measure_plan(plan, price_plan(plan, epsilon), engine, "salt", 60.0), 0.95).table().rows

    def error_one_by_one(self, ask: Ask) -> float:
        """The total squared error of four questions that share ε."""
        return float(sum((ask(text, EPSILON / 4)[0][0] - self.truth[count]) ** 2 for count, text in COUNTS.items()))

    def error_by_cells(self, ask: Ask) -> float:
        """The same four counts out of one question at ε."""
        cells = {(sex, slim): n for sex, slim, n in ask(CELLS, EPSILON)}
        found = {
            (sex, slim): cells[sex, True] + (0 if slim else cells[sex, False])
            for sex in ("female", "male")
            for slim in (True, False)
        }
        return float(sum((found[count] - self.truth[count]) ** 2 for count in COUNTS))


@pytest.fixture
def people(tmp_path: Path) -> People:
    sex = ["female" if at % 2 else "male" for at in range(400)]
    bmi = [16 + at % 23 for at in range(400)]
    pq.write_table(pa.table({"person": range(400), "sex": sex, "bmi": bmi}), tmp_path / "people.parquet")
    (tmp_path / "people.toml").write_text(POLICY)
    curator = Curator(tmp_path / "home")
    curator.protect(tmp_path / "people.toml")
    truth = {
        (which, slim): sum(s == which and (b < 25 or not slim) for s, b in zip(sex, bmi, strict=True))
        for which in ("female", "male")
        for slim in (True, False)
    }
    return People(curator.analyst("ana"), truth)


@pytest.fixture
def below(people: People) -> Ask:
    asker = people.analyst._asker
    version = asker.registry.current()["people"]
    return partial(people.below_the_ledger, Remembered(duckdb_of(asker.engines.of(version.fingerprint))))


def test_four_counts_one_by_one_cost_128_and_by_disjoint_cells_12(
    people: People, below: Ask, rounds: Callable[[int], int]
) -> None:
    runs, outside = rounds(RUNS), rounds(END_TO_END)
    tolerance = DEVIATIONS * math.sqrt(116) / 6 / math.sqrt(2 * runs)
    assert tolerance <= 0.1 if runs == RUNS else tolerance <= 0.45
    asks = [people.end_to_end] * outside + [below] * (runs - outside)
    one_by_one = sum(map(people.error_one_by_one, asks)) / runs
    by_cells = sum(map(people.error_by_cells, asks)) / runs
    assert one_by_one == pytest.approx(128 / EPSILON**2, rel=tolerance)
    assert by_cells == pytest.approx(12 / EPSILON**2, rel=tolerance)


def test_both_ways_are_charged_the_same(people: People) -> None:
    def charged(question: str, epsilon: float) -> float:
        return float(people.analyst.ask(question, epsilon=epsilon, fresh=True).charge["epsilon"])

    assert sum(charged(text, EPSILON / 4) for text in COUNTS.values()) == pytest.approx(EPSILON)
    assert charged(CELLS, EPSILON) == pytest.approx(EPSILON)
