"""What a preview promises is what a release has: noise errors agree within 5%, for every aggregate.

A preview knows no data. Averages, variances, covariances and quantiles it reckons for a group of 1,000 rows whose
values spread evenly over their bounds (correlated by √⅓), so that is the table here, 64 groups of it, at a price where
noise is small beside a group; what is measured is the mean noise error over all groups and runs.

False alarms: counts and sums report the same error always. Errors of ratios vary by under 2% from run to run, their
means of 64 or more by under 0.3%; the preview's own neglect of that is below 1%. Quantiles vary by about 25%; with
3,840 of them a mean varies by 0.4%, and what is promised, from fixed draws, was seen to be up to 3% off: 5% are five
deviations beyond that. So each test fails by chance less than once in 10⁶ runs.
5% cannot hold where a noise error is few leaves of the tree (here six): it then hangs on where in its leaf the quantile
lies, which no preview knows, and up to 9% were seen. There it may be a leaf off instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import LONG

from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.plan import Plan, Table, require
from dalenius.mechanisms import noise
from dalenius.owner.protect import budget_of
from dalenius.queries.answering import Answer
from dalenius.queries.preview import Choice, preview_plan
from dalenius.queries.public_knowledge import ROWS
from dalenius.queries.rules import plan_question
from dalenius.queries.rules.price import Priced, price_plan
from dalenius.tables.reading import read_text
from dalenius.tables.sources.fingerprint import fingerprint

pytestmark = pytest.mark.statistical

WAYS = [("zcdp", "add-remove"), ("pure", "substitute")]
WAYS += [("zcdp", "substitute"), ("pure", "add-remove")] if LONG else []
# Accounting, column, ε and how far it may be off beside the 5%; each accounting and each column is among the first two.
TREES = [("zcdp", "x", 2.0, 0.0), ("pure", "code", 1.0, 0.0)]
TREES += [("zcdp", "x", 8.0, 0.1), ("zcdp", "code", 1.0, 0.0), ("pure", "x", 2.0, 0.0)] if LONG else []

AREAS = 64
SUMS = ("COUNT(*)", "COUNT(x)", "COUNT(DISTINCT person)", "COUNT(DISTINCT code)", "SUM(x)", "SUM(y)")
RATIOS = ("AVG(x)", "AVG(y)", "AVG(z)", "VAR_POP(x)", "VAR_SAMP(z)", "STDDEV_POP(y)", "STDDEV_SAMP(x)",
          "COVAR_POP(x, y)", "COVAR_SAMP(y, x)", "CORR(x, y)", "CORR(z, x)")  # fmt: skip
QUANTILES = ("MEDIAN({0})", "QUANTILE_CONT({0}, 0.1)", "QUANTILE_CONT({0}, 0.97)", "MIN({0})", "MAX({0})")
POLICY = """
[table]
name = "people"
source = "{source}"
unit = "person"
neighbors = "{neighbors}"
[budget]
epsilon = 1000
accounting = "{accounting}"
delta = {delta}
[columns.area]
type = "category"
keys = {keys}
[columns.x]
type = "number"
bounds = [0, 100]
step = 0.1
[columns.y]
type = "number"
bounds = [-50, 50]
step = 0.1
[columns.z]
type = "number"
bounds = [-100, -20]
step = 0.01
[columns.code]
type = "integer"
bounds = [0, 99]
[contribution]
rows = {rows}
groups = 1
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One row per person. Of each group, √⅓ of the rows have y at the place of x, the others anywhere: r = √⅓."""
    draw = np.random.default_rng(11)
    place = (np.arange(ROWS) + 0.5) / ROWS
    other = np.arange(ROWS)
    loose = draw.permutation(ROWS)[round(ROWS * math.sqrt(1 / 3)) :]
    other[loose] = draw.permutation(loose)
    columns = {
        "x": 100 * place,
        "y": 100 * place[other] - 50,
        "z": 80 * place[other] - 100,
        "code": np.arange(ROWS) // (ROWS // 100),
    }
    table = {name: np.tile(values, AREAS) for name, values in columns.items()}
    areas = np.repeat([f"a{at}" for at in range(AREAS)], ROWS)
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    pq.write_table(pa.table({"person": np.arange(AREAS * ROWS), "area": areas, **table}), path)
    return path


@dataclass(frozen=True)
class Case:
    """A question at a price: what is promised, and what is had."""

    plan: Plan
    price: Priced
    integers: list[list[int]]

    @classmethod
    def of(cls, source: Path, asked: str, epsilon: float, *, accounting: str = "zcdp", neighbors: str = "add-remove",
           rows: int = 1, grouped: bool = True) -> Case:  # fmt: skip
        text = POLICY.format(
            source=source,
            accounting=accounting,
            neighbors=neighbors,
            delta=1e-6 if accounting == "zcdp" else 0.0,
            keys=[f"a{at}" for at in range(AREAS)],
            rows=rows,
        )
        policy = read_text(text)
        table = Table(policy, require(budget_of(policy)))
        which = "GROUP BY area" if grouped else "WHERE area = 'a0'"
        plan = plan_question(f"SELECT {asked} FROM people {which}", {"people": table})
        return cls(plan, price_plan(plan, epsilon), exact(plan, DuckDB(fingerprint(policy.source)), "salt"))

    @property
    def promised(self) -> list[float]:
        """By column."""
        (choice,) = preview_plan(self.plan, (self.price.epsilon,), 0.95, {}).choices
        return [shown(choice, at) for at in range(len(self.plan.question.outputs))]

    def answer(self, *, noisy: bool = True) -> Answer:
        """As `answering.measure_plan` draws it."""
        noise.fresh_key()
        measures = []
        for mechanism, vector in zip(self.price.mechanisms, self.integers, strict=True):
            values = mechanism.release(vector).value.tolist() if noisy else vector
            measures.append((mechanism.noise, tuple(values)))
        return Answer(self.plan, self.price.epsilon, self.price.rho, tuple(measures), 0.95)

    def measured(self, runs: int) -> np.ndarray:
        """Noise errors by column, averaged over groups and runs."""
        found = [np.array(self.answer().table().noise_error, dtype=float).mean(axis=0) for _ in range(runs)]
        return np.asarray(np.mean(found, axis=0))


def shown(choice: Choice, at: int) -> float:
    return require(choice.noise_error[at])


@pytest.mark.parametrize(("accounting", "neighbors"), WAYS)
def test_counts_sums_and_ratios_have_the_error_that_was_promised(source: Path, accounting: str, neighbors: str) -> None:
    sums = Case.of(source, ", ".join(SUMS), 2.0, accounting=accounting, neighbors=neighbors, rows=50)
    assert min(sums.promised) > 0 and sums.measured(1) == pytest.approx(sums.promised, rel=1e-12)
    # In the short form each ratio by itself goes one of the two ways, in turn: together, all go both.
    alone = RATIOS if LONG else RATIOS[WAYS.index((accounting, neighbors)) :: 2]
    for asked, epsilon in (*((each, 8.0) for each in alone), (", ".join(RATIOS), 60.0)):
        case = Case.of(source, asked, epsilon, accounting=accounting, neighbors=neighbors)
        assert case.measured(2) == pytest.approx(case.promised, rel=0.05), asked


@pytest.mark.parametrize(("accounting", "column", "epsilon", "leaf"), TREES)
def test_quantiles_and_extremes_have_the_error_that_was_promised(
    source: Path, accounting: str, column: str, epsilon: float, leaf: float
) -> None:
    case = Case.of(source, ", ".join(QUANTILES).format(column), epsilon, accounting=accounting)
    runs = 160 if column == "code" else 60
    assert case.measured(runs) == pytest.approx(case.promised, rel=0.05, abs=leaf)


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_what_is_promised_is_how_far_counts_and_sums_are_off(source: Path, accounting: str) -> None:
    """400 releases of 64 groups: the error that 95% of 25,600 stay below.

    The deviation of that quantile is √(0.05·0.95/25600) over the density there: 0.6% of it for normal noise, 0.9% for
    Laplace noise. 5% are 5.5 deviations, and more: a chance of at most 4e-8 for one column.
    """
    # a limit of 50 rows, so that whole numbers are fine beside the noise
    case = Case.of(source, "COUNT(*), SUM(x)", 2.0, accounting=accounting, rows=50)
    truth = np.array(case.answer(noisy=False).table().rows, dtype=float)
    off = [abs(np.array(case.answer().table().rows, dtype=float) - truth) for _ in range(400)]
    assert np.quantile(np.concatenate(off), 0.95, axis=0) == pytest.approx(case.promised, rel=0.05)


def test_quantiles_of_a_large_tree_without_groups_too(source: Path) -> None:
    """One tree of 16,384 leaves: 400 runs vary by 25%, their mean by 1.3%, and the preview by 1%.

    A tolerance of 10% is then beyond six deviations of both; 5% are met on the trees above.
    """
    case = Case.of(source, "MEDIAN(z)", 4.0, grouped=False)
    assert case.measured(400) == pytest.approx(case.promised, rel=0.1)
