"""The reference page says what the allow-lists say."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from tests.shop import Shop

from dalenius.measuring.functions import FUNCTIONS
from dalenius.queries.reference import _INSIDE, AGGREGATES, BEGIN, BUCKETS, CLAUSES, SEVERAL, generated, renew
from dalenius.queries.rules.restrict import _PARTS, _REFUSED
from dalenius.queries.rules.sources import NOBODYS, REFUSED_JOINS, REFUSED_SUBQUERIES

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "sql.md"


def test_the_committed_page_is_what_the_code_generates():
    text = PAGE.read_text()
    assert renew(text, BEGIN, generated()) == text, "run: python -m dalenius.queries.reference docs/reference/sql.md"


def test_every_function_and_every_refusal_is_on_the_page():
    text = generated().replace("\\|", "|")
    for name, function in FUNCTIONS.items():
        assert (f"`{function.says}`" in text) == (name != "finite"), name
    for what, why, fix in (*_REFUSED.values(), *_PARTS.values()):
        assert f"| {what} | {why} | {fix} |" in text
    for kind, way in REFUSED_JOINS.items():
        assert f"| {kind} JOIN | {NOBODYS} | {way} |" in text
    for _, why, way in REFUSED_SUBQUERIES.values():
        assert f" | {why} | {way} |" in text


@pytest.mark.parametrize("aggregate", [each for row in AGGREGATES for each in row[0].replace("), ", ")\n").split("\n")])
def test_every_aggregate_of_the_page_can_be_asked(aggregate, visits):
    written = aggregate.replace("unit", "user_id").replace("…", "SUM(x)")
    for name, column in {
        "(x)": "(age)",
        "(p)": "(smoker)",
        "DISTINCT x": "DISTINCT age",
        "(x, y)": "(age, amount)",
        "(x, ": "(age, ",
        "BY x": "BY age",
    }.items():
        written = written.replace(name, column)
    assert visits.plan(f"SELECT {written.replace('WHERE p', 'WHERE smoker')} FROM visits").measures


@pytest.mark.parametrize("bucket", [each for each, _ in BUCKETS])
def test_every_bucket_of_the_page_is_a_key(bucket, visits):
    key = re.sub(r"\bd\b", '"when"', re.sub(r"\bx\b", "amount", bucket))
    assert 1 < len(visits.plan(f"SELECT COUNT(*) FROM visits GROUP BY {key}").cells) < 1000


TABLES = {
    "a": 'unit = "u"\ndataset = "d"\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n[analysts.ana]\nepsilon = 1.0\n'
    '[columns.x]\ntype = "integer"\nbounds = [0, 9]\n[contribution]\nrows = 3\n[public]\ntables = { p = "p.csv" }\n',
    "b": 'unit = "u"\ndataset = "d"\n[columns.y]\ntype = "integer"\nbounds = [0, 9]\n[contribution]\nrows = 3\n',
    "c": 'unit = { path = "k -> b.k -> b.u" }\ndataset = "d"\n[columns.z]\ntype = "boolean"\n[contribution]\nrows = 3',
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "p.csv").write_text("code,name\n1,one\n2,two\n")
    columns = {
        "a": {"u": [1, 2], "x": [1, 5]},
        "b": {"u": [1, 2], "k": [7, 8], "y": [4, 6]},
        "c": {"k": [7], "z": [True]},
    }
    return Shop.of(folder, {name: (pa.table(columns[name]), text) for name, text in TABLES.items()})


@pytest.mark.parametrize("source", [each for each, _ in SEVERAL])
def test_every_way_to_write_several_tables_can_be_asked(source, shop):
    assert shop.exact(f"SELECT COUNT(*) FROM {source}")


@pytest.mark.parametrize("kind", REFUSED_JOINS)
def test_every_join_that_the_page_refuses_is_refused(kind, shop):
    on = "" if kind in {"NATURAL", "POSITIONAL"} else " ON a.u = b.u AND a.x >= b.y"
    error = shop.error(f"SELECT COUNT(*) FROM a {kind} JOIN b{on}")
    assert (error.message, error.fix) == (f"{kind} JOIN is not supported.", REFUSED_JOINS[kind])


def test_every_aggregate_within_a_unit_can_be_asked(shop):
    for each in _INSIDE:
        shown = (each if "(" in each else f"{each}(x)").replace("x)", "y)")
        assert shop.exact(f"SELECT SUM(n) FROM (SELECT u, {shown} AS n FROM b GROUP BY u) t")


def test_every_clause_of_the_page_can_be_asked(shop):
    question = (
        "WITH s AS (SELECT * FROM a) SELECT x, COUNT(*) AS n FROM s JOIN b USING (u) WHERE y > 1 GROUP BY x "
        "HAVING n > 1 ORDER BY n LIMIT 1 OFFSET 1"
    )
    sets = "SELECT GROUPING(x), COUNT(*) FROM a GROUP BY GROUPING SETS (ROLLUP (x), CUBE (x))"
    assert shop.plan(question).measures and shop.plan(sets).measures
    assert all(word in question + sets for names, _ in CLAUSES for word in names.split(", "))
