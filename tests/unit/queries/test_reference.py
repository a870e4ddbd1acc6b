"""The reference page says what the allow-lists say."""

import re
from pathlib import Path

import pytest

from dalenius.queries.functions import FUNCTIONS
from dalenius.queries.reference import AGGREGATES, BUCKETS, CLAUSES, generated, renewed
from dalenius.queries.rules.restrict import _PARTS, _REFUSED

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "sql.md"


def test_the_committed_page_is_what_the_code_generates():
    text = PAGE.read_text()
    assert renewed(text) == text, "run: python -m dalenius.queries.reference docs/reference/sql.md"


def test_every_function_and_every_refusal_is_on_the_page():
    text = generated().replace("\\|", "|")
    for name, function in FUNCTIONS.items():
        assert (f"`{function.says}`" in text) == (name != "finite"), name
    for what, why, fix in (*_REFUSED.values(), *_PARTS.values()):
        assert f"| {what} | {why} | {fix} |" in text


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


def test_every_clause_of_the_page_can_be_asked(visits):
    question = (
        "SELECT region, COUNT(*) AS n FROM visits WHERE smoker GROUP BY region HAVING n > 1 ORDER BY n LIMIT 1 OFFSET 1"
    )
    sets = "SELECT GROUPING(region), COUNT(*) FROM visits GROUP BY GROUPING SETS (ROLLUP (region), CUBE (region))"
    assert visits.plan(question).measures and visits.plan(sets).measures
    assert all(word in question + sets for names, _ in CLAUSES for word in names.split(", "))
