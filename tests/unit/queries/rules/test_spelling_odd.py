"""Whatever stands in functions of other databases, and however many: a question is planned or refused, never more."""

from __future__ import annotations

import random

import pytest
from tests import typed
from tests.conftest import examples

from dalenius.errors import DaleniusError
from dalenius.queries.rules.spelling import _rewrites

ARGUMENTS = (
    *(
        "age",
        "p.age",
        "note",
        "day",
        "DAY",
        "MONTH",
        "'x'",
        "'%Y'",
        "'year'",
        "1",
        "-1",
        "0",
        "2.5",
        "NULL",
        "TRUE",
        "*",
    ),
    *("DATE '2024-02-29'", "INTERVAL 1 DAY", "[1, 2]", "(1, 2)", "(SELECT 1)", "COUNT(*)", "age > 3", "DISTINCT age"),
    *("CASE WHEN smoker THEN age END", "AGE(day, day)", "'2024-02-29'", "x AS y", "(age)", "LN(age)", "? ", "'{a}'"),
)
TYPED = (
    *(
        "SAFE_DIVIDE",
        "NVL2",
        "RANGE_BUCKET",
        "CBRT",
        "PI",
        "DEGREES",
        "TRUNC",
        "CONCAT_WS",
        "LPAD",
        "RPAD",
        "TRIM",
        "LTRIM",
    ),
    *("DATE_TRUNC", "DATETIME_TRUNC", "TIMESTAMP_TRUNC", "DATE_DIFF", "DATEDIFF", "TIMESTAMP_DIFF", "DATE_ADD", "YEAR"),
    *("TIMESTAMP_SUB", "UNIX_SECONDS", "EPOCH", "LAST_DAY", "DATE", "MAKE_DATE", "TIMESTAMP", "WEEKOFYEAR", "DAYNAME"),
    *("MONTHNAME", "STRFTIME", "TO_CHAR", "FORMAT", "APPROX_COUNT_DISTINCT", "COUNT", "APPROX_QUANTILES", "REGR_SLOPE"),
    *("REGR_R2", "REGR_INTERCEPT", "REGR_COUNT", "STRPOS", "SPLIT_PART", "REGEXP_MATCHES", "REGEXP_FULL_MATCH", "LEFT"),
    *("DECODE", "DIV", "CONVERT", "ATAN2", "SIN", "IF", "IIF", "COALESCE", "SAFE.LN", "POSITION", "QUANTILE_CONT"),
)
SHAPES = (
    "SELECT {} AS k, COUNT(*) FROM people p GROUP BY k",
    "SELECT SUM({}) FROM people",
    "SELECT COUNT(*) FROM people WHERE {} > 3",
    "SELECT {} FROM people",
    "SELECT {} FILTER (WHERE smoker) FROM people",
    "SELECT region, COUNT(*) AS age FROM people GROUP BY region HAVING {} > 3",
    "SELECT TOP 3 {} FROM (people p JOIN people q ON {})",
    "SELECT COUNT(*) FROM `people` WHERE ({}, 1) IN ((1, 2)) OR {} = ANY (ARRAY[1])",
    "SELECT COUNT(*) FROM people WHERE {}::TIME BETWEEN '8:00' AND '99:00' OR {} LIKE 'a!' ESCAPE '!'",
    "SELECT EXTRACT(YEAR FROM {}), EXTRACT(ISOYEAR FROM {}), EXTRACT(EPOCH FROM {}) FROM a.b.people",
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return typed.protected(tmp_path_factory.mktemp("odd"))


def test_odd_arguments_are_planned_or_refused(shop):
    chance = random.Random(19)
    names = [*TYPED, *_rewrites()[1]]
    planned = 0
    for _ in range(examples(1200)):

        def made() -> str:
            arguments = chance.choices(ARGUMENTS, k=chance.randint(0, 4))
            return f"{chance.choice(names)}({', '.join(arguments)})"

        shape = chance.choice(SHAPES)
        question = shape.format(*(made() for _ in range(shape.count("{}"))))
        try:
            planned += bool(shop.plan(question).measures)
        except DaleniusError:
            continue
        except Exception as error:
            raise AssertionError(question) from error
    assert planned > 0
