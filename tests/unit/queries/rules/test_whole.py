"""What runs over public tables and released values is written whole: no argument is left out on the way to DuckDB."""

from __future__ import annotations

import pytest
import sqlglot

from dalenius.errors import QuestionRefusedError
from dalenius.queries.public_questions import public_question, rewrite
from dalenius.queries.rules.whole import check_whole, spell_formats, text_of


def parsed(sql):
    return sqlglot.parse_one(sql, dialect="duckdb")


def test_parts_that_differ_have_different_texts(caplog):
    one, other = (parsed(f"SELECT TO_CHAR(d, '{each}')").expressions[0] for each in ("YYYY", "MM"))
    assert text_of(one) != text_of(other) and text_of(one) == "TO_CHAR(d, 'YYYY')"
    assert not caplog.records  # the parser does not talk beside it


@pytest.mark.parametrize(
    ("typed", "format_"), [("YYYY-MM", "%Y-%m"), ("Mon YYYY", "%b %Y"), ("DD.MM.YYYY", "%d.%m.%Y")]
)
def test_a_format_is_put_in_duckdbs_words(typed, format_):
    tree = parsed(f"SELECT TO_CHAR(d, '{typed}') AS m FROM t")
    spell_formats(tree)
    check_whole(tree, "")
    assert text_of(tree) == f"SELECT STRFTIME(d, '{format_}') AS m FROM t"


def test_a_public_question_keeps_its_format():
    question = public_question("SELECT TO_CHAR(opened, 'YYYY') AS y FROM stations", {"stations"})
    assert question is not None and "STRFTIME(opened, '%Y')" in rewrite(question, 10)


def test_what_cannot_be_written_whole_is_refused_by_its_name():
    sql = "SELECT UPPER(TO_CHAR(opened, 'IYYY')) AS y FROM stations"
    question = public_question(sql, {"stations"})
    assert question is not None
    with pytest.raises(QuestionRefusedError, match=r"^TO_CHAR cannot be used so") as error:
        rewrite(question, 10)
    assert "STRFTIME" in str(error.value)
