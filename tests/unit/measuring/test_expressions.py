"""Expressions: plain data with one notation."""

from datetime import date, datetime, time

import pytest

from dalenius.measuring.expressions import (
    FALSE,
    NULL,
    TRUE,
    Aggregate,
    Call,
    Column,
    Expression,
    Key,
    Literal,
    Type,
    columns_of,
    number,
    rebuild,
    text,
    walk,
    written,
)

X, Y = Column("x", Type.NUMBER), Column("y", Type.NUMBER)


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        (number(3), "3"),
        (number(-0.0), "0"),
        (number(0.1), "0.1"),
        (number(2.0**53), "9007199254740992.0"),
        (text("it's"), "'it''s'"),
        (TRUE, "true"),
        (FALSE, "false"),
        (NULL, "null"),
        (Literal(date(2025, 1, 2), Type.DATE), "date '2025-01-02'"),
        (Literal(datetime.combine(date(2025, 1, 2), time()), Type.DATETIME), "datetime '2025-01-02T00:00:00'"),
        (X, "x"),
        (Column('odd "name"', Type.TEXT), '"odd ""name"""'),
        (Call("add", (X, Y), Type.NUMBER), "add(x, y)"),
        (Key(0, Type.TEXT), "key 1"),
        (Aggregate("count", None, TRUE), "count()"),
        (Aggregate("sum", X, Column("p", Type.BOOLEAN)), "sum(x) where p"),
    ],
)
def test_each_expression_has_its_notation(expression, shown):
    assert written(expression) == shown


def test_different_expressions_are_written_differently():
    # Texts that could be taken for one another: a column named like a literal, a date and its text, a quote inside.
    tricky: list[Expression] = [
        number(1),
        text("1"),
        Column("1", Type.NUMBER),
        TRUE,
        text("true"),
        Column("true ", Type.BOOLEAN),
        NULL,
        text("null"),
        Literal(date(2025, 1, 1), Type.DATE),
        Literal(datetime.combine(date(2025, 1, 1), time()), Type.DATETIME),
        text("2025-01-01"),
        text("a', 'b"),
        Call("concat", (text("a"), text("b")), Type.TEXT),
        Call("concat", (text("a', 'b"),), Type.TEXT),
        number(0.1),
        number(0.1 + 2**-56),
    ]
    assert len({written(each) for each in tricky}) == len(tricky)


def test_there_is_no_minus_zero():
    assert number(-0.0) == number(0.0) and str(number(-0.0).value) == "0.0"


def test_a_walk_sees_every_part_but_not_inside_aggregates():
    inner = Aggregate("sum", Y, TRUE)
    whole = Call("add", (Call("mul", (X, number(2)), Type.NUMBER), inner), Type.NUMBER)
    parts = list(walk(whole))
    assert len(parts) == 5 and inner in parts and Y not in parts
    assert columns_of(whole) == {"x"}


def test_rebuilding_goes_from_the_inside_out():
    seen = []

    def change(each):
        seen.append(written(each))
        return Y if each == X else each

    given = Call("neg", (Call("neg", (X,), Type.NUMBER),), Type.NUMBER)
    assert written(rebuild(given, change)) == "neg(neg(y))"
    assert seen == ["x", "neg(y)", "neg(neg(y))"]
