"""Ten questions over several tables, each in other words: one stored answer. Near-misses are other questions.

The first wording of each list is the question; all of them must mean the same, which their exact integers show.
"""

from __future__ import annotations

import pytest
from tests.shop import Shop, questions

SAME = {
    "a join": questions(
        """
SELECT COUNT(*) FROM people p JOIN orders o ON p.user_id = o.user_id WHERE o.amount >= 10 AND p.age > 30
;
SELECT COUNT(*) FROM orders o JOIN people p ON o.user_id = p.user_id WHERE o.amount >= 10 AND p.age > 30
;
SELECT COUNT(*) FROM people JOIN orders USING (user_id) WHERE age > 30 AND amount >= 10
;
SELECT COUNT(*) FROM people p, orders o WHERE p.user_id = o.user_id AND o.amount >= 10 AND p.age > 30
;
SELECT COUNT(*) FROM orders AS x, people AS y WHERE ((y.age > 30) AND (x.amount >= 1e1)) AND x.user_id =
  y.user_id
;
SELECT COUNT(*) AS n FROM people p CROSS JOIN orders o WHERE NOT p.age <= 30 AND 10 <= o.amount AND o.user_id =
  p.user_id ORDER BY n LIMIT 5
;
SELECT COUNT(*) FROM people p INNER JOIN orders o ON p.user_id = o.user_id AND p.age >= 31 AND o.amount >= 10.0
;
SELECT COUNT(*) FROM people p JOIN (SELECT user_id, amount AS a FROM orders WHERE amount >= 10) o USING
  (user_id) WHERE p.age > 30
;
WITH old AS (SELECT * FROM people WHERE age > 30), big AS (SELECT * FROM orders WHERE amount >= 10) SELECT
  COUNT(*) FROM old JOIN big ON old.user_id = big.user_id
;
SELECT SUM(1) FROM people p JOIN orders o ON (p.user_id = o.user_id) WHERE (p.age > 30 AND TRUE) AND (o.amount
  >= 10 AND p.age > 30)
"""
    ),
    "groups of a public table": questions(
        """
SELECT r.name, COUNT(*) AS n, SUM(o.amount) AS s FROM orders o JOIN regions r ON o.region = r.code GROUP BY
  r.name
;
SELECT r.name, SUM(o.amount), COUNT(*) FROM regions r JOIN orders o ON r.code = o.region GROUP BY 1 ORDER BY 2
  DESC
;
SELECT name, COUNT(*), SUM(amount) FROM orders, regions WHERE region = code GROUP BY name HAVING COUNT(*) > 3
;
SELECT x.name AS area, COUNT(1), SUM(y.amount) / COUNT(*) FROM orders y, regions x WHERE x.code = y.region GROUP
  BY area
;
SELECT UPPER(name), SUM(amount), COUNT(*) FROM (SELECT o.amount, r.name FROM orders o JOIN regions r ON o.region
  = r.code) t GROUP BY name LIMIT 2
;
WITH t AS (SELECT * FROM orders JOIN (SELECT code, name FROM regions) r ON r.code = region) SELECT name,
  SUM(amount), COUNT(*) FROM t GROUP BY ALL
;
SELECT r.name, COUNT(*), SUM(o.amount) FROM orders o JOIN regions r ON o.region = r.code AND r.code = o.region
  GROUP BY r.name, r.name
"""
    ),
    "whether there is a row": questions(
        """
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND o.amount >
  20)
;
SELECT COUNT(*) FROM people p WHERE p.user_id IN (SELECT user_id FROM orders WHERE amount > 20)
;
SELECT COUNT(*) FROM people WHERE user_id IN (SELECT o.user_id FROM orders AS o WHERE 20 < o.amount)
;
SELECT COUNT(*) FROM people x WHERE NOT (NOT EXISTS (SELECT y.amount FROM orders y WHERE y.amount > 20 AND
  x.user_id = y.user_id))
;
WITH big AS (SELECT * FROM orders WHERE amount > 20) SELECT COUNT(*) FROM people p WHERE EXISTS (FROM big SELECT
  * WHERE big.user_id = p.user_id)
;
SELECT COUNT(*) FROM (SELECT * FROM people) p WHERE (p.user_id) IN (SELECT user_id FROM (SELECT * FROM orders
  WHERE NOT (amount <= 20)) o)
;
SELECT COUNT(*) FROM (SELECT * FROM people p WHERE EXISTS (SELECT * FROM orders WHERE orders.user_id = p.user_id
  AND amount > 2e1)) t
"""
    ),
    "whether there is none": questions(
        """
SELECT p.region, COUNT(*) FROM people p WHERE p.age >= 18 AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id
  = p.user_id AND o.status = 'done') GROUP BY p.region
;
SELECT region, COUNT(*) FROM people WHERE age > 17 AND user_id NOT IN (SELECT user_id FROM orders WHERE status =
  'done') GROUP BY region
;
SELECT region AS r, COUNT(*) FROM people WHERE NOT user_id IN (SELECT user_id FROM orders WHERE status IN
  ('done')) AND age >= 18 GROUP BY r
;
SELECT COUNT(*), p.region FROM people p WHERE (NOT EXISTS (SELECT NULL FROM orders WHERE status = 'done' AND
  p.user_id = orders.user_id)) AND p.age >= '18' GROUP BY p.region
;
SELECT region, COUNT(*) FROM (SELECT * FROM people WHERE NOT age < 18) p WHERE NOT EXISTS (SELECT 1 FROM orders
  WHERE p.user_id = orders.user_id AND NOT status <> 'done') GROUP BY region
;
WITH done AS (SELECT user_id AS u FROM orders WHERE 'done' = status) SELECT region, COUNT(*) FROM people WHERE
  user_id NOT IN (SELECT u FROM done) AND age >= 18 GROUP BY region ORDER BY region DESC
;
SELECT region, COUNT(*) FROM people p WHERE age >= 18 AND NOT (EXISTS (SELECT 1 FROM (SELECT * FROM orders) o
  WHERE o.status = 'done' AND o.user_id = p.user_id)) GROUP BY region HAVING COUNT(*) > 0
"""
    ),
    "three tables by a path": questions(
        """
SELECT SUM(i.price * i.quantity) FROM people p JOIN orders o ON o.user_id = p.user_id JOIN items i ON i.order_id
  = o.order_id WHERE p.smoker AND o.status = 'open'
;
SELECT SUM(i.quantity * i.price) FROM items i JOIN orders o ON o.order_id = i.order_id JOIN people p ON
  p.user_id = o.user_id WHERE o.status = 'open' AND p.smoker
;
SELECT SUM(price * quantity) FROM people JOIN orders USING (user_id) JOIN items USING (order_id) WHERE smoker =
  TRUE AND status = 'open'
;
SELECT SUM(price * quantity) FROM items, people p, orders o WHERE items.order_id = o.order_id AND p.smoker AND
  p.user_id = o.user_id AND o.status = 'open'
;
SELECT SUM(worth) FROM (SELECT order_id, price * quantity AS worth FROM items) i JOIN (SELECT o.order_id FROM
  orders o JOIN people p USING (user_id) WHERE smoker AND status = 'open') t ON t.order_id = i.order_id
;
SELECT SUM(i.price * i.quantity) FROM (SELECT * FROM people WHERE smoker) p, (SELECT * FROM orders WHERE status
  = 'open') o, items i WHERE i.order_id = o.order_id AND o.user_id = p.user_id
;
SELECT SUM(i.price * i.quantity) FILTER (WHERE TRUE) FROM (SELECT p.user_id AS u, o.order_id AS k FROM people p
  JOIN orders o ON o.user_id = p.user_id AND p.smoker AND o.status = 'open') po JOIN items i ON i.order_id =
  po.k
;
WITH open AS (SELECT * FROM orders WHERE status = 'open'), smokers AS (SELECT user_id FROM people WHERE smoker)
  SELECT SUM(quantity * price) AS s FROM smokers JOIN open USING (user_id) JOIN items USING (order_id)
"""
    ),
    "sums within a unit": questions(
        """
SELECT AVG(total) FROM (SELECT user_id, SUM(amount) AS total FROM orders WHERE status = 'open' GROUP BY user_id)
  t WHERE total > 15
;
WITH t AS (SELECT user_id, SUM(amount) AS s FROM orders WHERE status = 'open' GROUP BY 1) SELECT AVG(s) FROM t
  WHERE s > 15
;
SELECT AVG(t.x) FROM (SELECT o.user_id AS u, SUM(o.amount) AS x FROM orders o WHERE o.status = 'open' GROUP BY
  o.user_id HAVING SUM(o.amount) > 15) t
;
SELECT AVG(x) AS y FROM (SELECT SUM(amount) AS x FROM orders WHERE status = 'open' GROUP BY user_id HAVING x >
  15) t ORDER BY y
;
SELECT AVG(x) FROM (SELECT user_id, SUM(a) AS x FROM (SELECT user_id, amount AS a, status FROM orders) i WHERE
  i.status = 'open' GROUP BY ALL) t WHERE 15 < x
;
SELECT ROUND(AVG(x), 1) FROM (SELECT user_id, SUM(amount) AS x FROM orders WHERE status = 'open' GROUP BY
  user_id) WHERE NOT x <= 15
;
SELECT AVG(total) FROM (SELECT * FROM (SELECT user_id, SUM(amount) AS total FROM orders WHERE (status = 'open')
  GROUP BY user_id) i WHERE total > 15) t
"""
    ),
    "a table with itself": questions(
        """
SELECT COUNT(*), SUM(b.amount) FROM orders a JOIN orders b ON a.user_id = b.user_id WHERE a.day < b.day AND
  a.status = 'open'
;
SELECT COUNT(*), SUM(a.amount) FROM orders a JOIN orders b ON a.user_id = b.user_id WHERE b.day < a.day AND
  b.status = 'open'
;
SELECT COUNT(*), SUM(second.amount) FROM orders second, orders first WHERE first.status = 'open' AND first.day <
  second.day AND second.user_id = first.user_id
;
SELECT SUM(orders.amount), COUNT(*) FROM orders JOIN orders x USING (user_id) WHERE x.day < orders.day AND
  x.status = 'open'
;
SELECT COUNT(*), SUM(CASE WHEN TRUE THEN v.amount END) FROM orders u, orders v WHERE u.user_id = v.user_id AND
  NOT (v.day <= u.day) AND u.status = 'open'
;
SELECT COUNT(*), SUM(n.amount) FROM (SELECT * FROM orders WHERE status = 'open') m JOIN orders n ON n.user_id =
  m.user_id AND n.day > m.day
;
WITH o AS (SELECT * FROM orders) SELECT SUM(y.amount), COUNT(*) FROM o y JOIN o x ON x.user_id = y.user_id WHERE
  x.day < y.day AND x.status = 'open'
"""
    ),
    "a LEFT JOIN": questions(
        """
SELECT p.region, COUNT(*), COUNT(o.amount) FROM people p LEFT JOIN orders o ON p.user_id = o.user_id AND
  o.status = 'open' GROUP BY p.region
;
SELECT p.region, COUNT(o.amount), COUNT(*) FROM people p LEFT OUTER JOIN orders o ON o.status = 'open' AND
  o.user_id = p.user_id GROUP BY p.region
;
SELECT p.region, COUNT(o.amount), COUNT(*) FROM people p LEFT JOIN (SELECT * FROM orders WHERE status = 'open')
  o USING (user_id) GROUP BY 1
;
WITH o AS (SELECT user_id, amount AS a FROM orders WHERE status = 'open') SELECT region, COUNT(*), COUNT(a) FROM
  people p LEFT JOIN o ON o.user_id = p.user_id GROUP BY region ORDER BY 2
;
SELECT region, COUNT(x), COUNT(*) FROM (SELECT p.region, o.amount AS x FROM people p LEFT JOIN orders o ON
  p.user_id = o.user_id AND o.status = 'open') t GROUP BY region
;
SELECT q.region AS r, COUNT(*), COUNT(x.amount) FROM (SELECT * FROM people) q LEFT JOIN orders x ON (q.user_id =
  x.user_id) AND ('open' = x.status) GROUP BY r
"""
    ),
    "UNION ALL": questions(
        """
SELECT COUNT(*), SUM(x) FROM (SELECT user_id, amount AS x FROM orders WHERE amount > 5 UNION ALL SELECT user_id,
  age FROM people WHERE age BETWEEN 30 AND 50) u
;
SELECT SUM(x), COUNT(*) FROM (SELECT user_id, age AS x FROM people WHERE age >= 30 AND age <= 50 UNION ALL
  SELECT user_id, amount FROM orders WHERE 5 < amount) u
;
WITH u(who, x) AS (SELECT user_id, amount FROM orders WHERE amount > 5 UNION ALL SELECT user_id, age FROM people
  WHERE age BETWEEN 30 AND 50) SELECT COUNT(*), SUM(x) FROM u
;
SELECT SUM(t), COUNT(*) FROM ((SELECT o.user_id, o.amount AS t FROM orders o WHERE NOT o.amount <= 5) UNION ALL
  (SELECT p.user_id, p.age FROM people p WHERE p.age < 51 AND p.age > 29)) v
;
SELECT COUNT(*), SUM(x) FROM (SELECT * FROM (SELECT user_id, amount AS x FROM orders) o WHERE x > 5 UNION ALL
  SELECT user_id, age FROM people WHERE age BETWEEN 30 AND 50) u HAVING COUNT(*) > 0
;
WITH a AS (SELECT user_id, amount FROM orders WHERE amount > 5), b AS (SELECT user_id, age FROM people WHERE age
  BETWEEN 30 AND 50) SELECT COUNT(*), SUM(amount) FROM (SELECT * FROM a UNION ALL SELECT * FROM b) u
"""
    ),
    "a condition inside a unit, nested": questions(
        """
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND EXISTS
  (SELECT 1 FROM items i WHERE i.order_id = o.order_id AND i.sku = 'a')) AND p.region IN ('n', 's')
;
SELECT COUNT(*) FROM people p WHERE p.region IN ('s', 'n') AND p.user_id IN (SELECT user_id FROM orders WHERE
  order_id IN (SELECT order_id FROM items WHERE sku = 'a'))
;
SELECT COUNT(*) FROM people p WHERE (p.region = 'n' OR p.region = 's') AND EXISTS (SELECT 1 FROM orders o WHERE
  o.order_id IN (SELECT i.order_id FROM items i WHERE 'a' = i.sku) AND p.user_id = o.user_id)
;
SELECT COUNT(*) FROM people WHERE user_id IN (SELECT o.user_id FROM orders o WHERE EXISTS (SELECT * FROM items i
  WHERE i.sku = 'a' AND o.order_id = i.order_id)) AND region IN ('n', 's', 'n')
;
SELECT COUNT(*) FROM (SELECT * FROM people WHERE region IN ('n', 's')) p WHERE EXISTS (SELECT 1 FROM (SELECT *
  FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.sku = 'a' AND i.order_id = o.order_id)) o WHERE
  p.user_id = o.user_id)
;
WITH a AS (SELECT order_id FROM items WHERE sku LIKE 'a'), o AS (SELECT user_id FROM orders WHERE order_id IN
  (SELECT order_id FROM a)) SELECT COUNT(*) FROM people WHERE user_id IN (SELECT user_id FROM o) AND NOT (region
  <> 'n' AND region <> 's')
"""
    ),
}
JOINED = "SELECT COUNT(*) FROM people p JOIN orders o ON p.user_id = o.user_id WHERE o.amount >= 10 AND p.age > 30"
ITSELF = SAME["a table with itself"][0]
LEFT = SAME["a LEFT JOIN"][0]
INSIDE = SAME["sums within a unit"][0]
UNION = SAME["UNION ALL"][0]
PATH = SAME["three tables by a path"][0]
THERE = SAME["whether there is a row"][0]
NONE = SAME["whether there is none"][0]
NESTED = SAME["a condition inside a unit, nested"][0]
PUBLIC = SAME["groups of a public table"][0]
OTHER = {
    "a join": [
        JOINED.replace(">= 10", "> 10"),
        JOINED.replace(">= 10", ">= 11"),
        JOINED.replace("> 30", ">= 30"),
        JOINED.replace("JOIN", "LEFT JOIN"),
        JOINED.replace("COUNT(*)", "COUNT(DISTINCT p.user_id)"),
        JOINED + " AND p.region = o.region",
        JOINED.replace("o.amount >= 10 AND ", "EXISTS (SELECT 1 FROM people q WHERE q.user_id = o.user_id) AND "),
    ],
    "groups of a public table": [
        PUBLIC.replace("r.name", "r.code"),
        PUBLIC.replace("r.name", "o.region"),
        PUBLIC.replace("JOIN", "LEFT JOIN"),
        PUBLIC + " HAVING AVG(o.amount) > 3",
    ],
    "whether there is a row": [
        THERE.replace("> 20", ">= 20"),
        THERE.replace("EXISTS", "NOT EXISTS"),
        THERE.replace("o.amount > 20", "p.age > 20"),
        "SELECT COUNT(*) FROM people p JOIN orders o ON o.user_id = p.user_id WHERE o.amount > 20",
    ],
    "whether there is none": [
        NONE.replace("'done'", "'open'"),
        NONE.replace("NOT EXISTS", "EXISTS"),
        NONE.replace(">= 18", "> 18"),
        NONE.replace("p.region", "p.smoker"),
    ],
    "three tables by a path": [
        PATH.replace("i.order_id = o.order_id", "i.order_id = o.order_id AND i.quantity > 0"),
        PATH.replace("p.smoker", "NOT p.smoker"),
        PATH.replace("i.price * i.quantity", "i.price"),
        PATH.replace("JOIN items", "LEFT JOIN items"),
    ],
    "sums within a unit": [
        INSIDE.replace("SUM(amount)", "MAX(amount)"),
        INSIDE.replace("> 15", ">= 15"),
        INSIDE.replace("AVG(total)", "COUNT(total)"),
        INSIDE.replace("GROUP BY user_id", "GROUP BY user_id, region"),
    ],
    "a table with itself": [
        ITSELF.replace("a.status", "b.status"),
        ITSELF.replace("a.day < b.day", "a.day <= b.day"),
        ITSELF.replace("SUM(b.amount)", "SUM(a.amount)"),
        ITSELF.replace("a.user_id = b.user_id", "a.order_id = b.order_id"),
    ],
    "a LEFT JOIN": [
        LEFT.replace("LEFT ", ""),
        LEFT.replace("AND o.status = 'open'", "WHERE o.status = 'open'"),
        LEFT.replace("AND o.status = 'open'", ""),
    ],
    "UNION ALL": [
        UNION.replace("amount > 5", "amount >= 5"),
        UNION.replace("50", "51"),
        UNION.replace("age FROM people", "age + 1 FROM people"),
    ],
    "a condition inside a unit, nested": [
        NESTED.replace("i.sku = 'a'", "i.sku = 'b'"),
        NESTED.replace("AND EXISTS", "AND NOT EXISTS"),
        NESTED.replace("i.order_id = o.order_id", "i.order_id = o.order_id AND o.status = 'open'"),
    ],
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return Shop.protected(tmp_path_factory.mktemp("shop"))


def test_there_are_as_many_wordings_as_were_promised():
    assert len(SAME) == 10 and SAME.keys() == OTHER.keys()
    assert len({each for wordings in SAME.values() for each in wordings[1:]}) >= 60
    assert len({each for misses in OTHER.values() for each in misses}) >= 40


@pytest.mark.parametrize("name", SAME)
def test_other_wordings_have_the_same_key_and_the_same_integers(shop, name):
    first = SAME[name][0]
    key, integers = shop.key(first), shop.exact(first)
    for wording in SAME[name][1:]:
        assert shop.plan(wording).canonical() == shop.plan(first).canonical(), wording
        assert (shop.key(wording), shop.exact(wording)) == (key, integers), wording


@pytest.mark.parametrize("name", OTHER)
def test_near_misses_have_other_keys(shop, name):
    keys = [shop.key(each) for each in (SAME[name][0], *OTHER[name])]
    assert len(set(keys)) == len(keys)


def test_no_two_of_all_questions_share_a_key(shop):
    questions = [each for name in SAME for each in (SAME[name][0], *OTHER[name])]
    assert len({shop.key(each) for each in questions}) == len(questions)


@pytest.mark.parametrize("name", ["a table with itself", "whether there is none", "sums within a unit"])
def test_the_repeat_is_free_for_whoever_asks_in_other_words(tmp_path, name):
    shop = Shop.protected(tmp_path)
    first = shop.ana.ask(SAME[name][0], epsilon=0.5)
    assert not first.free
    spent = shop.curator.ledger.balance("shop").spent
    for wording in SAME[name][1:]:
        again = shop.ana.ask(wording, epsilon=0.5)
        assert again.free and again.charge["epsilon"] == 0, wording
    assert shop.curator.ledger.balance("shop").spent == spent
    assert not shop.ana.ask(OTHER[name][0], epsilon=0.5).free
    assert shop.curator.ledger.balance("shop").spent != spent


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_other_names_inside_do_not_exchange_the_columns_of_an_answer(shop, first, second):
    question = (
        "SELECT SUM(a.amount) AS one, COUNT(*) AS n, SUM(b.amount) FILTER (WHERE b.status = 'done') AS other "
        f"FROM orders {first} JOIN orders {second} USING (user_id) WHERE a.day < b.day"
    )
    plan, integers = shop.plan(question), shop.exact(question)
    shown = []
    for output in plan.question.outputs:
        number = plan.start(plan.answers[output.expression])
        shown.append(integers[number][0] * float(plan.measures[number].step))
    assert tuple(shown) == shop.plain(question)[0]
    assert len(set(shown)) == 3  # or an exchange would not be seen
