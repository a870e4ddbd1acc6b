"""Interval arithmetic is sound: what the engine computes lies within what was said about it."""

from __future__ import annotations

import math
import random
import re
from contextlib import suppress
from datetime import date

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from dalenius.errors import InputError, PolicyError, QuestionError
from dalenius.measuring.canonical import plain
from dalenius.measuring.engines.duckdb.connections import public
from dalenius.measuring.engines.duckdb.rendering import Renderer
from dalenius.measuring.expressions import NULL, TRUE, Call, Column, Expression, Literal, Type, number, text
from dalenius.measuring.functions import FUNCTIONS, UNITS, bounded, branches, conditions, dominated, moments_of, whole
from dalenius.measuring.plan import require
from dalenius.queries.rules.total import _Guard
from dalenius.tables import policy as tables

N = Type.NUMBER
BOUNDS = {"x": (-2.5, 7.25), "y": (0.0, 5.0), "z": (1.0, 3.5), "w": (-8.0, -0.5)}
INTEGERS = frozenset({"y"})
X, Y, Z, W, FREE = (Column(name, N) for name in ("x", "y", "z", "w", "free"))


def rows():
    """In their bounds, and at them; any column but the last may be absent."""
    chance = random.Random(3)
    found = []
    for _ in range(120):
        row = {
            name: chance.choice([low, high, chance.uniform(low, high), None]) for name, (low, high) in BOUNDS.items()
        }
        row["y"] = chance.choice([0.0, 1.0, 2.0, 5.0, None])
        row["free"] = chance.choice([0.0, -1e9, 1e9, 1e-9, None, chance.gauss(0, 100)])
        found.append(row)
    return found


ROWS = rows()
SCHEMA = pa.schema([(name, pa.float64()) for name in (*BOUNDS, "free")])
TABLE = pa.Table.from_pylist(
    [{"place": at, **row} for at, row in enumerate(ROWS)], SCHEMA.insert(0, pa.field("place", pa.int64()))
)
RENDERER = Renderer({name: name for name in (*BOUNDS, "free")}, INTEGERS)


def evaluated(expression):
    guard = _Guard(BOUNDS)
    sql = RENDERER.sql(guard.finite(guard.expression(expression)))
    return [row[0] for row in public().run(f"SELECT {sql} FROM t ORDER BY place", {"t": TABLE})]


def grown(children):
    unary = st.sampled_from(
        [
            *("neg", "abs", "sign", "floor", "ceil", "trunc", "round", "to_integer", "round_even"),
            *("sqrt", "ln", "log10", "log2", "exp"),
        ]
    )
    binary = st.sampled_from(["add", "sub", "mul", "div", "intdiv", "mod", "least", "greatest", "nullif", "coalesce"])
    return st.one_of(
        st.builds(plain, unary, children),
        st.builds(plain, binary, children, children),
        st.builds(lambda a, b: plain("power", a, number(b)), children, st.integers(0, 5)),
        st.builds(lambda a, b: plain("round", a, number(b)), children, st.integers(-2, 3)),
        st.builds(
            lambda a, b, c, d: plain("case", Call("lt", (a, b), Type.BOOLEAN), c, d),
            children,
            children,
            children,
            children,
        ),
    )


LEAVES = st.one_of(
    st.sampled_from([X, Y, Z, W, FREE]),
    st.sampled_from([-3.0, -0.5, 0.0, 0.5, 1.0, 2.5, 100.0]).map(number),
    st.just(NULL),
)
EXPRESSIONS = st.recursive(LEAVES, grown, max_leaves=7).filter(lambda each: each.type is N)


@settings(max_examples=examples(300))
@given(EXPRESSIONS)
def test_a_value_lies_within_its_bounds(expression):
    found = bounded(expression, BOUNDS)
    if found is None:
        return
    low, high = found
    slack = 1e-12 * max(abs(low), abs(high))  # roots, logarithms and powers are not the last word to the last bit
    for row, value in zip(ROWS, evaluated(expression), strict=True):
        assert value is None or low - slack <= value <= high + slack, row


@settings(max_examples=examples(300))
@given(EXPRESSIONS)
def test_what_is_said_to_be_whole_is_whole(expression):
    if whole(expression, INTEGERS):
        assert all(value is None or value == math.floor(value) for value in evaluated(expression))


