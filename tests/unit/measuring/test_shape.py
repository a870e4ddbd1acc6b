"""Skewness and kurtosis: DuckDB's own where there is no noise, honest where there is, and no unit adds too much."""

from __future__ import annotations

import random
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest

from dalenius.measuring._exact import exact
from dalenius.measuring.estimates import NoisySum
from dalenius.mechanisms.laws import DiscreteGaussianLaw
from dalenius.queries.answering import Answer
from dalenius.queries.preview import preview_plan
from dalenius.queries.rules.price import price_plan

KINDS = ["SKEWNESS", "SKEW", "KURTOSIS", "KURTOSIS_POP"]
ARROW = pa.schema([("user_id", pa.int64()), ("amount", pa.float64())])
SALT = "salt"


def rows(values, unit=None):
    return pa.Table.from_pylist([{"user_id": unit or at, "amount": each} for at, each in enumerate(values, 1)], ARROW)


def answer(plan, table, memory):
    """What the exact integers say."""
    integers, price = exact(plan, memory(table), SALT), price_plan(plan, 1e6)
    measures = tuple((each.noise, tuple(vector)) for each, vector in zip(price.mechanisms, integers, strict=True))
    return Answer(plan, price.epsilon, price.rho, measures, 0.95).table()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [20.0, 300.0])
def test_without_noise_they_are_duckdbs(kind, spread, asker, memory):
    draw = random.Random(3)
    values = [None, *(min(4999.0, 700 + spread * draw.expovariate(1.0)) for _ in range(200)), 700.0, 700.0]
    held = rows(values)
    plan = asker(contribution="rows = 3").plan(f"SELECT {kind}(amount) FROM visits")
    ((found,),) = answer(plan, held, memory).rows
    name = "SKEWNESS" if kind == "SKEW" else kind
    ((expected,),) = duckdb.connect().register("held", held).execute(f"SELECT {name}(amount) FROM held").fetchall()
    assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("kind", "fewest"), [("SKEWNESS", 3), ("KURTOSIS", 4), ("KURTOSIS_POP", 2)])
def test_few_rows_and_equal_values_say_nothing(kind, fewest, asker, memory):
    plan = asker(contribution="rows = 3").plan(f"SELECT {kind}(amount) FROM visits")
    for values in ([], [5.0] * 9, [float(at) for at in range(fewest - 1)]):
        table = answer(plan, rows(values), memory)
        low, high = table.interval[0][0]
        assert table.rows == ((None,),) and low < high
    assert answer(plan, rows([float(at * at) for at in range(fewest)]), memory).rows[0][0] is not None


@pytest.mark.parametrize("keys", ["", " GROUP BY region"])
def test_one_unit_adds_no_more_than_is_claimed(keys, asker, memory):
    plan = asker(contribution="rows = 3").plan(f"SELECT KURTOSIS(amount) FROM visits{keys}")
    assert [each.kind for each in plan.measures] == ["rows", "sum", "sum", "sum", "sum"]
    names = {"rows": 0, **{each.written(): at for at, each in enumerate(plan.measures)}}
    assert len(names) == 6  # four different powers
    table = rows([0.0, 4000.0] * 20, unit=7).append_column("region", pa.array(["north", "south"] * 20))
    for vector, measure in zip(exact(plan, memory(table), SALT), plan.measures, strict=True):
        assert 0 < sum(each * each for each in vector) <= measure.limit**2 <= measure.sensitivity


def test_several_share_their_sums(asker):
    visits = asker(contribution="rows = 3")
    one, all_ = (
        visits.plan(f"SELECT {what} FROM visits") for what in ("KURTOSIS(age)", ", ".join(f"{k}(age)" for k in KINDS))
    )
    assert one.canonical() == all_.canonical()
    assert len(visits.plan("SELECT SKEWNESS(age) FROM visits").measures) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_preview_grows_more_exact_with_the_price(kind, asker):
    plan = asker(contribution="rows = 3").plan(f"SELECT {kind}(age) FROM visits")
    errors = [each.noise_error[0] or 0.0 for each in preview_plan(plan, [0.1, 1.0, 10.0], 0.95, {}).choices]
    assert errors[0] > errors[1] > errors[2] > 0


def test_noise_that_hides_the_spread_leaves_all_that_values_can_have():
    from dalenius.measuring.statistics.shape import _SHAPES, estimate_shape

    law = DiscreteGaussianLaw(Fraction(10**6))
    parts = [NoisySum(value, law) for value in (10_000, 0, 1_500, 10, 300)]
    for kind, shape in _SHAPES.items():
        found = estimate_shape(parts, shape, step=Fraction(1), confidence=0.95)
        assert found.low is not None and found.high is not None
        assert found.high > 90 and (found.low < -90 if kind == "skewness" else -3 < found.low <= -2)
