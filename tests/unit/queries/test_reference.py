"""The reference page says what the allow-lists say."""

import math
import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from tests import typed
from tests.shop import Shop

from dalenius.errors import DaleniusError
from dalenius.measuring.functions import FUNCTIONS
from dalenius.queries.reference import _INSIDE, AGGREGATES, BEGIN, BUCKETS, CLAUSES, SEVERAL, generated, renew
from dalenius.queries.reference_words import UNLIKE, OtherWay, also_named, example_of, other_ways, ways_of
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
    counted = "a.u" if source.startswith("p LEFT") else "*"  # rows that nobody meets are not counted
    assert shop.exact(f"SELECT COUNT({counted}) FROM {source}")


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


# --- examples, aliases and other ways of writing

EXAMPLES = {name: each for name, each in FUNCTIONS.items() if name != "finite"}


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return typed.protected(tmp_path_factory.mktemp("people"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_function_of_the_page_has_an_example_that_is_answered(name, people):
    function = EXAMPLES[name]
    others = [each + function.says[function.says.index("(") :] for each in also_named(function.says)]
    for says in (function.says, *others):
        example = example_of(says, function.takes).replace("amount", "balance")
        example = re.sub(r"\bday\b(?!')", "born", example)
        assert people.plan(f"SELECT COUNT(*) FROM people WHERE ({example}) IS NOT NULL").measures, example


def test_other_names_are_those_that_people_type():
    assert {"LEN", "CHAR_LENGTH", "STRLEN"} <= set(also_named("LENGTH(a)")) and also_named("a + b") == []
    assert "STR_POSITION" not in also_named("STRPOS(a, 'x')") and "CEILING" in also_named("CEIL(a)")


def test_a_line_is_read_in_parts():
    assert list(ways_of("F(a) → G(a): why; also this; H(a) → a")) == [
        OtherWay("F(a)", "G(a)", "why; also this"),
        OtherWay("H(a)", "a"),
    ]


WHOLE = {  # rows of the page that are no expressions
    "`people`, [people]": ("SELECT COUNT(*) FROM `people`", "SELECT COUNT(*) FROM [people]"),
    "N'Zoë', r'^A'": ("SELECT COUNT(*) FROM people WHERE name = N'Zoë'",),
    "SELECT TOP 3 …": ("SELECT TOP 3 region, COUNT(*) FROM people GROUP BY region",),
    "a NATURAL JOIN b": ("SELECT COUNT(*) FROM people NATURAL JOIN orders",),
    "`catalogue.schema.people`": ("SELECT COUNT(*) FROM `catalogue.schema.people`",),
    "`schema.people.region`": ("SELECT COUNT(shop.people.region) FROM shop.people",),
    "FETCH FIRST n ROWS ONLY": ("SELECT sex, COUNT(*) FROM people GROUP BY sex FETCH FIRST 2 ROWS ONLY",),
    "GROUP BY a, b WITH ROLLUP": ("SELECT COUNT(*) FROM people GROUP BY sex, region WITH ROLLUP",),
    "(a JOIN b ON …) JOIN c ON …, a JOIN (b JOIN c ON …) ON …": (
        "SELECT COUNT(*) FROM (people p JOIN orders o ON p.person_id = o.person_id) JOIN regions r ON code = p.region",
    ),
    "AVG(age) AS age … HAVING age > 30": ("SELECT sex, AVG(age) AS age FROM people GROUP BY sex HAVING age > 30",),
    "placed::TIME >= '12:00'": ("SELECT COUNT(*) FROM orders WHERE placed::TIME >= '12:00'",),
    "MODE() WITHIN GROUP (ORDER BY x)": ("SELECT MODE() WITHIN GROUP (ORDER BY sex) FROM people",),
    "COUNT(unit)": ("SELECT COUNT(person_id) FROM people",),
    "SELECT a AS r … WHERE r = 1": ("SELECT age AS r, COUNT(*) FROM people WHERE r = 1 GROUP BY r",),
    "PIVOT t ON x IN ('a', 'b') USING SUM(y) GROUP BY z": (
        "PIVOT orders ON product IN ('tea', 'pen') USING SUM(amount) GROUP BY status",
    ),
    "FROM a RIGHT JOIN b ON …": ("SELECT COUNT(*) FROM regions RIGHT JOIN people ON region = code",),
    "FROM (SELECT 'a' AS x UNION ALL SELECT 'b') t": (
        "SELECT COUNT(*) FROM (SELECT 'n' AS x UNION ALL SELECT 's') t JOIN people ON region = x",
        "SELECT COUNT(*) FROM (SELECT UNNEST(['n', 's']) AS x) t JOIN people ON region = x",
    ),
    "FROM GENERATE_SERIES(1, 12) AS t(m)": (
        "SELECT COUNT(*) FROM GENERATE_SERIES(1, 12) AS t(m) JOIN people ON age = m",
        "SELECT COUNT(*) FROM UNNEST(GENERATE_SERIES(1, 12)) AS t(m) JOIN people ON age = m",
    ),
    "x IN (VALUES ('a'), ('b'))": ("SELECT COUNT(*) FROM people WHERE sex IN (VALUES ('f'), ('m'))",),
}
WAYS = [(way, title) for title, ways in other_ways().items() for way in ways]
LETTERS = {"d": "born", "e": "DATE '2024-12-31'", "x": "height", "y": "age", "n": "age", "p": "smoker"}
THREE = (  # what a, b and c may be
    ("balance", "height", "age"),
    ("region", "sex", "'z'"),
    ("born", "DATE '2024-12-31'", "born"),
    ("age", "sex", "'z'"),
)


@pytest.mark.parametrize(("way", "title"), WAYS, ids=[each.typed for each, _ in WAYS])
def test_every_other_way_of_writing_is_answered_and_means_what_the_page_says(way, title, people):
    if way.typed in WHOLE:
        assert all(people.plan(each).measures for each in WHOLE[way.typed])
        return
    for each in re.split(r"(?<=\)), (?=[A-Z])|, (?=a )", way.typed.partition(" and its ")[0]):
        assert tried(people, each, way.read, title == "Aggregates"), each


def tried(people, written, read, aggregated):
    """Whether an example is answered with some columns; what it is read as is the same question, where it is SQL."""
    for three in THREE:
        names = LETTERS | dict(zip("abc", three, strict=True))

        def asked(text, names=names):
            text = re.sub(r"(?<!['\w])([a-z])(?!['\w])", lambda found: names.get(found[1], found[1]), text)
            where = f"COUNT(*) FROM people WHERE ({text}) IS NOT NULL"
            return f"SELECT {text} FROM people" if aggregated else f"SELECT {where}"

        one, other = plan_of(people, asked(written)), plan_of(people, asked(read))
        if one is None:
            continue
        assert other is None or "…" in read or one.canonical() == other.canonical(), asked(written)
        return True
    return False


def plan_of(people, sql):
    try:
        return people.plan(sql)
    except DaleniusError:
        return None


@pytest.mark.parametrize("what", [each for row in UNLIKE for each in re.split(r"(?<=[)0]), ", row[0])])
def test_what_the_page_says_is_unlike_duckdb_is_null_here_and_not_there(what, people):
    ours = what.replace("amount", "height")
    there = "SELECT COUNT(*) FROM people WHERE age IS NOT NULL AND height IS NOT NULL AND region IS NOT NULL"
    assert people.exact(f"{there} AND ({ours}) IS NULL") == people.exact(there)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 30 AS age, 170.5::DOUBLE AS height, 'n' AS region")
        try:
            ((found,),) = connection.execute(f"SELECT {ours} FROM t").fetchall()
        except duckdb.Error:
            return
        assert found is None or not math.isfinite(found)
