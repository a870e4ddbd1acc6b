"""Order, counts not below zero, whole numbers, known totals; and what becomes of intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import nnls
from tests.dense import question_matrix

from dalenius.errors import InputError
from dalenius.measuring.inference import known as known_totals
from dalenius.measuring.inference.intervals import cut, cut_to_whole, widen
from dalenius.measuring.inference.known import Known, solve_known
from dalenius.measuring.inference.least_squares import Measured, solve
from dalenius.measuring.inference.non_negative import not_below_zero, solve_not_below_zero
from dalenius.measuring.inference.order import in_order
from dalenius.measuring.inference.rounding import round_cells, round_parts, round_table
from dalenius.measuring.strategies.factors import Identity
from dalenius.measuring.strategies.range_factors import Prefix
from dalenius.measuring.strategies.workload import Product

NUMBERS = st.floats(-50, 50, allow_nan=False).map(lambda x: round(x, 3))
TOTAL, BY_FIRST, BY_SECOND = Product({}), Product({0: Identity(3)}), Product({1: Identity(4)})
CELLS = Product({0: Identity(3), 1: Identity(4)})


def some(product, seed=9, variance=4.0):
    chance = np.random.default_rng(seed)
    return Measured(product, 20 * chance.random(product.answers) - 5, variance)


# --- order


@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_numbers_in_order_are_the_nearest(values):
    found = in_order(np.array(values))
    assert (np.diff(found) >= -1e-9).all()
    # The nearest of a convex cone: what is left is at right angles to it, and not along anything in order.
    left = np.array(values) - found
    assert abs(left @ found) <= 1e-6 * (1 + np.abs(values).sum() ** 2)
    assert (np.cumsum(left[::-1]) <= 1e-6).all()


def test_order_brings_all_nearer_to_a_truth_in_order():
    chance, truth = np.random.default_rng(10), np.sort(np.arange(30) % 7)
    for _ in range(20):
        noisy = truth + chance.normal(size=30)
        assert np.linalg.norm(in_order(noisy) - truth) <= np.linalg.norm(noisy - truth)
    assert (np.diff(in_order(-truth.astype(float), np.ones(30), falling=True)) <= 0).all()


def test_an_exact_answer_does_not_move_for_a_vague_one():
    assert in_order(np.array([5.0, 3.0]), np.array([1e-9, 1.0])) == pytest.approx([5.0, 5.0])


# --- not below zero


@given(st.lists(NUMBERS, min_size=1, max_size=12), st.floats(0.1, 100))
def test_numbers_with_a_sum_are_the_nearest(values, total):
    found = not_below_zero(np.array(values), total=total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)
    moved = (np.array(values) - found)[found > 1e-9]
    assert moved == pytest.approx(moved[0], abs=1e-6)  # all move alike,
    assert (np.array(values)[found <= 1e-9] <= moved[0] + 1e-6).all()  # or would be below zero


def test_without_a_sum_each_by_itself():
    assert not_below_zero(np.array([[-1.0, 2.0]])).tolist() == [[0.0, 2.0]]
    assert not_below_zero(np.array([-1.0, 2.0]), total=-3.0).tolist() == [0.0, 0.0]


def test_cells_are_those_of_non_negative_least_squares():
    measured = [some(CELLS), some(Product({0: Prefix(3)}), 11, 1.0), some(BY_SECOND, 12, np.array([1.0, 2, 3, 4]))]
    parts = [question_matrix(each.product, (3, 4)) / each.deviations[:, None] for each in measured]
    values = np.concatenate([each.values / each.deviations for each in measured])
    cells = solve_not_below_zero((3, 4), measured)
    assert cells.min() >= 0
    assert cells.ravel() == pytest.approx(nnls(np.concatenate(parts), values)[0], abs=1e-4)


# --- whole numbers


@given(arrays(float, (3, 2, 4), elements=NUMBERS))
def test_whole_cells_keep_all_sums_along_the_hierarchy(cells):
    whole = round_cells(cells)
    assert abs(whole.sum() - cells.sum()) <= 0.5 + 1e-6
    for axes in ((), (2,), (1, 2)):
        assert (np.abs(whole.sum(axis=axes) - cells.sum(axis=axes)) < 1 + 1e-6).all()


@given(arrays(float, (4, 5), elements=NUMBERS))
def test_a_whole_table_keeps_rows_columns_and_total(table):
    whole = round_table(table)
    for axes in ((), (0,), (1,), (0, 1)):
        assert (np.abs(whole.sum(axis=axes) - table.sum(axis=axes)) < 1 + 1e-6).all()


def test_whole_numbers_stay_and_nothing_falls_below_zero():
    cells = np.array([[0.0, 0.3], [2.0, 0.3]])
    whole = round_cells(cells)
    assert whole.min() >= 0
    assert whole.sum() == 3
    assert (round_table(np.array([[1.0, 2.0], [0.0, 5.0]])) == [[1, 2], [0, 5]]).all()
    assert round_parts(np.array([0.2, 0.2, 0.6]), 1).tolist() == [0, 0, 1]


# --- known totals


def test_answers_agree_with_what_is_known_and_gain_by_it():
    measured = [some(CELLS)]
    found = solve_known((3, 4), measured, [Known(BY_FIRST, np.array([1.0, 2.0, 3.0])), Known(TOTAL, np.array([6.0]))])
    assert found.answers(BY_FIRST) == pytest.approx([1.0, 2.0, 3.0])
    assert found.variances(BY_FIRST) == pytest.approx(np.zeros(3), abs=1e-9)
    # Of four cells with a known sum each has 3/4 of its variance left.
    assert found.variances(CELLS) == pytest.approx(4.0 * 3 / 4)
    assert found.variances(BY_SECOND) == pytest.approx(3 * 4.0 * 3 / 4)
    assert solve((3, 4), measured).variances(CELLS) == pytest.approx(4.0)
    moved = found.answers(CELLS) - measured[0].values
    assert np.ptp(moved.reshape(3, 4), axis=1) == pytest.approx(np.zeros(3), abs=1e-9)  # evenly


def test_variances_with_known_totals_are_those_of_many_runs():
    """Of 1,000 runs each; a variance has a relative deviation of √(2/1000) = 4.5%, and 31% is seven of them."""
    chance, truth = np.random.default_rng(13), np.arange(12.0)
    facts = [Known(BY_SECOND, truth.reshape(3, 4).sum(axis=0))]
    runs = np.stack(
        [
            solve_known((3, 4), [Measured(CELLS, truth + chance.normal(size=12), 1.0)], facts).answers(BY_FIRST)
            for _ in range(1000)
        ]
    )
    predicted = solve_known((3, 4), [Measured(CELLS, truth, 1.0)], facts).variances(BY_FIRST)
    assert np.square(runs - truth.reshape(3, 4).sum(axis=1)).mean(axis=0) == pytest.approx(predicted, rel=0.31)


def test_what_is_known_need_not_be_measured():
    found = solve_known((3, 4), [some(BY_SECOND)], [Known(BY_FIRST, np.array([1.0, 2.0, 3.0]))])
    assert found.determines(BY_FIRST)
    assert found.determines(BY_SECOND)
    assert not found.determines(CELLS)


def test_contradictory_totals_are_refused_with_words():
    facts = [Known(BY_FIRST, np.array([1.0, 2.0, 3.0])), Known(TOTAL, np.array([7.0]))]
    with pytest.raises(InputError, match="contradict") as refused:
        solve_known((3, 4), [some(CELLS)], facts)
    assert "No budget was spent" in str(refused.value)


def test_too_many_cells_for_known_totals_are_refused_with_words(monkeypatch):
    monkeypatch.setattr(known_totals, "DENSE", 11)
    with pytest.raises(InputError, match="12"):
        solve_known((3, 4), [some(CELLS)], [Known(TOTAL, np.array([7.0]))])


# --- intervals


@given(NUMBERS, st.floats(0, 30), st.floats(0, 50), NUMBERS)
def test_an_interval_that_held_the_truth_still_does(low, width, truth, shown):
    lower, upper = np.array([low]), np.array([low + width])
    held = low <= truth <= low + width
    for least, most in (
        cut(lower, upper, np.array([max(shown, 0.0)]), low=0.0),
        widen(lower, upper, np.array([shown])),
    ):
        assert not held or least[0] <= truth <= most[0]
    whole = float(round(truth))
    least, most = cut_to_whole(lower, upper, np.array([float(round(shown))]))
    assert not low <= whole <= low + width or least[0] <= whole <= most[0]
    assert least[0] <= round(shown) <= most[0]
