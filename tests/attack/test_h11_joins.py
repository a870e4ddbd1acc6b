"""H11, through joins and subqueries: a question in which one person's rows act on others' is refused, for nothing.

What is answered passes the neighbour test with a victim of 500 orders: however often a join repeats the victim's rows,
the integers before noise move by at most what the plan says.
"""

from __future__ import annotations

import pytest
from tests.attack.hostile import RARE, moved, nothing_charged, weighs_too_much
from tests.attack.joined import shop_of, weights_of
from tests.shop import questions

from dalenius.errors import NOTHING, NotAllowedError, QuestionRefusedError
from dalenius.measuring.engines.duckdb.backend import MultiFile


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return shop_of(tmp_path_factory.mktemp("h11-joins"), victim=True)


@pytest.fixture(scope="module")
def neighbour(tmp_path_factory):
    return shop_of(tmp_path_factory.mktemp("h11-joins-without"), victim=False)


# Each would make rows of others depend on the victim's, or show a value of the victim's.
REFUSED = questions(
    """
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.note = 'a rare word')
;
SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.amount > 99)
;
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id <> p.user_id)
;
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id OR o.amount > 99)
;
SELECT COUNT(*) FROM people p WHERE p.age < (SELECT MAX(amount) FROM orders)
;
SELECT COUNT(*) FROM people p WHERE 100 IN (SELECT amount FROM orders)
;
SELECT COUNT(*) FROM people p WHERE p.note NOT IN (SELECT note FROM orders)
;
SELECT COUNT(*) FROM people p, orders o WHERE o.note = 'a rare word'
;
SELECT COUNT(*) FROM people p JOIN orders o ON o.amount > p.age
;
SELECT COUNT(*) FROM people p JOIN orders o ON p.user_id = o.user_id OR o.amount > 99
;
SELECT COUNT(*) FROM people p LEFT JOIN orders o ON o.amount > 99 WHERE o.user_id IS NOT NULL
;
SELECT COUNT(*) FROM people p LEFT JOIN orders o ON o.amount > 99 WHERE p.user_id = o.user_id
;
SELECT COUNT(*) FROM orders a JOIN orders b ON a.user_id = b.user_id JOIN items i ON i.price > 49
;
SELECT COUNT(*) FROM people p JOIN (SELECT MAX(amount) AS m FROM orders) x ON TRUE WHERE p.age < m
;
SELECT COUNT(*) FROM people p JOIN (SELECT region, MAX(amount) AS m FROM orders GROUP BY region) x USING (region)
;
SELECT COUNT(*) FROM people p WHERE p.region IN (SELECT region FROM orders GROUP BY region HAVING COUNT(*) > 400)
;
SELECT COUNT(*) FROM (SELECT DISTINCT note FROM orders) x
;
SELECT COUNT(*) FROM (SELECT * FROM orders ORDER BY amount DESC LIMIT 1) x WHERE amount > 99
;
SELECT COUNT(*) FROM people p WHERE p.user_id IN (SELECT user_id FROM orders ORDER BY amount LIMIT 1)
;
SELECT COUNT(*) FROM (SELECT user_id, RANK() OVER (ORDER BY amount) AS r FROM orders) x WHERE r = 1
;
SELECT COUNT(*) FROM (SELECT user_id, amount FROM orders UNION SELECT user_id, age FROM people) x
;
SELECT COUNT(*) FROM (SELECT user_id FROM people EXCEPT SELECT user_id FROM orders WHERE amount > 99) x
;
SELECT COUNT(*) FROM (SELECT amount FROM orders INTERSECT SELECT age FROM people) x
;
SELECT COUNT(*) FROM regions r LEFT JOIN people p ON p.region = r.code
;
SELECT COUNT(*) FROM regions r WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.region = r.code)
;
SELECT COUNT(*) FROM regions r WHERE r.code IN (SELECT region FROM people)
;
SELECT code, COUNT(*) FROM regions LEFT JOIN people ON region = code GROUP BY code
;
SELECT ARG_MAX(o.note, o.amount) FROM people p JOIN orders o USING (user_id)
;
SELECT o.note FROM people p JOIN orders o USING (user_id) GROUP BY o.note
;
SELECT o.order_id, COUNT(*) FROM people p JOIN orders o USING (user_id) GROUP BY o.order_id
;
SELECT p.user_id, COUNT(*) FROM people p JOIN orders o USING (user_id) GROUP BY p.user_id
;
SELECT u, COUNT(*) FROM (SELECT user_id AS u, COUNT(*) AS n FROM orders GROUP BY user_id) x GROUP BY u
;
SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE p.user_id = 7777
;
SELECT COUNT(*) FROM (SELECT user_id AS age FROM people) x WHERE age = 7777
;
SELECT SUM(u) FROM (SELECT MAX(user_id) AS u FROM orders GROUP BY order_id) x
;
SELECT COUNT(*) FROM people p JOIN regions r ON r.tax = p.user_id
;
SELECT COUNT(*) FROM people p WHERE p.user_id IN (SELECT tax FROM regions)
"""
)


