"""Subqueries that group by unit: one row per person, made of that person's rows alone."""

from __future__ import annotations

import pytest
from tests.shop import Shop, data, questions

from dalenius.errors import InputError, NotAllowedError, QuestionRefusedError

BY_USER = "SELECT user_id, {} AS t FROM orders GROUP BY user_id"


@pytest.mark.parametrize(
    "question",
    questions(
        """
SELECT COUNT(*) FROM (SELECT user_id, SUM(amount) AS t FROM orders GROUP BY user_id) x WHERE t > 40
;
SELECT SUM(t) FROM (SELECT user_id, COUNT(*) AS t FROM orders GROUP BY user_id) x
;
SELECT SUM(t) FROM (SELECT user_id, COUNT(amount) AS t FROM orders GROUP BY user_id) x
;
SELECT SUM(t) FROM (SELECT user_id, COUNT(DISTINCT region) AS t FROM orders GROUP BY user_id) x
;
SELECT SUM(t) FROM (SELECT user_id, SUM(amount) AS t FROM orders GROUP BY user_id) x
;
SELECT SUM(t) FROM (SELECT user_id, MAX(amount) AS t FROM orders GROUP BY user_id) x
;
SELECT SUM(t) FROM (SELECT user_id, MIN(amount) + MAX(amount) AS t FROM orders GROUP BY user_id) x
;
SELECT COUNT(t) FROM (SELECT user_id, AVG(amount) AS t FROM orders GROUP BY user_id) x WHERE t > 12
;
SELECT COUNT(*) FROM (SELECT user_id, MIN(day) AS t FROM orders GROUP BY user_id) x WHERE t < '2025-02-01'
;
SELECT COUNT(*) FROM (SELECT user_id, MAX(status) AS t FROM orders GROUP BY user_id) x WHERE t = 'open'
;
SELECT SUM(t) FROM (SELECT user_id, SUM(amount) FILTER (WHERE status = 'done') AS t FROM orders GROUP BY user_id) x
;
SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS t FROM orders GROUP BY user_id HAVING COUNT(*) > 2 AND
  MAX(amount) > 15) x
;
SELECT COUNT(*) FROM (SELECT user_id, region FROM orders GROUP BY user_id, region) x
;
SELECT COUNT(*) FROM (SELECT DISTINCT user_id, status FROM orders) x WHERE status = 'open'
;
SELECT SUM(n) FROM (SELECT user_id, EXTRACT(month FROM day) AS m, COUNT(*) AS n FROM orders GROUP BY 1, 2) x WHERE
  m > 6
;
SELECT SUM(n) FROM (SELECT COUNT(*) AS n, o.user_id FROM orders o JOIN items i USING (order_id) GROUP BY o.user_id)
  x
;
SELECT COUNT(*) FROM people p JOIN (SELECT user_id, SUM(amount) AS s FROM orders GROUP BY user_id) t ON t.user_id =
  p.user_id WHERE t.s > p.age
;
SELECT COUNT(*) FROM people p LEFT JOIN (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id HAVING COUNT(*)
  > 2) t ON t.user_id = p.user_id WHERE t.n IS NULL
;
SELECT SUM(x.n * y.n) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) x JOIN (SELECT user_id,
  COUNT(*) AS n FROM orders WHERE amount > 10 GROUP BY user_id) y USING (user_id)
;
SELECT COUNT(*) FROM people WHERE user_id IN (SELECT user_id FROM orders GROUP BY user_id HAVING SUM(amount) > 40)
;
SELECT COUNT(*) FROM people WHERE user_id NOT IN (SELECT user_id FROM orders GROUP BY user_id HAVING COUNT(*) > 3)
;
WITH a AS (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY 1), b AS (SELECT user_id, n + 1 AS m FROM a) SELECT
  SUM(m) FROM b JOIN people USING (user_id)
;
SELECT SUM(m) FROM (SELECT user_id, MAX(n) AS m FROM (SELECT user_id, region, COUNT(*) AS n FROM orders GROUP BY
  user_id, region) x GROUP BY user_id) y
;
SELECT SUM(n) FROM (SELECT order_id, COUNT(*) AS n FROM items GROUP BY order_id) x WHERE n > 1
;
SELECT COUNT(*) FROM orders o JOIN (SELECT order_id, SUM(quantity) AS q FROM items GROUP BY order_id) t ON
  t.order_id = o.order_id WHERE t.q > 4
"""
    ),
)
def test_sums_within_a_unit_are_those_of_plain_sql(shop, question):
    plan, ((found,),) = shop.plan(question), shop.exact(question)
    measure = plan.measures[0]
    assert measure.centre == 0
    assert found * float(measure.step) == pytest.approx(float(shop.plain(question)[0][0]), abs=1e-6)
    assert found > 0


