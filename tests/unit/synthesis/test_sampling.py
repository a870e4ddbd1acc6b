"""Rows have the law of the model, also on pairs that were never measured."""

import numpy as np
import pytest

from dalenius.synthesis.models.pool import Pool
from dalenius.synthesis.rounding import systematic
from dalenius.synthesis.sampling import Step, ancestral, given

ROWS = 20_000


def star(children=2, values=4):
    """A root of two values, and children that depend on it alone."""
    law = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])[:, :values]
    steps = [Step(0, (), np.array([0.5, 0.5]))]
    return law, steps + [Step(at, (0,), 0.5 * law) for at in range(1, children + 1)]


def distance_of_siblings(table, law):
    """L1 of the pair of children from what it is when they are independent given the root."""
    found = np.histogram2d(table[:, 1], table[:, 2], bins=[np.arange(5), np.arange(5)])[0] / len(table)
    expected = sum(0.5 * np.multiply.outer(each, each) for each in law)
    return np.abs(found - expected).sum()


def test_children_of_one_parent_are_not_aligned():
    # 16 cells: the mean L1 of a plain sample is below Σ√(p/n)·0.8 ≈ 0.022, and its chance to be above 0.06 is < 1e-6.
    law, steps = star()
    found = ancestral(steps, ROWS, np.random.default_rng(3))
    assert distance_of_siblings(found, law) < 0.06


def test_that_test_catches_aligned_children():
    """What happens where rows of one parent get their values in order: the bug that this is about."""
    law, _ = star()
    table = np.zeros((ROWS, 3), np.int64)
    table[ROWS // 2 :, 0] = 1
    for at in (1, 2):
        for root in (0, 1):
            rows = table[:, 0] == root
            table[rows, at] = np.repeat(np.arange(4), systematic(law[root], rows.sum(), np.random.default_rng(3)))
    assert distance_of_siblings(table, law) > 0.5


def test_a_pool_does_not_align_what_was_not_measured():
    law, steps = star()
    pool = Pool(ancestral(steps, 4 * ROWS, np.random.default_rng(3)), ROWS)
    assert distance_of_siblings(pool.sample(ROWS, np.random.default_rng(4)), law) < 0.06


def test_each_parent_shares_out_its_rows_to_within_one():
    parent = np.repeat([0, 1, 5], [7, 100, 1])
    table = np.ones((6, 3)) * [0.2, 0.3, 0.5]
    found = given(parent, table, np.random.default_rng(5))
    for each, count in ((0, 7), (1, 100), (5, 1)):
        drawn = np.bincount(found[parent == each], minlength=3)
        assert drawn.sum() == count
        assert np.all(np.abs(drawn - count * table[each]) < 1 + 1e-9)


def test_a_parent_that_nothing_is_known_of_falls_back_on_the_margin():
    found = given(np.zeros(100, np.int64), np.array([[0.0, 0.0], [0.0, 1.0]]), np.random.default_rng(6))
    assert set(found.tolist()) == {1}
    assert len(given(np.zeros(10, np.int64), np.zeros((1, 4)), np.random.default_rng(6))) == 10


@pytest.mark.parametrize("rows", [0, 1, 999])
def test_as_many_rows_as_asked(rows):
    _, steps = star()
    assert ancestral(steps, rows, np.random.default_rng(7)).shape == (rows, 3)
    pool = Pool(ancestral(steps, 500, np.random.default_rng(7)), 100.0)
    assert pool.sample(rows, np.random.default_rng(7)).shape == (rows, 3)


def test_rounding_is_right_on_average():
    rng, expected = np.random.default_rng(8), np.array([0.31, 0.09, 0.6])
    mean = np.mean([systematic(expected, 10, rng) for _ in range(4000)], axis=0)
    assert np.allclose(mean, 10 * expected, atol=0.05)  # five and more standard deviations


def test_rounding_of_nothing_is_even():
    assert systematic(np.zeros(4), 8, np.random.default_rng(9)).tolist() == [2, 2, 2, 2]
