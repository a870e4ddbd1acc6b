"""One form per meaning: rewriting keeps SQL's three-valued truth. Whole questions in other words: `test_rewordings`."""

from __future__ import annotations

import random
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from dalenius.measuring.canonical import call, plain
from dalenius.measuring.engines.duckdb.connections import public
from dalenius.measuring.engines.duckdb.rendering import Renderer
from dalenius.measuring.expressions import FALSE, NULL, TRUE, Call, Column, Literal, Type, number, text

N, B = Type.NUMBER, Type.BOOLEAN
INTEGERS = frozenset({"i", "j"})
DOMAINS: dict[str, list[Any]] = {
    "i": [None, -1.0, 0.0, 1.0, 2.0],
    "j": [None, 0.0, 1.0, 3.0],
    "x": [None, -0.5, 0.0, 1.0, 1.5],
    "p": [None, True, False],
    "q": [None, True, False],
    "s": [None, "a", "b", "%"],
    "d": [None, date(2025, 1, 1), date(2025, 1, 2), date(2025, 1, 3)],
}
TYPES = {"i": N, "j": N, "x": N, "p": B, "q": B, "s": Type.TEXT, "d": Type.DATE}
ARROW = {N: pa.float64(), B: pa.bool_(), Type.TEXT: pa.string(), Type.DATE: pa.date32()}


def table():
    chance = random.Random(5)
    columns = {name: [chance.choice(values) for _ in range(200)] for name, values in DOMAINS.items()}
    return pa.table({name: pa.array(values, ARROW[TYPES[name]]) for name, values in columns.items()})


TABLE = table()
RENDERER = Renderer({name: name for name in DOMAINS}, INTEGERS)
COLUMN = {name: Column(name, type_) for name, type_ in TYPES.items()}
DAY = [Literal(date(2025, 1, day), Type.DATE) for day in (1, 2, 3)]


# A tree is an expression, or a function and trees. It is built twice: as it stands, and through `call`.


def raw(tree):
    if not isinstance(tree, tuple):
        return tree
    function, *parts = tree
    arguments = [raw(each) for each in parts]
    if function in {"gt", "ge"}:  # which have no form of their own
        return plain({"gt": "lt", "ge": "le"}[function], arguments[1], arguments[0])
    return plain(function, *arguments)


def formed(tree):
    if not isinstance(tree, tuple):
        return tree
    function, *parts = tree
    return call(function, *map(formed, parts), integers=INTEGERS)


COMPARISONS = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])
NUMBER_LEAVES = st.sampled_from([COLUMN["i"], COLUMN["j"], COLUMN["x"], *map(number, (-1, 0, 0.5, 1, 1.5, 2)), NULL])
NUMBERS = st.one_of(
    NUMBER_LEAVES,
    st.tuples(st.sampled_from(["add", "sub", "mul"]), NUMBER_LEAVES, NUMBER_LEAVES),
    st.tuples(st.sampled_from(["neg", "floor", "abs"]), NUMBER_LEAVES),
    st.tuples(st.just("coalesce"), NUMBER_LEAVES, NUMBER_LEAVES),
)
BOOLEAN_LEAVES = st.one_of(
    st.sampled_from([COLUMN["p"], COLUMN["q"], TRUE, FALSE]),
    st.tuples(COMPARISONS, NUMBERS, NUMBERS),
    st.tuples(COMPARISONS, st.just(COLUMN["d"]), st.sampled_from(DAY)),
    st.tuples(COMPARISONS, st.sampled_from(DAY), st.just(COLUMN["d"])),
    st.tuples(st.sampled_from(["eq", "ne"]), st.just(COLUMN["s"]), st.sampled_from([text("a"), text("b")])),
    st.tuples(st.just("like"), st.just(COLUMN["s"]), st.sampled_from([text("a"), text("%"), text("_"), text("b%")])),
    st.tuples(st.just("is_null"), NUMBERS),
    st.lists(st.sampled_from([*map(number, (0, 1, 2, 0.5))]), min_size=1, max_size=4).flatmap(
        lambda values: st.sampled_from(["i", "x"]).map(lambda name: ("in", COLUMN[name], *values))
    ),
)
BOOLEANS = st.recursive(
    BOOLEAN_LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.lists(inner, min_size=2, max_size=4).flatmap(
            lambda parts: st.sampled_from(["and", "or"]).map(lambda function: (function, *parts))
        ),
        st.tuples(st.sampled_from(["eq", "ne"]), inner, inner),
        st.tuples(st.just("case"), inner, inner, inner),
        st.tuples(st.just("coalesce"), inner, inner),
        st.tuples(st.just("is_null"), inner),
    ),
    max_leaves=8,
)


def alike(one, other):
    sql = f"SELECT {RENDERER.sql(one)}, {RENDERER.sql(other)} FROM t"
    return all(a == b and type(a) is type(b) for a, b in public().run(sql, {"t": TABLE}))


@settings(max_examples=examples(300))
@given(BOOLEANS)
def test_a_rewritten_condition_is_true_false_or_null_on_the_same_rows(tree):
    assert alike(raw(tree), formed(tree))


@settings(max_examples=examples(150))
@given(NUMBERS)
def test_a_rewritten_number_has_the_same_value(tree):
    assert alike(raw(tree), formed(tree))


@settings(max_examples=examples(100))
@given(BOOLEANS)
def test_a_form_is_final(tree):
    once = formed(tree)

    def again(expression):
        if not isinstance(expression, Call):
            return expression
        return call(expression.function, *map(again, expression.arguments), integers=INTEGERS)

    assert alike(again(once), once)


@settings(max_examples=examples(200))
@given(
    st.lists(BOOLEAN_LEAVES, min_size=2, max_size=4), st.sampled_from(["and", "or"]), st.randoms(use_true_random=False)
)
def test_the_order_of_parts_does_not_matter(parts, function, chance):
    shuffled = chance.sample(parts, len(parts))
    assert formed((function, *parts)) == formed((function, *shuffled))


def test_a_constant_is_computed_only_where_it_is_finite():
    assert call("mul", number(2), number(3)) == number(6)
    assert call("div", number(1), number(0)) == plain("div", number(1), number(0))
    assert call("mul", number(1e300), number(1e300)) == plain("mul", number(1e300), number(1e300))


def test_branches_that_cannot_be_taken_go():
    x, p = COLUMN["x"], COLUMN["p"]
    assert call("case", FALSE, number(1), x) == x
    assert call("case", NULL, number(1), p, x, number(2)) == plain("case", p, x, number(2))
    assert call("case", p, x, TRUE, number(1), number(2)) == plain("case", p, x, number(1))
    assert call("coalesce", NULL, x, number(1), x) == plain("coalesce", x, number(1))
    assert call("coalesce", NULL, NULL) == NULL


@pytest.mark.parametrize(
    ("function", "one", "other", "value"),
    [
        ("add", 0.06, 0.01, 0.07),  # in doubles 0.06999999999999999
        ("sub", 0.06, 0.01, 0.05),
        ("mul", 1.1, 1.1, 1.21),
        ("add", 0.1, 0.2, 0.3),
        ("mul", 1 / 3, 3.0, 1.0),  # no decimal that anybody wrote
        ("add", 1e300, 1.0, 1e300),
    ],
)
def test_constants_are_decimals_as_they_are_written(function, one, other, value):
    assert call(function, number(one), number(other)) == number(value)
