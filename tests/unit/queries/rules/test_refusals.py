"""What cannot be asked over several tables is refused by name, with its place and another way to ask."""

from __future__ import annotations

import pytest

from dalenius.errors import NOTHING, NotAllowedError, QuestionRefusedError

# what stands in the second line · what the message names · the words that the place points at · a way in the fix
FROM = [
    ("people p JOIN orders o USING (user_id) RIGHT JOIN orders q USING (user_id)", "RIGHT JOIN", "orders q", "LEFT"),
    ("people p FULL JOIN orders o USING (user_id)", "FULL JOIN", "orders", "LEFT JOIN"),
    ("people p FULL OUTER JOIN orders o USING (user_id)", "FULL OUTER JOIN", "orders", "LEFT JOIN"),
    (
        "people p ASOF JOIN orders o ON p.user_id = o.user_id AND p.age >= o.amount",
        "ASOF JOIN",
        "orders",
        "equal units",
    ),
    ("people POSITIONAL JOIN orders", "POSITIONAL JOIN", "orders", "JOIN … ON"),
    ("people p SEMI JOIN orders o USING (user_id)", "SEMI JOIN", "orders", "WHERE EXISTS"),
    ("people p ANTI JOIN orders o USING (user_id)", "ANTI JOIN", "orders", "WHERE NOT EXISTS"),
    ("people p, LATERAL (SELECT * FROM orders o WHERE o.user_id = p.user_id) x", "LATERAL", "*", "EXISTS"),
    ("people p JOIN LATERAL (SELECT * FROM orders) x ON TRUE", "LATERAL", "*", "EXISTS"),
    (
        "people p LEFT JOIN (orders o JOIN items i USING (order_id)) ON p.user_id = o.user_id",
        "A join in parentheses",
        "orders",
        "out",
    ),
    ("(SELECT user_id FROM orders INTERSECT SELECT user_id FROM people) x", "INTERSECT", "user_id", "WHERE EXISTS"),
    ("(SELECT user_id FROM orders EXCEPT SELECT user_id FROM people) x", "EXCEPT", "user_id", "WHERE NOT EXISTS"),
    ("(SELECT user_id FROM orders UNION SELECT user_id FROM people) x", "UNION is", "user_id", "UNION ALL"),
    ("(SELECT * FROM orders LIMIT 3) x", "LIMIT in a subquery", "*", "WHERE"),
    ("(SELECT * FROM orders ORDER BY day LIMIT 3) x", "LIMIT in a subquery", "*", "WHERE"),
    ("(SELECT * FROM orders OFFSET 3) x", "in a subquery", "*", "WHERE"),
    (
        "(SELECT user_id, ROW_NUMBER() OVER (ORDER BY amount) AS r FROM orders) x",
        "ROW_NUMBER over rows of several people",
        "ROW_NUMBER",
        "GROUP BY",
    ),
    (
        "(SELECT user_id, SUM(amount) OVER (PARTITION BY user_id) AS r FROM orders) x",
        "A window function",
        "SUM",
        "GROUP BY",
    ),
    ("(SELECT DISTINCT ON (region) * FROM orders) x", "DISTINCT ON", "region", "GROUP BY"),
    ("(SELECT region, SUM(amount) AS s FROM orders GROUP BY region) x", "not within one unit", "region", "by the unit"),
    ("(SELECT SUM(amount) AS s FROM orders) x", "not within one unit", "SUM", "by the unit"),
    (
        "(SELECT code, COUNT(*) AS n FROM regions GROUP BY code) r JOIN people ON code = region",
        "over public tables",
        "code",
        "free",
    ),
    ("people p JOIN (VALUES (1)) v ON TRUE", "the list 'v'", "1", "CASE WHEN"),
    ("people p JOIN range(10000) r ON TRUE", "RANGE", "range", "list the values"),
    ("people p JOIN read_csv('x.csv') r ON TRUE", "READ_CSV", "read_csv", "dalenius tables"),
    ("people p, UNNEST([1, 2]) u", "the list 'u'", "1", "ON t.x = k.x"),
    ("people p, UNNEST(p.region) u", "UNNEST", "p.region", "values themselves"),
    ("people p JOIN orders o TABLESAMPLE 10% USING (user_id)", "Sampling", "orders", "without it"),
]
WHERE = [
    ("p.age > (SELECT AVG(age) FROM people)", "A scalar subquery", "AVG", "question of its own"),
    (
        "p.age > (SELECT MAX(amount) FROM orders o WHERE o.user_id = p.user_id)",
        "A correlated subquery",
        "amount",
        "groups by the unit",
    ),
    ("p.age > ANY (SELECT amount FROM orders)", "ANY over a subquery", "amount", "EXISTS"),
    ("p.age > ALL (SELECT amount FROM orders)", "ALL over a subquery", "amount", "NOT EXISTS"),
    (
        "p.age > 3 OR EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id)",
        "EXISTS cannot stand",
        "1",
        "one by one",
    ),
    ("p.age > 3 OR p.user_id IN (SELECT user_id FROM orders)", "IN (SELECT …) cannot stand", "p.user_id", "one by one"),
    (
        "CASE WHEN EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id) THEN TRUE END",
        "EXISTS cannot",
        "1",
        "WHERE",
    ),
    ("EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id LIMIT 1)", "LIMIT in a subquery", "1", "out"),
    (
        "EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id GROUP BY o.user_id HAVING COUNT(*) > 2)",
        "A correlated subquery with groups",
        "p.user_id",
        "IN (SELECT unit",
    ),
    (
        "EXISTS (SELECT user_id FROM orders UNION ALL SELECT user_id FROM items)",
        "A set operation",
        "user_id",
        "one EXISTS",
    ),
    ("ROW_NUMBER() OVER (ORDER BY p.age) = 1", "A window function", "ROW_NUMBER", "GROUP BY"),
    ("SUM(p.age) > 3", "An aggregate cannot stand in WHERE", "SUM", "HAVING"),
]
SELECT = [
    ("o.amount", "'o.amount' stands outside an aggregate", "o.amount", "AVG(o.amount)"),
    ("*", "SELECT *", "*", "COUNT(*)"),
    ("p.*, COUNT(*)", "SELECT *", "p.*", "COUNT(*)"),
    ("DISTINCT p.region", "SELECT DISTINCT", "p.region", "GROUP BY"),
    ("SUM(o.amount) OVER (PARTITION BY p.region)", "A window function", "SUM", "GROUP BY"),
    ("COUNT(*), (SELECT COUNT(*) FROM items)", "A scalar subquery", "COUNT(*) FROM items", "question of its own"),
    ("SUM(CASE WHEN p.user_id IN (SELECT user_id FROM items) THEN 1 END)", "IN (SELECT …)", "p.user_id", "WHERE"),
    ("ARRAY_AGG(o.amount)", "A list of values", "ARRAY_AGG", "counts per group"),
    ("FIRST(o.amount)", "FIRST", "FIRST", "count"),
]  # fmt: skip
AFTER = [
    ("ORDER BY o.amount", "'o.amount' stands outside an aggregate", "o.amount", "AVG(o.amount)"),
    ("QUALIFY ROW_NUMBER() OVER () = 1", "QUALIFY", None, "GROUP BY"),
    ("HAVING o.amount > 3", "'o.amount' stands outside an aggregate", "o.amount", "AVG(o.amount)"),
    ("GROUP BY p.user_id", "about one user_id each", "p.user_id", "many share"),
    ("INTERSECT SELECT COUNT(*) FROM people", "INTERSECT", "COUNT(*) FROM people", "questions of their own"),
    ("UNION ALL SELECT COUNT(*) FROM people", "UNION", "COUNT(*) FROM people", "questions of their own"),
    ("EXCEPT SELECT COUNT(*) FROM people", "EXCEPT", "COUNT(*) FROM people", "questions of their own"),
]
JOINED = "people p JOIN orders o USING (user_id)"
CASES = [
    *((f"SELECT COUNT(*) FROM\n{part}", part, *rest) for part, *rest in FROM),
    *((f"SELECT COUNT(*) FROM people p WHERE\n{part}", part, *rest) for part, *rest in WHERE),
    *((f"SELECT\n{part}\nFROM {JOINED}", part, *rest) for part, *rest in SELECT),
    *((f"SELECT COUNT(*) FROM {JOINED}\n{part}", part, *rest) for part, *rest in AFTER),
]


