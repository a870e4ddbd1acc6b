"""Names that SELECT gives are read in WHERE and in the items behind them, where no column has them."""

from __future__ import annotations

import time

import pytest

from dalenius.errors import DaleniusError, NotAllowedError, QuestionRefusedError, UnknownColumnError

MEANT = [
    (
        "SELECT region AS r, COUNT(*) FROM visits WHERE r = 'north' GROUP BY r",
        "SELECT region AS r, COUNT(*) FROM visits WHERE region = 'north' GROUP BY r",
    ),
    (
        "SELECT age + 1 AS a, a * 2 AS b, COUNT(*) FROM visits WHERE b > 9 GROUP BY ALL",
        "SELECT age + 1, (age + 1) * 2, COUNT(*) FROM visits WHERE (age + 1) * 2 > 9 GROUP BY ALL",
    ),
    (  # a column goes first
        "SELECT age AS amount, COUNT(*) FROM visits WHERE amount > 9 GROUP BY age",
        "SELECT age, COUNT(*) FROM visits WHERE visits.amount > 9 GROUP BY age",
    ),
    (
        "SELECT SUM(age) AS s, s / 2 AS half FROM visits",
        "SELECT SUM(age), SUM(age) / 2 FROM visits",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT age AS a FROM visits WHERE a > 9)",
        "SELECT COUNT(*) FROM visits WHERE age > 9",
    ),
]


@pytest.mark.parametrize(("typed", "meant"), MEANT)
def test_a_name_stands_for_its_expression(typed, meant, visits):
    assert visits.plan(typed).canonical() == visits.plan(meant).canonical()


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT COUNT(*) AS n FROM visits WHERE n > 3", QuestionRefusedError),
        ("SELECT SUM(age) AS s, SUM(s) FROM visits", QuestionRefusedError),
        ("SELECT b AS a, COUNT(*) FROM visits WHERE a > 1 GROUP BY 1", UnknownColumnError),
        ("SELECT a AS a, COUNT(*) FROM visits WHERE a > 1 GROUP BY 1", UnknownColumnError),
        ("SELECT b + 1 AS a, a + 1 AS b, COUNT(*) FROM visits WHERE a > 1 GROUP BY 1, 2", UnknownColumnError),
        # the column that names units goes first, too
        ("SELECT age AS user_id, COUNT(*) FROM visits WHERE user_id = 3 GROUP BY age", NotAllowedError),
        ("SELECT user_id AS u, COUNT(*) FROM visits WHERE u = 3 GROUP BY region", DaleniusError),
    ],
)
def test_what_a_name_cannot_stand_for_is_refused(sql, error, visits):
    assert isinstance(visits.error(sql), error)


def test_names_that_double_are_refused_before_they_are_long(visits):
    doubled = ", ".join(f"a{at} + a{at} AS a{at + 1}" for at in range(60))
    began = time.perf_counter()
    error = visits.error(f"SELECT age AS a0, {doubled}, COUNT(*) FROM visits WHERE a60 > 3 GROUP BY ALL")
    assert isinstance(error, QuestionRefusedError) and "too involved" in error.message
    assert time.perf_counter() - began < 2
