"""No row makes a question fail: hostile rows, random expressions, and never a NaN or an infinity."""

from __future__ import annotations

import math
import random
from datetime import date, datetime, time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from dalenius.errors import DaleniusError, QuestionRefusedError
from dalenius.measuring._exact import exact
from dalenius.measuring.canonical import plain
from dalenius.measuring.engines.duckdb.connections import public
from dalenius.measuring.engines.duckdb.rendering import Renderer, identifier
from dalenius.measuring.engines.duckdb.statements.source import clean
from dalenius.measuring.expressions import Column, Type, number
from dalenius.measuring.plan import require
from dalenius.queries.rules import RULES
from dalenius.queries.rules.total import _Guard, guard_question, make_total

GUARDED = RULES.index(guard_question) + 1
HOSTILE = [None, 0.0, -0.0, 1.0, -1.0, 0.5, -7.25, 1e308, -1e308, 1e-308, 5e-324, 2.0**63, -(2.0**64)]
TEXTS = [None, "", "x", "it's", "12", "1e400", "nan", "inf", "-infinity", "2025-02-30", "99999-01-01", "%_\\", "é" * 50]
DATES = [None, date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(2025, 1, 31)]
SCHEMA = pa.schema(
    [
        ("user_id", pa.int64()),
        ("age", pa.float64()),
        ("free", pa.float64()),
        ("amount", pa.float64()),
        ("note", pa.string()),
        ("region", pa.string()),
        ("smoker", pa.bool_()),
        ("when", pa.date32()),
        ("at", pa.timestamp("us")),
    ]
)


def hostile_rows():
    chance = random.Random(8)
    found = []
    for at in range(150):
        day = chance.choice(DATES)
        found.append(
            {
                "user_id": at % 7,
                "age": chance.choice([*HOSTILE, math.nan, math.inf]),
                "free": chance.choice([*HOSTILE, math.nan, -math.inf]),
                "amount": chance.choice(HOSTILE),
                "note": chance.choice(TEXTS),
                "region": chance.choice(["north", "mars", None]),
                "smoker": chance.choice([True, False, None]),
                "when": day,
                "at": None if day is None else datetime.combine(day, time(23, 59, 59)),
            }
        )
    return found


TABLE = pa.Table.from_pylist(hostile_rows(), SCHEMA)


def calls(names, *arguments):
    """SQL of one of the functions."""
    return st.builds(lambda name, *parts: f"{name}({', '.join(parts)})", st.sampled_from(names.split()), *arguments)


def joined(operators, *arguments):
    one, other = arguments
    return st.builds("({} {} {})".format, one, st.sampled_from(operators.split()), other)


def numbers(depth):
    leaves = st.sampled_from(["age", "free", "free", "amount", "0", "-1.5", "1e300", "1e-300", "3"])
    if not depth:
        return leaves
    n, p, t, d = (each(depth - 1) for each in (numbers, booleans, texts, days))
    return st.one_of(
        leaves,
        joined("+ - * / // %", n, n),
        calls("ABS SIGN FLOOR CEIL TRUNC ROUND SQRT LN LOG10 LOG2 EXP SIN COS TAN ASIN ACOS ATAN", n),
        calls("POWER LEAST GREATEST COALESCE NULLIF ATAN2", n, n),
        calls("STRPOS", t, st.sampled_from(["'x'", "''", "'é'"])),
        st.builds("ROUND({}, {})".format, n, st.integers(-15, 15)),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, p, n, n),
        calls("LENGTH", t),
        st.builds("CAST({} AS {})".format, t, st.sampled_from(["DOUBLE", "INTEGER"])),
        st.builds("CAST({} AS INTEGER)".format, n),
        st.builds("EXTRACT({} FROM {})".format, st.sampled_from(["year", "month", "dow", "week", "doy"]), d),
        st.builds("DATE_DIFF('{}', {}, {})".format, st.sampled_from(["day", "year", "second", "week"]), d, d),
    )


def booleans(depth):
    if not depth:
        return st.just("smoker")
    n, p, t, d = (each(depth - 1) for each in (numbers, booleans, texts, days))
    return st.one_of(
        joined("= <> < <= > >=", n, n),
        joined("= < LIKE ILIKE", t, st.just("'x%'")),
        joined("AND OR", p, p),
        calls("REGEXP_MATCHES REGEXP_FULL_MATCH", t, st.sampled_from(["'x'", "'^.*$'", "'[^é]+'", "'(?i)E{2,}x$'"])),
        st.builds("(NOT {})".format, p),
        st.builds("({} IS NULL)".format, n),
        st.builds("({} IN (1, 2))".format, n),
        st.builds("CAST({} AS BOOLEAN)".format, st.one_of(n, t)),
        joined("< =", d, d),
    )


def texts(depth):
    if not depth:
        return st.sampled_from(["note", "region"])
    n, p, t, d = (each(depth - 1) for each in (numbers, booleans, texts, days))
    return st.one_of(
        calls("LOWER UPPER TRIM LTRIM RTRIM", t),
        calls("LEFT RIGHT", t, st.integers(-1_000_000, 1_000_000).map(str)),
        calls("TRIM LTRIM RTRIM", t, st.sampled_from(["'x'", "'é%'"])),
        calls("SPLIT_PART", t, st.sampled_from(["'x'", "'é'"]), st.sampled_from(["1", "2", "-1", "1000"])),
        calls("SUBSTRING", t, st.integers(0, 9).map(str), st.integers(0, 1_000_000).map(str)),
        st.builds("REPLACE({}, 'x', 'yy')".format, t),
        joined("||", t, t),
        st.builds("CAST({} AS VARCHAR)".format, st.one_of(n, d, p)),
        st.builds("STRFTIME({}, '%Y-%m-%d %j')".format, d),
    )


