"""Columns are codes, each known by its place."""

import pytest

from dalenius.errors import InputError
from dalenius.synthesis.domain import Column, Domain, sized


def test_rest_and_absent_values_have_codes_of_their_own():
    column = Column("city", keys=("Ås", "東京"), rest=True, absent=True)
    assert (column.known, column.size, list(column.doubtful)) == (2, 4, [2, 3])
    assert list(Column("age", classes=7).doubtful) == []


@pytest.mark.parametrize(
    "wrong",
    [{}, {"keys": ("a",), "classes": 3}],
)
def test_a_column_that_cannot_be_modelled_is_named(wrong):
    with pytest.raises(InputError, match="weight"):
        Column("weight", **wrong)


def test_names_are_known_once():
    with pytest.raises(InputError):
        Domain((Column("a", keys=(1,)), Column("a", keys=(2,))))
    with pytest.raises(InputError, match="c7"):
        sized([2, 3]).place("c7")
