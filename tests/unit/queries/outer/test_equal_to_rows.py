# ruff: noqa: E501 (one shape, one line)
"""With hardly any noise, a question with an outer part has the answer that DuckDB gives on the rows."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tests.shop import BUDGET, Shop

from dalenius.queries.outer import noise_copies

BOTH = "SELECT region, status, COUNT(*) AS n FROM orders GROUP BY region, status"

EQUAL = {
    # an attempt that failed leaves nothing that the next one reads
    "a name of WITH in two attempts": "WITH t AS (SELECT COUNT(*) AS n FROM orders) SELECT SUM(n) AS a, (SELECT n FROM t) AS b, (SELECT SUM(age) FROM people) AS c FROM (SELECT AVG(amount) AS n FROM orders)",
    "a share of a name of WITH": "WITH t AS (SELECT region, COUNT(*) AS n FROM orders GROUP BY region) SELECT SUM(n) * 1.0 / (SELECT SUM(n) FROM t) FROM t WHERE region = 'n'",
    "small parts after large ones": "WITH t AS (SELECT COUNT(*) AS n FROM orders) SELECT MD5(region) AS r, 100.0 * COUNT(*) / (SELECT n FROM t) AS pct, AVG(amount) / (SELECT AVG(age) FROM people) AS q FROM orders GROUP BY region",
    # DISTINCT merges rows that show the same
    "DISTINCT of a key": f"WITH t AS ({BOTH}) SELECT DISTINCT region FROM t",
    "DISTINCT of a key, counted": f"SELECT COUNT(*) FROM (SELECT DISTINCT region FROM ({BOTH}))",
    "DISTINCT of a key, joined": f"WITH t AS ({BOTH}), d AS (SELECT DISTINCT status FROM t) SELECT t.region, t.n, d.status FROM t JOIN d ON t.status = d.status",
    "DISTINCT of a function of a key": f"SELECT DISTINCT UPPER(region) AS r, r || 'x' FROM ({BOTH}) UNION ALL SELECT DISTINCT status, 'y' FROM ({BOTH})",
    "DISTINCT of some keys": "SELECT DISTINCT status FROM orders GROUP BY status, region HAVING COUNT(*) > 0",
    "DISTINCT of noisy values": f"SELECT DISTINCT region, n > 0 AS b FROM ({BOTH})",
    "DISTINCT, some of it": f"SELECT DISTINCT region FROM ({BOTH}) ORDER BY region LIMIT 2",
    # no name of the text hides one of those that are given here
    "a WITH named as a release": 'SELECT * FROM (WITH "release 0" AS (SELECT \'FAKE\' AS "released 0", 42 AS "released 1", 0 AS "row number") SELECT region, COUNT(*) AS n FROM orders GROUP BY 1 UNION ALL SELECT status, COUNT(*) FROM orders GROUP BY 1) q',
    "a WITH named as a query": f"WITH a AS ({BOTH}) SELECT * FROM (WITH \"query 1\" AS (SELECT 'z' AS region, 'z' AS status, 6 AS n, '7' AS \"row id\") SELECT region, n FROM a UNION ALL SELECT region, n FROM a) q",
    "UNION BY NAME in another order": f"WITH t AS ({BOTH}) SELECT region, n, status FROM t UNION ALL BY NAME SELECT n, status, region FROM t",
    "names of what is hidden": f'WITH t AS (SELECT region AS "row id", n AS "row number", 1 AS "copy number" FROM ({BOTH})) SELECT "row id", "row number" * "copy number" FROM t',
    # types are those that DuckDB has
    "types of aggregates": "SELECT region, typeof(n), typeof(s), typeof(t), typeof(m), typeof(a), typeof(d), typeof(lo), typeof(hi), typeof(u) FROM (SELECT region, COUNT(*) AS n, SUM(age) AS s, SUM(age * 2) AS t, MEDIAN(age) AS m, AVG(age) AS a, COUNT(DISTINCT note) AS d, MIN(age) AS lo, MAX(age) AS hi, COUNT(DISTINCT user_id) AS u FROM people WHERE region <> 'w' GROUP BY region HAVING COUNT(*) > 0)",
    "types of halves and keys": "SELECT m, typeof(m), typeof(s), typeof(s / n), typeof(-m) FROM (SELECT MONTH(day) AS m, SUM(amount) AS s, COUNT(*) AS n FROM orders GROUP BY 1 HAVING COUNT(*) > 0)",
    "whole numbers as texts": "SELECT region, s::VARCHAR || '/' || n AS t, s // 3, n % 2, ROUND(s, 1)::VARCHAR, ROUND(s, -1), (s * 1000000000000000)::VARCHAR FROM (SELECT region, SUM(age) AS s, COUNT(*) AS n FROM people GROUP BY region HAVING COUNT(*) > 0)",
    "sums of counts of each person": "SELECT region, s // 2, s::VARCHAR, typeof(s) FROM (SELECT region, SUM(n) AS s FROM (SELECT user_id, region, COUNT(*) AS n FROM orders GROUP BY user_id, region) GROUP BY region)",
    # names that are in several sources, but given to an item
    "a name in two sources, to order by": f"WITH t AS ({BOTH}) SELECT a.n AS n, a.region, a.status FROM t a JOIN t b ON a.region = b.region AND a.status = b.status ORDER BY n, 2, 3 LIMIT 4",
    "a part of a value": f"SELECT s.a + 1 FROM (SELECT {{'a': n}} AS s FROM ({BOTH}))",
    # the end of a query behind its parenthesis
    "ORDER BY behind a parenthesis": f"(SELECT region, status, n FROM ({BOTH})) ORDER BY n DESC, 1, 2 LIMIT 3",
    "ORDER BY behind an aggregated SELECT": f"({BOTH}) ORDER BY n, region, status LIMIT 2 OFFSET 1",
    "ORDER BY behind UNION ALL": f"(SELECT n FROM ({BOTH}) UNION ALL SELECT 4) ORDER BY n DESC LIMIT 2",
    # names as DuckDB reads them
    "* of FULL JOIN USING": f"WITH t AS ({BOTH}), a AS (SELECT region, n FROM t WHERE status = 'open' AND region < 'n'), b AS (SELECT region, n AS m FROM t WHERE status = 'done' AND region >= 'n') SELECT * FROM a FULL JOIN b USING (region)",
    "* of NATURAL RIGHT JOIN": f"WITH t AS ({BOTH}), a AS (SELECT region, n FROM t WHERE status = 'open' AND region < 'n'), b AS (SELECT region, n AS m FROM t WHERE status = 'done') SELECT * FROM a NATURAL RIGHT JOIN b",
    "ORDER BY an expression of a column": "SELECT -COUNT(*) AS status, RANK() OVER (ORDER BY COUNT(*)) AS r FROM orders GROUP BY status ORDER BY UPPER(status) LIMIT 1",
    "DISTINCT ON the name of an item": "SELECT DISTINCT ON (status) region AS status, 1 AS one FROM orders GROUP BY orders.region, orders.status HAVING COUNT(*) > 0",
}


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    return Shop.protected(
        tmp_path_factory.mktemp("exact"), rows=30, budget=BUDGET.replace("epsilon = 50.0", "epsilon = 1e12")
    )


def told(rows):
    return sorted(
        (tuple(float(cell) if isinstance(cell, int | float | Decimal) else str(cell) for cell in row) for row in rows),
        key=lambda row: [round(cell, 3) if isinstance(cell, float) else cell for cell in row],
    )


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.parametrize("cells", [0, noise_copies.MOST_CELLS], ids=["without copies", "with copies"])
def test_it_is_the_answer_of_the_rows(exact, monkeypatch, name, cells):
    monkeypatch.setattr(noise_copies, "MOST_CELLS", cells)
    got, expected = told(exact.ana.ask(EQUAL[name], epsilon=1e9).rows), told(exact.plain(EQUAL[name]))
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert one == tuple(
            pytest.approx(each, rel=1e-3, abs=1e-3) if isinstance(each, float) else each for each in other
        )


@pytest.mark.usefixtures("inside")
def test_columns_of_union_by_name_are_noisy_where_one_of_that_name_is(exact):
    found = exact.ana.ask(
        f"WITH t AS ({BOTH}) SELECT 'x' AS k, n FROM t UNION ALL BY NAME SELECT n, region AS k FROM t", epsilon=5.0
    )
    assert found.columns == ("k", "n") and found.keys == (True, False)


@pytest.mark.usefixtures("inside")
def test_a_column_that_is_unchanged_shows_what_the_release_does(exact):
    plain = "SELECT region, MEDIAN(age) AS m, MAX(age) AS hi FROM people GROUP BY region"
    one, other = (exact.ana.ask(each, epsilon=7.0) for each in (plain, f"SELECT * FROM ({plain}) t"))
    assert list(map(repr, one.rows)) == list(map(repr, other.rows))