def days(depth):
    leaves = st.sampled_from(['"when"', '"at"'])
    if not depth:
        return leaves
    t, d = texts(depth - 1), days(depth - 1)
    return st.one_of(
        leaves,
        st.builds("DATE_TRUNC('{}', {})".format, st.sampled_from(["year", "month", "week", "day", "hour"]), d),
        st.builds("({} {} INTERVAL {} MONTH)".format, d, st.sampled_from("+-"), st.integers(0, 1200)),
        st.builds("({} {} INTERVAL {} SECOND)".format, d, st.sampled_from("+-"), st.integers(0, 3_000_000_000)),
        st.builds("CAST({} AS {})".format, t, st.sampled_from(["TIMESTAMP", "DATE"])),
    )


NUMBERS, BOOLEANS = numbers(3), booleans(2)


@settings(max_examples=examples(80))
@given(NUMBERS, BOOLEANS)
def test_no_row_makes_a_question_fail(visits, memory, value, condition):
    sql = f"SELECT SUM(LEAST(GREATEST({value}, -5), 5)), COUNT({value}) FROM visits WHERE {condition} OR age > 0"
    try:
        plan = visits.plan(sql)
    except DaleniusError:
        return  # too involved, or of other types: refused before anything is touched
    for vector in exact(plan, memory(TABLE), "salt"):
        assert all(isinstance(each, int) for each in vector)


@settings(max_examples=examples(100))
@given(NUMBERS)
def test_a_value_is_finite_or_null_on_every_row(visits, value):
    try:
        safe = require(visits.stage(f"SELECT COUNT(*) FROM visits WHERE COALESCE({value}, 0) = 0", GUARDED).safe)
        inner = require(visits.stage(f"SELECT SUM({value}) FROM visits", GUARDED).safe)
    except DaleniusError:
        return
    renderer = Renderer({name: identifier(name) for name in SCHEMA.names})
    columns = [renderer.sql(value) for value, _ in inner.values.values() if value is not None]
    columns.append(renderer.sql(safe.where))
    policy = visits.table.policy.columns
    cleaned = ", ".join(f"{clean(policy[name], identifier(name))} AS {identifier(name)}" for name in SCHEMA.names[1:])
    source = f"(SELECT {cleaned} FROM t)"
    for row in public().run(f"SELECT {', '.join(columns)} FROM {source}", {"t": TABLE}):
        assert row[0] is None or math.isfinite(row[0])


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("a / b", None),
        ("a % b", None),
        ("a // b", None),
        ("ln(b)", None),
        ("log2(-a)", None),
        ("log10(b)", None),
        ("sqrt(-a)", None),
        ("exp(1000 * a)", None),
        ("a + b", 1.0),
        ("sqrt(b)", 0.0),
        ("power(b, -1)", None),
        ("power(-a, 0.5)", None),
    ],
)
def test_what_has_no_value_is_null(sql, value):
    a, b = Column("a", Type.NUMBER), Column("b", Type.NUMBER)
    minus = plain("neg", a)
    expression = {
        "a / b": plain("div", a, b),
        "a % b": plain("mod", a, b),
        "a // b": plain("intdiv", a, b),
        "ln(b)": plain("ln", b),
        "log2(-a)": plain("log2", minus),
        "log10(b)": plain("log10", b),
        "sqrt(-a)": plain("sqrt", minus),
        "exp(1000 * a)": plain("exp", plain("mul", number(1000), a)),
        "a + b": plain("add", a, b),
        "sqrt(b)": plain("sqrt", b),
        "power(b, -1)": plain("power", b, number(-1)),
        "power(-a, 0.5)": plain("power", minus, number(0.5)),
    }[sql]
    guard = _Guard({})
    rendered = Renderer({"a": "a", "b": "b"}).sql(guard.finite(guard.expression(expression)))
    ((found,),) = public().run(f"SELECT {rendered} FROM t", {"t": pa.table({"a": [1.0], "b": [0.0]})})
    assert found == value


def test_a_guard_is_put_only_where_one_is_needed():
    a, b = Column("a", Type.NUMBER), Column("b", Type.NUMBER)
    known = _Guard({"a": (0.0, 1.0), "b": (1.0, 2.0)})
    assert known.finite(known.expression(plain("div", a, b))) == plain("div", a, b)
    assert known.finite(known.expression(plain("div", b, a))) != plain("div", b, a)
    assert make_total(plain("div", a, b)) == plain("div", a, plain("nullif", b, number(0)))


@pytest.mark.parametrize(
    "one", ["(1 / LN({}))", "POWER(1 / {}, 2)", "LENGTH(CAST(CAST({} AS VARCHAR) AS DATE)::VARCHAR)"]
)
def test_guards_cannot_blow_an_expression_up(one, visits):
    # Each guard names its argument twice; nested, that would be 2ⁿ.
    nested = "free"
    for _ in range(11):
        nested = one.format(nested)
    error = visits.error(f"SELECT COUNT(*) FROM visits WHERE {nested} > 0")
    assert isinstance(error, QuestionRefusedError) and "involved" in str(error)


def test_a_long_list_and_many_branches_are_not_too_involved(visits):
    numbers = ", ".join(map(str, range(3000)))
    branches = " ".join(f"WHEN age < {at} THEN {at}" for at in range(18, 90))
    assert visits.plan(f"SELECT SUM(CASE {branches} END) FROM visits WHERE age IN ({numbers})").measures