@pytest.mark.parametrize("question", REFUSED)
def test_a_join_that_mixes_people_is_refused_before_any_charge(shop, monkeypatch, question):
    monkeypatch.setattr(MultiFile, "run", lambda *_, **__: pytest.fail("the data was touched"))
    for call in (shop.ana.ask, shop.ana.preview):
        with nothing_charged(shop.curator), pytest.raises((QuestionRefusedError, NotAllowedError)) as refusal:
            call(question, epsilon=0.1)
        error = refusal.value
        assert (error.exit_code, error.charge) == (3, NOTHING)
        assert error.why and error.fix and error.at is not None
        assert "7777" not in error.why and RARE not in str(error)


PASSED = questions(
    """
SELECT COUNT(*), SUM(o.amount), AVG(o.amount) FROM people p JOIN orders o USING (user_id)
;
SELECT COUNT(*) FROM orders a JOIN orders b USING (user_id)
;
SELECT SUM(a.amount), SUM(b.amount), COUNT(*) FROM orders a JOIN orders b USING (user_id) WHERE a.order_id = b.order_id
;
SELECT COUNT(*), SUM(i.price * i.quantity) FROM people p JOIN orders o USING (user_id) JOIN items i USING (order_id)
;
SELECT COUNT(*) FROM orders o JOIN orders b USING (user_id) JOIN items i ON i.order_id = b.order_id
;
SELECT COUNT(*), SUM(q.cost) FROM items i JOIN products q ON i.sku = q.sku
;
SELECT name, COUNT(*), SUM(o.amount), COUNT(DISTINCT p.user_id) FROM people p JOIN orders o USING (user_id)
  JOIN regions r ON r.code = o.region GROUP BY name
;
SELECT o.region, a.region, COUNT(*) FROM orders o JOIN orders a USING (user_id) GROUP BY 1, 2
;
SELECT COUNT(*), COUNT(o.amount), SUM(o.amount) FROM people p LEFT JOIN orders o USING (user_id)
;
SELECT COUNT(*) FROM people p LEFT JOIN orders o ON o.user_id = p.user_id AND o.amount < 50 WHERE o.user_id IS NULL
;
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND
  o.note = 'a rare word')
;
SELECT COUNT(*) FROM orders p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND o.amount < 50)
;
SELECT COUNT(*) FROM people p WHERE p.user_id NOT IN (SELECT user_id FROM orders WHERE amount < 50)
;
SELECT COUNT(*) FROM items WHERE order_id IN (SELECT order_id FROM orders WHERE amount > 99)
;
SELECT COUNT(*), SUM(t), AVG(t) FROM (SELECT user_id, SUM(amount) AS t FROM orders GROUP BY user_id) x
;
SELECT COUNT(*), SUM(n) FROM (SELECT user_id, region, COUNT(*) AS n FROM orders GROUP BY user_id, region) x WHERE n > 3
;
SELECT SUM(n) FROM (SELECT order_id, COUNT(*) AS n, MAX(price) AS m FROM items GROUP BY order_id) x WHERE m > 10
;
SELECT SUM(a.n * b.n) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) a JOIN (SELECT user_id,
  COUNT(*) AS n FROM orders GROUP BY user_id) b USING (user_id)
;
SELECT COUNT(*), SUM(x) FROM (SELECT user_id, amount AS x FROM orders UNION ALL SELECT user_id, age FROM people
  UNION ALL SELECT user_id, amount FROM orders) u
;
SELECT region, COUNT(*) FROM (SELECT user_id, region FROM orders UNION ALL SELECT user_id, region FROM people) u
  GROUP BY region HAVING COUNT(*) > 3 ORDER BY 2 LIMIT 1
;
WITH big AS (SELECT * FROM orders WHERE amount > 99) SELECT COUNT(*) FROM big a JOIN big b USING (user_id) JOIN people
  USING (user_id)
;
SELECT MEDIAN(o.amount), COUNT(DISTINCT o.note) FROM people p JOIN orders o USING (user_id)
;
SELECT CORR(a.amount, b.amount), STDDEV(a.amount) FROM orders a JOIN orders b USING (user_id)
;
SELECT COUNT(DISTINCT a.user_id) FROM orders a JOIN orders b USING (user_id) WHERE a.amount = b.amount
"""
)


