"""The first pass: mistakes are pointed at by line and column, and nothing strange gets through."""

import pytest

from dalenius.errors import Place, QuestionRefusedError, SqlSyntaxError
from dalenius.queries.rules.parse import DEEPEST, LONGEST

BROKEN = [
    ("SELECT COUNT(* FROM visits", 1, 16),
    ("SELECT COUNT(*) FORM visits", 1, 22),
    ("SELECT COUNT(*)\nFROM visits\nWHERE age >", 3, 11),
    ("SELECT COUNT(*) FROM visits WHERE (age > 3", 1, 42),
    ("SELECT COUNT(*) FROM visits WHERE age > 3)", 1, 42),
    ("SELECT COUNT(*) FROM visits\n  WHERE region = 'north", 2, 18),
    ('SELECT COUNT(*) FROM visits WHERE "age > 3', 1, 35),
    ("SELECT COUNT(*) FROM visits WHERE note = 'it''s", 1, 42),
    ("SELECT COUNT(*) FROM visits -- it's\nWHERE note = 'x", 2, 14),
    ("SELECT COUNT(*) FROM visits WHERE 'a' = note AND region = 'x", 1, 59),
    ("SELECT COUNT(*) FROM visits GROUP region", 1, 35),
    ("SELECT COUNT(*) FROM visits WHERE CASE WHEN age THEN 3", 1, 54),
    ("SELECT COUNT(*) FROM visits WHERE age IN (1, 2", 1, 46),
    ("SELECT COUNT(*) FROM visits WHERE age = 3 4", 1, 43),
    ("SELECT COUNT(*) FROM visits ORDER age", 1, 35),
    ("SELEC COUNT(*) FROM visits", 1, 12),
    ("SELECT COUNT(*) FROM visits LIMIT", 1, 29),
    ("SELECT COUNT(*) FROM visits\0", 1, 28),
    ("SELECT\n COUNT(*)\a FROM visits", 2, 10),
    ("SELECT\r\n COUNT(*)\x1b[31m FROM visits", 2, 10),
    ("SELECT COUNT(*) FROM visits WHERE note = 'ü' )", 1, 46),
    ("SELECT 'ü\nü', COUNT(*) FROM visits WHERE )", 2, 32),
    ("SELECT COUNT(*) FROM visits WHERE age > 0x10", 1, 42),
]


@pytest.mark.parametrize(("text", "line", "column"), BROKEN)
def test_a_mistake_is_pointed_at(text, line, column, visits):
    error = visits.error(text)
    assert isinstance(error, SqlSyntaxError)
    assert error.at == Place(line, column)
    assert error.exit_code == 2 and "No budget was spent." in str(error)


@pytest.mark.parametrize("text", ["", "   \n\t ", "-- nothing", ";;", "/* nothing */"])
def test_an_empty_question_says_so(text, visits):
    error = visits.error(text)
    assert isinstance(error, SqlSyntaxError) and "empty" in str(error) and error.at is None


@pytest.mark.parametrize("text", [None, 3, b"SELECT COUNT(*) FROM visits", ["SELECT 1"]])
def test_only_a_text_is_a_question(text, visits):
    assert isinstance(visits.error(text), SqlSyntaxError)


def test_half_a_character_is_refused_before_it_reaches_a_file(visits):
    assert isinstance(visits.error("SELECT COUNT(*) FROM visits WHERE note = '\ud800'"), SqlSyntaxError)


@pytest.mark.parametrize(
    "text", ["SELECT COUNT(*) FROM visits /* open", "SELECT $$abc FROM visits", "SELECT COUNT(*) FROM visits WHERE \\"]
)
def test_what_never_ends_is_a_mistake_even_where_its_place_is_unknown(text, visits):
    assert isinstance(visits.error(text), SqlSyntaxError)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1; SELECT 2",
        "SELECT COUNT(*) FROM visits; DROP TABLE visits",
        "SELECT COUNT(*) FROM visits;; COPY visits TO 'x'",
    ],
)
def test_two_statements_are_refused(text, visits):
    error = visits.error(text)
    assert isinstance(error, QuestionRefusedError) and "more than one statement" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE visits",
        "INSERT INTO visits VALUES (1)",
        "UPDATE visits SET age = 3",
        "DELETE FROM visits",
        "CREATE TABLE t AS SELECT COUNT(*) FROM visits",
        "COPY visits TO 'x.csv'",
        "ATTACH 'x.db'",
        "PRAGMA database_list",
        "SET threads = 1",
        "INSTALL httpfs",
        "EXPLAIN SELECT COUNT(*) FROM visits",
        "DESCRIBE visits",
        "FROM visits",
        "VALUES (1)",
        "(SELECT COUNT(*) FROM visits)",
    ],
)
def test_only_select_can_be_asked(text, visits):
    error = visits.error(text)
    assert isinstance(error, QuestionRefusedError | SqlSyntaxError) and error.exit_code in {2, 3}


@pytest.mark.parametrize("word", ["UNION", "UNION ALL", "INTERSECT", "EXCEPT"])
def test_a_set_operation_is_named(word, visits):
    error = visits.error(f"SELECT COUNT(*) FROM visits {word} SELECT COUNT(*) FROM visits")
    assert isinstance(error, QuestionRefusedError) and f"{word.split()[0]} is not supported" in str(error)


def test_a_question_that_is_too_long_is_refused_at_once(visits):
    fits = "SELECT COUNT(*) FROM visits"
    assert visits.plan(fits + " " * (LONGEST - len(fits)))
    error = visits.error(fits + " " * (LONGEST - len(fits) + 1))
    assert isinstance(error, QuestionRefusedError) and "too long" in str(error)


@pytest.mark.parametrize(
    "condition",
    [
        "(" * 200 + "smoker" + ")" * 200,
        "(" * 5000 + "smoker" + ")" * 5000,
        "NOT " * 200 + "smoker",
        "-" + "(-" * 200 + "age" + ")" * 200 + " > 0",
        "CASE WHEN smoker THEN " * 100 + "1" + " ELSE 0 END" * 100 + " = 1",
    ],
)
def test_a_question_that_is_nested_too_deeply_is_refused(condition, visits):
    error = visits.error(f"SELECT COUNT(*) FROM visits WHERE {condition}")
    assert isinstance(error, QuestionRefusedError) and "too deeply" in str(error)


def test_ordinary_nesting_is_read(visits):
    # Not up to the limit: how deep the parser itself gets depends on how deep it was called.
    inside = DEEPEST // 4
    assert visits.plan(f"SELECT COUNT(*) FROM visits WHERE {'(' * inside}smoker{')' * inside}")
