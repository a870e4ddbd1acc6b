"""The cost model: what a row's expressions can take at worst."""

from __future__ import annotations

import pytest

from dalenius.measuring import work
from dalenius.measuring.canonical import call
from dalenius.measuring.engines.duckdb.rendering import heavier
from dalenius.measuring.expressions import Call, Column, Expression, Type, number, text
from dalenius.measuring.functions import FUNCTIONS
from dalenius.measuring.work import LONGEST_TEXT, Meter, Work, ballast

NOTE = Column("note", Type.TEXT)
METER = Meter({})


def like(inner: Expression, pattern: str, function: str = "like") -> Expression:
    return call(function, inner, text(pattern))


def test_a_longer_text_or_pattern_never_takes_less() -> None:
    cut = [METER(like(call("left", NOTE, number(at)), "%a%")).worst for at in range(0, LONGEST_TEXT, 7)]
    assert cut == sorted(cut)
    patterns = [METER(like(NOTE, "%" + "_" * at + "b%")).worst for at in range(1, 100)]
    assert patterns == sorted(patterns)


def test_everything_in_an_expression_counts_also_constants() -> None:
    one = METER(call("lower", NOTE))
    assert METER(call("or", like(NOTE, "%a%"), like(NOTE, "%b%"))).worst > 2 * METER(like(NOTE, "%a%")).worst
    assert METER(call("lower", call("lower", NOTE))).worst == 2 * one.worst
    assert METER(call("lower", text("a" * 100))).worst > 1000


def test_what_is_put_together_is_as_long_as_its_parts_but_no_longer_than_the_cut() -> None:
    short = call("left", NOTE, number(3))
    assert METER.longest(call("concat", short, text("ab"))) == 5
    assert METER.longest(call("concat", NOTE, NOTE)) == LONGEST_TEXT
    assert METER.longest(call("replace", short, text("a"), text("bbbbbbbbbb"))) >= 30
    assert METER.longest(call("case", call("eq", NOTE, text("x")), text("a" * 9), short)) == 9


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_a_weight(name: str) -> None:
    function = FUNCTIONS[name]
    arguments = tuple(Column("x", Type.TEXT if Type.TEXT in types else min(types, key=str)) for types in function.takes)
    found = METER(Call(name, arguments, function.gives or arguments[0].type))
    assert 0 < found.usual <= found.worst


def test_the_ballast_is_a_fortieth_of_the_worst_and_nothing_for_plain_questions() -> None:
    assert heavier(Work(399, 10)) == ""
    for worst in (1_000.0, 7_777.0, 50_000.0, work.MOST):
        assert ballast(Work(worst)) == pytest.approx(worst / 40 - work.BASE)
        shown = heavier(Work(worst))
        assert shown.count("md5(") * 170 + shown.count("sin(") * 10 == pytest.approx(ballast(Work(worst)), abs=6)


def test_a_literal_pattern_is_needed_for_a_small_weight() -> None:
    by_column = METER(Call("like", (NOTE, NOTE), Type.BOOLEAN))
    assert by_column.worst > work.MOST
    assert METER(like(NOTE, "%abc%", "ilike")).worst < work.MOST / 20
