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


def test_dependence_does_change_by_nearly_four():
    """One row in a row and a column of its own, against many in one cell: 4n/(n + 1), so that no 2 would do."""
    score = Dependence(whole([0, 1], [2, 2]), 0)
    assert score.of(np.array([0, 0, 0, 1000])) == 0
    assert score.of(np.array([1, 0, 0, 1000])) == 3


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
