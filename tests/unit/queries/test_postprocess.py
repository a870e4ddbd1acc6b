"""What is done with released values: HAVING, ORDER BY, LIMIT, and arithmetic whose noise error holds."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from dalenius.measuring.estimates import Estimate, NoisySum, total
from dalenius.measuring.measures import count_in
from dalenius.mechanisms.laws import DiscreteGaussianLaw
from dalenius.queries.postprocess import key_columns, tabulate

REGIONS = ["north", "south", "east", "west"]


def shown(who, sql, values):
    """The table that the question shows, when its aggregates have these values, in the order in which it names them."""
    plan = who.plan(sql)
    estimates = {
        aggregate: [
            each if isinstance(each, Estimate) else Estimate(each, 1.0, each - 1.0, each + 1.0) for each in column
        ]
        for aggregate, column in zip(plan.question.aggregates, values, strict=True)
    }
    keys = [[cell[at] for cell in plan.cells] for at in range(len(plan.keys))]
    return tabulate(plan, keys, estimates)


NOTHING = Estimate(None, 5.0, 0.0, 10.0)


def by_region(rest, columns="region, COUNT(*) AS n"):
    return f"SELECT {columns} FROM visits GROUP BY region {rest}"


def test_the_answer_has_the_questions_columns_and_every_group(visits):
    found = shown(visits, by_region(""), [[3, 1, 2, 1]])
    assert found.columns == ("region", "n") and found.keys == (True, False)
    assert found.rows == tuple(zip(REGIONS, [3, 1, 2, 1], strict=True))
    assert found.noise_error == ((None, 1.0),) * 4
    assert found.interval[0] == (None, (2.0, 4.0))


@pytest.mark.parametrize(
    ("rest", "regions"),
    [
        ("HAVING n > 1", ["north", "east"]),
        ("HAVING COUNT(*) < 2 OR region = 'north'", ["north", "south", "west"]),
        ("HAVING n > 100", []),
        ("HAVING region LIKE '%st'", ["east", "west"]),
        ("ORDER BY n", ["south", "west", "east", "north"]),
        ("ORDER BY n DESC", ["north", "east", "south", "west"]),
        ("ORDER BY n DESC, region DESC", ["north", "east", "west", "south"]),
        ("ORDER BY 2, 1", ["south", "west", "east", "north"]),
        ("ORDER BY ALL", ["east", "north", "south", "west"]),
        ("ORDER BY n * -1", ["north", "east", "south", "west"]),
        ("ORDER BY UPPER(region)", ["east", "north", "south", "west"]),
        ("LIMIT 2", ["north", "south"]),
        ("LIMIT 0", []),
        ("OFFSET 3", ["west"]),
        ("OFFSET 9", []),
        ("ORDER BY n LIMIT 2 OFFSET 1", ["west", "east"]),
        ("HAVING n < 3 ORDER BY n DESC LIMIT 1", ["east"]),
    ],
)
def test_rows_are_kept_sorted_and_cut_as_asked(rest, regions, visits):
    assert [row[0] for row in shown(visits, by_region(rest), [[3, 1, 2, 1]]).rows] == regions


@pytest.mark.parametrize(
    ("order", "values"),
    [
        ("a", [1, 2, 3, None]),
        ("a DESC", [3, 2, 1, None]),
        ("a NULLS FIRST", [None, 1, 2, 3]),
        ("a DESC NULLS FIRST", [None, 3, 2, 1]),
        ("a DESC NULLS LAST", [3, 2, 1, None]),
    ],
)
def test_an_average_that_the_noise_drowned_is_sorted_as_null(order, values, visits):
    sql = by_region(f"ORDER BY {order}", "AVG(age) AS a")
    assert [row[0] for row in shown(visits, sql, [[2, NOTHING, 1, 3]]).rows] == values


def test_having_drops_what_is_unknown(visits):
    found = shown(visits, by_region("HAVING AVG(age) > 0", "region, AVG(age)"), [[2, NOTHING, 1, 3]])
    assert [row[0] for row in found.rows] == ["north", "east", "west"]


@pytest.mark.parametrize(
    ("expression", "value", "error"),
    [
        ("COUNT(*) * 3", 30.0, 3.0),
        ("-COUNT(*)", -10.0, 1.0),
        ("COUNT(*) + SUM(age)", 14.0, 2**0.5),
        ("COUNT(*) - COUNT(*)", 0.0, 0.0),
        ("COUNT(*) / 4", 2.5, 0.25),
        ("ROUND(COUNT(*) / 4)", 3.0, 1.0),
        ("COUNT(*) / 0", None, None),
        ("LN(SUM(age) - 100)", None, None),
        ("COUNT(*) * COUNT(*)", 100.0, 21.0),  # the larger of 11² − 10² and 10² − 9²
        ("CASE WHEN COUNT(*) > 5 THEN 'many' ELSE 'few' END", "many", None),
        ("COUNT(*) > 5", True, None),
        ("GREATEST(COUNT(*), 11.5)", 11.5, 0.0),
    ],
)
def test_arithmetic_on_aggregates_carries_their_noise(expression, value, error, visits):
    sql = f"SELECT {expression} AS e FROM visits"
    plan = visits.plan(sql)
    found = shown(visits, sql, [[10] if each.kind == "count" else [4] for each in plan.question.aggregates])
    assert found.rows == ((value,),)
    assert found.noise_error[0][0] == (None if error is None else pytest.approx(error))
    if error is not None:
        assert found.interval[0][0] == pytest.approx((value - error, value + error))


def test_what_is_unknown_stays_unknown_in_arithmetic(visits):
    found = shown(visits, "SELECT AVG(age) + COUNT(*) FROM visits", [[NOTHING], [3]])
    assert found.rows == ((None,),) and found.noise_error == ((None,),)


def test_a_constant_or_a_key_has_no_noise(visits):
    found = shown(visits, by_region("", "UPPER(region), 7 AS seven, COUNT(*)"), [[1, 1, 1, 1]])
    assert found.keys == (True, True, False)
    assert found.rows[0] == ("NORTH", 7.0, 1) and found.noise_error[0][:2] == (None, None)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("COUNT(*) * 3", 39),
        ("COUNT(*) + 1", 14),
        ("-COUNT(*)", -13),
        ("COUNT(*) - SUM(age)", -4),
        ("COUNT(*) // 2", 6),
        ("COUNT(*) % 5", 3),
        ("COALESCE(SUM(age), 0)", 17),
        ("GREATEST(COUNT(DISTINCT user_id), 2)", 5),
        ("CASE WHEN COUNT(*) > 5 THEN COUNT(*) ELSE 0 END", 13),
        ("CAST(AVG(age) AS INTEGER)", 2),
        ("ROUND(AVG(age))", 3),
        ("17", 17),
        ("COUNT(*) / 13", 1.0),
        ("COUNT(*) * 0.5", 6.5),
        ("COUNT(*) + 0.5", 13.5),
        ("SUM(amount) * 2", 35.0),
        ("AVG(age) * 2", 5.0),
        ("SQRT(COUNT(*) + 3)", 4.0),
        ("CAST(COUNT(*) AS VARCHAR)", "13"),
        ("CAST(COUNT(*) * 3 AS VARCHAR)", "39"),
        ("CAST(SUM(age) AS VARCHAR) || ' years'", "17 years"),
        ("CAST(17 AS VARCHAR)", "17"),
        ("CAST(COUNT(*) / 13 AS VARCHAR)", "1.0"),
        ("CAST(SUM(amount) AS VARCHAR)", "17.5"),
        ("CAST(AVG(age) * 2 AS VARCHAR)", "5.0"),
    ],
)
def test_integers_of_integers_are_integers_and_print_as_such(expression, value, visits):
    sql = f"SELECT {expression} AS e, COUNT(*) FROM visits"
    values = {"count": 13, "units": 5, "sum": 17, "avg": 2.5}
    of = {each: 17.5 if "amount" in str(each) else values[each.kind] for each in visits.plan(sql).question.aggregates}
    ((found, _),) = shown(visits, sql, [[each] for each in of.values()]).rows
    assert (found, type(found)) == (value, type(value))


def test_a_sum_that_is_released_in_fractions_is_no_integer(visits):
    """Whether it is depends on the step it is rounded to: here one below 1."""
    found = shown(visits, "SELECT SUM(age) + 1 AS e, CAST(SUM(age) AS VARCHAR) FROM visits", [[17.0]])
    assert found.rows == ((18.0, "17.0"),) and type(found.rows[0][0]) is float


def test_a_key_that_is_an_integer_prints_as_one(visits):
    columns = "CAST(child AS VARCHAR) AS a, child + 1 AS b, child / 1 AS c, CAST(child / 1 AS VARCHAR), COUNT(*)"
    plan = visits.plan(f"SELECT {columns} FROM visits GROUP BY child")
    estimates = {each: [Estimate(1, 1.0, 0.0, 2.0)] * 3 for each in plan.question.aggregates}
    rows = tabulate(plan, key_columns(plan), estimates).rows
    assert rows == (("0", 1, 0.0, "0.0", 1), ("1", 2, 1.0, "1.0", 1), ("2", 3, 2.0, "2.0", 1))
    assert [type(each) for each in rows[0][1:3]] == [int, float]


@pytest.mark.parametrize("expression", ["100 * SUM(age) / COUNT(*)", "SUM(age) + 3 * COUNT(*)", "SQRT(SUM(age))"])
def test_the_noise_error_of_arithmetic_covers_as_often_as_it_says(expression, visits, rounds):
    """A share below 0.93 of 4,000 draws at 0.95 each has a chance below 1e-6 (Chernoff: e⁻¹⁵); the draws are fixed."""
    draws = max(4000, rounds(40_000))
    plan = visits.plan(f"SELECT {expression} AS e FROM visits")
    names = plan.question.aggregates
    chance = random.Random(95)
    laws = {each: DiscreteGaussianLaw(Fraction(variance)) for each, variance in zip(names, (400, 100), strict=False)}
    truth = {each: 50_000 if each.kind == "sum" else 1200 for each in names}
    arithmetic = {
        "100 * SUM(age) / COUNT(*)": lambda s, n: 100 * s / n,
        "SUM(age) + 3 * COUNT(*)": lambda s, n: s + 3 * n,
        "SQRT(SUM(age))": lambda s, n: s**0.5,
    }[expression]

    def exact(values):
        pair = {each.kind: values[each] for each in names}
        return arithmetic(pair.get("sum", 0), pair.get("count", 1))

    columns = {}
    for each in names:
        sigma = float(laws[each].variance) ** 0.5
        noisy = [truth[each] + round(chance.gauss(0, sigma)) for _ in range(draws)]
        columns[each] = [total(NoisySum(value, laws[each]), Fraction(1), 0.95) for value in noisy]
    # one group per draw: the view of a table with as many cells
    found = tabulate(replace(plan, cells=((),) * draws), [], columns)
    ends = [row[0] for row in found.interval]
    covered = sum(each is not None and each[0] <= exact(truth) <= each[1] for each in ends)
    assert 0.93 <= covered / draws <= 0.975


def test_the_estimator_of_each_kind_is_used(visits):
    plan = visits.plan("SELECT AVG(age), STDDEV(age), COUNT(*) FROM visits")
    plan = count_in(plan, [0] * len(plan.measures))
    law = DiscreteGaussianLaw(Fraction(1))
    found = {}
    for aggregate, number in plan.answers.items():
        statistic = plan.statistics[number]
        values = [1000, 0, 25_000][: len(statistic.measures)]
        reading = statistic.family.read(statistic, [(law, [each]) for each in values], 1, 0.95)
        found[aggregate.kind] = reading.estimates(aggregate)[0].value
    assert found == {"avg": 54.0, "stddev_samp": pytest.approx((25 * 1000 / 999) ** 0.5), "count": 1000}