@pytest.mark.parametrize(("question", "part", "named", "pointed", "way"), CASES, ids=[each[1] for each in CASES])
def test_a_construct_is_named_with_its_place_and_another_way(shop, question, part, named, pointed, way):
    error = shop.error(question)
    assert isinstance(error, QuestionRefusedError | NotAllowedError)
    assert named in error.message
    assert error.why and way in error.fix
    assert error.at is not None
    if pointed is not None:
        assert error.at == (2, part.index(pointed) + 1)
    assert error.charge == NOTHING


def test_a_recursive_cte_is_named(shop):
    question = (
        "WITH RECURSIVE r AS\n(SELECT user_id FROM orders UNION ALL SELECT user_id FROM r)\nSELECT COUNT(*) FROM r"
    )
    error = shop.error(question)
    assert "WITH RECURSIVE is not supported" in error.message and "Write the steps out" in error.fix
    assert error.at == (1, 16)


OWN = "WHERE o.user_id = p.user_id"
WAYS = {
    f"p WHERE p.age > (SELECT MAX(amount) FROM orders o {OWN})": "p JOIN (SELECT user_id, MAX(amount) AS m FROM orders "
    "GROUP BY user_id) s ON s.user_id = p.user_id WHERE p.age > s.m",
    f"p WHERE EXISTS (SELECT 1 FROM orders o {OWN} GROUP BY o.user_id HAVING COUNT(*) > 2)": "p WHERE p.user_id IN "
    "(SELECT user_id FROM orders GROUP BY user_id HAVING COUNT(*) > 2)",
    "p SEMI JOIN orders o USING (user_id)": f"p WHERE EXISTS (SELECT 1 FROM orders o {OWN})",
    "p ANTI JOIN orders o USING (user_id)": f"p WHERE NOT EXISTS (SELECT 1 FROM orders o {OWN})",
    f"p WHERE p.age > ALL (SELECT amount FROM orders o {OWN} AND amount > 0)": "p WHERE NOT EXISTS (SELECT 1 FROM "
    f"orders o {OWN} AND o.amount > 0 AND p.age <= o.amount)",
    f"p WHERE p.age < ANY (SELECT amount FROM orders o {OWN})": "p WHERE EXISTS (SELECT 1 FROM "
    f"orders o {OWN} AND p.age < o.amount)",
}


