"""Covariances and correlations: exact integers, shares of the price, and intervals that cover as often as they say.

Coverage is counted over 4,000 draws from fixed seeds and must be within 95% ± 1.75%: 5.1 standard deviations of a
Binomial(4000, 0.95), which a right interval leaves for one seed in three million; an interval 20% too narrow covers at
most 91%, and is noticed.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dalenius.errors import NotAllowedError
from dalenius.measuring._exact import exact
from dalenius.measuring.building import MOST
from dalenius.measuring.estimates import NoisySum
from dalenius.measuring.plan import Limits
from dalenius.measuring.statistics.covariance import correlation, covariance
from dalenius.mechanisms.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw
from dalenius.queries.answering import Answer
from dalenius.queries.plan_words import describe_plan
from dalenius.queries.preview import preview_plan
from dalenius.queries.rules.price import price_plan

DRAWS, CONFIDENCE, SLACK = 4_000, 0.95, 0.0175
ARROW = pa.schema([("user_id", pa.int64()), ("region", pa.string()), ("age", pa.int64()), ("change", pa.float64())])
# n rows with means 3 and −2, variances 400 and 900, and a correlation of 0.6, all in steps
N = 20_000
TRUTH = {"covariance": 360.0, "sample": 360.0 * N / (N - 1), "correlation": 0.6}
SUMS = (N, 3 * N, -2 * N, (360 - 6) * N, 409 * N, 904 * N)
SCALES = (20, 400, 600, 12_000, 8_000, 18_000)


def asked(what, keys=""):
    return f"SELECT {what} FROM visits" + (f" GROUP BY {keys}" if keys else "")


def law(kind, scale):
    return DiscreteGaussianLaw(Fraction(scale) ** 2) if kind == "gaussian" else DiscreteLaplaceLaw(Fraction(scale))


def estimate(form, parts, most=10_000):
    if form == "correlation":
        return correlation(*parts, confidence=CONFIDENCE)
    sample = form == "sample"
    return covariance(*parts[:4], unit=Fraction(1), most=Fraction(most), confidence=CONFIDENCE, sample=sample)


def coverage(form, kind, scales=SCALES):
    """How often the truth is within the interval, and within four fifths of it."""
    draw = np.random.default_rng(list(f"{form} {kind}".encode()))
    sample = draw.normal if kind == "gaussian" else draw.laplace
    laws = [law(kind, scale) for scale in scales]
    noise = np.stack([np.rint(sample(0, scale, DRAWS)) for scale in scales], axis=1).astype(np.int64).tolist()
    shrunk = {1.0: 0, 0.8: 0}
    for row in noise:
        found = estimate(form, [NoisySum(s + x, each) for s, x, each in zip(SUMS, row, laws, strict=True)])
        assert None not in (found.value, found.noise_error, found.low, found.high)
        assert math.isclose(found.noise_error, max(found.high - found.value, found.value - found.low))
        for share in shrunk:
            low = found.value - share * (found.value - found.low)
            shrunk[share] += low <= TRUTH[form] <= found.value + share * (found.high - found.value)
    return [each / DRAWS for each in shrunk.values()]


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("form", TRUTH)
def test_intervals_cover_as_often_as_they_say(form, kind):
    covered, nearer = coverage(form, kind)
    assert abs(covered - CONFIDENCE) <= SLACK
    assert nearer < CONFIDENCE - SLACK


@pytest.mark.statistical
@pytest.mark.parametrize("loud", range(6))
def test_the_noise_of_each_sum_is_in_the_interval(loud):
    # one sum far noisier than the others: a coefficient that is wrong shows in the coverage
    scales = [50 * scale if at == loud else 1 for at, scale in enumerate((5, 40, 60, 250, 150, 350))]
    for form in ("covariance", "correlation"):
        if form == "covariance" and loud > 3:
            continue
        covered, nearer = coverage(form, "gaussian", scales=scales)
        assert abs(covered - CONFIDENCE) <= SLACK, form
        assert nearer < CONFIDENCE - SLACK, form


def test_a_correlation_stays_between_minus_one_and_one():
    chance = random.Random(3)
    for _ in range(500):
        kind = chance.choice(["gaussian", "laplace"])
        parts = [NoisySum(chance.randint(-1000, 5000), law(kind, chance.choice([1, 100, 3000]))) for _ in range(6)]
        found = estimate("correlation", parts)
        assert -1 <= found.low <= found.high <= 1
        assert found.value is None or found.low <= found.value <= found.high
        known = estimate("sample", parts, most=50)
        assert -100 <= known.low <= known.high <= 100


def test_where_nothing_is_known_the_bounds_are_the_interval():
    one = law("gaussian", 10)
    for n in (-5, 0, 1):
        parts = [NoisySum(value, one) for value in (n, 5, 5, 5, 50, 50)]
        found = estimate("sample", parts, most=7)
        assert (found.value, found.low, found.high) == (None, -14, 14)
    flat = [NoisySum(value, one) for value in (1000, 0, 0, 10, 0, 500)]  # a value that does not vary
    assert estimate("correlation", flat).value is None
    faint = [NoisySum(value, law("gaussian", 400)) for value in (1000, 0, 0, 100, 500, 500)]
    found = estimate("correlation", faint)
    assert (found.value, found.low, found.high) == (pytest.approx(0.2), -1.0, 1.0)


# --- what is measured


def table(rows, seed=1):
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 91, rows)
    change = np.round(np.clip((age - 54) / 10 + draw.normal(0, 3, rows), -10, 10) * 2) / 2
    return pa.table(
        {
            "user_id": np.arange(rows),
            "region": pa.array(["north", "south"]).take(pa.array(np.arange(rows) % 2)),
            "age": pa.array(age, mask=draw.random(rows) < 0.1),
            "change": pa.array(change, mask=draw.random(rows) < 0.1),
        },
        schema=ARROW,
    )


def answered(plan, integers, price):
    measures = tuple((each.noise, tuple(vector)) for each, vector in zip(price.mechanisms, integers, strict=True))
    return Answer(plan, price.epsilon, price.rho, measures, 0.95).table().rows


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_without_noise_the_answers_are_those_of_the_rows(accounting, asker, memory):
    held = table(3000)
    plan = asker(accounting=accounting).plan(
        asked("COVAR_POP(age, change), COVAR_SAMP(change, age), CORR(age, change)", "region")
    )
    assert [each.kind for each in plan.statistics] == ["covariance"] and len(plan.measures) == 6
    rows = answered(plan, exact(plan, memory(held), "salt"), price_plan(plan, 1.0))
    for name, found in zip(("north", "south"), rows, strict=False):
        both = [
            (each["age"], each["change"])
            for each in held.to_pylist()
            if each["region"] == name and None not in (each["age"], each["change"])
        ]
        x, y = np.array(both).T
        expected = [np.cov(x, y, bias=True)[0, 1], np.cov(x, y)[0, 1], np.corrcoef(x, y)[0, 1]]
        assert found == pytest.approx(expected, rel=1e-12)


def test_a_row_in_which_one_is_missing_adds_to_no_sum(visits, memory):
    rows = [{"user_id": 1, "age": 30, "change": None}, {"user_id": 2, "age": None, "change": 3.0}]
    for question in ("CORR(age, change)", "CORR(change, age) FILTER (WHERE age > 20)"):
        plan = visits.plan(asked(question))
        assert exact(plan, memory(pa.Table.from_pylist(rows, ARROW)), "salt") == [[0]] * 6


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_one_heavy_unit_stays_within_every_clip(accounting, neighbors, asker, memory):
    who = asker(accounting=accounting, neighbors=neighbors)
    plan = who.plan(asked("CORR(age, change)", "region"))
    rows = [
        {"user_id": 1, "region": region, "age": age, "change": change}
        for region, age, change in (("north", 90, 10.0), ("south", 18, -10.0), ("east", 90, -10.0))
        for _ in range(500)
    ]
    for measure, vector in zip(
        plan.measures, exact(plan, memory(pa.Table.from_pylist(rows, ARROW)), "salt"), strict=True
    ):
        if accounting == "pure":
            assert sum(map(abs, vector)) <= measure.limit
            assert measure.sensitivity == measure.limit * (1 if neighbors == "add-remove" else 2)
        else:
            signed = measure.kind in {"sum", "product"}
            factor = 1 if neighbors == "add-remove" else 4 if signed else 2
            assert sum(each * each for each in vector) <= measure.limit**2
            assert measure.sensitivity == factor * measure.limit**2


def test_a_product_of_values_of_one_sign_has_one(asker):
    who = asker(neighbors="substitute", contribution="rows = 10\ntotals = { amount = 100, age = 200 }")
    plan = who.plan(asked("COVAR_POP(age, amount)"))
    count, age, amount, products = plan.measures
    assert (age.centre, amount.centre) == (0, 0)
    assert products.clip == min(age.clip * amount.high, amount.clip * age.high)
    assert products.sensitivity == 2 * products.limit**2
    assert products.times is not None and products.times.value == amount.value
    assert count.clip == 10


@pytest.mark.parametrize("rows", [1, 10**6, 10**12])
def test_products_are_rounded_more_coarsely_until_they_fit(rows, asker):
    plan = asker(contribution=f"rows = {rows}").plan(asked("CORR(amount, change)"))
    assert all(each.clip < MOST for each in plan.measures)


def test_what_both_arguments_need_is_asked_of_each(visits):
    for pair in ("age, free", "free, age"):
        error = visits.error(asked(f"CORR({pair})"))
        assert isinstance(error, NotAllowedError) and "'free' has no bounds" in str(error)
    assert visits.plan(asked("CORR(age, amount)"), Limits(rows=2)).measures[0].clip == 2


def test_one_statistic_serves_all_three(visits):
    plan = visits.plan(asked("COVAR_POP(age, amount), CORR(amount, age), COVAR_SAMP(age, amount)"))
    assert len(plan.statistics) == 1 and set(plan.answers.values()) == {0}
    assert sum(each.share for each in plan.measures) == 1
    assert len(visits.plan(asked("COVAR_POP(age, amount)")).measures) == 4
    different = visits.plan(asked("COVAR_POP(age, amount), COVAR_POP(age, change)"))
    assert len(different.statistics) == 2


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("what", ["COVAR_POP(age, change)", "CORR(age, change)", "CORR(age, amount)"])
def test_shares_are_better_than_equal_ones(what, accounting, asker):
    """By the noise error that a preview tells, in a group large enough that it is not the bounds."""
    plan = asker(accounting=accounting).plan(asked(what))
    (statistic,) = plan.statistics
    equal = tuple(replace(each, share=Fraction(1, len(statistic.measures))) for each in statistic.measures)
    plain = replace(plan, statistics=(replace(statistic, measures=equal),))
    ours, theirs = (preview_plan(each, (100.0,), 0.95, {}).choices[0].noise_error[0] for each in (plan, plain))
    assert ours is not None and theirs is not None and 0 < ours <= theirs


def test_a_plan_tells_what_is_multiplied(visits):
    plan = visits.plan(asked("CORR(age, amount)"))
    text = describe_plan(plan, price_plan(plan, 0.5))
    assert "sum of products of age and amount" in text and text.count("sum of squares") == 2
