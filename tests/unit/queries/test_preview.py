"""A preview never touches the data, and promises the errors that the mechanisms have."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from dalenius.app.views.answers import expected_error
from dalenius.measuring.engines.duckdb.backend import DuckDBPool
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.measuring.plan import Found
from dalenius.queries.plan_words import describe_plan
from dalenius.queries.preview import CHOICES, Choice, Preview, preview_plan
from dalenius.queries.rules import plan_question
from dalenius.queries.rules.price import price_plan

LEFT = {"analyst": {"epsilon": 1.0, "delta": 0.0}, "dataset": {"epsilon": 3.0, "delta": 0.0}}


@pytest.fixture
def no_engine(monkeypatch):
    def never(*_, **__):
        raise AssertionError("a preview looked at the data")

    for each in ("__init__", "run", "_cursor"):
        monkeypatch.setattr(DuckDB, each, never)
    monkeypatch.setattr(DuckDBPool, "of", never)


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("sql", ["SELECT COUNT(*), SUM(amount), COUNT(DISTINCT user_id) FROM visits"])
def test_errors_are_those_of_the_mechanisms(sql, accounting, asker, no_engine):
    plan = asker(accounting=accounting).plan(sql)
    found = preview_plan(plan, CHOICES, 0.9, LEFT)
    assert [each.epsilon for each in found.choices] == list(CHOICES)
    for choice in found.choices:
        price = price_plan(plan, choice.epsilon)
        assert choice.rho == price.rho
        for output, error in zip(plan.question.outputs, choice.noise_error, strict=True):
            number = plan.answers[output.expression]
            at = sum(len(each.measures) for each in plan.statistics[:number])
            expected = price.mechanisms[at].noise.noise_error(0.9) * plan.measures[at].step
            assert error == pytest.approx(float(expected))


def test_more_epsilon_is_less_error(visits, no_engine):
    found = preview_plan(visits.plan("SELECT region, COUNT(*) FROM visits GROUP BY region"), CHOICES, 0.95, LEFT)
    errors = [each.noise_error[1] or 0.0 for each in found.choices]
    assert errors == sorted(errors, reverse=True) and found.groups == 4
    assert found.choices[0].noise_error[0] is None  # a key has none


def test_errors_are_told_to_two_digits_and_never_with_an_exponent_or_as_nothing():
    choice = Choice(0.5, None, (None, 26_123.0, 0.0, 0.0234), (None, 6_554.3, None, None), 0.0, (False,) * 4)
    found = Preview(("k", "a", "b", "c"), 1, (choice,), 0.95, "", LEFT)
    assert "a ± 26,000 (in all 6,600), b ± 0, c ± 0.023" in str(found) and str(found).startswith("1 group,")
    assert [expected_error(choice, place) for place in range(4)] == ["", "± 26,000", "± 0", "± 0.023"]


def test_an_average_is_told_for_a_group_of_some_size(visits, no_engine):
    found = preview_plan(visits.plan("SELECT AVG(age), STDDEV(age), AVG(age) * 2 FROM visits"), (0.5,), 0.95, LEFT)
    (choice,) = found.choices
    average, deviation, computed = choice.noise_error
    assert average is not None and deviation is not None and 0 < average < 90 and 0 < deviation < 90
    assert computed == pytest.approx(2 * average)  # arithmetic on expected numbers
    assert choice.total_error == (None, None, None) and "group of 1,000 rows" in found.notes[-1]


def test_a_preview_reads_as_text_and_as_json(visits, no_engine):
    found = preview_plan(visits.plan("SELECT region, COUNT(*) AS n FROM visits GROUP BY region"), (0.2,), 0.95, LEFT)
    assert "4 groups" in str(found) and "ε = 0.2: n ±" in str(found) and "95%" in str(found)
    data = found.to_dict()
    assert data["columns"] == ["region", "n"] and data["groups"] == 4 and data["remaining"] == LEFT
    assert data["choices"][0]["noise_error"][0] is None


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_the_plan_tells_every_step_and_its_price(accounting, asker, no_engine):
    plan = asker(accounting=accounting).plan(
        "SELECT region, AVG(age) AS a, COUNT(DISTINCT user_id) FROM visits WHERE smoker GROUP BY region"
    )
    text = describe_plan(plan, price_plan(plan, 0.5))
    for part in (
        "table     visits",
        "one user_id",
        "smoker",
        "region",
        "at most 2 of them",
        "count units",
        "sum of age",
    ):
        assert part in text
    for measure in plan.measures:
        assert f"{measure.sensitivity:,}" in text
    assert text.count("noise ") == len(plan.measures)
    assert ("discrete Gaussian" if accounting == "zcdp" else "discrete Laplace") in text


@pytest.mark.parametrize("found", [None, Found(7, {"amount": Fraction(900)}, {"region": 3}, 40, 90, {"note": 5})])
def test_every_aggregate_has_a_preview_where_keys_have_to_be_found(found, asker, no_engine):
    table = asker(contribution="rows = 10" if found is None else "").table
    for asked in (
        "COUNT(*)", "COUNT(amount)", "COUNT(DISTINCT user_id)", "COUNT(DISTINCT age)", "COUNT(DISTINCT note)",
        "SUM(amount)", "SUM(change)", "AVG(amount)", "AVG(change)", "VAR_POP(age)", "VAR_SAMP(age)", "STDDEV_POP(age)",
        "STDDEV_SAMP(age)", "COVAR_POP(age, amount)", "COVAR_SAMP(age, change)", "CORR(age, amount)", "MEDIAN(age)",
        "QUANTILE_CONT(amount, 0.9)", "MIN(age)", "MAX(amount)",
    ):  # fmt: skip
        plan = plan_question(f"SELECT note, {asked} FROM visits GROUP BY note", {"visits": replace(table, found=found)})
        assert plan.selection is not None and plan.cells == ()
        preview = preview_plan(plan, CHOICES, 0.95, LEFT)
        assert preview.groups is None and preview.delta > 0 and "found privately" in str(preview)
        assert "found privately" in preview.plan and preview.to_dict()["groups"] is None
        for choice in preview.choices:
            _, error = choice.noise_error
            assert error is not None and math.isfinite(error) and error > 0, asked
