"""Raking and pools fit what was measured, as far as the noise deserves it."""

import numpy as np
import pytest

from dalenius.synthesis.measurer import Measured
from dalenius.synthesis.models.margins import on_simplex, total_rows
from dalenius.synthesis.models.pool import Pool
from dalenius.synthesis.models.raking import raked, soft_target
from dalenius.synthesis.models.tree import pair_table, spanning
from dalenius.synthesis.views import whole


def test_the_target_solves_its_equation():
    rng = np.random.default_rng(1)
    base, noisy = 10 ** rng.uniform(-6, 6, 500), rng.normal(0, 1e4, 500)
    strength = 10 ** rng.uniform(-2, 5, 500)
    found = soft_target(base, noisy, strength)
    inside = found > 1e-200
    left = np.log(found[inside]) + found[inside] / strength[inside]
    right = np.log(base[inside]) + noisy[inside] / strength[inside]
    assert inside.sum() > 300
    assert np.allclose(left, right, rtol=1e-6, atol=1e-6)


def test_exact_counts_win_and_useless_ones_lose():
    base, noisy = np.array([10.0, 10.0]), np.array([50.0, -20.0])
    assert np.allclose(soft_target(base, noisy, 1e9), base, rtol=1e-6)
    near = soft_target(base, noisy, 0.01)
    assert near[0] == pytest.approx(50, abs=0.05) and 0 <= near[1] < 1e-3


def test_shares_are_not_negative_and_add_up():
    found = on_simplex(np.array([50.0, 60, -30, 5]), 100)
    assert found.min() == 0 and found.sum() == pytest.approx(100)
    assert on_simplex(np.full(3, -9.0), 6).tolist() == [2, 2, 2]


def test_the_number_of_rows_weighs_tables_by_their_noise():
    good = Measured(whole([0], [2]), np.array([40.0, 60]), 1.0)
    bad = Measured(whole([1], [2, 2]), np.array([400.0, 600]), 1e6)
    assert total_rows([good, bad]) == pytest.approx(100, abs=0.1)
    assert total_rows([Measured(whole([0], [1]), np.array([-50.0]), 1.0)]) == 1


def test_pair_tables_have_the_margins_of_their_columns():
    margins = [np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.4])]
    noisy = Measured(whole([0, 1], [3, 2]), np.array([480.0, 15, 90, 220, 20, 170]), 9.0)
    found = pair_table(noisy, margins, 1000)
    assert np.allclose(found.sum(axis=1), margins[0], atol=1e-3) and np.allclose(found.sum(axis=0), margins[1])
    assert found[0, 0] > 0.45  # far from independent, as measured
    assert np.allclose(raked(np.ones((3, 2)), margins[0], margins[1]).sum(axis=0), margins[1])


def test_spanning_trees_take_the_best_edges_that_join():
    edges = [(0, 1), (1, 2), (0, 2), (2, 3)]
    assert spanning(edges, lambda each: each, 4) == [(0, 1), (1, 2), (2, 3)]


def test_a_pool_fits_a_cycle_of_pairs_that_no_tree_holds():
    """c2 is c0 xor c1, nearly: c0 and c1 are independent, and all three pairs are measured with a triple."""
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 2, (2, 4000))
    third = np.where(rng.random(4000) < 0.9, first ^ second, rng.integers(0, 2, 4000))
    truth = np.column_stack([first, second, third]).astype(np.int32)
    view = whole([0, 1, 2], [2, 2, 2])
    exact = np.bincount(view.cell(truth.T), minlength=8).astype(float)
    pool = Pool(rng.integers(0, 2, (20_000, 3)).astype(np.int32), 4000.0)
    pool.add([Measured(view, exact, 1.0)], 0.05)
    pool.fit(5)
    assert np.allclose(pool.table(view), exact, atol=2)
    drawn = pool.sample(4000, rng)
    assert np.abs(np.bincount(view.cell(drawn.T), minlength=8) - exact).max() < 20


def test_batches_take_sampling_error_back():
    """A plain draw of 4,000 rows is off by about √1000 ≈ 30 in each of four cells; one in batches by a few."""
    rng = np.random.default_rng(3)
    pool = Pool(rng.integers(0, 2, (20_000, 2)).astype(np.int32), 4000.0)
    pool.add([Measured(whole([0, 1], [2, 2]), np.full(4, 1000.0), 1.0)], 0.05)
    pool.fit(5)
    drawn = pool.sample(4000, rng)
    assert np.abs(np.bincount(drawn[:, 0] * 2 + drawn[:, 1], minlength=4) - 1000).max() < 12
