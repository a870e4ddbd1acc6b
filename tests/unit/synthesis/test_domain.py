"""Domains come from declarations alone."""

import numpy as np
import pytest

from dalenius.errors import InputError
from dalenius.synthesis.domain import REST, Column, Domain, sized


def test_numbers_stay_in_their_class_and_within_the_bounds():
    column = Column("age", lower=0, upper=90, classes=7, whole=True, absent=True)
    codes = np.repeat(np.arange(8), 500)
    values = column.decode(codes, np.random.default_rng(1))
    edges = np.linspace(0, 90, 8)
    for code in range(7):
        drawn = values[codes == code]
        assert all(type(each) is int for each in drawn)
        assert edges[code] <= min(drawn) and max(drawn) <= edges[code + 1]
    assert all(each is None for each in values[codes == 7])


def test_a_class_gives_all_its_whole_numbers():
    column = Column("age", lower=0, upper=10, classes=2, whole=True)
    drawn = column.decode(np.repeat([0, 1], 1000), np.random.default_rng(1))
    assert set(drawn[:1000]) == {0, 1, 2, 3, 4}
    assert set(drawn[1000:]) == {5, 6, 7, 8, 9}


def test_rest_and_absent_values_have_codes_of_their_own():
    column = Column("city", keys=("Ås", "東京"), rest=True, absent=True)
    assert column.size == 4
    assert column.decode(np.arange(4), np.random.default_rng(1)).tolist() == ["Ås", "東京", REST, None]
    assert Column("city", keys=("a",), absent=True).decode(np.array([1]), np.random.default_rng(1)).tolist() == [None]


@pytest.mark.parametrize(
    "wrong",
    [{}, {"keys": ("a",), "classes": 3, "upper": 1.0}, {"lower": 2, "upper": 2, "classes": 3}],
)
def test_a_column_that_cannot_be_modelled_is_named(wrong):
    with pytest.raises(InputError, match="weight"):
        Column("weight", **wrong)


def test_names_are_known_once():
    with pytest.raises(InputError):
        Domain((Column("a", keys=(1,)), Column("a", keys=(2,))))
    with pytest.raises(InputError, match="c7"):
        sized([2, 3]).place("c7")


def test_decoded_columns_have_their_names():
    found = sized([2, 3]).decode(np.array([[0, 2], [1, 0]]), np.random.default_rng(1))
    assert {name: values.tolist() for name, values in found.items()} == {"c0": [0, 1], "c1": [2, 0]}