OWN: st.SearchStrategy[Expression] = st.sampled_from([X, number(0), NULL])


@settings(max_examples=examples(200))
@given(
    st.recursive(
        OWN,
        lambda inner: st.one_of(
            st.builds(plain, st.sampled_from(["neg", "abs"]), inner),
            st.builds(lambda a, k: plain("mul", a, number(k)), inner, st.sampled_from([-2.0, 0.5, 3.0])),
            st.builds(lambda a, k: plain("mul", number(k), a), inner, st.sampled_from([-2.0, 0.5, 3.0])),
            st.builds(lambda a, k: plain("div", a, number(k)), inner, st.sampled_from([-2.0, 0.5, 3.0])),
            st.builds(lambda a: plain("coalesce", a, number(0)), inner),
            st.builds(plain, st.sampled_from(["add", "sub"]), inner, inner),
            st.builds(lambda a: plain("mul", a, plain("sub", number(1), Y)), inner),
            st.builds(lambda a, b: plain("case", Call("lt", (Y, number(2)), Type.BOOLEAN), a, b), inner, inner),
        ),
        max_leaves=5,
    ).filter(lambda each: each.type is N)
)
def test_what_dominates_an_expression_dominates_its_sum(expression):
    """Σ|expression| ≤ limit for any rows with Σ|x| ≤ total; the rows here are all of those rows' prefixes."""
    values = evaluated(expression)
    for size in (1, 7, len(ROWS)):
        total = sum(abs(row["x"] or 0.0) for row in ROWS[:size])
        limit = dominated(expression, {"x": total}, BOUNDS)
        assert limit is None or sum(abs(value or 0.0) for value in values[:size]) <= limit * (1 + 1e-12)


@pytest.mark.parametrize(
    ("expression", "limit"),
    [
        (X, 10.0),
        (plain("mul", X, number(-3)), 30.0),
        (plain("mul", number(-3), X), 30.0),
        (plain("div", X, number(4)), 2.5),
        (plain("neg", plain("abs", X)), 10.0),
        (plain("coalesce", X, number(0)), 10.0),
        (plain("case", Call("lt", (Y, number(2)), Type.BOOLEAN), X, plain("mul", X, number(2))), 20.0),
        (plain("case", Call("lt", (Y, number(2)), Type.BOOLEAN), X, NULL), 10.0),
        (NULL, 0.0),
        (plain("add", X, X), 20.0),
        (plain("sub", X, plain("mul", W, number(2))), 24.0),
        (plain("mul", X, plain("sub", number(1), Y)), 40.0),  # y up to 5, so 1 − y down to −4
        (plain("case", Call("lt", (Y, number(2)), Type.BOOLEAN), X, W), 17.0),  # rows of both kinds
    ],
)
def test_these_sums_are_bounded_by_totals(expression, limit):
    assert dominated(expression, {"x": 10.0, "w": 7.0}, {"y": (0.0, 5.0)}) == limit


