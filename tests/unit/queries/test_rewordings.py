"""Questions about one table and about several, each in other words: one stored answer. Near-misses are other questions.

The first wording of each list is the question; all of them must mean the same, which their exact integers show.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.shop import Shop, questions

from dalenius.measuring._exact import exact
from dalenius.measuring.plan import Limits


def where(condition):
    return f"SELECT COUNT(*) FROM visits WHERE {condition}"


# About one table: a question, and other words for it; then a question, and one that only looks like it.
PAIRS = [
    ("SELECT COUNT(*) FROM visits", "select count( * )  from VISITS"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) AS n FROM visits AS v"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(1) FROM visits"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits WHERE TRUE"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits -- a remark"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits;"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) * 2 FROM visits"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits HAVING COUNT(*) > 5"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*), COUNT(*) + 1 FROM visits"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(child) FROM visits"),  # which has a default
    ("SELECT SUM(age), COUNT(*) FROM visits", "SELECT COUNT(*), SUM(age) FROM visits"),
    ("SELECT AVG(age) FROM visits", "SELECT AVG(AGE) FROM visits v"),
    ("SELECT AVG(age), STDDEV(age) FROM visits", "SELECT VAR_POP(age), AVG(visits.age) FROM visits"),
    ("SELECT STDDEV(age) FROM visits", "SELECT VAR_SAMP(age) FROM visits"),
    (where("age > 17"), where("age >= 18")),
    (where("age > 30"), where("30 < age")),
    (where("age > 30"), where("NOT age <= 30")),
    (where("age > 30"), where("NOT (30 >= age)")),
    (where("age > 30.5"), where("age >= 31")),
    (where("age BETWEEN 20 AND 30"), where("age >= 20 AND age <= 30")),
    (where("age BETWEEN 20 AND 30"), where("age > 19 AND 31 > age")),
    (where("age = 20 OR age = 30"), where("age IN (30, 20)")),
    (where("age IN (20, 30, 20)"), where("age IN (20, 30)")),
    (where("age IN (20)"), where("20 = age")),
    (where("NOT age IN (20, 30)"), where("age <> 20 AND age != 30")),
    (where("NOT age IN (20, 30)"), where("age NOT IN (30, 20)")),
    (where("smoker AND age > 30"), where("age > 30 AND smoker")),
    (where("smoker"), where("smoker = TRUE")),
    (where("smoker"), where("(((smoker)))")),
    (where("smoker"), where("smoker AND smoker")),
    (where("smoker"), where("NOT NOT smoker")),
    (where("NOT smoker"), where("smoker = FALSE")),
    (where("NOT (smoker OR age > 30)"), where("NOT smoker AND age <= 30")),
    (where("NOT (smoker AND age > 30)"), where("age < 31 OR NOT smoker")),
    (where("smoker AND (age > 30 AND region = 'north')"), where("(smoker AND age > 30) AND region = 'north'")),
    (where("region = 'north'"), where("'north' = region")),
    (where("region LIKE 'north'"), where("region = 'north'")),
    (where("age + 1 > 30"), where("1 + age > 30")),
    (where("amount < 2 * 50"), where("amount < 100")),
    (where("\"when\" > '2025-03-01'"), where("\"when\" >= DATE '2025-03-02'")),
    (where("\"when\" = '2025-03-01'"), where("\"when\" = CAST('2025-03-01' AS DATE)")),
    (where('YEAR("when") = 2025'), where('EXTRACT(year FROM "when") = 2025')),
    (where('YEAR("when") = 2025'), where("DATE_PART('year', \"when\") = 2025")),
    (where("age IS NOT NULL"), where("NOT age IS NULL")),
    ("SELECT COUNT(age) FROM visits", "SELECT COUNT(*) FILTER (WHERE age IS NOT NULL) FROM visits"),
    ("SELECT COUNT_IF(age > 30) FROM visits", "SELECT COUNT(*) FILTER (WHERE age > 30) FROM visits"),
    ("SELECT COUNT_IF(smoker) FROM visits", "SELECT SUM(smoker) FROM visits"),
    (
        "SELECT SUM(CASE WHEN smoker THEN age ELSE 0 END) FROM visits",
        "SELECT SUM(age) FILTER (WHERE smoker) FROM visits",
    ),
    ("SELECT SUM(CASE WHEN smoker THEN age END) FROM visits", "SELECT SUM(IF(smoker, age, 0)) FROM visits"),
    ("SELECT AVG(CASE WHEN smoker THEN age END) FROM visits", "SELECT AVG(age) FILTER (WHERE smoker) FROM visits"),
    ("SELECT region, COUNT(*) FROM visits GROUP BY region", "SELECT COUNT(*), region r FROM visits GROUP BY 2"),
    ("SELECT region, COUNT(*) FROM visits GROUP BY region", "SELECT region, COUNT(*) FROM visits GROUP BY ALL"),
    ("SELECT region, COUNT(*) FROM visits GROUP BY region", "SELECT COUNT(*) FROM visits GROUP BY region, region"),
    (
        "SELECT region, COUNT(*) FROM visits GROUP BY region",
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY region HAVING n > 5 ORDER BY n DESC LIMIT 2 OFFSET 1",
    ),
    (
        "SELECT DATE_TRUNC('month', \"when\") m, COUNT(*) FROM visits GROUP BY m",
        "SELECT COUNT(*) FROM visits GROUP BY date_trunc('MONTH', \"when\")",
    ),
]
NEAR = [
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(age) FROM visits"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(DISTINCT user_id) FROM visits"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*), SUM(age) FROM visits"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits GROUP BY region"),
    ("SELECT SUM(age) FROM visits", "SELECT AVG(age) FROM visits"),
    ("SELECT AVG(age) FROM visits", "SELECT STDDEV(age) FROM visits"),
    ("SELECT SUM(age) FROM visits", "SELECT SUM(age + 0.5) FROM visits"),
    ("SELECT SUM(age) FROM visits", "SELECT SUM(-age) FROM visits"),
    (
        "SELECT AVG(CASE WHEN smoker THEN age END) FROM visits",
        "SELECT AVG(CASE WHEN smoker THEN age ELSE 0 END) FROM visits",
    ),
    (
        "SELECT SUM(CASE WHEN smoker THEN age ELSE 1 END) FROM visits",
        "SELECT SUM(age) FILTER (WHERE smoker) FROM visits",
    ),
    ("SELECT COUNT(*) FROM visits GROUP BY region", "SELECT COUNT(*) FROM visits GROUP BY smoker"),
    ("SELECT COUNT(*) FROM visits GROUP BY region", "SELECT COUNT(*) FROM visits GROUP BY region, smoker"),
    (where("age > 30"), where("age >= 30")),
    (where("age > 30"), where("age > 30.5 OR age IS NULL")),
    (where("amount > 30"), where("amount >= 31")),
    (where("amount > 30"), where("amount >= 30")),
    (where("age > 30"), where("age < 30")),
    (where("age < child"), where("age <= child")),
    (where("age = 20"), where("age <> 20")),
    (where("age IN (20, 30)"), where("age IN (20, 31)")),
    (where("age IN (20, 30)"), where("age NOT IN (20, 30)")),
    (where("smoker"), where("NOT smoker")),
    (where("smoker"), where("smoker OR smoker IS NULL")),
    (where("NOT smoker"), where("NOT smoker OR smoker IS NULL")),
    (where("smoker AND age > 30"), where("smoker OR age > 30")),
    (where("NOT (smoker AND age > 30)"), where("NOT smoker AND NOT age > 30")),
    (where("region = 'north'"), where("region = 'North'")),
    (where("region = 'north'"), where("region LIKE 'north%'")),
    (where("region LIKE 'n_rth'"), where("region = 'n_rth'")),
    (where("region ILIKE 'north'"), where("region = 'north'")),
    (where("\"when\" > '2025-03-01'"), where("\"when\" >= '2025-03-01'")),
    (where("\"at\" > '2025-03-01'"), where("\"at\" >= '2025-03-02'")),
    (where("age - 1 > child"), where("1 - age > child")),
    (where("amount / 2 > free"), where("2 / amount > free")),
    (where("note = '1'"), where("note = '1.0'")),
    (where("COALESCE(age, child) > 20"), where("COALESCE(child, age) > 20")),
    (where('YEAR("when") = 2025'), where('MONTH("when") = 2025')),
]
# About several: the first wording is the question.
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


def listed(pairs):
    """By question, all that stands beside it."""
    found: dict[str, list[str]] = {}
    for one, other in pairs:
        found.setdefault(one, [one]).append(other)
    return found


ALL_SAME = listed(PAIRS) | SAME
ALL_OTHER = listed(NEAR) | {name: [SAME[name][0], *misses] for name, misses in OTHER.items()}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return Shop.protected(tmp_path_factory.mktemp("shop"))


@dataclass
class Visits:
    """The one table, for what `Shop` does with several."""

    asker: Any
    engine: Any

    def plan(self, sql):
        return self.asker.plan(sql, Limits(search=0))

    def key(self, sql):
        return self.plan(sql).key(1)

    def exact(self, sql):
        return exact(self.plan(sql), self.engine, "a salt")


@pytest.fixture(scope="module")
def single(visits, memory):
    chance = Random(7)
    values: dict[str, tuple[Any, str, list[Any]]] = {
        "user_id": (pa.int64(), "BIGINT", [1, 2, 3, 4, 5, 6, None]),
        "age": (pa.int32(), "INTEGER", [None, 18, 20, 25, 30, 31, 40]),
        "child": (pa.int32(), "INTEGER", [None, 0, 1, 2]),
        "region": (pa.string(), "VARCHAR", ["north", "south", "North", None]),
        "amount": (pa.float64(), "DOUBLE", [None, 0.0, 30.0, 30.5, 31.0, 100.0]),
        "change": (pa.float64(), "DOUBLE", [-10.0, 0.0, 2.5]),
        "free": (pa.float64(), "DOUBLE", [1.0, 20.0]),
        "smoker": (pa.bool_(), "BOOLEAN", [True, False, None]),
        "when": (pa.date32(), "DATE", [20_147, 20_148, 20_149, None]),  # around 1 March 2025
        "at": (pa.timestamp("us"), "TIMESTAMP", [1_740_787_200_000_000, 1_740_800_000_000_000, None]),
        "note": (pa.string(), "VARCHAR", ["1", "1.0", None]),
        "odd name": (pa.int32(), "INTEGER", [-3, 0, 3]),
    }
    table = {name: pa.array([chance.choice(some) for _ in range(80)], kind) for name, (kind, _, some) in values.items()}
    return Visits(visits, memory(pa.table(table), {name: type_ for name, (_, type_, _) in values.items()}))


def asked_of(wordings, single, shop):
    return single if "visits" in wordings[0].lower() else shop


def test_there_are_as_many_wordings_as_were_promised():
    assert len(PAIRS) >= 40 and len(NEAR) >= 30
    assert len(SAME) == 10 and SAME.keys() == OTHER.keys()
    assert len({each for wordings in SAME.values() for each in wordings[1:]}) >= 60
    assert len({each for misses in OTHER.values() for each in misses}) >= 40


@pytest.mark.parametrize("wordings", ALL_SAME.values(), ids=ALL_SAME)
def test_other_wordings_have_the_same_key_and_the_same_integers(wordings, single, shop):
    asked, (first, *others) = asked_of(wordings, single, shop), wordings
    plan, key, integers = asked.plan(first), asked.key(first), asked.exact(first)
    assert plan.key(1) != plan.key(2)
    for wording in others:
        assert asked.plan(wording).canonical() == plan.canonical(), wording
        assert (asked.key(wording), asked.exact(wording)) == (key, integers), wording


@pytest.mark.parametrize("wordings", ALL_OTHER.values(), ids=ALL_OTHER)
def test_near_misses_have_other_keys(wordings, single, shop):
    asked = asked_of(wordings, single, shop)
    assert len({asked.key(each) for each in wordings}) == len(wordings)
    assert len({asked.plan(each).canonical() for each in wordings}) == len(wordings)


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