@pytest.mark.parametrize(("refused", "instead"), WAYS.items(), ids=list(WAYS))
def test_the_way_that_is_told_gives_what_was_meant(shop, refused, instead):
    start = "SELECT COUNT(*) FROM people"
    assert shop.error(f"{start} {refused}").fix
    assert shop.count(f"{start} {instead}") == shop.plain(f"{start} {refused}")[0][0]


INSTEAD = {  # of orders: what is refused, the way that its refusal tells, and that way here
    "INITCAP(note)": (
        "UPPER(LEFT(a, 1)) || LOWER(SUBSTRING(a, 2))",
        "UPPER(LEFT(note, 1)) || LOWER(SUBSTRING(note, 2))",
    ),
    "REVERSE(note)": ("SPLIT_PART(a, '-', -1)", "SPLIT_PART(note, '-', -1)"),
    "TRANSLATE(note, 'ab', 'ba')": ("REPLACE(a, 'x', 'y')", "REPLACE(note, 'a', 'b')"),
    "ADD_MONTHS(day, 1)": ("d + INTERVAL 1 MONTH", "day + INTERVAL 1 MONTH"),
    "MONTHS_BETWEEN(day, day)": ("DATE_DIFF('month', d, e)", "DATE_DIFF('month', day, day)"),
    "TO_CHAR(day, 'IYYY')": ("STRFTIME(d, '%Y-%m')", "STRFTIME(day, '%Y-%m')"),
    "REGEXP_EXTRACT(note, 'x')": ("CASE WHEN REGEXP_MATCHES", "CASE WHEN REGEXP_MATCHES(note, 'x') THEN 'y' END"),
    "MAKE_DATE(YEAR(day), 1, 1)": ("DATE_TRUNC('month', d)", "DATE_TRUNC('month', day)"),
    "AGE(day)": ("EXTRACT(year FROM AGE(", "EXTRACT(year FROM AGE(DATE '2025-01-01', day))"),
    "BIT_COUNT(MONTH(day))": ("x % 2", "MONTH(day) % 2"),
    "note SIMILAR TO 'x%'": ("REGEXP_FULL_MATCH(a, 'x.*')", "REGEXP_FULL_MATCH(note, 'x.*')"),
    "DATE_TRUNC(day, WEEK)": ("DATE_TRUNC('week', d)", "DATE_TRUNC('week', day)"),
}


