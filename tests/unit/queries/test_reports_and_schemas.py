"""WITH REPORT is read with a note, and a schema before a public table's name is left out."""

from __future__ import annotations

import pytest
from tests import typed
from tests.shop import Shop

from dalenius.errors import DaleniusError
from dalenius.queries.rules.clause import REPORTED


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return typed.protected(tmp_path_factory.mktemp("reports"))


@pytest.mark.parametrize(
    ("question", "plain"),
    [
        ("SELECT ANON_COUNT(* WITH REPORT(FORMAT='json')) AS n FROM people", "SELECT COUNT(*) AS n FROM people"),
        ("SELECT SUM(age, report_format => JSON) AS n FROM people", "SELECT SUM(age) AS n FROM people"),
        ("SELECT ANON_AVG(age WITH REPORT) AS n FROM people", "SELECT AVG(age) AS n FROM people"),
    ],
)
def test_a_report_is_the_number_with_a_note(shop, question, plain):
    assert shop.key(question) == shop.key(plain)
    assert REPORTED in shop.plan(question).notes
    assert REPORTED not in shop.plan(plain).notes


def test_contribution_bounds_stand_before_a_report(shop):
    clamped = "SELECT ANON_SUM(age CLAMPED BETWEEN 0 AND 100{}) FROM people"
    assert shop.key(clamped.format(" WITH REPORT(FORMAT=JSON)")) == shop.key(clamped.format(""))


def test_a_query_named_report_is_one(shop):
    plan = shop.plan("WITH Report AS (SELECT age FROM people WHERE age > 20) SELECT COUNT(*) FROM Report")
    assert REPORTED not in plan.notes
    plan = shop.plan("SELECT COUNT(*) FROM (WITH report(a) AS (SELECT age FROM people) SELECT a FROM report)")
    assert REPORTED not in plan.notes


@pytest.mark.parametrize(
    "question",
    [
        "SELECT name FROM public.regions WHERE code = 'n'",
        "SELECT shop.regions.name FROM main.shop.regions WHERE regions.code = 'n'",
        "SELECT r.name FROM (SELECT * FROM dbo.regions) r WHERE r.code = 'n'",
    ],
)
def test_a_schema_before_a_public_table_is_left_out(shop, question):
    release = shop.ana.ask(question)
    assert release.free and list(release.rows) == [("North",)]


@pytest.mark.parametrize(
    "question",
    [
        "WITH regions AS (SELECT 1 AS x) SELECT x FROM public.regions",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM public.read_csv('regions.csv')",
        "SELECT name FROM shop.people",
    ],
)
def test_nothing_else_is_read_by_a_schema(shop, question):
    with pytest.raises(DaleniusError):
        shop.ana.ask(question, epsilon=1.0)
