"""A quantile's noise error is honest: the quantile of the weighted rows lies within it at least 95% of the time.

The truth is the quantile of the same rows without noise. Each case draws the noise of a real plan; by GROUP BY one run
gives 64 independent groups. Short form: 8 runs, 512 draws; at a coverage of 95% the standard deviation is 0.96%, and
90% lies 5 deviations below: a false alarm has a chance below 1e-6. Long form: 160 runs, 10,240 draws, 0.22%; the limit
is 93.8%. Most cases cover 97% and more, because an interval ends where a leaf does. Noise errors of a third of the size
are rejected where leaves are small beside them: they reach the truth less than 80% of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import LONG

from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.estimates import Estimate
from dalenius.measuring.plan import Table, require
from dalenius.measuring.trees import SCALE, TreeLayout
from dalenius.mechanisms import noise
from dalenius.owner.protect import budget_of
from dalenius.queries.answering import Answer
from dalenius.queries.rules import plan_question
from dalenius.queries.rules.price import price_plan
from dalenius.tables.reading import read_text
from dalenius.tables.sources.fingerprint import fingerprint

pytestmark = pytest.mark.statistical

AREAS, ROWS, RUNS = 64, 3000, 160
SHARES = (0.1, 0.5, 0.95)
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
[columns.age]
type = "integer"
bounds = [18, 90]
[columns.spent]
type = "number"
bounds = [0, 1000]
step = 0.01
[columns.gap]
type = "number"
bounds = [0, 1]
step = 0.001
[contribution]
rows = 2
groups = 1
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some people with more rows than the limit; a skewed column, and one with nothing in its middle."""
    draw = np.random.default_rng(7)
    person = np.sort(draw.integers(0, AREAS * ROWS // 2, AREAS * ROWS))
    area = pa.array([f"a{at}" for at in range(AREAS)]).take(pa.array(person % AREAS))
    columns = {
        "person": person,
        "area": area,
        "age": draw.normal(45, 15, person.size).round(),
        "spent": draw.lognormal(4, 1, person.size),
        "gap": np.where(draw.random(person.size) < 0.5, 0.3, 0.7) * draw.random(person.size) ** 0.2,
    }
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("column", ["age", "spent", "gap"])
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("epsilon", [0.5, 5.0] if LONG else [0.5])
def test_the_quantile_of_the_weighted_rows_is_within_the_noise_error(
    source: Path, column: str, accounting: str, epsilon: float, rounds: Callable[[int], int]
) -> None:
    policy = read_text(
        POLICY.format(
            source=source,
            neighbors="add-remove",
            accounting=accounting,
            delta=1e-6 if accounting == "zcdp" else 0.0,
            keys=[f"a{at}" for at in range(AREAS)],
        )
    )
    asked = ", ".join(f"QUANTILE_CONT({column}, {share})" for share in SHARES)
    plan = plan_question(
        f"SELECT {asked} FROM people GROUP BY area", {"people": Table(policy, require(budget_of(policy)))}
    )
    price = price_plan(plan, epsilon)
    (integers,) = exact(plan, DuckDB(fingerprint(policy.source)), "salt")
    (mechanism,), (measure,) = price.mechanisms, plan.measures
    layout = TreeLayout.of(measure)
    leaves = np.array(integers).reshape(AREAS, -1)[:, -layout.leaves :]
    assert leaves.sum() < AREAS * ROWS * SCALE  # heavy people do weigh less
    runs = max(8, rounds(RUNS))
    inside, covered, nearer = (np.zeros(len(SHARES)) for _ in range(3))
    for _ in range(runs):
        noise.fresh_key()
        noisy = tuple(mechanism.release(integers).value.tolist())
        answer = Answer(plan, price.epsilon, price.rho, ((mechanism.noise, noisy),), 0.95)
        for at, share in enumerate(SHARES):
            for area, found in enumerate(answer.estimates[plan.question.aggregates[at]]):
                first, last = truth(leaves[area], layout, share)
                inside[at] += within(found, first, last)
                covered[at] += near(found, first, last, 1.0)
                nearer[at] += near(found, first, last, 1 / 3)
    draws = runs * AREAS
    least = 0.938 if runs == RUNS else 0.90
    assert all(inside / draws >= least)
    assert all(covered / draws >= least)
    if column == "spent":  # teeth: where rows are thin, an interval spans many leaves
        assert nearer[-1] / draws < least


def truth(leaves: np.ndarray, layout: TreeLayout, share: float) -> tuple[float, float]:
    """The ends of the leaf that holds the quantile of the weighted rows, in the column's units."""
    place = int(np.searchsorted(np.cumsum(leaves), share * leaves.sum()))
    first = layout.low + place * layout.size
    return float(first * layout.step), float(min(first + layout.size - 1, layout.high) * layout.step)


def within(found: Estimate, first: float, last: float) -> bool:
    assert found.low is not None and found.high is not None
    return found.low <= first and last <= found.high


def near(found: Estimate, first: float, last: float, part: float) -> bool:
    """Whether the leaf with the truth is reached by that part of the noise error."""
    assert found.noise_error is not None
    if found.value is None:
        return True  # nothing is claimed
    return first - part * found.noise_error <= found.value <= last + part * found.noise_error
