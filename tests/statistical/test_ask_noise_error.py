"""A noise error is honest: the value without noise lies within value ± noise error 95% of the time, give or take 1.5%.

The truth is what the same path makes of the exact integers. Each case draws the noise of a real plan many times. By
GROUP BY one run gives 64 independent cells: 2,560 draws in the short form, a deviation of 0.43%; 128,000 in the long
one, 0.06%. Ungrouped it is one draw per run: 600, a deviation of 0.89%, and 12,000, 0.20%. Tolerances are 1.5% in the
long form; in the short form 2.7% by group and 6% without. Widths of arithmetic on two Laplace noises are known to cover
up to 0.5% more than asked; what is left is at least 5 deviations: a false-alarm rate below 1e-6 per aggregate.
Groups are large beside the noise: in small ones a ratio's interval is lopsided, and ± its longer side covers more.
Errors that are 30% too small cover 83.0% (Gaussian) to 87.7% (Laplace), and by group they are rejected in either form:
20% would leave a correlation's, which covers a little more than asked, too near to the short form's tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import LONG

from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.estimates import noise_variance
from dalenius.measuring.plan import Plan, Table, require
from dalenius.mechanisms import noise
from dalenius.owner.protect import budget_of
from dalenius.queries.answering import Answer
from dalenius.queries.rules import plan_question
from dalenius.queries.rules.price import Priced, price_plan
from dalenius.tables.reading import read_text
from dalenius.tables.sources.fingerprint import fingerprint

pytestmark = pytest.mark.statistical

AREAS, ROWS = 64, 12_000
ALIKE = 10  # so many of the rows are alike: one of them is in the file, and all sums are taken so many times
GROUPED, UNGROUPED = 2000 if LONG else 40, 12_000
FAINTEST = 60  # least standard deviation in steps, so that widths in whole steps are nearly exact
WAYS = [("zcdp", "add-remove"), ("pure", "substitute")]
WAYS += [("zcdp", "substitute"), ("pure", "add-remove")] if LONG else []
QUESTIONS = {
    "sums": ["COUNT(*)", "COUNT(x)", "COUNT(DISTINCT person)", "SUM(x)", "COUNT_IF(x > 40)"],
    "moments": ["AVG(x)", "VAR_POP(x)", "VAR_SAMP(x)", "STDDEV_POP(x)", "STDDEV_SAMP(x)"],
    "shape": ["SKEWNESS(x)", "KURTOSIS(x)", "KURTOSIS_POP(y)"],
    "distinct": ["COUNT(DISTINCT x)", "COUNT(DISTINCT area)", "SUM(DISTINCT y)", "AVG(DISTINCT x)"],
    "covariances": ["COVAR_POP(x, y)", "COVAR_SAMP(x, y)", "CORR(x, y)"],
    "arithmetic": ["SUM(x) / COUNT(*)", "100.0 * COUNT_IF(x > 40) / COUNT(*)"],
}
POLICY = """
[table]
name = "people"
source = "{source}"
unit = "person"
neighbors = "{neighbors}"
[budget]
epsilon = 100
accounting = "{accounting}"
delta = {delta}
[columns.area]
type = "category"
keys = {keys}
[columns.x]
type = "number"
bounds = [0, 100]
step = 0.01
[columns.y]
type = "number"
bounds = [-50, 50]
step = 0.1
[contribution]
rows = 2
groups = 1
"""


@dataclass(frozen=True)
class Case:
    """A question at a price, with its exact integers."""

    plan: Plan
    price: Priced
    integers: list[list[int]]

    def answer(self, *, noisy: bool) -> Answer:
        """As `answering.measure_plan` draws it, or without noise."""
        noise.fresh_key()
        measures = []
        for mechanism, vector in zip(self.price.mechanisms, self.integers, strict=True):
            values = mechanism.release(vector).value.tolist() if noisy else vector
            measures.append((mechanism.noise, tuple(values)))
        return Answer(self.plan, self.price.epsilon, self.price.rho, tuple(measures), 0.95)

    def covered(self, runs: int) -> tuple[np.ndarray, np.ndarray]:
        """How often the truth lies within the noise error, and within seven tenths of it, by column."""
        truth = np.array(self.answer(noisy=False).table().rows, dtype=float)
        inside, nearer = np.zeros(truth.shape), np.zeros(truth.shape)
        for _ in range(runs):
            found = self.answer(noisy=True).table()
            error = np.array(found.noise_error, dtype=float)
            off = abs(np.array(found.rows, dtype=float) - truth)
            inside += off <= error
            nearer += off <= 0.7 * error
        return inside.mean(axis=0) / runs, nearer.mean(axis=0) / runs


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rows per person; a tenth of x is missing, and so is a tenth of y, which is correlated with it."""
    draw = np.random.default_rng(7)
    person = np.arange(AREAS * ROWS // ALIKE) // 2
    values = draw.beta(2, 3, person.size) * 100
    x = pa.array(values, mask=draw.random(person.size) < 0.1)
    y = pa.array(values / 2 + draw.normal(-20, 10, person.size), mask=draw.random(person.size) < 0.1)
    area = pa.array([f"a{at}" for at in range(AREAS)]).take(pa.array(person % AREAS))
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    pq.write_table(pa.table({"person": person, "area": area, "x": x, "y": y}), path)
    return path


def case(source: Path, accounting: str, neighbors: str, question: str | Sequence[str], *, grouped: bool = True) -> Case:
    """The question at the price at which its faintest noise has about the least deviation."""
    asked = QUESTIONS[question] if isinstance(question, str) else question
    policy = read_text(
        POLICY.format(
            source=source,
            neighbors=neighbors,
            accounting=accounting,
            delta=1e-6 if accounting == "zcdp" else 0.0,
            keys=[f"a{at}" for at in range(AREAS)],
        )
    )
    columns = ", ".join(f"{text} AS c{at}" for at, text in enumerate(asked))
    text = f"SELECT {columns} FROM people" + (" GROUP BY area" if grouped else "")
    plan = plan_question(text, {"people": Table(policy, require(budget_of(policy)))})
    price = price_plan(plan, 0.1)
    for _ in range(2):  # noise is about proportional to 1/ε
        price = price_plan(plan, price.epsilon * faintest(plan, price) / FAINTEST)
    assert faintest(plan, price) >= 50
    integers = exact(plan, DuckDB(fingerprint(policy.source)), "salt")
    return Case(plan, price, [[ALIKE * each for each in vector] for vector in integers])


def faintest(plan: Plan, price: Priced) -> float:
    """The least standard deviation of its noises, in steps."""
    return min(
        math.sqrt(noise_variance(mechanism.noise)) / (1 << measure.bits)
        for measure, mechanism in zip(plan.measures, price.mechanisms, strict=True)
    )


@pytest.mark.parametrize(("accounting", "neighbors"), WAYS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_truth_is_within_the_noise_error_in_each_group_and_an_error_three_tenths_smaller_is_noticed(
    source: Path, accounting: str, neighbors: str, question: str
) -> None:
    tolerance = 0.015 if LONG else 0.027
    covered, planted = case(source, accounting, neighbors, question, grouped=True).covered(GROUPED)
    assert len(covered) == len(QUESTIONS[question])
    assert covered == pytest.approx(0.95, abs=tolerance)
    assert all(planted < 0.95 - tolerance)


# In the short form each question goes one of the two ways, in turn: by group, all go both.
@pytest.mark.parametrize(
    ("question", "accounting", "neighbors"),
    [(asked, *way) for at, asked in enumerate(QUESTIONS) for way in (WAYS if LONG else [WAYS[at % 2]])],
)
def test_the_truth_is_within_the_noise_error_of_a_single_answer(
    source: Path, accounting: str, neighbors: str, question: str, rounds: Callable[[int], int]
) -> None:
    runs = rounds(UNGROUPED)
    covered, _ = case(source, accounting, neighbors, question, grouped=False).covered(runs)
    assert len(covered) == len(QUESTIONS[question])
    assert covered == pytest.approx(0.95, abs=0.015 if runs == UNGROUPED else 0.06)
