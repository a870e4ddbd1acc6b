"""Questions that are wrong, or not supported, as analysts type them: refused in words about what was typed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from sqlglot import exp
from tests import typed
from tests.shop import Shop
from tests.unit.queries.test_typed_queries import CAMEL, CAPITALS, INTERNAL

from dalenius.errors import DaleniusError

LONG = os.environ.get("DALENIUS_LONG") == "1"
WRONG = (Path(__file__).parents[2] / "data/wrong_queries.txt").read_text(encoding="utf-8").splitlines()
# Parts of our own plans and statements: columns of releases and subqueries, sources, functions of plans.
OWN = re.compile(r"\breleased? \d|\bquery \d|subquery \d|\bk\d\b|\ba\d\b|[a-z]+ \d+\.[a-z_]+|is_null\(|to_[a-z]+\(")
# What the parser calls constructs that nobody types under that name.
NODES = {name.upper() for name in dir(exp) if re.fullmatch(r"(?:[A-Z][a-z]+){2,}", name)}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return typed.protected(tmp_path_factory.mktemp("wrong"))


def error_of(shop: Shop, text: str) -> DaleniusError | None:
    try:
        shop.ana.preview(text, epsilon=1.0)
    except DaleniusError as error:
        return error
    return None


def test_most_of_the_list_is_refused_and_none_crashes(shop):
    asked = WRONG if LONG else WRONG[::4]
    refused = [error for text in asked if (error := error_of(shop, text)) is not None]
    assert len(WRONG) >= 200 and len(refused) > 0.85 * len(asked)
    assert all(each.code != "internal" and each.message and each.why and each.fix for each in refused)


def test_no_refusal_has_a_name_that_was_not_typed(shop):
    texts = [*WRONG, *(each.text for each in typed.typed() if each.words)]
    for text in texts if LONG else texts[::3]:
        error = error_of(shop, text)
        if error is None:
            continue
        said, typed_words = f"{error.message} {error.why} {error.fix}", set(CAPITALS.findall(text.upper()))
        assert not INTERNAL.search(said) and not OWN.search(said), (text, said)
        assert not {each for each in CAMEL.findall(said) if hasattr(exp, each)}, (text, said)
        named = {each for each in CAPITALS.findall(error.message) if each in exp.FUNCTION_BY_NAME}
        assert named <= typed_words, (text, said)
        assert not {each for each in CAPITALS.findall(said) if each in NODES - typed_words}, (text, said)


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("SELECT MAX_BY(name, age) FROM people", "MAX_BY is not supported", "count or an average"),
        ("SELECT GROUP_CONCAT(name) FROM people", "GROUP_CONCAT", "counts per group"),
        ("EXPLAIN SELECT COUNT(*) FROM people", "not EXPLAIN", "dalenius explain"),
        ("DESCRIBE people", "not DESCRIBE", "dalenius tables"),
        ("SELECT age::BLOB, COUNT(*) FROM people GROUP BY 1", "no cast to BLOB", "VARCHAR"),
        ("SELECT COUNT(*) FROM people WHERE born = '1.2.2020'", "'1.2.2020' is no date", "DATE '2025-01-31'"),
        ("SELECT DATE_TRUNC(born, WEEK), COUNT(*) FROM people GROUP BY 1", "DATE_TRUNC(born, WEEK)", "('week', born)"),
        ("SELECT age | 1, COUNT(*) FROM people GROUP BY 1", "'age | 1' is not supported", "x % 2"),
        ("SELECT name, COUNT(*) FROM people", "'name' stands outside", "COUNT(DISTINCT name)"),
        ("SELECT SUM(AVG(age)) FROM people", "inside an aggregate", "SELECT AVG(n) FROM ("),
        ("SELECT TO_CHAR(age, '999'), COUNT(*) FROM people GROUP BY 1", "TO_CHAR needs a date", "CAST(x AS VARCHAR)"),
        (
            "SELECT COUNT(*) FROM orders a JOIN orders b ON a.amount = b.amount",
            "does not say that they are about the same unit",
            "a.person_id, b.person_id",
        ),
        (
            "SELECT b.person_id FROM orders a JOIN orders b USING (person_id)",
            "'b.person_id' says who",
            "COUNT(DISTINCT",
        ),
    ],
)
def test_a_refusal_says_what_was_typed_and_what_works(text, message, fix, shop):
    with pytest.raises(DaleniusError) as raised:
        shop.ana.preview(text, epsilon=1.0)
    assert message in raised.value.message and fix in raised.value.fix, (raised.value.message, raised.value.fix)


def test_the_parser_does_not_talk_beside_the_refusal(shop, caplog, capsys):
    for text in (
        "EXPLAIN SELECT COUNT(*) FROM people",
        "SELECT age FROM people GROUP BY age FOR UPDATE",
        "SHOW TABLES",
    ):
        with pytest.raises(DaleniusError):
            shop.ana.preview(text, epsilon=1.0)
    assert caplog.records == [] and capsys.readouterr().err == ""


def test_an_error_for_what_is_computed_says_how_to_get_it(shop):
    share = "SELECT region, COUNT(*) AS n, n * 1.0 / SUM(n) OVER () AS share FROM people GROUP BY region"
    with pytest.raises(DaleniusError) as raised:
        shop.ana.preview(share, error="5%")
    assert "share is computed from a release" in raised.value.why and "aggregates alone" in raised.value.fix
