# ruff: noqa: E501 (one shape, one line)
"""What is computed from a release is what DuckDB gives on the released table; and it is charged once, whatever it is."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from dalenius.queries.outer import noise_copies

EPSILON = 3.0
BY_REGION = "SELECT region, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY region"
BY_BOTH = "SELECT region, status, COUNT(*) AS n FROM orders GROUP BY region, status"
BY_MONTH = "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM orders GROUP BY 1"
PUBLIC = "CREATE TABLE regions AS SELECT * FROM (VALUES ('n', 'North', 1), ('s', 'South', 2), ('e', 'East', 3), "

# (the plain question, the question, the same over its release t)
SHAPES = [
    # windows over aggregates, in one SELECT
    (BY_REGION, "SELECT region, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share, SUM(amount) FROM orders GROUP BY region",
     "SELECT region, n * 1.0 / SUM(n) OVER (), s FROM t"),
    (BY_REGION, "SELECT region, RANK() OVER (ORDER BY COUNT(*) DESC), SUM(amount) s FROM orders GROUP BY region ORDER BY 1",
     "SELECT region, RANK() OVER (ORDER BY n DESC), s FROM t ORDER BY 1"),
    (BY_REGION, "SELECT region, COUNT(*) AS n, SUM(amount) AS s, DENSE_RANK() OVER (ORDER BY n), s / n FROM orders GROUP BY 1",
     "SELECT region, n, s, DENSE_RANK() OVER (ORDER BY n), s / n FROM t"),
    (BY_REGION, "SELECT region, SUM(amount) - LAG(SUM(amount)) OVER (ORDER BY region), COUNT(*) FROM orders GROUP BY ALL",
     "SELECT region, s - LAG(s) OVER (ORDER BY region), n FROM t"),
    (BY_REGION, "SELECT region, SUM(COUNT(*)) OVER (ORDER BY region), SUM(SUM(amount)) OVER () FROM orders GROUP BY region",
     "SELECT region, SUM(n) OVER (ORDER BY region), SUM(s) OVER () FROM t"),
    (BY_REGION, "SELECT SUM(amount) AS s, COUNT(*) AS n, NTILE(2) OVER (ORDER BY COUNT(*), region) FROM orders GROUP BY region",
     "SELECT s, n, NTILE(2) OVER (ORDER BY n, region) FROM t"),
    (BY_REGION, ("SELECT region, LEAD(COUNT(*), 1, 0) OVER w, FIRST_VALUE(SUM(amount)) OVER w FROM orders GROUP BY region "
     "WINDOW w AS (ORDER BY region DESC)"),
     "SELECT region, LEAD(n, 1, 0) OVER w, FIRST_VALUE(s) OVER w FROM t WINDOW w AS (ORDER BY region DESC)"),
    (BY_REGION, ("SELECT region, AVG(COUNT(*)) OVER (ORDER BY region ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS a, "
     "SUM(amount) FROM orders GROUP BY region"),
     "SELECT region, AVG(n) OVER (ORDER BY region ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), s FROM t"),
    (BY_REGION, ("SELECT region, CASE WHEN COUNT(*) > AVG(COUNT(*)) OVER () THEN 'much' ELSE region END, SUM(amount) "
     "FROM orders GROUP BY region"),
     "SELECT region, CASE WHEN n > AVG(n) OVER () THEN 'much' ELSE region END, s FROM t"),
    (BY_REGION, ("SELECT region, PERCENT_RANK() OVER (ORDER BY COUNT(*)), CUME_DIST() OVER (ORDER BY SUM(amount)) "
     "FROM orders GROUP BY region"),
     "SELECT region, PERCENT_RANK() OVER (ORDER BY n), CUME_DIST() OVER (ORDER BY s) FROM t"),
    (BY_REGION, ("SELECT UPPER(region), ROUND(100.0 * SUM(amount) / SUM(SUM(amount)) OVER (), 1), COUNT(*) FROM orders "
     "GROUP BY region"),
     "SELECT UPPER(region), ROUND(100.0 * s / SUM(s) OVER (), 1), n FROM t"),
    (BY_REGION, "SELECT region, MAX(COUNT(*)) FILTER (WHERE region <> 'n') OVER () AS m, SUM(amount) FROM orders GROUP BY 1",
     "SELECT region, MAX(n) FILTER (WHERE region <> 'n') OVER (), s FROM t"),
    (BY_REGION, "SELECT COUNT(*) AS n, SUM(amount), ROW_NUMBER() OVER (ORDER BY region) FROM orders GROUP BY region",
     "SELECT n, s, ROW_NUMBER() OVER (ORDER BY region) FROM t"),
    (BY_BOTH, "SELECT region, status, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY region) FROM orders GROUP BY ALL",
     "SELECT region, status, n * 1.0 / SUM(n) OVER (PARTITION BY region) FROM t"),
    (BY_BOTH, ("SELECT region, status, COUNT(*) - LAG(COUNT(*)) OVER (PARTITION BY region ORDER BY status) FROM orders "
     "GROUP BY region, status"),
     "SELECT region, status, n - LAG(n) OVER (PARTITION BY region ORDER BY status) FROM t"),
    (BY_MONTH, "SELECT DATE_TRUNC('month', day) AS m, SUM(COUNT(*)) OVER (ORDER BY m) FROM orders GROUP BY m ORDER BY m",
     "SELECT m, SUM(n) OVER (ORDER BY m) FROM t ORDER BY m"),
    (BY_MONTH, "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n, n - LAG(n) OVER (ORDER BY m) FROM orders GROUP BY 1",
     "SELECT m, n, n - LAG(n) OVER (ORDER BY m) FROM t"),
    (BY_MONTH, ("SELECT MONTH(m), n FROM (SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM orders GROUP BY 1) "
     "WHERE m > DATE '2025-06-01'"),
     "SELECT MONTH(m), n FROM t WHERE m > DATE '2025-06-01'"),
    (
        BY_REGION,
        "SELECT REVERSE(region) || '!', MD5(region), SUM(amount) > 3, RANK() OVER (ORDER BY COUNT(*)) FROM orders GROUP BY region",
        "SELECT REVERSE(region) || '!', MD5(region), s > 3, RANK() OVER (ORDER BY n) FROM t",
    ),
    # QUALIFY, HAVING, LIMIT, DISTINCT
    (BY_REGION, "SELECT region, COUNT(*) AS n, SUM(amount) FROM orders GROUP BY 1 QUALIFY RANK() OVER (ORDER BY n DESC) <= 2",
     "SELECT region, n, s FROM t QUALIFY RANK() OVER (ORDER BY n DESC) <= 2"),
    (BY_REGION, "SELECT region, SUM(amount) AS s, RANK() OVER (ORDER BY COUNT(*)) AS r FROM orders GROUP BY 1 QUALIFY r = 1",
     "SELECT region, s, RANK() OVER (ORDER BY n) AS r FROM t QUALIFY r = 1"),
    (BY_BOTH, ("SELECT region, status, COUNT(*) FROM orders GROUP BY 1, 2 "
     "QUALIFY ROW_NUMBER() OVER (PARTITION BY region ORDER BY COUNT(*) DESC, status) = 1"),
     "SELECT region, status, n FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY region ORDER BY n DESC, status) = 1"),
    (BY_REGION, "SELECT region, COUNT(*) AS n, SUM(amount), SUM(COUNT(*)) OVER () FROM orders GROUP BY 1 HAVING n > 5",
     "SELECT region, n, s, SUM(n) OVER () FROM t WHERE n > 5"),
    (BY_REGION, "SELECT region, COUNT(*) / SUM(COUNT(*)) OVER (), SUM(amount) FROM orders GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 2",
     "SELECT region, n / SUM(n) OVER (), s FROM t ORDER BY 2 DESC, 1 LIMIT 2"),
    (BY_REGION, "SELECT DISTINCT COUNT(*) > 3 AS many, SUM(amount) > 50 FROM orders GROUP BY region",
     "SELECT DISTINCT n > 3, s > 50 FROM t"),
    (BY_REGION, "SELECT DISTINCT region, COUNT(*), SUM(amount) FROM orders GROUP BY region",
     "SELECT DISTINCT region, n, s FROM t"),
    (BY_BOTH, "SELECT DISTINCT ON (region) region, status, COUNT(*) FROM orders GROUP BY 1, 2 ORDER BY region, 3 DESC, 2",
     "SELECT DISTINCT ON (region) region, status, n FROM t ORDER BY region, n DESC, status"),
    (BY_REGION, f"SELECT GEOMEAN(n * n + 1), FAVG(s), ARG_MAX(region, n) FROM ({BY_REGION})", "SELECT GEOMEAN(n * n + 1), FAVG(s), ARG_MAX(region, n) FROM t"),
    (BY_REGION, f"WITH t AS ({BY_REGION}), u AS (SELECT region, n AS m FROM t WHERE n > 4) SELECT region, m - s FROM t NATURAL JOIN u", "SELECT region, n - s FROM t WHERE n > 4"),
    (BY_REGION, f"WITH t AS ({BY_REGION}) SELECT * FROM t NATURAL JOIN (SELECT region, n * 2 AS d FROM t)", "SELECT region, n, s, n * 2 FROM t"),
    (BY_REGION, f"WITH t AS ({BY_REGION}) SELECT t.region, n FROM t SEMI JOIN (SELECT region FROM t WHERE n > 4) u ON u.region = t.region", "SELECT region, n FROM t WHERE n > 4"),
    # outer SELECTs and WITH
    (BY_REGION, f"SELECT * FROM ({BY_REGION})", "SELECT * FROM t"),
    (BY_REGION, f"SELECT x.* FROM ({BY_REGION}) AS x WHERE n > 3 ORDER BY s", "SELECT * FROM t WHERE n > 3 ORDER BY s"),
    (BY_REGION, f"WITH t AS ({BY_REGION}) SELECT AVG(n), MAX(s) - MIN(s) FROM t", "SELECT AVG(n), MAX(s) - MIN(s) FROM t"),
    (BY_REGION, f"WITH t AS ({BY_REGION}) SELECT region, n * 1.0 / (SELECT SUM(n) FROM t) FROM t",
     "SELECT region, n * 1.0 / (SELECT SUM(n) FROM t) FROM t"),
    (BY_REGION, (f"WITH t AS ({BY_REGION}), u AS (SELECT region, s / n AS each FROM t WHERE n > 2) "
     "SELECT region, RANK() OVER (ORDER BY each) FROM u"),
     "SELECT region, RANK() OVER (ORDER BY s / n) FROM t WHERE n > 2"),
    (BY_REGION, f"WITH t(a, b, c) AS ({BY_REGION}) SELECT a, b + c FROM t WHERE a IN ('n', 's')",
     "SELECT region, n + s FROM t WHERE region IN ('n', 's')"),
    (BY_REGION, f"WITH t AS ({BY_REGION}) SELECT a.region, b.region FROM t a JOIN t b ON a.n > b.n",
     "SELECT a.region, b.region FROM t a JOIN t b ON a.n > b.n"),
    (BY_REGION, f"WITH t AS ({BY_REGION}) SELECT region FROM t WHERE n = (SELECT MAX(n) FROM t)",
     "SELECT region FROM t WHERE n = (SELECT MAX(n) FROM t)"),
    (BY_REGION, f"WITH t AS ({BY_REGION}) SELECT a.region FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.n > a.n)",
     "SELECT a.region FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.n > a.n)"),
    (BY_BOTH, f"SELECT region, SUM(n), MAX(n) FROM ({BY_BOTH}) GROUP BY region", "SELECT region, SUM(n), MAX(n) FROM t GROUP BY 1"),
    (BY_BOTH, f"SELECT status, COUNT(*), LIST(n ORDER BY region) FROM ({BY_BOTH}) GROUP BY ALL HAVING SUM(n) > 0",
     "SELECT status, COUNT(*), LIST(n ORDER BY region)::VARCHAR FROM t GROUP BY ALL HAVING SUM(n) > 0"),
    (BY_BOTH, f"SELECT region, n FROM (SELECT region, SUM(n) AS n FROM ({BY_BOTH}) GROUP BY region ORDER BY n LIMIT 2)",
     "SELECT region, n FROM (SELECT region, SUM(n) AS n FROM t GROUP BY region ORDER BY n LIMIT 2)"),
    (BY_BOTH, ("SELECT o.region, o.n, d.n FROM (SELECT region, status, COUNT(*) n FROM orders GROUP BY 1, 2) o JOIN "
     "(SELECT region, status, COUNT(*) n FROM orders GROUP BY 1, 2) d USING (region) WHERE o.status = 'open' AND d.status = 'done'"),
     "SELECT o.region, o.n, d.n FROM t o JOIN t d USING (region) WHERE o.status = 'open' AND d.status = 'done'"),
    (BY_REGION, f"SELECT name, n, tax * s FROM ({BY_REGION}) JOIN regions ON code = region",
     "SELECT name, n, tax * s FROM t JOIN regions ON code = region"),
    (BY_REGION, f"SELECT code, COALESCE(n, 0) FROM regions LEFT JOIN ({BY_REGION} HAVING COUNT(*) > 7) t ON code = region",
     "SELECT code, COALESCE(n, 0) FROM regions LEFT JOIN (SELECT * FROM t WHERE n > 7) t ON code = region"),
    (BY_REGION, f"SELECT label, s FROM ({BY_REGION}) t JOIN (VALUES ('n', 'up'), ('s', 'down')) v(k, label) ON k = region",
     "SELECT label, s FROM t JOIN (VALUES ('n', 'up'), ('s', 'down')) v(k, label) ON k = region"),
    (BY_REGION, f"SELECT region, n FROM ({BY_REGION}) UNION ALL SELECT 'all', SUM(n) FROM ({BY_REGION})",
     "SELECT region, n FROM t UNION ALL SELECT 'all', SUM(n) FROM t"),
    (BY_REGION, f"SELECT region FROM ({BY_REGION}) WHERE n > 5 EXCEPT SELECT region FROM ({BY_REGION}) WHERE s > 100",
     "SELECT region FROM t WHERE n > 5 EXCEPT SELECT region FROM t WHERE s > 100"),
]  # fmt: skip


def plain(rows):
    return [tuple(str(cell) if isinstance(cell, list) else cell for cell in row) for row in rows]


@pytest.mark.parametrize(("inner", "question", "over"), SHAPES, ids=range(len(SHAPES)))
@pytest.mark.usefixtures("inside")
def test_the_answer_is_that_of_duckdb_on_the_released_table(shop, charged, monkeypatch, inner, question, over):
    monkeypatch.setattr(noise_copies, "MOST_CELLS", 0)  # errors are not looked at here
    release = shop.ana.ask(inner, epsilon=EPSILON)
    before = charged()
    found = shop.ana.ask(question, epsilon=EPSILON)
    assert charged() == before and found.free and found.charge["epsilon"] == 0, "an outer part was charged"

    connection = duckdb.connect()
    connection.execute(PUBLIC + "('w', 'West', 4)) r(code, name, tax)")
    columns = {name: [row[at] for row in release.rows] for at, name in enumerate(release.columns)}
    connection.register("t", pa.table(columns))
    expected = plain(connection.execute(over).fetchall())
    ordered = "ORDER BY" in over.upper().rsplit(")", 1)[-1]
    got = plain(found.rows)
    assert len(got) == len(expected) and all(len(found.columns) == len(row) for row in expected)
    for one, other in zip(*(each if ordered else sorted(each, key=repr) for each in (got, expected)), strict=True):
        for a, b in zip(one, other, strict=True):
            assert a == (pytest.approx(float(b), rel=1e-12) if isinstance(b, float | Decimal) else b)


@pytest.mark.usefixtures("inside")
def test_every_shape_has_its_previews_columns_and_all_fields(shop):
    for inner, question, _ in SHAPES[::9]:
        shop.ana.ask(inner, epsilon=EPSILON)
        preview, release = shop.ana.preview(question, epsilon=EPSILON), shop.ana.ask(question, epsilon=EPSILON)
        assert preview.columns == release.columns and preview.choices[0].known
        assert str(release) and release.to_arrow().num_rows == len(release.rows)
        again = type(release).from_dict(release.to_dict(), question)
        assert again.columns == release.columns and len(again.total_interval) == len(release.rows)
