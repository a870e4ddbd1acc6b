"""Subqueries in FROM, WITH, EXISTS and IN: SQL's meaning, also of NULL, within one unit."""

from __future__ import annotations

import pytest
from tests.shop import Shop, questions

from dalenius.errors import InputError, NotAllowedError, QuestionRefusedError, UnknownTableError

OWN = "WHERE o.user_id = p.user_id"


@pytest.mark.parametrize(
    "question",
    questions(
        """
SELECT COUNT(*) FROM (SELECT * FROM orders) o WHERE o.amount > 10
;
SELECT COUNT(*) FROM (SELECT * FROM orders ORDER BY day) o
;
SELECT COUNT(*) FROM (SELECT o.* FROM orders o JOIN people p USING (user_id) WHERE p.age > 30) x WHERE amount > 10
;
SELECT COUNT(*) FROM (SELECT amount * 2 AS twice, user_id AS u FROM orders) o JOIN people ON people.user_id = o.u
  WHERE twice > age
;
SELECT COUNT(*) FROM (SELECT x FROM (SELECT amount + 1 AS x, status FROM orders) a WHERE status = 'open') b WHERE x
  < 9
;
WITH a AS (SELECT * FROM orders WHERE amount > 5), b AS (SELECT * FROM a WHERE amount < 20) SELECT COUNT(*) FROM b
;
WITH orders AS (SELECT * FROM orders WHERE amount > 10) SELECT COUNT(*) FROM orders
;
WITH people AS (SELECT * FROM orders) SELECT COUNT(*) FROM people WHERE amount > 10
;
WITH a AS (SELECT * FROM orders) SELECT COUNT(*) FROM (WITH a AS (SELECT * FROM people) SELECT * FROM a) b
;
WITH a AS (SELECT user_id, amount FROM orders) SELECT COUNT(*) FROM a x JOIN a y USING (user_id) WHERE x.amount <
  y.amount
;
WITH a(who, much) AS (SELECT user_id, amount FROM orders) SELECT COUNT(*) FROM a JOIN people ON who = user_id WHERE
  much > 10
;
SELECT COUNT(*) FROM (SELECT * FROM orders JOIN items USING (order_id)) x WHERE quantity > 2 AND amount > 5
;
SELECT COUNT(*) FROM (SELECT p.*, r.tax FROM people p JOIN regions r ON r.code = p.region) x WHERE tax > 1
;
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND o.amount > 20)
;
SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND o.amount >
  20)
;
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND o.amount >
  p.age)
;
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND o.region =
  p.region) AND p.age IS NOT NULL
;
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND NOT EXISTS
  (SELECT 1 FROM items i WHERE i.order_id = o.order_id AND i.quantity > p.age / 20))
;
SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM orders x WHERE x.user_id = o.user_id AND x.day > o.day)
;
SELECT COUNT(*) FROM orders o WHERE o.order_id IN (SELECT order_id FROM items WHERE sku = 'a')
;
SELECT COUNT(*) FROM orders o WHERE o.order_id NOT IN (SELECT order_id FROM items WHERE sku = 'a')
;
SELECT COUNT(*) FROM people WHERE user_id IN (SELECT user_id FROM orders JOIN items USING (order_id) WHERE price >
  15)
;
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o JOIN regions r ON r.code = o.region WHERE
  o.user_id = p.user_id AND r.tax > 3)
;
SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE EXISTS (SELECT 1 FROM items i WHERE i.order_id =
  o.order_id AND i.price > p.age / 4)
;
SELECT COUNT(*) FROM people p JOIN orders o ON p.user_id = o.user_id AND EXISTS (SELECT 1 FROM items i WHERE
  i.order_id = o.order_id)
;
SELECT COUNT(*) FROM people p WHERE (p.user_id, p.region) IN (SELECT user_id, region FROM orders)
;
SELECT COUNT(*) FROM people p WHERE (p.user_id, p.region) NOT IN (SELECT user_id, region FROM orders)
;
SELECT COUNT(*) FROM people WHERE region IN (SELECT code FROM regions WHERE tax > 1)
;
SELECT COUNT(*) FROM people WHERE region NOT IN (SELECT code FROM regions WHERE tax > 1)
;
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM regions r WHERE r.code = p.region AND r.tax * 20 > p.age)
;
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM regions WHERE tax > 3)
;
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM regions WHERE tax > 4)
;
SELECT COUNT(*) FROM people p WHERE p.note IN (SELECT note FROM orders o WHERE o.user_id = p.user_id)
;
SELECT COUNT(*) FROM people p WHERE p.note NOT IN (SELECT note FROM orders o WHERE o.user_id = p.user_id)
;
SELECT COUNT(*) FROM people p WHERE NOT (p.note IN (SELECT note FROM orders o WHERE o.user_id = p.user_id AND
  o.note IS NOT NULL))
;
SELECT COUNT(*) FROM people p WHERE p.note NOT IN (SELECT note FROM orders o WHERE o.user_id = p.user_id AND o.note
  IS NULL)
;
SELECT COUNT(*) FROM people p WHERE p.note NOT IN (SELECT note FROM orders o WHERE o.user_id = p.user_id AND
  o.amount > 1000)
;
SELECT COUNT(*) FROM items WHERE sku NOT IN (SELECT sku FROM products WHERE cost > 3)
;
SELECT COUNT(*) FROM items WHERE sku NOT IN (SELECT sku FROM products WHERE cost = 4)
;
SELECT COUNT(*) FROM items WHERE sku NOT IN (SELECT sku FROM products WHERE cost > 100)
"""
    ),
)
def test_a_subquery_means_what_it_means_in_plain_sql(shop, question):
    assert shop.count(question) == shop.plain(question)[0][0]


