"""Bounds from conditions: what is clamped is clamped for every row, and rows that count are as they were."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dalenius.measuring.expressions import TRUE, Call, Column, Type, number, written
from dalenius.measuring.functions import bounded, ranges_of
from dalenius.queries.rules.narrow import clamp_by_conditions
from dalenius.tables.policy import Bounds, Kind
from dalenius.tables.policy import Column as Spec

X, N = Column("x", Type.NUMBER), Column("n", Type.NUMBER)
COLUMNS = {
    "x": Spec("x", Kind.NUMBER, Bounds(Fraction(-100), Fraction(500)), Fraction(1, 100)),
    "n": Spec("n", Kind.INTEGER, Bounds(0, 20), Fraction(1)),
}


def call(function, *arguments, type_=Type.NUMBER):
    return Call(function, arguments, type_)


def holds(function, *arguments):
    return call(function, *arguments, type_=Type.BOOLEAN)


@pytest.mark.parametrize(
    ("value", "condition", "ends"),
    [
        (call("div", number(1), X), holds("lt", number(0), X), (1 / 500, 100)),
        (call("div", number(1), X), holds("le", number(2), X), (1 / 500, 0.5)),
        (call("div", number(1), X), holds("lt", X, number(0)), (-100, -0.01)),
        (call("div", number(1), N), holds("ne", N, number(0)), (0.05, 1)),
        (call("div", number(1), N), holds("in", N, number(2), number(4)), (0.25, 0.5)),
        (call("div", number(1), N), holds("eq", N, number(4)), (0.25, 0.25)),
        (call("log2", N), TRUE, (0, 4.321928)),
        (call("div", number(1), call("nullif", N, number(0))), TRUE, (0.05, 1)),
    ],
)
def test_a_value_is_brought_between_what_its_conditions_leave(value, condition, ends):
    assert bounded(value, ranges_of(COLUMNS)) is None
    found = clamp_by_conditions(value, TRUE, [condition], COLUMNS)
    assert found is not None
    clamped, where, known = found
    assert known == pytest.approx(ends)
    assert bounded(clamped, {}) == known  # whatever a row holds, and whatever the condition says
    assert written(where) == f"not(is_null({written(value)}))"


@pytest.mark.parametrize(
    ("value", "condition"),
    [
        (call("div", number(1), X), TRUE),
        (call("div", number(1), X), holds("le", number(-1), X)),
        (call("div", number(1), X), holds("or", holds("lt", number(0), X), holds("lt", X, number(0)))),
        (call("coalesce", call("div", number(1), N), call("div", number(1), X)), TRUE),
        (call("div", number(1), X), holds("lt", number(0), N)),
        (call("div", number(1), X), holds("and", holds("lt", number(3), X), holds("lt", X, number(2)))),
    ],
)
def test_where_conditions_leave_no_bounds_there_are_none(value, condition):
    assert clamp_by_conditions(value, TRUE, [condition], COLUMNS) is None
