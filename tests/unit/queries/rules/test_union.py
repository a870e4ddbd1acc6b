"""UNION ALL: rows of several tables of one data set, each with its own unit."""

from __future__ import annotations

import pytest
from tests.shop import Shop, questions

from dalenius.errors import QuestionRefusedError
from dalenius.tables.policy import Bounds

BOTH = "SELECT user_id, amount AS x FROM orders UNION ALL SELECT user_id, age FROM people"


@pytest.mark.parametrize(
    "question",
    questions(
        """
SELECT COUNT(*) FROM (SELECT user_id, amount AS x FROM orders UNION ALL SELECT user_id, age FROM people) u
;
SELECT COUNT(x) FROM (SELECT user_id, amount AS x FROM orders UNION ALL SELECT user_id, age FROM people) u WHERE x
  > 20
;
SELECT SUM(x) FROM (SELECT user_id, amount AS x FROM orders UNION ALL SELECT user_id, age FROM people) u
;
SELECT COUNT(DISTINCT user_id) FROM (SELECT user_id, amount AS x FROM orders UNION ALL SELECT user_id, age FROM
  people) u WHERE x < 30
;
SELECT COUNT(*) FROM (SELECT user_id, amount AS x FROM orders UNION ALL SELECT user_id, age FROM people UNION ALL
  SELECT user_id, 5 FROM orders) u WHERE x = 5
;
SELECT COUNT(*) FROM (SELECT user_id, amount AS x FROM orders UNION ALL SELECT user_id, age FROM people) u JOIN
  people p ON p.user_id = u.user_id WHERE p.age > 30
;
SELECT COUNT(*) FROM people p WHERE p.user_id IN (SELECT user_id FROM (SELECT user_id, amount AS x FROM orders
  UNION ALL SELECT user_id, age FROM people) u WHERE x > 60)
;
SELECT COUNT(*) FROM (SELECT user_id, SUM(x) AS s FROM (SELECT user_id, amount AS x FROM orders UNION ALL SELECT
  user_id, age FROM people) u GROUP BY user_id) t WHERE s > 80
;
SELECT COUNT(*) FROM (SELECT user_id, NULL AS x FROM orders UNION ALL SELECT user_id, age FROM people) u WHERE x >
  30
;
SELECT COUNT(*) FROM (SELECT user_id, region FROM orders UNION ALL SELECT user_id, region FROM people) u JOIN
  regions r ON r.code = u.region WHERE r.tax > 1
;
SELECT COUNT(*) FROM (SELECT o.user_id, i.quantity AS x FROM orders o JOIN items i USING (order_id) UNION ALL
  SELECT user_id, age FROM people WHERE smoker) u WHERE x > 2
;
SELECT SUM(x) FROM (SELECT user_id, COUNT(*) AS x FROM orders GROUP BY user_id UNION ALL SELECT user_id, age FROM
  people) u
;
WITH u AS (SELECT user_id FROM orders UNION ALL SELECT user_id FROM orders) SELECT COUNT(*) FROM u
"""
    ),
)
def test_the_rows_are_those_of_plain_sql(shop, question):
    plan, ((found,),) = shop.plan(question), shop.exact(question)
    measure = plan.measures[0]
    assert measure.centre == 0
    assert found * float(measure.step) == float(shop.plain(question)[0][0]) > 0


def test_groups_are_those_of_all_parts(shop):
    both = "SELECT user_id, region FROM orders UNION ALL SELECT user_id, region FROM people"
    question = f"SELECT region, COUNT(*) FROM ({both}) u GROUP BY region"
    plan, (counts,) = shop.plan(question), shop.exact(question)
    assert {cell[0]: count for cell, count in zip(plan.cells, counts, strict=True)} == dict(shop.plain(question))


def test_limits_add_up(tmp_path):
    shop = Shop.protected(tmp_path, rows=7)
    assert shop.plan(f"SELECT COUNT(*) FROM ({BOTH}) u").measures[0].clip == 8  # 7 orders and 1 person
    twice = "SELECT COUNT(*) FROM (SELECT user_id FROM orders UNION ALL SELECT user_id FROM orders) u"
    assert shop.plan(twice).measures[0].clip == 14
    # what a part may be beyond the other is within the bounds of both
    (column,) = (
        each
        for name, each in shop.plan(f"SELECT SUM(x) FROM ({BOTH}) u").table.policy.columns.items()
        if name.endswith("c1")
    )
    assert column.bounds == Bounds(0, 100)


@pytest.mark.parametrize(
    ("union", "words"),
    [
        ("SELECT user_id, amount FROM orders UNION ALL SELECT user_id FROM people", "different numbers of columns"),
        (
            "SELECT user_id, amount FROM orders UNION ALL SELECT user_id, note FROM people",
            "Column 2 of UNION ALL has different types",
        ),
        ("SELECT user_id FROM orders UNION ALL SELECT code FROM regions", "reads public tables only"),
        ("SELECT user_id FROM orders UNION ALL SELECT age FROM people", "says who somebody is in one part only"),
        ("SELECT user_id FROM orders UNION ALL SELECT order_id FROM orders", "says who somebody is in one part only"),
        ("SELECT user_id FROM orders UNION SELECT user_id FROM people", "UNION is not supported"),
        ("SELECT user_id FROM orders UNION ALL BY NAME SELECT user_id FROM people", "UNION is not supported"),
        ("SELECT user_id FROM orders INTERSECT SELECT user_id FROM people", "INTERSECT is not supported"),
        ("SELECT user_id FROM orders EXCEPT ALL SELECT user_id FROM people", "EXCEPT is not supported"),
        ("SELECT user_id FROM orders UNION ALL (SELECT user_id FROM orders LIMIT 1)", "LIMIT in a subquery"),
    ],
)
def test_parts_that_do_not_fit_are_refused(shop, union, words):
    error = shop.error(f"SELECT COUNT(*) FROM ({union}) u")
    assert isinstance(error, QuestionRefusedError) and words in error.message
    assert error.at is not None and error.fix
