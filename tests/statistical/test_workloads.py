"""Errors of workloads are those that were predicted, and intervals cover as often as they say.

False alarms: the pooled squared error of n answers, over what is predicted, has mean 1. Answers of one draw share their
noise, so draws are what is counted: a total over k draws that is off by more than 5.5 standard errors (of the draws
themselves) comes by chance less than once in 10⁶ times. Each test must also see that noise which is 20% too small is
rejected by the same bound.
"""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import LONG

from dalenius.curator import Curator
from dalenius.measuring._exact import exact as right
from dalenius.measuring.plan import Plan
from dalenius.queries.rules.price import price_plan
from dalenius.queries.workloads.expecting import Expecting
from dalenius.queries.workloads.kind import plan_asked
from dalenius.queries.workloads.measuring import measure_workload
from dalenius.queries.workloads.pricing import price_workload, share_plan
from dalenius.queries.workloads.request import WorkloadAsk
from dalenius.queries.workloads.showing import QuestionReading, StoredWorkload

POLICY = """
[table]
name = "people"
source = "people.parquet"
unit = "person"
[budget]
epsilon = 900.0
delta = {delta}
accounting = "{accounting}"
[analysts.ana]
epsilon = 900.0
[columns.sex]
type = "category"
keys = ["m", "f"]
[columns.bmi]
type = "number"
bounds = [10, 60]
[columns.age]
type = "integer"
bounds = [0, 63]
[contribution]
rows = 1
"""
FOUR = tuple(
    f"SELECT COUNT(*) AS n FROM people WHERE sex = '{sex}'{more}" for more in ("", " AND bmi < 25") for sex in "mf"
)
RANGES = (
    *(f"SELECT COUNT(*) AS n FROM people WHERE age <= {each}" for each in range(0, 64, 3 if LONG else 12)),
    "SELECT sex, COUNT(*) AS n, SUM(bmi) AS s FROM people GROUP BY sex",
)
DRAWS = 5_000 if LONG else 50
FAR = 5.5 if LONG else 8.0  # of few draws the spread is not known so well


@cache
def protected(folder: Path, accounting: str) -> Curator:
    place = folder / accounting
    place.mkdir()
    size = 2000
    rows = {
        "person": list(range(size)),
        "sex": ["m", "f"] * (size // 2),
        "bmi": [15.0 + at % 30 for at in range(size)],
        "age": [(7 * at) % 64 for at in range(size)],
    }
    pq.write_table(pa.table(rows), place / "people.parquet")
    delta = 0 if accounting == "pure" else 1e-6
    (place / "people.toml").write_text(POLICY.format(accounting=accounting, delta=delta))
    curator = Curator(place / "home")
    curator.protect(place / "people.toml")
    return curator


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workloads")


def drawn(
    curator: Curator, asked: tuple[str, ...], epsilon: float, monkeypatch: pytest.MonkeyPatch, draws: int
) -> tuple[list[float], float, float]:
    """Of each draw the squared error over what is predicted; the same in all; and how often intervals cover."""
    known: dict[int, Any] = {}

    def once(plan: Plan, *rest: Any, **more: Any) -> Any:
        if id(plan) not in known:
            known[id(plan)] = right(plan, *rest, **more)
        return known[id(plan)]

    monkeypatch.setattr("dalenius.queries.workloads.measuring.exact", once)
    asker = curator.analyst("ana")._asker
    workload = plan_asked(asker, WorkloadAsk.of({"questions": list(asked), "epsilon": epsilon})).plan
    priced = price_workload(workload, epsilon)
    expecting = Expecting(workload, priced, 0.95)
    predicted = {each.of: each.squared_error for each in expecting.parts()}
    truth: dict[str, list[Any]] = {}
    for number, each in enumerate(workload.plans):
        plan = each.plan
        engine = each.snapshot.engine(asker.engines)
        exact = right(plan, engine, "salt")
        truth[workload.keys[number]] = [
            [value * measure.step / 2**measure.bits for value in own]
            for measure, own in zip(plan.measures, exact, strict=True)
        ]
    ratios, covered, total = [], 0, 0
    for _ in range(draws):
        known_ = StoredWorkload.read(measure_workload(workload, priced, asker, "salt", 60.0))
        squared = dict.fromkeys(predicted, 0.0)
        for number, each in enumerate(workload.plans):
            key, plan = workload.keys[number], each.plan
            reading = QuestionReading(known_, plan, known_.questions[key], 0.95)
            for place, (part, values, _) in enumerate(reading.noisy):
                measure = plan.measures[place]
                for value, true in zip(values, truth[key][place], strict=True):
                    of = "rows" if measure.kind == "rows" else next(name for name in predicted if name != "rows")
                    squared[of] += (float(value) * float(measure.step) / 2.0**part.bits - float(true)) ** 2
            for aggregate, estimates in reading.estimates.items():
                for estimate, true in zip(estimates, truth[key][plan.start(plan.answers[aggregate])], strict=True):
                    covered += estimate.low <= true <= estimate.high
                    total += 1
        ratios.append(statistics.fmean(squared[of] / predicted[of] for of in predicted))
    return ratios, statistics.fmean(ratios), covered / total


@pytest.mark.parametrize(("accounting", "asked"), [("pure", FOUR), ("zcdp", FOUR), ("pure", RANGES), ("zcdp", RANGES)])
def test_errors_are_those_that_were_predicted(folder, monkeypatch, accounting, asked):
    ratios, mean, covered = drawn(protected(folder, accounting), asked, 0.2, monkeypatch, DRAWS)
    spread = statistics.stdev(ratios) / math.sqrt(len(ratios))
    assert abs(mean - 1) < FAR * spread, (mean, spread)
    if LONG:
        assert abs(mean - 1) < 0.05
        assert 0.93 <= covered <= 0.97
        assert abs(0.64 * mean - 1) > FAR * spread  # noise of 80% of the deviation would have been seen
    assert covered > 0.85


def test_one_by_one_the_four_counts_have_the_error_that_is_told(folder):
    """128/ε² in total, each count with ε/4."""
    epsilon, draws = 0.2, 5_000
    asker = protected(folder, "pure").analyst("ana")._asker
    plans = plan_asked(asker, WorkloadAsk.of({"questions": list(FOUR), "epsilon": epsilon})).plan.plans
    squared = []
    for each in plans:
        (mechanism,) = price_plan(share_plan(each.plan, Fraction(1, 4)), epsilon).mechanisms
        squared.append([float(mechanism.release(0).value) ** 2 for _ in range(draws)])
    totals = [sum(each) * epsilon**2 for each in zip(*squared, strict=True)]
    spread = statistics.stdev(totals) / math.sqrt(draws)
    assert abs(statistics.fmean(totals) - 128) < FAR * spread
    assert abs(0.64 * statistics.fmean(totals) - 128) > FAR * spread  # noise of 80% of the deviation is seen


def test_the_four_counts_cost_twelve_together_and_128_one_by_one(folder):
    """In total squared error, times ε²; what is measured comes near that, as `test_errors_…` sees."""
    curator = protected(folder, "pure")
    (rows,) = curator.analyst("ana").preview_many(FOUR, epsilon=0.2).expected.parts
    assert rows.squared_error * 0.2**2 == pytest.approx(12, rel=1e-3)
    assert rows.one_by_one * 0.2**2 == pytest.approx(128, rel=1e-2)
