"""Whole numbers of any length."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.measuring.strategies.cells import disjoint_cells
from dalenius.measuring.strategies.choosing import candidates
from dalenius.measuring.strategies.exact import apply_exactly
from dalenius.measuring.strategies.factors import Identity
from dalenius.measuring.strategies.range_factors import AllRange, Prefix
from dalenius.measuring.strategies.workload import Product, Workload

MATRIX = np.array([[3, -5, 7], [-(2**20), 1, 2**20]])


@given(st.lists(st.integers(-(2**100), 2**100), min_size=3, max_size=3))
def test_no_bit_is_lost(numbers):
    x = np.array(numbers, dtype=object)
    found = apply_exactly(lambda part: MATRIX @ part, x, 2**22)
    assert found.tolist() == (MATRIX.astype(object) @ x).tolist()


def test_short_numbers_stay_in_64_bits():
    assert apply_exactly(lambda part: MATRIX @ part, np.array([1, 2, 3]), 2**22).dtype == np.int64


def test_a_matrix_that_no_number_fits_is_refused():
    with pytest.raises(OverflowError):
        apply_exactly(lambda part: part, np.array([2**61]), 2**63)


def test_wide_tables_are_measured_exactly_by_all_strategies():
    workload = Workload((4, 3), (Product({0: AllRange(4), 1: Identity(3)}), Product({1: Prefix(3)})))
    chance = np.random.default_rng(6)
    x = np.array([int(each) * 2**66 + 1 for each in chance.integers(-99, 99, 12)], dtype=object).reshape(4, 3)
    for norm in ("l1", "l2"):
        for _, strategy in candidates(workload, norm):
            tables = {own: x.sum(axis=tuple(a for a in (0, 1) if a not in own)) for own in strategy.tables}
            small = {own: np.ones_like(np.asarray(table), dtype=np.int64) for own, table in tables.items()}
            whole = strategy.measure(tables)
            assert whole.dtype == object
            assert all(isinstance(each, int) for each in whole)
            # Linear: of x + 1 it is the sum of both.
            more = strategy.measure({own: np.asarray(tables[own]) + small[own] for own in tables})
            assert (more - whole == strategy.measure(small)).all()


def test_lists_of_long_numbers_do_not_become_floating_point():
    workload = Workload((3,), (Product({0: Identity(3)}),))
    numbers = [2**63 + 1, -1, 2**90 + 1]
    assert disjoint_cells(workload).measure({(0,): cast("Any", numbers)}).tolist() == numbers
    assert disjoint_cells(workload).measure({(0,): cast("Any", [1, 2, 3])}).dtype == np.int64
    mixed = np.array([np.int64(2**62), 2**62, 1], dtype=object)
    assert disjoint_cells(workload).measure({(0,): mixed}).tolist() == [2**62, 2**62, 1]
    for wrong in ([1.5, 2, 3], np.array([1.0, 2, 3]), np.array([1, 2.0, 3], dtype=object)):
        with pytest.raises(TypeError, match="whole"):
            disjoint_cells(workload).measure({(0,): cast("Any", wrong)})


def test_cells_are_as_they_were():
    workload = Workload((2,), (Product({0: Identity(2)}),))
    x = np.array([2**80, -3], dtype=object)
    assert disjoint_cells(workload).measure({(0,): x}).tolist() == [2**80, -3]