@pytest.mark.parametrize("refused", INSTEAD)
def test_a_function_that_is_not_here_is_refused_with_one_that_is(shop, refused):
    way, instead = INSTEAD[refused]
    error = shop.error(f"SELECT {refused} AS k, COUNT(*) FROM orders GROUP BY k")
    assert way in error.fix and error.why
    assert shop.plan(f"SELECT {instead} AS k, COUNT(*) FROM orders GROUP BY k").keys


HOW_MANY = {
    "BOOL_AND(smoker)": "COUNT_IF(smoker)",
    "VAR_POP(DISTINCT age)": "COUNT(DISTINCT age)",
    "MODE(note)": "COUNT(*)",
}


@pytest.mark.parametrize(("refused", "instead"), HOW_MANY.items(), ids=list(HOW_MANY))
def test_an_aggregate_that_is_not_here_is_refused_with_one_that_is(shop, refused, instead):
    assert instead.split("(")[0] in shop.error(f"SELECT {refused} FROM people").fix
    assert shop.plan(f"SELECT {instead} FROM people").measures


@pytest.mark.parametrize(
    "question",
    [
        "SELECT n FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id)",
        "SELECT n FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) t JOIN people USING (user_id)",
        "SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) t WHERE n = 'a'",
        "SELECT COUNT(*) FROM people a JOIN (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) b ON age = n",
        "SELECT x FROM (SELECT user_id, age AS x FROM people UNION ALL SELECT user_id, amount FROM orders)",
        "SELECT n, COUNT(*) FROM (SELECT user_id AS u, COUNT(*) AS n FROM orders GROUP BY user_id) GROUP BY u",
        "SELECT COUNT(*) FROM people WHERE CAST(age AS foo) = 1",
        "SELECT MAX(*) FROM people",
        "SELECT COUNT(*) FROM people WHERE age | 1 = 1",
    ],
)
def test_no_name_that_only_plans_have_is_told(shop, question):
    error = shop.error(question)
    said = f"{error.message} {error.why} {error.fix}"
    assert not any(
        each in said for each in ("per unit.", "'per unit'", "union.", "#", "USERDEFINED", "Star", "Bitwise")
    )


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT CUONT(*) FROM orders", "Did you mean COUNT?"),
        ("SELECT MEDAIN(quantity) FROM orders", "Did you mean MEDIAN?"),
        ("SELECT STRFTIM(day, '%Y') AS y, COUNT(*) FROM orders GROUP BY y", "Did you mean STRFTIME?"),
        ("SELECT FROBNICATE(quantity) FROM orders", "docs/reference/sql.md"),
        ("SELECT COUNT(*) FROM orders WHERE status = paid", "Texts stand in single quotes: 'paid'."),
        ('SELECT COUNT(*) FROM orders WHERE status = "statuss"', "Texts stand in single quotes: 'statuss'."),
        ('SELECT COUNT(*) FROM orders WHERE status IN ("paid")', "Texts stand in single quotes: 'paid'."),
        ("SELECT COUNT(*) FROM orders WHERE status <> statuss", "Did you mean 'status'? Texts stand in single quotes"),
        ("SELECT COUNT(*) FROM orders WHERE statuss = 'paid'", "Did you mean 'status'?"),
        (
            "SELECT DATEADD(week, DATEDIFF(week, 0, day), 0) AS w, COUNT(*) FROM orders GROUP BY 1",
            "DATE_TRUNC('week', d)",
        ),
    ],
)
def test_a_slip_of_the_pen_is_told_with_what_was_probably_meant(sql, said, shop):
    assert said in str(shop.error(sql))