def test_not_in_of_two_columns_is_true_where_no_pair_may_be_equal(shop):
    """DuckDB does not know this one; written out it does."""
    found = shop.count(
        f"SELECT COUNT(*) FROM people p WHERE (p.note, p.region) NOT IN (SELECT note, region FROM orders o {OWN})"
    )
    may = " AND ".join(f"(o.{name} = p.{name} OR o.{name} IS NULL OR p.{name} IS NULL)" for name in ("note", "region"))
    truth = shop.plain(f"SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM orders o {OWN} AND {may})")
    assert found == truth[0][0] > 0


def test_the_questions_above_tell_null_from_false(shop):
    """Teeth: with NULLs taken for values, or a list with NULL for one without, other numbers would come."""
    one = f"SELECT COUNT(*) FROM people p WHERE p.note NOT IN (SELECT note FROM orders o {OWN})"
    two = f"SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM orders o {OWN} AND o.note = p.note)"
    three = two.replace("WHERE NOT", "WHERE p.note IS NOT NULL AND NOT")
    assert len({shop.count(each) for each in (one, two, three)}) == 3
    assert shop.count("SELECT COUNT(*) FROM items WHERE sku NOT IN (SELECT sku FROM products WHERE cost > 3)") == 0
    assert shop.count("SELECT COUNT(*) FROM items WHERE sku NOT IN (SELECT sku FROM products WHERE cost = 4)") > 0


def test_a_cte_hides_a_table_and_sees_the_ones_before_it(shop):
    assert shop.count("WITH people AS (SELECT * FROM orders) SELECT COUNT(*) FROM people") == 27
    error = shop.error("WITH b AS (SELECT * FROM a), a AS (SELECT * FROM orders) SELECT COUNT(*) FROM b")
    assert isinstance(error, UnknownTableError) and "'a'" in error.message and error.at == (1, 26)
    error = shop.error("WITH a AS (SELECT * FROM orders), A AS (SELECT * FROM people) SELECT COUNT(*) FROM a")
    assert "WITH names 'A' twice" in error.message


def test_a_cte_that_nobody_reads_costs_nothing_and_changes_nothing(shop):
    question = "WITH a AS (SELECT * FROM people) SELECT COUNT(*) FROM orders"
    assert shop.count(question) == 27
    assert "people" not in shop.plan(question).table.reads


def test_columns_of_a_subquery_are_named_once(shop):
    error = shop.error("SELECT COUNT(*) FROM (SELECT * FROM people p JOIN orders o ON p.user_id = o.user_id) x")
    assert isinstance(error, QuestionRefusedError) and "are named 'user_id'" in error.message and "AS" in error.fix
    error = shop.error("SELECT COUNT(*) FROM (SELECT age, age FROM people) x")
    assert "are named 'age'" in error.message
    error = shop.error("WITH a(x) AS (SELECT age, region FROM people) SELECT COUNT(*) FROM a")
    assert isinstance(error, InputError) and "1 names do not fit" in error.message


def test_exists_within_one_unit_adds_no_rows(tmp_path):
    shop = Shop.protected(tmp_path, rows=7)
    for word in ("EXISTS", "NOT EXISTS"):
        plan = shop.plan(f"SELECT COUNT(*) FROM people p WHERE {word} (SELECT 1 FROM orders o {OWN})")
        assert plan.measures[0].clip == 1


UNTIED = "does not say that they are about the same unit"


@pytest.mark.parametrize(
    ("condition", "words", "column"),
    [
        ("EXISTS (SELECT 1 FROM orders o)", UNTIED, 59),
        ("EXISTS (SELECT 1 FROM orders o WHERE o.region = p.region)", UNTIED, 59),
        ("NOT EXISTS (SELECT 1 FROM orders o WHERE o.amount > 3)", UNTIED, 63),
        ("p.note IN (SELECT note FROM orders)", UNTIED, 65),
        ("p.age NOT IN (SELECT age FROM people)", UNTIED, 67),
        ("EXISTS (SELECT 1 FROM orders o WHERE o.user_id = o.user_id)", UNTIED, 59),
        ("EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id OR p.age > 3)", UNTIED, 59),
        ("EXISTS (SELECT 1 FROM orders o, items i WHERE o.user_id = p.user_id)", UNTIED, 69),
        ("EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND EXISTS (SELECT 1 FROM items i))", UNTIED, 122),
    ],
)
def test_a_condition_about_other_people_is_refused(shop, condition, words, column):
    error = shop.error(f"SELECT COUNT(*) FROM people p WHERE {condition}")
    assert isinstance(error, QuestionRefusedError) and words in error.message
    assert error.at == (1, column) and "units are equal" in error.fix


def test_who_somebody_is_does_not_leave_through_a_subquery(shop):
    for question in (
        "SELECT COUNT(*) FROM (SELECT user_id AS x FROM orders) o WHERE x = 3",
        "SELECT SUM(x) FROM (SELECT user_id AS x FROM orders) o",
        "SELECT COUNT(*) FROM (SELECT user_id + 1 AS x FROM orders) o",
        f"SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o {OWN} AND o.user_id = 3)",
        "SELECT COUNT(*) FROM people WHERE (user_id, 3) IN (SELECT user_id, user_id AS u FROM orders)",
    ):
        assert isinstance(shop.error(question), NotAllowedError), question
    error = shop.error("SELECT x, COUNT(*) FROM (SELECT user_id AS x FROM orders) o GROUP BY x")
    assert isinstance(error, NotAllowedError | QuestionRefusedError)
