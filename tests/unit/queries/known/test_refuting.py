"""What a single value refutes does not follow, whoever looks at all of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from dalenius.measuring.expressions import Call, Column, Literal, Type
from dalenius.queries.known import following
from dalenius.queries.known.following import Attributes, follows
from dalenius.queries.known.refuting import is_refuted
from dalenius.queries.workloads.attributes import Atoms
from dalenius.tables import Bounds, Kind
from dalenius.tables import Column as PolicyColumn

AGE, CITY = Column("age", Type.NUMBER), Column("city", Type.TEXT)
CITIES = ("Basel", "Bern", "Chur")
COLUMNS = {
    "age": PolicyColumn("age", Kind.INTEGER, bounds=Bounds(0, 9)),
    "city": PolicyColumn("city", Kind.CATEGORY, keys=CITIES),
}


def condition(function: str, *arguments: Any) -> Call:
    return Call(function, arguments, Type.BOOLEAN)


def literal(value: Any) -> Literal:
    return Literal(value, Type.TEXT if isinstance(value, str) else Type.NUMBER)


NUMBERS = st.sampled_from([-1.0, 0.0, 2.0, 2.5, 3.0, 4.0, 9.0, 12.0]).map(literal)
NAMES = st.sampled_from([*CITIES, "Genève"]).map(literal)
COMPARED = st.one_of(
    st.builds(lambda how, value: condition(how, AGE, value), st.sampled_from(["eq", "ne", "lt", "le"]), NUMBERS),
    st.builds(lambda how, value: condition(how, value, AGE), st.sampled_from(["lt", "le"]), NUMBERS),
    st.builds(lambda values: condition("in", AGE, *values), st.lists(NUMBERS, min_size=1, max_size=4)),
    st.builds(lambda how, value: condition(how, CITY, value), st.sampled_from(["eq", "ne"]), NAMES),
    st.builds(lambda values: condition("in", CITY, *values), st.lists(NAMES, min_size=1, max_size=3)),
    st.sampled_from([condition("is_null", AGE), condition("is_null", CITY)]),
)
CONDITIONS = st.one_of(
    COMPARED,
    st.builds(lambda one: condition("not", one), COMPARED),
    st.builds(condition, st.sampled_from(["and", "or"]), COMPARED, COMPARED),
)
QUESTIONS = st.builds(
    lambda keys, conditions: Atoms(tuple(keys), tuple(dict.fromkeys(conditions))),
    st.lists(st.sampled_from([AGE, CITY]), unique=True, max_size=1),
    st.lists(CONDITIONS, max_size=2),
)


def cells(atoms: Atoms) -> list[tuple[Any, ...]]:
    if not atoms.keys:
        return [()]
    return [(each,) for each in (CITIES if atoms.keys == (CITY,) else map(float, range(10)))]


@settings(max_examples=examples(2000))
@given(QUESTIONS, QUESTIONS)
def test_what_is_refuted_does_not_follow(inner, outer):
    if is_refuted(inner, outer, COLUMNS):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(following, "is_refuted", lambda *_: False)
            assert follows((inner, cells(inner)), (outer, cells(outer)), Attributes(COLUMNS)) is None


@pytest.mark.parametrize(
    ("inner", "outer", "refuted"),
    [
        (condition("in", AGE, *map(literal, (1.0, 3.0))), condition("in", AGE, *map(literal, (1.0, 4.0))), True),
        (condition("lt", AGE, literal(4.0)), condition("le", AGE, literal(3.0)), False),  # the same whole numbers
        (condition("lt", AGE, literal(10.0)), condition("lt", AGE, literal(12.0)), False),  # nobody is that old
        (condition("eq", CITY, literal("Bern")), condition("eq", CITY, literal("Chur")), True),
    ],
)
def test_one_value_is_enough_where_rows_can_have_it(inner, outer, refuted):
    assert is_refuted(Atoms((), (inner,)), Atoms((), (outer,)), COLUMNS) is refuted


def test_a_group_may_be_a_part_of_what_is_told_apart_by_its_key():
    everybody, some = Atoms((AGE,), ()), Atoms((), (condition("lt", AGE, literal(4.0)),))
    assert not is_refuted(everybody, some, COLUMNS)
    assert is_refuted(some, everybody, COLUMNS) is False  # the outer key may be absent: it is looked at in full
    assert follows((some, [()]), (everybody, cells(everybody)), Attributes(COLUMNS)) is None
