"""PIVOT with listed values is GROUP BY with one aggregate for each; any other is refused with what to type."""

from __future__ import annotations

import pytest

from dalenius.errors import QuestionRefusedError
from dalenius.queries.rules.parse import parse_sql

WRITTEN = {
    "PIVOT visits ON region IN ('north', 'south') USING SUM(amount) GROUP BY smoker": """
        SELECT smoker, SUM(amount) FILTER(WHERE region = 'north') AS "north",
        SUM(amount) FILTER(WHERE region = 'south') AS "south" FROM visits GROUP BY smoker""",
    "PIVOT visits ON age IN (1, 2) GROUP BY smoker": """
        SELECT smoker, COUNT(*) FILTER(WHERE age = 1) AS "1", COUNT(*) FILTER(WHERE age = 2) AS "2"
        FROM visits GROUP BY smoker""",
    "PIVOT (SELECT age AS s, region, amount FROM visits) ON region IN ('north') USING COUNT(*) AS n, AVG(amount)": """
        SELECT s, COUNT(*) FILTER(WHERE region = 'north') AS "north_n",
        AVG(amount) FILTER(WHERE region = 'north') AS "north_avg(amount)"
        FROM (SELECT age AS s, region, amount FROM visits) GROUP BY s""",
    "SELECT * FROM (SELECT smoker, region FROM visits) PIVOT (COUNT(*), AVG(region) FOR region IN ('north' AS x))": """
        SELECT * FROM (SELECT smoker, COUNT(*) FILTER(WHERE region = 'north') AS "x_count_star()",
        AVG(region) FILTER(WHERE region = 'north') AS "x_avg(region)"
        FROM (SELECT smoker, region FROM visits) GROUP BY smoker)""",
    "WITH p AS (PIVOT visits ON region IN ('north') USING SUM(amount) GROUP BY smoker) SELECT * FROM p": """
        WITH p AS (SELECT smoker, SUM(amount) FILTER(WHERE region = 'north') AS "north"
        FROM visits GROUP BY smoker) SELECT * FROM p""",
}
REFUSED = [
    "PIVOT visits ON region USING SUM(amount) GROUP BY smoker",  # columns would depend on rows
    "PIVOT visits ON region IN ('north') USING SUM(amount)",  # groups of all other columns
    "PIVOT visits ON region IN ('north'), smoker IN (TRUE) USING SUM(amount) GROUP BY age",
    "PIVOT visits ON lower(region) IN ('north') USING SUM(amount) GROUP BY smoker",
    "PIVOT (SELECT * FROM visits) ON region IN ('north') USING SUM(amount)",
    "SELECT * FROM visits PIVOT (COUNT(*) FOR region IN ('north'))",
    "SELECT * FROM visits PIVOT (COUNT(*) FOR region IN (SELECT region FROM visits) GROUP BY smoker)",
    "SELECT * FROM visits UNPIVOT (x FOR y IN (age, amount))",
    f"PIVOT visits ON age IN ({', '.join(map(str, range(1, 200)))}) GROUP BY smoker",
]


@pytest.mark.parametrize("typed", WRITTEN)
def test_listed_values_become_columns(typed):
    assert parse_sql(typed).sql(dialect="duckdb") == " ".join(WRITTEN[typed].split())


def test_a_pivot_means_the_aggregates_that_it_stands_for(visits):
    found = visits.plan("PIVOT visits ON region IN ('north') USING SUM(age) GROUP BY smoker")
    meant = visits.plan("SELECT smoker, SUM(age) FILTER (WHERE region = 'north') FROM visits GROUP BY smoker")
    assert found.canonical() == meant.canonical()
    assert [each.name for each in found.question.outputs] == ["smoker", "north"]


@pytest.mark.parametrize("sql", REFUSED)
def test_any_other_pivot_is_refused_with_what_to_type(sql, visits):
    error = visits.error(sql)
    assert isinstance(error, QuestionRefusedError)
    assert "PIVOT" in error.message and error.fix