@pytest.mark.parametrize("question", PASSED)
def test_what_is_answered_moves_by_no_more_than_the_plan_says(shop, neighbour, question):
    one, other = shop.planned(question), neighbour.planned(question)
    assert other[0].canonical() == one[0].canonical()
    assert all(moved(one[0], shop.integers(*one), neighbour.integers(*other)))


def test_rows_that_a_join_repeats_count_up_to_the_limit(shop, neighbour):
    """Teeth: the victim does count; unclipped, its 250,000 pairs would not pass."""
    question = "SELECT COUNT(*) FROM orders a JOIN orders b USING (user_id)"
    plan, one, other = shop.plan(question), shop.exact(question), neighbour.exact(question)
    assert one[0][0] - other[0][0] == plan.measures[0].clip == 400
    assert not all(moved(plan, [[other[0][0] + 250_000]], other))
    there = "SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND o.amount > 99"
    lone = f"SELECT COUNT(*) FROM people p WHERE EXISTS ({there})"
    assert (shop.count(lone), neighbour.count(lone)) == (1, 0)


FOUND = questions(
    """
SELECT o.note, COUNT(*) FROM people p JOIN orders o USING (user_id) GROUP BY o.note
;
SELECT a.note, b.amount, COUNT(*) FROM orders a JOIN orders b USING (user_id) GROUP BY ALL
;
SELECT t, COUNT(*) FROM (SELECT user_id, MAX(note) AS t FROM orders GROUP BY user_id) x GROUP BY t
;
SELECT note, COUNT(*) FROM (SELECT user_id, note FROM orders UNION ALL SELECT user_id, note FROM people) u GROUP BY note
"""
)


@pytest.mark.parametrize("question", FOUND)
def test_keys_of_a_join_that_have_to_be_found_weigh_no_more_than_they_may(shop, neighbour, question):
    plan = shop.plan(question)
    assert plan.selection is not None
    one, other = weights_of(shop, question), weights_of(neighbour, question)
    assert one.keys() - other.keys()  # the victim has keys of its own
    assert weighs_too_much(plan, one, other) == []


def test_a_unit_compared_by_the_question_alone_would_be_seen(shop, neighbour, monkeypatch):
    """Teeth: without the comparison of units in the statement, an EXISTS reaches other people's rows."""
    from dalenius.measuring.engines.duckdb.statements import relation
    from dalenius.queries.rules import joins

    question = "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.amount > 99)"
    monkeypatch.setattr(joins, "_refuse_tie", lambda *_: None)
    plan = shop.plan(question)
    assert all(moved(plan, shop.exact(question), neighbour.exact(question)))  # the statement still compares
    monkeypatch.setattr(relation.RelationScan, "match", _unbounded)
    assert not all(moved(plan, shop.exact(question), neighbour.exact(question)))


def _unbounded(self, match):
    from dalenius.measuring.engines.duckdb.statements.relation import RelationScan

    inner = RelationScan(match.relation, self.files, (), self, self.depth + 1, "", True, self.shared)
    return f"EXISTS (SELECT 1 FROM {inner.body()})"
