"""The reference page says what the allow-lists say."""

from pathlib import Path

import pytest

from dalenius.queries.functions import FUNCTIONS
from dalenius.queries.reference import AGGREGATES, CLAUSES, generated, renewed
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
    written = (
        aggregate.replace("unit", "user_id")
        .replace("…", "SUM(x)")
        .replace("(x)", "(age)")
        .replace("(x, ", "(age, ")
        .replace("BY x", "BY age")
        .replace("(p)", "(smoker)")
    )
    assert visits.plan(f"SELECT {written.replace('WHERE p', 'WHERE smoker')} FROM visits").measures


def test_every_clause_of_the_page_can_be_asked(visits):
    question = (
        "SELECT region, COUNT(*) AS n FROM visits WHERE smoker GROUP BY region HAVING n > 1 ORDER BY n LIMIT 1 OFFSET 1"
    )
    assert visits.plan(question).measures
    assert all(word in question for names, _ in CLAUSES for word in names.split(", "))
