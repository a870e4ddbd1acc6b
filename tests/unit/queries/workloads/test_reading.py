"""The questions of a workload, from a text or a list: where each begins, and what is wrong with it."""

from __future__ import annotations

import pytest
from tests.conftest import LONG

from dalenius.errors import InputError, Place, QuestionRefusedError, SqlSyntaxError
from dalenius.queries.workloads.reading import MOST_QUESTIONS, Numbered, list_questions, split_questions
from dalenius.queries.workloads.request import WorkloadAsk


def test_a_semicolon_in_a_text_a_name_or_a_remark_ends_nothing():
    text = """-- first; of all
SELECT COUNT(*) FROM t WHERE a = 'x;y' /* ; */ AND "b;c" = 1;
;
SELECT 2 -- the end;
"""
    found = split_questions(text)
    assert [each.line for each in found] == [2, 4]
    assert found[0].text.endswith("""/* ; */ AND "b;c" = 1""")
    assert found[1] == Numbered("SELECT 2", 2, 4)


@pytest.mark.parametrize("text", ["", "  \n", ";;\n;", "-- only words", "/* ; */"])
def test_an_empty_file_is_said_to_be_one(text):
    with pytest.raises(InputError, match="The workload is empty"):
        split_questions(text)


@pytest.mark.parametrize("given", [[], ()])
def test_an_empty_list_is_said_to_be_one(given):
    with pytest.raises(InputError, match="empty"):
        list_questions(given)


@pytest.mark.parametrize("given", [7, None, ["SELECT 1", 3], [b"SELECT 1"], {"a": 1}])
def test_what_is_no_list_of_texts_is_refused(given):
    with pytest.raises(InputError, match="no questions"):
        list_questions(given)


def test_an_empty_question_of_a_list_is_named():
    with pytest.raises(InputError, match="Question 2 is empty"):
        list_questions(["SELECT 1", "  "])


def test_too_many_questions_are_refused_before_any_is_planned():
    with pytest.raises(InputError, match="100,000 questions" if LONG else "10,001 questions"):
        split_questions("SELECT 1;" * (100_000 if LONG else MOST_QUESTIONS + 1))
    with pytest.raises(InputError, match="10,001"):
        list_questions(["SELECT 1"] * (MOST_QUESTIONS + 1))


def test_an_open_quote_is_a_syntax_error():
    with pytest.raises(SqlSyntaxError):
        split_questions("SELECT 'a")


def test_errors_name_the_question_and_the_line_of_the_file():
    found = split_questions("SELECT 1;\n\nSELECT\n2")[1]
    with pytest.raises(QuestionRefusedError) as raised, found.named():
        raise QuestionRefusedError("It cannot be.", why="No.", fix="None.", at=Place(2, 1))
    assert raised.value.message == "Question 2 (line 3): It cannot be."
    assert raised.value.at == Place(4, 1)


@pytest.mark.parametrize("weights", [[1], [1, -1], [1, 0], [1, float("nan")], "12", [1, 1e30], [1, "a"]])
def test_weights_are_one_number_above_zero_for_each_question(weights):
    with pytest.raises(InputError):
        WorkloadAsk.of({"questions": ["SELECT 1", "SELECT 2"], "weights": weights})


def test_what_is_asked_for_can_be_written_down_and_read():
    asked = WorkloadAsk.of({"questions": ["SELECT 1", "SELECT 2"], "epsilon": 1, "weights": [1, 2]})
    assert WorkloadAsk.of(asked.to_json()) == asked
    with pytest.raises(InputError, match="no workload"):
        WorkloadAsk.of({"questions": ["SELECT 1"], "epsilonn": 1})