@pytest.mark.parametrize(
    "expression",
    [
        Y,
        plain("add", X, number(1)),
        plain("mul", X, Y),
        plain("coalesce", X, number(1)),
        plain("div", number(1), X),
        plain("case", Call("lt", (Y, number(2)), Type.BOOLEAN), X, number(1)),
        plain("power", X, number(2)),
    ],
)
def test_nothing_is_said_about_sums_that_a_total_does_not_bound(expression):
    assert dominated(expression, {"x": 10.0, "w": 10.0}) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (X, (-2.5, 7.25)),
        (FREE, None),
        (plain("sub", X, Y), (-7.5, 7.25)),
        (plain("mul", X, W), (-58.0, 20.0)),
        (plain("div", Y, Z), (0.0, 5.0)),
        (plain("div", Y, X), None),
        (plain("abs", X), (0.0, 7.25)),
        (plain("abs", W), (0.5, 8.0)),
        (plain("power", X, number(2)), (0.0, 7.25**2)),
        (plain("power", X, number(3)), (-(2.5**3), 7.25**3)),
        (plain("power", X, number(0.5)), None),
        (plain("power", X, Y), None),
        (plain("sqrt", X), (0.0, math.sqrt(7.25))),
        (plain("ln", X), None),
        (plain("ln", Z), (0.0, math.log(3.5))),
        (plain("mod", X, Y), (-5.0, 5.0)),
        (plain("mod", Y, Z), (0.0, 3.5)),
        (plain("to_integer", X), (-3.0, 8.0)),
        (plain("floor", X), (-3.0, 7.0)),
        (plain("least", plain("greatest", FREE, number(0)), number(100)), (0.0, 100.0)),
        (plain("least", FREE, Y), None),
        (plain("greatest", X, Y), (-2.5, 7.25)),  # where y is absent it is x
        (plain("date_part", text("month"), Column("d", Type.DATE)), (1.0, 12.0)),
        (plain("case", TRUE, X, NULL), (-2.5, 7.25)),
        (plain("coalesce", Y, number(-1)), (-1.0, 5.0)),
        (plain("exp", plain("mul", X, number(1000))), None),
        (plain("sin", FREE), (-1.0, 1.0)),
        (plain("acos", X), (0.0, math.pi)),
        (plain("atan2", X, FREE), (-math.pi, math.pi)),
        (plain("tan", X), None),
        (plain("date_diff", text("day"), Column("d", Type.DATE), Column("d", Type.DATE)), None),
    ],
)
def test_these_bounds_are_known(expression, expected):
    assert bounded(expression, BOUNDS) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("unit", UNITS)
def test_the_difference_of_two_dates_lies_within_its_bounds(unit):
    ends = {"d": (date(1999, 12, 31), date(2004, 3, 1)), "e": (date(2000, 2, 28), date(2000, 3, 1))}
    columns = {
        name: tables.Column(name, tables.Kind.DATE, bounds=tables.Bounds(low, high))
        for name, (low, high) in ends.items()
    }
    one, other = Column("d", Type.DATE), Column("e", Type.DATE)
    for first, second in ((one, other), (other, one), (one, Literal(date(2001, 1, 1), Type.DATE))):
        low, high = require(bounded(plain("date_diff", text(unit), first, second), moments_of(columns)))
        shown = f"date_diff('{unit}', x, y)"
        days = "SELECT unnest(generate_series(DATE '{}', DATE '{}', INTERVAL 1 DAY))"
        sides = [ends.get(getattr(each, "name", ""), (date(2001, 1, 1),) * 2) for each in (first, second)]
        x, y = (days.format(*each) for each in sides)
        least, most = require(
            duckdb.execute(f"SELECT min({shown}), max({shown}) FROM ({x}) a(x), ({y}) b(y)").fetchone()
        )
        assert low <= least <= most <= high
        assert bounded(plain("date_diff", text(unit), first, second), {}) is None


def test_a_case_is_cut_into_conditions_and_values():
    one, other = (Call("lt", (Y, number(at)), Type.BOOLEAN) for at in (1, 2))
    case = plain("case", one, X, other, Y, Z)
    assert conditions(case) == (one, other) and branches(case) == (X, Y, Z)


def test_every_function_says_how_people_write_it():
    assert all(each.says and each.takes for each in FUNCTIONS.values())
    assert len({each.says for each in FUNCTIONS.values()}) == len(FUNCTIONS)


@pytest.fixture(scope="module")
def eve(tmp_path_factory):
    from tests.attack.curators import curator_of

    columns = '[columns.v]\ntype = "integer"\nbounds = [0, 3]'
    table = pa.table({"id": [1, 2], "v": [1, 2]})
    return curator_of(tmp_path_factory.mktemp("nulls"), table, columns, epsilon=500.0).analyst("eve")


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_bare_null_never_makes_the_engine_fail(name, eve):
    """NULL fits everywhere; to DuckDB an untyped one may fit several functions, or none. The question was charged."""
    says = re.sub(r"\b[abcdex]\b", "NULL", FUNCTIONS[name].says)
    for question in (
        f"SELECT COUNT(*) FROM t WHERE ({says}) IS NULL",
        f"SELECT {says} AS k, COUNT(*) FROM t GROUP BY 1",
        f"SELECT SUM({says}) FROM t",
    ):
        with suppress(PolicyError, QuestionError, InputError):
            assert eve.ask(question, epsilon=0.01).rows is not None