@pytest.mark.parametrize(
    ("aggregate", "low", "high"),
    [
        ("COUNT(*)", 0, 7),
        ("COUNT(DISTINCT day)", 0, 7),
        ("SUM(amount)", 0, 700),  # 7 rows of at most 100; the declared total of 1000 is more
        ("SUM(amount - 50)", -350, 350),
        ("AVG(amount)", 0, 100),
        ("MAX(amount)", 0, 100),
        ("MIN(amount - 50)", -50, 50),
    ],
)
def test_columns_of_the_subquery_have_the_bounds_that_follow(narrow, aggregate, low, high):
    plan = narrow.plan(f"SELECT SUM(t) FROM ({BY_USER.format(aggregate)}) x")
    (column,) = (each for name, each in plan.table.policy.columns.items() if name.endswith("a0"))
    assert (column.bounds.low, column.bounds.high) == (low, high)
    measure = plan.measures[0]
    assert measure.clip * measure.step == max(-low, high)  # one row per unit


def test_one_row_per_unit_counts_once_and_more_keys_as_often_as_rows(narrow):
    assert narrow.plan(f"SELECT COUNT(*) FROM ({BY_USER.format('COUNT(*)')}) x").measures[0].clip == 1
    by_region = "SELECT COUNT(*) FROM (SELECT user_id, region FROM orders GROUP BY user_id, region) x"
    assert narrow.plan(by_region).measures[0].clip == 7


def test_what_lies_beyond_the_bounds_is_clipped(tmp_path):
    """A person with 27 rows where 3 are the limit counts as 3, in the subquery and outside."""
    tables = data()
    one = tables["orders"].set_column(1, "user_id", [[1] * 30])
    shop = Shop.protected(tmp_path, {**tables, "orders": one}, rows=3)
    assert shop.count(f"SELECT SUM(t) FROM ({BY_USER.format('COUNT(*)')}) x") == 3
    assert shop.count(f"SELECT COUNT(*) FROM ({BY_USER.format('COUNT(*)')}) x WHERE t > 3") == 0


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("SELECT region, SUM(amount) AS t FROM orders GROUP BY region", "groups are not within one unit"),
        ("SELECT SUM(amount) AS t FROM orders", "groups are not within one unit"),
        ("SELECT DISTINCT region AS t FROM orders", "groups are not within one unit"),
        (
            "SELECT COUNT(*) AS t FROM people p JOIN orders o USING (user_id) GROUP BY p.age",
            "groups are not within one unit",
        ),
        ("SELECT user_id, MEDIAN(amount) AS t FROM orders GROUP BY user_id", "QUANTILE cannot stand in a subquery"),
        ("SELECT user_id, STDDEV(amount) AS t FROM orders GROUP BY user_id", "STDDEV_SAMP cannot stand in a subquery"),
        ("SELECT DISTINCT user_id, COUNT(*) AS t FROM orders GROUP BY user_id", "DISTINCT beside GROUP BY"),
    ],
)
def test_groups_of_several_people_are_refused(shop, inside, words):
    error = shop.error(f"SELECT COUNT(*)\nFROM ({inside}) x")
    assert isinstance(error, QuestionRefusedError) and words in error.message
    assert error.at is not None and error.at.line == 2 and error.fix


def test_other_mistakes_inside_are_told(shop):
    error = shop.error("SELECT COUNT(*) FROM (SELECT user_id, amount FROM orders GROUP BY user_id) x")
    assert isinstance(error, InputError) and "'orders.amount' stands outside an aggregate" in error.message
    error = shop.error("SELECT SUM(t) FROM (SELECT user_id, SUM(amount / amount) AS t FROM orders GROUP BY user_id) x")
    assert isinstance(error, NotAllowedError) and "has no bounds" in error.message
    error = shop.error("SELECT COUNT(*) FROM (SELECT user_id, SUM(user_id) AS t FROM orders GROUP BY user_id) x")
    assert isinstance(error, NotAllowedError) and "says who somebody is" in error.message
    error = shop.error(f"SELECT t, user_id, COUNT(*) FROM ({BY_USER.format('COUNT(*)')}) x GROUP BY t, user_id")
    assert "about one user_id each" in error.message


@pytest.mark.parametrize("constant", ["1e12", "1e22", "1e300"])
def test_sums_of_huge_numbers_do_not_overflow(shop, constant):
    """A row adds at most 2⁵³ steps, so no number of rows leaves 128 bits; doubles are as coarse as that anyway."""
    inside = BY_USER.format(f"SUM(amount + {constant})")
    assert shop.count(f"SELECT COUNT(*) FROM ({inside}) x WHERE t > 0") == 9


def test_the_least_of_dates_and_texts_is_worked_out_within_a_unit_only(shop):
    for what in ("MIN(day)", "MAX(status)"):
        assert (
            "stands where a number belongs"
            in shop.error(f"SELECT {what} FROM orders JOIN people USING (user_id)").message
        )
