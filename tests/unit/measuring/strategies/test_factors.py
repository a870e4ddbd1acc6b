"""Closed forms of factors against their matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.measuring.strategies.factor_forms import factor_of_json, recognise
from dalenius.measuring.strategies.factors import Identity, Rows, Total
from dalenius.measuring.strategies.range_factors import AllRange, Prefix, Ranges

FACTORS = [
    Total(5),
    Identity(4),
    Prefix(6),
    AllRange(5),
    Ranges(7, (0, 2, 3), (7, 3, 6)),
    Rows.of([[1, 0, -2, 0], [0, 3, 0, 1]]),
]


@pytest.fixture(params=FACTORS, ids=lambda factor: type(factor).__name__)
def factor(request):
    return request.param


@pytest.fixture
def matrix(factor):
    return factor.matrix().toarray()


def test_sizes(factor, matrix):
    assert matrix.shape == (factor.answers, factor.classes)


def test_apply_and_collect_are_the_matrix_and_its_transposed(factor, matrix):
    chance = np.random.default_rng(1)
    x = chance.integers(-9, 9, (2, factor.classes, 3))
    applied = factor.apply(x, 1)
    assert applied.dtype == np.int64
    assert (applied == np.einsum("ij,ajb->aib", matrix, x)).all()
    y = chance.normal(size=(2, factor.answers, 3))
    assert np.allclose(factor.collect(y, 1), np.einsum("ij,aib->ajb", matrix, y))


def test_gram_sums_and_columns(factor, matrix):
    assert np.allclose(factor.gram(), matrix.T @ matrix)
    assert np.allclose(factor.sums(), matrix.sum(axis=1))
    assert (factor.columns("l1") == abs(matrix).sum(axis=0)).all()
    assert (factor.columns("l2") == (matrix**2).sum(axis=0)).all()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
def test_block_squares(factor, matrix, size):
    blocks = np.add.reduceat(matrix, np.arange(0, factor.classes, size), axis=1)
    assert np.allclose(factor.block_squares(size), (blocks**2).sum(axis=1))
    assert factor.total_block_squares(size) == pytest.approx((blocks**2).sum())


def test_products_with_a_root(factor, matrix):
    root = np.random.default_rng(2).normal(size=(factor.classes, 3))
    assert np.allclose(factor.products(root), np.square(matrix @ root).sum(axis=1))


def test_nothing_on_the_way_is_larger_than_growth_says(factor, matrix):
    assert factor.growth >= abs(matrix).sum(axis=1).max()


def test_json_gives_it_back(factor, matrix):
    back = factor_of_json(factor.to_json())
    assert type(back) is type(factor)
    assert (back.matrix().toarray() == matrix).all()
    assert back.key == factor.key


def test_rows_that_were_written_entry_by_entry_are_still_read():
    old = {"kind": "rows", "classes": 3, "answers": 2, "entries": [[0, 0, 2], [1, 1, -1], [1, 2, -1]]}
    assert factor_of_json(old).matrix().toarray().tolist() == [[2, 0, 0], [0, -1, -1]]


def test_a_run_is_written_as_one():
    assert Rows.of([[0, 1, 1, 1], [0, 0, 0, 0], [3, 3, 0, 1]]).to_json()["runs"] == [[1, 3, 1], [], [0, 2, 3, 3, 1, 1]]


@pytest.mark.parametrize("factor", [Total(5), Identity(4), Prefix(6), AllRange(5), Ranges(7, (0, 2), (7, 3))])
def test_rows_are_recognised_as_what_they_are(factor):
    assert recognise(Rows.of(factor.matrix())) == factor


@given(st.lists(st.lists(st.integers(-1, 1), min_size=4, max_size=4), min_size=1, max_size=4))
def test_recognised_rows_are_the_same_rows(rows):
    factor = Rows.of(rows)
    assert (recognise(factor).matrix().toarray() == factor.matrix().toarray()).all()


def test_conditions_on_one_ordered_attribute_are_ranges():
    below, between, above = [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]
    assert recognise(Rows.of([below, between, above])) == Ranges(4, (0, 1, 3), (2, 3, 4))
    assert isinstance(recognise(Rows.of([[1, 0, 1, 0]])), Rows)


def test_a_fraction_is_no_factor():
    with pytest.raises(ValueError, match="whole"):
        Rows.of([[0.5, 1]])
