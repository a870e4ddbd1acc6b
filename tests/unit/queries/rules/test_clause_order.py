"""Clauses out of SQL's order are refused before anything is charged, as DuckDB refuses them."""

from __future__ import annotations

import itertools
import random
import time

import duckdb
import pytest

from dalenius.errors import DaleniusError, Place, SqlSyntaxError
from dalenius.queries.rules.parse import LONGEST, parse_sql

CLAUSES = (
    "JOIN u USING (b)",
    "WHERE a > 1",
    "GROUP BY a",
    "HAVING COUNT(*) > 1",
    "WINDOW w AS (ORDER BY a)",
    "QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1",
    "ORDER BY a",
    "LIMIT 3",
    "OFFSET 2",
    "FETCH FIRST 2 ROWS ONLY",
)
WITHIN = (  # where a SELECT may stand
    "{}",
    "SELECT a FROM ({}) x WHERE a > 1 ORDER BY a",
    "WITH x AS ({}) SELECT a FROM x GROUP BY a",
    "SELECT a FROM t WHERE EXISTS ({}) LIMIT 1",
    "SELECT a FROM ({} UNION ALL SELECT a FROM v WHERE a > 2 LIMIT 1) x",
    "SELECT a FROM (SELECT a FROM v WHERE a > 2 UNION ALL {}) x",
)


def duckdb_parses(sql: str) -> bool:
    try:
        duckdb.extract_statements(sql)
    except duckdb.Error:
        return False
    return True


def is_parsed(sql: str) -> bool:
    try:
        parse_sql(sql)
    except DaleniusError:
        return False
    return True


def generated() -> list[str]:
    """All pairs of clauses in either order, and some hundred longer ones, in every place."""
    chance = random.Random(5)
    orders = [*itertools.product(CLAUSES, repeat=2)]
    orders += [tuple(chance.sample(CLAUSES, chance.randint(0, 6))) for _ in range(200)]
    orders += [tuple(sorted(each, key=CLAUSES.index)) for each in orders[-200:]]
    selects = [f"SELECT a FROM t {' '.join(each)}" for each in orders]
    return [WITHIN[at % len(WITHIN)].format(each) for at, each in enumerate(selects)] + selects


def test_what_is_parsed_is_parsed_by_duckdb_and_the_other_way_round():
    texts = generated()
    by_duckdb = [duckdb_parses(each) for each in texts]
    assert 200 < sum(by_duckdb) < len(texts) - 200  # of either kind there are many
    assert [each for each, fine in zip(texts, by_duckdb, strict=True) if is_parsed(each) != fine] == []


@pytest.mark.parametrize(
    ("clauses", "message", "fix"),  # | stands before the word that is pointed at
    [
        ("GROUP BY region |WHERE age > 3", "WHERE stands behind GROUP BY", "Put WHERE before GROUP BY"),
        ("ORDER BY 2 |GROUP BY region", "GROUP BY stands behind ORDER BY", "Put GROUP BY before ORDER BY"),
        ("LIMIT 1 |WHERE age > 3", "WHERE stands behind LIMIT", "Put WHERE before LIMIT"),
        ("HAVING COUNT(*) > 5 |WHERE age > 3", "WHERE stands behind HAVING", "Put WHERE before HAVING"),
        ("LIMIT 2 |ORDER BY 1", "ORDER BY stands behind LIMIT", "Put ORDER BY before LIMIT"),
        ("OFFSET 2 |ORDER BY 1", "ORDER BY stands behind OFFSET", "Put ORDER BY before OFFSET"),
        ("WHERE age > 3 |WHERE age < 9", "WHERE is there twice", "with AND between its conditions"),
        ("ORDER BY 1 |ORDER BY 2", "ORDER BY is there twice", "Write one ORDER BY."),
        ("WHERE age > 3 |JOIN visits v USING (person)", "JOIN stands behind WHERE", "Put JOIN before WHERE"),
    ],
)
def test_it_is_refused_with_its_place_and_what_to_do(clauses, message, fix, visits):
    before, _, after = f"SELECT region, COUNT(*) FROM visits {clauses}".partition("|")
    error = visits.error(before + after)
    assert isinstance(error, SqlSyntaxError) and error.exit_code == 2 and "No budget was spent." in str(error)
    assert message in error.message and fix in error.fix and error.at == Place(1, len(before) + 1)


def test_the_place_is_right_in_a_later_line_and_in_a_subquery(visits):
    error = visits.error("SELECT COUNT(*) FROM (\n  SELECT age FROM visits GROUP BY age\n  WHERE age > 3) x")
    assert error.at == Place(3, 3)
    error = visits.error("SELECT COUNT(*) FROM (SELECT age FROM visits ORDER BY 1\nUNION ALL SELECT age FROM visits) x")
    assert error.at == Place(2, 1) and "Put ORDER BY to the end" in error.fix


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FILTER (WHERE age > 3) AS n FROM visits WHERE age < 90 GROUP BY region LIMIT 2 OFFSET 1",
        "SELECT region FROM visits GROUP BY region ORDER BY COUNT(*) FILTER (WHERE age > 3) OFFSET 1 LIMIT 2",
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) AS m FROM visits WHERE age > 3",
        'SELECT COUNT(*) AS limit, COUNT(age) AS "where" FROM visits WHERE age > 3',
        "SELECT COUNT(*) FROM visits -- LIMIT 1\nWHERE note = 'ORDER BY LIMIT 1' GROUP BY ()",
        "SELECT COUNT(*) FROM (SELECT age FROM visits WHERE age > 3 UNION ALL SELECT age FROM visits WHERE age < 2) x",
        "WITH a AS (SELECT age FROM visits WHERE age > 3) SELECT COUNT(*) FROM a WHERE age < 60",
        "FROM visits SELECT COUNT(*) WHERE age > 3",
    ],
)
def test_what_is_in_order_is_planned_as_before(text, visits):
    assert duckdb_parses(text) and visits.plan(text)


def test_a_type_and_a_name_are_no_clauses():
    assert is_parsed("SELECT t.limit, a AS where, a AS union FROM t WHERE t.order > 1 ORDER BY a::UNION(n INT)")


@pytest.mark.parametrize("part", ["(", ")", "WHERE ", "a AS ", "LIMIT 1 ", "(SELECT ", "UNION ", "; ", "ORDER BY 1 ("])
def test_hostile_texts_end_at_once(part):
    start = time.thread_time()
    assert not is_parsed(f"SELECT a FROM t WHERE {part * (LONGEST // len(part))}"[:LONGEST])
    assert time.thread_time() - start < 5
