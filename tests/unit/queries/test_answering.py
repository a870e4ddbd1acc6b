"""Look once, then only post-process: what is stored gives the same table each time."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dalenius.errors import LedgerCorruptError
from dalenius.measuring._exact import exact
from dalenius.mechanisms.laws import DiscreteGaussianLaw
from dalenius.queries.answering import Answer, measure_plan, pack, unpack
from dalenius.queries.rules.price import price_plan

TABLE = pa.table(
    {
        "user_id": pa.array(range(400), pa.int64()),
        "region": ["north", "south", "east", "mars"] * 100,
        "age": [20.0, 30.0, 40.0, 50.0] * 100,
        "when": pa.array([None] * 400, pa.date32()),
        "child": [0.0, 1.0, 2.0, 9.0] * 100,
    }
)
SQL = "SELECT region, COUNT(*) AS n, AVG(age) AS a, SUM(age) / COUNT(*) AS b FROM visits GROUP BY region"


def content(who, memory, sql, epsilon):
    plan = who.plan(sql)
    return plan, measure_plan(plan, price_plan(plan, epsilon), memory(TABLE), "salt", 60.0)


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_what_is_stored_is_read_back(accounting, asker, memory):
    plan, stored = content(asker(accounting=accounting), memory, SQL, 0.7)
    answer = Answer.read(plan, stored, 0.95)
    price = price_plan(plan, 0.7)
    assert (answer.epsilon, answer.rho) == (0.7, price.rho)
    assert [law for law, _ in answer.measures] == [each.noise for each in price.mechanisms]
    written = json.loads(stored)
    assert [[str(each) for each in values] for _, values in answer.measures] == [
        each["values"] for each in written["measures"]
    ]
    assert all(len(values) == len(plan.cells) for _, values in answer.measures)


def test_equal_content_gives_an_equal_table(visits, memory):
    plan, stored = content(visits, memory, SQL, 0.7)
    one, other = (Answer.read(plan, stored, 0.95).table() for _ in range(2))
    assert one == other


def test_other_words_read_the_same_content(visits, memory):
    plan, stored = content(visits, memory, SQL, 0.7)
    other = visits.plan(
        "SELECT SUM(age) AS s, COUNT(*) AS rows, AVG(visits.AGE), region FROM visits GROUP BY 4 ORDER BY region LIMIT 2"
    )
    assert other.canonical() == plan.canonical()
    one, two = Answer.read(plan, stored, 0.95).table(), Answer.read(other, stored, 0.95).table()
    by_region = {row[0]: row[1:] for row in one.rows}
    assert [row[3] for row in two.rows] == ["east", "north"]
    for row in two.rows:
        assert row[1:3] == by_region[row[3]][:2]


def test_two_looks_have_different_noise(visits, memory):
    # 12 Gaussian numbers of σ > 30 agree with a chance below 1e-15
    (_, one), (_, other) = (content(visits, memory, SQL, 0.1) for _ in range(2))
    assert one != other


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_with_much_budget_the_answer_is_near_the_exact_integers(accounting, asker, memory):
    """Noise of 20 standard deviations or more has a chance below 1e-8 for Laplace, and less for Gaussian noise."""
    who = asker(accounting=accounting)
    plan, stored = content(who, memory, SQL, 2.5)
    truth = exact(plan, memory(TABLE), "salt")
    answer = Answer.read(plan, stored, 0.95)
    for (law, noisy), vector in zip(answer.measures, truth, strict=True):
        deviation = law.noise_error(0.95)
        assert all(abs(one - other) <= 20 * deviation for one, other in zip(noisy, vector, strict=True))


def test_more_confidence_is_a_wider_error_of_the_same_numbers(visits, memory):
    plan, stored = content(visits, memory, SQL, 0.7)
    narrow, wide = (Answer.read(plan, stored, each).table() for each in (0.8, 0.99))
    assert narrow.rows == wide.rows
    for one, other in zip(narrow.noise_error, wide.noise_error, strict=True):
        assert one[1] is not None and other[1] is not None and one[1] < other[1]


def test_whole_keys_are_shown_without_a_point(visits, memory):
    plan, stored = content(visits, memory, "SELECT child, COUNT(*) FROM visits GROUP BY child", 1.0)
    table = Answer.read(plan, stored, 0.95).table()
    assert [row[0] for row in table.rows] == [0, 1, 2] and all(type(row[0]) is int for row in table.rows)
    assert all(type(row[1]) is int for row in table.rows)


@pytest.mark.parametrize("change", [{"format": 99}, {"measures": []}])
def test_content_of_another_form_is_not_guessed_at(change, visits, memory):
    plan, stored = content(visits, memory, SQL, 0.7)
    with pytest.raises(LedgerCorruptError):
        Answer.read(plan, json.dumps(json.loads(stored) | change).encode(), 0.95)


def test_nothing_but_noisy_integers_and_their_laws_is_stored(visits, memory):
    _, stored = content(visits, memory, SQL, 0.7)
    data = json.loads(stored)
    assert set(data) == {"format", "epsilon", "delta", "rho", "measures"}
    assert all(set(each) == {"law", "values", "bits"} for each in data["measures"])


def test_packed_integers_come_back_within_a_thousandth_of_their_noise():
    draw = np.random.default_rng(2)
    law, quiet = DiscreteGaussianLaw(Fraction(10**12)), DiscreteGaussianLaw(Fraction(1))
    values = [int(each) for each in draw.normal(0, 1e6, 4000)] + [2**50, -(2**50), 0]
    stored = pack(values, law)
    assert max(abs(a - b) for a, b in zip(values, unpack(stored), strict=True)) <= 1e6 / 1000
    assert len(stored["zlib"]) < 4000 * 3
    assert unpack(pack(values, quiet)) == tuple(values)
    large = [2**90, -(2**90) + 1]
    assert unpack(pack(large, quiet)) == tuple(large) and unpack(pack([], quiet)) == ()
