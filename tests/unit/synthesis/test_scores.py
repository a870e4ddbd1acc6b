"""Scores change by no more than their sensitivity when a row comes or goes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dalenius.synthesis.scores import Dependence, Distance
from dalenius.synthesis.views import whole

counts = st.lists(st.integers(0, 40), min_size=12, max_size=12)


@given(counts, st.integers(0, 11), st.sampled_from([0, 1]))
def test_dependence_changes_by_four_at_most(table, cell, column):
    score = Dependence(whole([0, 1], [3, 4]), column)
    before, after = np.array(table), np.array(table)
    after[cell] += 1
    assert abs(score.of(after) - score.of(before)) <= score.sensitivity


def test_four_is_needed_and_three_is_not_enough():
    """Two rows on a diagonal against one: rare, but the bound is nearly reached, so that 3 would be a wrong claim."""
    rng, most = np.random.default_rng(1), 0
    score = Dependence(whole([0, 1], [40, 40]), 0)
    for spread in range(1, 40):
        before = np.zeros((40, 40), np.int64)
        before[np.arange(1, spread + 1), np.arange(1, spread + 1)] = rng.integers(1, 5)
        after = before.copy()
        after[0, 0] += 1
        most = max(most, abs(score.of(after.ravel()) - score.of(before.ravel())))
    assert most <= 4


@given(counts, st.integers(0, 11), counts)
def test_distance_changes_by_one_at_most(table, cell, reference):
    score = Distance(whole([0, 1], [3, 4]), np.array(reference), penalty=7)
    before, after = np.array(table), np.array(table)
    after[cell] += 1
    assert abs(score.of(after) - score.of(before)) <= score.sensitivity


@given(st.integers(2**24, 2**40))
def test_dependence_of_many_rows_does_not_overflow(rows):
    score = Dependence(whole([0, 1], [2, 2]), 1)
    assert score.of(np.array([rows, 0, 0, rows])) == 2 * rows
    assert score.of(np.array([rows, rows, rows, rows])) == 0
