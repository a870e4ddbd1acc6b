"""H6: no scalar function and no cast fails, or answers otherwise, because of what one person's rows hold.

A question that errs only where the victim is in the data is an exact answer for nothing. So every function of the
allow-list is asked about rows on which it, left alone, would fail: behind `CASE WHEN name = 'victim'`, and bare.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from tests.attack.curators import integers_by, neighbours, outcome, plan_of, too_far
from tests.conftest import LONG

from dalenius.errors import DaleniusError
from dalenius.measuring.engines.duckdb import rendering
from dalenius.measuring.expressions import Call, Expression, walk
from dalenius.measuring.functions import FUNCTIONS, PARTS, UNITS
from dalenius.measuring.plan import Plan

COLUMNS = """
[columns.name]
type = "text"
[columns.x]
type = "number"
[columns.y]
type = "number"
[columns.n]
type = "integer"
[columns.z]
type = "number"
bounds = [-0.5, 5]
[columns.w]
type = "number"
bounds = [0, 1e9]
[columns.s]
type = "text"
[columns.u]
type = "text"
[columns.b]
type = "boolean"
[columns.d]
type = "date"
[columns.e]
type = "date"
[columns.m]
type = "datetime"
"""
SCHEMA = pa.schema(
    [("id", pa.int64()), ("name", pa.string())]
    + [(name, pa.float64()) for name in "xynzw"]
    + [(name, pa.string()) for name in "su"]
    + [("b", pa.bool_()), ("d", pa.date32()), ("e", pa.date32()), ("m", pa.timestamp("us"))]
)
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e308, -1e308, 5e-324, 2.0**53, 1e19, math.nan, math.inf, -math.inf, None]
TEXTS = ["", " ", "a" * 5000, "%_" * 50, "'", "\\", "\0", "ß" * 3000, "𝔘", "nan", "-inf", "1e400", "1e-400", "0x10"]
TEXTS += ["9" * 400, "12abc", "true", "2", "infinity", "-infinity", "epoch", "5881580-07-10", "5877642-06-25 (BC)"]
TEXTS += ["294247-01-10 04:00:54.775806", "290309-12-22 (BC) 00:00:00", "2024-02-30", "24:00:00", "0001-01-01"]
TEXTS += ["9999-12-31", "10000-01-01", None]  # type: ignore[list-item]
DATES = [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(1582, 10, 10), None]
MOMENTS = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59), datetime(2024, 2, 29, 23, 59, 59, 999999), None]  # noqa: DTZ001


def number(*fragments: str) -> list[str]:
    return [f"LEAST(1, GREATEST(0, {each})) > 0.5" for each in fragments]


def text(*fragments: str) -> list[str]:
    return [f"LENGTH({each}) > 1" for each in fragments]


def moment(*fragments: str) -> list[str]:
    return [f"{each} > '2000-01-01'" for each in fragments] + [f"YEAR({each}) > 2000" for each in fragments]


# Conditions that reach the function with arguments on which it fails, if anything does.
HOSTILE: dict[str, list[str]] = {
    "add": number("x + y", "w + x"),
    "sub": number("x - y", "z - x"),
    "mul": number("x * y", "x * x * x"),
    "div": number("x / y", "1 / n", "x / z", "1 / (x - x)"),
    "intdiv": number("x // y", "n // 0", "w // z"),
    "mod": number("x % y", "n % 0", "w % z"),
    "neg": number("-x", "-(-x - y)"),
    "abs": number("ABS(x)", "ABS(-1 * x * y)"),
    "sign": number("SIGN(x)", "SIGN(x / y)"),
    "floor": number("FLOOR(x)", "FLOOR(x * y)"),
    "ceil": number("CEIL(x)", "CEIL(x * y)"),
    "trunc": number("TRUNC(x)", "TRUNC(x * y)"),
    "round": number("ROUND(x)", "ROUND(x, 15)", "ROUND(x, -15)", "ROUND(x * y, 15)"),
    "sqrt": number("SQRT(x)", "SQRT(z)", "SQRT(-w)", "SQRT(CAST(z AS INTEGER))", "SQRT(YEAR(d - INTERVAL 100 YEAR))"),
    "ln": number("LN(x)", "LN(z)", "LN(w)", "LN(CAST(z AS INTEGER))", "LN(YEAR(d - INTERVAL 1 YEAR))"),
    "log10": number("LOG10(x)", "LOG(z)", "LOG10(w)"),
    "log2": number("LOG2(x)", "LOG2(z)", "LOG2(w)"),
    "exp": number("EXP(x)", "EXP(EXP(EXP(x)))", "EXP(w)"),
    "sin": number("SIN(x)", "SIN(x * y)", "SIN(w)"),
    "cos": number("COS(x)", "COS(x / y)"),
    "tan": number("TAN(x)", "TAN(x * y)", "TAN(w)"),
    "asin": number("ASIN(x)", "ASIN(x * y)", "ASIN(z)"),
    "acos": number("ACOS(x)", "ACOS(x / y)", "ACOS(w)"),
    "atan": number("ATAN(x)", "ATAN(x * y)"),
    "atan2": number("ATAN2(x, y)", "ATAN2(x * y, z)", "ATAN2(0, x)"),
    "finite": number("FLOOR(x * y)", "COALESCE(x / y, 0)"),
    "power": number("POWER(x, y)", "POWER(n, 16)", "POWER(z, 0.5)", "POWER(0, x)"),
    "least": number("LEAST(x, y)", "LEAST(x / y, x * y)"),
    "greatest": number("GREATEST(x, y)", "GREATEST(x / y, x * y)"),
    "eq": ["x / y = 1", "s = u", "d = m", "CAST(s AS DATE) = d", "b = (x > y)"],
    "ne": ["x / y <> 1", "s <> u", "CAST(s AS TIMESTAMP) <> m"],
    "lt": ["x * y < 1", "s < u", "CAST(s AS DATE) < d", "CAST(s AS TIMESTAMP) < m"],
    "le": ["x * y <= 1", "s <= u", "CAST(s AS DATE) <= d"],
    "in": ["x / y IN (1, 2)", "s IN ('', 'x')", "CAST(s AS DATE) IN ('2024-02-29', '9999-12-31')"],
    "is_null": ["x / y IS NULL", "CAST(s AS DATE) IS NULL", "LN(x) IS NULL", "s || u IS NULL"],
    "and": ["1 / x > 0 AND LN(y) > 0"],
    "or": ["1 / x > 0 OR LN(y) > 0"],
    "not": ["NOT CONTAINS(s, '%_')", "NOT CAST(s AS BOOLEAN)"],
    "like": ["s LIKE '%a%a%b'", "s LIKE '%_a_b%'", "s LIKE '__%b'", "s LIKE '%''%'"],
    "ilike": ["s ILIKE '%A%a%b'", "s ILIKE '%ß_b'"],
    "contains": [f"CONTAINS(s, '{'a' * 99}b')", "CONTAINS(u, '')"],
    "starts_with": [f"STARTS_WITH(s, '{'a' * 100}')", "STARTS_WITH(u, '')"],
    "ends_with": [f"ENDS_WITH(s, '{'ß' * 100}')", "ENDS_WITH(u, '')"],
    "regexp": [
        "REGEXP_MATCHES(s, '^[^a]{9}')",
        "REGEXP_FULL_MATCH(u, '.*')",
        "s SIMILAR TO '(?:ß|a)*'",
        "s ~* 'x[^a]+$'",
    ],
    "case": number("CASE WHEN x > 0 THEN 1 / y ELSE LN(x) END", "CASE n WHEN 0 THEN n / n ELSE x END"),
    "coalesce": number("COALESCE(1 / x, LN(y), CAST(s AS DOUBLE), 1)"),
    "nullif": number("1 / NULLIF(x, 1)", "NULLIF(x / y, x * y)"),
    "lower": text("LOWER(s)", "LOWER(s || u)"),
    "upper": text("UPPER(s)", "UPPER(s || u)"),
    "trim": text("TRIM(s)", "TRIM(s, 'aß%')"),
    "ltrim": text("LTRIM(s)", "LTRIM(s, '\\')"),
    "rtrim": text("RTRIM(s)", "RTRIM(s, '𝔘a')"),
    "length": number("LENGTH(s)", "1 / LENGTH(s)"),
    "left": text("LEFT(s, 0)", "LEFT(s, 1000000)", "LEFT(s, -1)", "LEFT(u, -1000000)"),
    "right": text("RIGHT(s, 0)", "RIGHT(s, 1000000)", "RIGHT(s, -1)", "RIGHT(u, -1000000)"),
    "position": number(f"STRPOS(s, '{'a' * 30}b')", "STRPOS(u, '')", "1 / INSTR(s, 'ß')"),
    "split_part": text("SPLIT_PART(s, 'a', 1000)", "SPLIT_PART(s, 'ß', -1000)", "SPLIT_PART(u, '%_', 1)"),
    "substring": text("SUBSTRING(s, 0, 0)", "SUBSTRING(s, 1000000)", "SUBSTRING(s, 0, 1000000)"),
    # twice tenfold: 500 kB for one row, were it not cut; more is refused for the work that it would be
    "replace": text(
        f"REPLACE(s, 'a', '{'a' * 10}')",
        "REPLACE(" * 2 + "s" + f", 'a', '{'a' * 10}')" * 2,
        "REPLACE(s, '', 'x')",
        "REPLACE(s, '%', '')",
    ),
    "concat": text("s || u", "||".join(["s"] * 8)),
    "date_part": number(*(f"EXTRACT({part} FROM CAST(s AS TIMESTAMP))" for part in PARTS))
    + number(*(f"EXTRACT({part} FROM m)" for part in PARTS)),
    "date_trunc": moment(*(f"DATE_TRUNC('{unit}', {each})" for unit in UNITS for each in ("d", "m")))
    + moment(*(f"DATE_TRUNC('{unit}', CAST(s AS DATE))" for unit in UNITS)),
    "date_add": moment("d + INTERVAL 100 YEAR", "d - INTERVAL 100 YEAR", "CAST(s AS DATE) + INTERVAL 1 DAY")
    + moment("m - INTERVAL 3162240000 SECOND", "CAST(s AS TIMESTAMP) + INTERVAL 100 YEAR", "e - 36600"),
    "strftime": text("STRFTIME(d - INTERVAL 100 YEAR, '%Y%j%y')", "STRFTIME(CAST(s AS TIMESTAMP), '%Y-%m-%d %H:%M')"),
    "date_sub": number(*(f"DATE_SUB('{unit}', d, e)" for unit in UNITS)),
    "date_diff": number(*(f"DATE_DIFF('{unit}', d, e)" for unit in UNITS))
    + number(*(f"DATE_DIFF('{unit}', m, CAST(s AS TIMESTAMP))" for unit in UNITS)),
    "to_number": number("CAST(s AS DOUBLE)", "1 / CAST(s AS DOUBLE)", "CAST(s AS DECIMAL(3, 1))"),
    "to_integer": number("CAST(s AS INTEGER)", "CAST(x AS TINYINT)", "CAST(x * y AS BIGINT)", "CAST(u AS HUGEINT)"),
    "round_even": number("CAST(x AS BIGINT)", "CAST(x / y AS INTEGER)", "CAST(w * 1e300 AS BIGINT)"),
    "to_text": text("CAST(x AS VARCHAR)", "CAST(n AS VARCHAR)", "CAST(m AS VARCHAR)", "CAST(CAST(s AS DATE) AS TEXT)"),
    "to_boolean": ["CAST(s AS BOOLEAN)", "CAST(x AS BOOLEAN)"],
    "to_date": moment("CAST(s AS DATE)", "CAST(m AS DATE)", "CAST(CAST(s AS TIMESTAMP) AS DATE)"),
    "to_datetime": moment("CAST(s AS TIMESTAMP)", "CAST(d AS TIMESTAMP)", "CAST(CAST(s AS DATE) AS TIMESTAMP)"),
}
AT_ONCE = 6  # conditions in one question


def questions(conditions: list[str]) -> Iterator[str]:
    """Questions that reach the conditions' functions on the victim's rows: behind CASE, in WHERE, and bare."""
    for at in range(0, len(conditions), AT_ONCE):
        some = conditions[at : at + AT_ONCE]
        guarded = [f"SUM(CASE WHEN name = 'victim' THEN CASE WHEN {c} THEN 1 ELSE 0 END ELSE 1 END)" for c in some]
        bare = [f"COUNT_IF({condition})" for condition in some]
        where = " AND ".join(f"CASE WHEN name = 'victim' THEN NOT ({c}) OR ({c}) IS NULL ELSE true END" for c in some)
        yield f"SELECT COUNT(*), {', '.join(guarded + bare)} FROM t"
        yield f"SELECT COUNT(*) FROM t WHERE {where}"


def rows(unit: int, name: str, columns: dict[str, list[object]]) -> pa.Table:
    size = len(columns["x"])
    return pa.table({"id": [unit] * size, "name": [name] * size, **columns}, schema=SCHEMA)


def harmless() -> pa.Table:
    columns: dict[str, list[object]] = {each: [1.0, 2.0] for each in "xynzw"}
    columns |= {"s": ["1", "x"], "u": ["1", "y"], "b": [True, False]}
    columns |= {"d": [date(2020, 1, 1)] * 2, "e": [date(2021, 1, 1)] * 2, "m": [datetime(2020, 1, 1)] * 2}  # noqa: DTZ001
    return rows(1, "someone", columns)


def victim() -> pa.Table:
    """Every pair of hostile numbers; beside them the texts and dates in all their combinations, by turns."""
    pairs = list(product(NUMBERS, NUMBERS))
    numbers: dict[str, list[object]] = {"x": [a for a, _ in pairs], "y": [b for _, b in pairs]}
    size = len(pairs)

    def by_turns(values: list[object], step: int) -> list[object]:
        return [values[at // step % len(values)] for at in range(size)]

    numbers |= {"n": numbers["x"], "z": numbers["y"], "w": numbers["x"], "b": by_turns([True, False, None], 1)}
    times = {"d": by_turns([*DATES], 1), "e": by_turns([*DATES], len(DATES)), "m": by_turns([*MOMENTS], 1)}
    return rows(9, "victim", numbers | times | {"s": by_turns([*TEXTS], 1), "u": by_turns([*TEXTS], 7)})


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return neighbours(tmp_path_factory.mktemp("h6"), harmless(), victim(), COLUMNS)


def called(plan: Plan) -> Iterator[str]:
    """The functions that a plan reaches, before and after it was made total."""
    parts: list[Expression | None] = [plan.question.where, plan.where]
    parts += [part for each in plan.question.aggregates for part in (each.value, each.where)]
    parts += [part for each in plan.measures for part in (each.value, each.where)]
    found = [part for part in parts if part is not None]
    return (each.function for expression in found for each in walk(expression) if isinstance(each, Call))


def told_apart(pair, *asked: str) -> list[str]:
    """What of questions about hostile rows tells that they are there."""
    found = []
    for question in asked:
        without, with_ = (outcome(each, question) for each in pair)
        if without != with_ or with_.status != "answered":
            found.append(f"{without.status} without the victim, {with_.status} with: {with_.text}, {question}")
    return found


def test_every_function_of_the_allow_list_has_hostile_cases():
    assert set(HOSTILE) == set(FUNCTIONS)
    assert all(HOSTILE.values())


@pytest.mark.parametrize("function", HOSTILE)
def test_a_function_that_would_fail_on_the_victims_rows_changes_nothing_but_the_noisy_numbers(pair, function):
    # In the short form a quarter is asked, and of the others the integers are compared: which ones, by turns. All
    # functions are asked about over HTTP (`test_h06_http`).
    for at, question in enumerate(questions(HOSTILE[function])):
        plan = plan_of(pair[0], question)
        assert function in set(called(plan))
        asked = (at + len(function)) % 4 == 1
        if LONG or asked:
            assert told_apart(pair, question) == []
        if LONG or not asked:
            assert too_far(plan, *(integers_by(each, plan) for each in pair)) == []


@pytest.mark.parametrize("function", ["div", "ln", "to_number", "to_date", "date_add", "replace"])
def test_nor_does_it_as_a_sum_or_a_group(pair, function):
    condition = HOSTILE[function][0]
    for question in (
        f"SELECT SUM(CASE WHEN {condition} THEN w ELSE z END), AVG(z) FILTER (WHERE {condition}) FROM t",
        f"SELECT {condition} AS k, COUNT(*), COUNT(DISTINCT id), VAR_POP(z) FROM t GROUP BY k",
        f"SELECT COUNT(DISTINCT {condition}), CORR(z, CASE WHEN {condition} THEN z ELSE w END) FROM t",
    ):
        without, with_ = (outcome(each, question) for each in pair)
        assert without == with_ and with_.status == "answered"


def test_a_failing_group_key_cannot_be_asked_into_the_answer(pair):
    question = "SELECT CAST(s AS DATE) AS k, COUNT(*) FROM t GROUP BY k"
    without, with_ = (outcome(each, question) for each in pair)
    # Such keys are found privately: one person's is not, and nothing else tells that it is there.
    assert without == with_ and with_.status == "answered" and with_.keys == ()


# A function written so that some row makes it fail, and the case above that must notice.
PLANTED = [
    ("number", "CAST({1} AS DOUBLE)", "to_number"),
    ("number", "CAST({1} AS INTEGER)", "to_integer"),
    ("to_boolean", "CAST({1} AS BOOLEAN)", "to_boolean"),
    ("to_date", "CAST({1} AS DATE)", "to_date"),
    ("to_date", "TRY_CAST({1} AS DATE)", "date_add"),
    ("to_datetime", "TRY_CAST({1} AS TIMESTAMP)", "date_add"),
    ("length", "CAST(1 / CAST(length({1}) AS TINYINT) AS DOUBLE)", "length"),
    ("abs", "CAST(abs(CAST({1} AS BIGINT)) AS DOUBLE)", "abs"),
]


@pytest.mark.parametrize(("function", "template", "noticed_by"), PLANTED)
def test_a_function_that_is_not_total_is_noticed(tmp_path, monkeypatch, function, template, noticed_by):
    if function == "number":  # written by a method
        plain = template.replace("{1}", "{}")
        monkeypatch.setattr(rendering.Renderer, function, lambda self, inner: plain.format(self.sql(inner)))
    else:
        monkeypatch.setitem(rendering._TEMPLATES, function, template)
    pair = neighbours(tmp_path, harmless(), victim(), COLUMNS)
    assert told_apart(pair, *questions(HOSTILE[noticed_by]))


def invalid_text() -> tuple[pa.Table, pa.Table, str]:
    offsets = pa.py_buffer(np.array([0, 3], dtype=np.int32).tobytes())
    bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfea")])
    return pa.table({"id": [1], "c": ["fine"]}), pa.table({"id": [9], "c": bad}), "text"


def distant_moment(unit: str) -> tuple[pa.Table, pa.Table, str]:
    kind = pa.timestamp(unit)
    far = pa.array([2**50, -(2**50)] if unit == "s" else [2**60, -(2**60)], pa.int64()).cast(kind)
    return pa.table({"id": [1], "c": pa.array([1], kind)}), pa.table({"id": [9, 9], "c": far}), "datetime"


@pytest.mark.parametrize(
    "tables",
    [
        pytest.param(invalid_text, id="invalid UTF-8"),
        pytest.param(lambda: distant_moment("s"), id="seconds"),
        pytest.param(lambda: distant_moment("ms"), id="milliseconds"),
        pytest.param(lambda: distant_moment("us"), id="microseconds"),
        pytest.param(lambda: distant_moment("ns"), id="nanoseconds"),
    ],
)
def test_a_value_that_the_file_may_hold_but_no_engine_can_is_refused_at_protect_or_changes_nothing(tmp_path, tables):
    table, victim_, kind = tables()
    try:
        pair = neighbours(tmp_path, table, victim_, f'[columns.c]\ntype = "{kind}"')
    except DaleniusError:
        return  # the owner heard it before anybody asked
    without, with_ = (outcome(each, "SELECT COUNT(*) FROM t WHERE c > '2020-01-01'") for each in pair)
    assert without == with_ and with_.status == "answered"
