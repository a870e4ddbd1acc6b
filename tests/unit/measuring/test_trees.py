"""Trees: ranks are the least-squares ones, their variances are exact, and quantiles lie where the rows do."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dalenius.measuring.expressions import TRUE, Aggregate, Column, Type, written
from dalenius.measuring.trees import MOST_NODES, SCALE, Tree, TreeLayout, deviations, leaves_for, nodes, ranks
from dalenius.mechanisms.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw

X = Column("x", Type.NUMBER)
QUIET = DiscreteGaussianLaw(Fraction(1))


def quantile(share):
    return Aggregate("quantile", X, TRUE, parameter=share)


LEAST, LARGEST = Aggregate("min", X, TRUE), Aggregate("max", X, TRUE)


def structure(leaves):
    """Which leaves each node counts."""
    return nodes(np.eye(leaves, dtype=np.int64)).T.astype(float)


def tree_of(counts, law=QUIET, *, low=0, size=1, step=Fraction(1), high=None, confidence=0.95):
    """A tree without noise, one group per row of counts."""
    counts = np.atleast_2d(np.asarray(counts, dtype=float)) * SCALE
    leaves = counts.shape[1]
    layout = TreeLayout(leaves, low, low + leaves * size - 1 if high is None else high, size, step)
    before = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
    return Tree(layout, law, before, confidence)


@pytest.mark.parametrize("leaves", [1, 2, 4, 32])
def test_ranks_are_those_of_least_squares(leaves):
    noisy = np.random.default_rng(3).normal(size=(5, 2 * leaves - 1))
    best = np.linalg.lstsq(structure(leaves), noisy.T, rcond=None)[0].T
    expected = np.concatenate([np.zeros((5, 1)), np.cumsum(best, axis=1)], axis=1)
    assert ranks(noisy) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("leaves", [1, 2, 8, 64])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_deviations_of_ranks_are_exact(leaves, share):
    each_node = ranks(np.eye(2 * leaves - 1))  # the ranks are linear in the nodes
    combined = each_node - share * each_node[:, -1:]
    assert deviations(leaves, share) == pytest.approx(np.sqrt((combined**2).sum(axis=0)), abs=1e-9)


@pytest.mark.parametrize(("values", "cells"), [(1, 1), (2, 5), (73, 1000), (10**9, 1), (10**9, 4000), (10**30, 17)])
def test_trees_of_all_groups_together_stay_small(values, cells):
    leaves = leaves_for(values, cells)
    assert leaves is not None and leaves & (leaves - 1) == 0
    assert cells * (2 * leaves - 1) <= MOST_NODES
    assert leaves >= min(32, values)


def test_too_many_groups_have_no_tree_unless_there_are_few_values():
    assert leaves_for(10**6, 5000) is None
    assert leaves_for(2, 5000) == 2


# --- values


def test_without_noise_a_quantile_of_whole_numbers_is_the_number():
    counts = np.zeros(128)
    counts[[10, 20, 30]] = 1000, 5000, 4000
    tree = tree_of(counts, low=18)
    for share, expected in ((0.0001, 28), (0.05, 28), (0.5, 38), (0.59, 38), (0.61, 48), (0.9999, 48)):
        (found,) = tree.estimates(quantile(share))
        assert (found.value, found.noise_error, found.low, found.high) == (expected, 0.0, expected, expected)
        assert isinstance(found.value, int)


def test_inside_a_leaf_values_are_taken_to_lie_evenly():
    tree = tree_of(np.full(64, 10_000.0), size=8, step=Fraction(1, 100))
    (found,) = tree.estimates(quantile(0.3))
    assert found.value == pytest.approx(0.3 * 64 * 8 / 100, abs=0.011)
    assert found.low <= found.value <= found.high and found.noise_error < 0.17  # one leaf to either side


def test_more_noise_gives_wider_intervals_that_stay_within_the_bounds():
    errors = []
    for deviation in (1, 2000, 10_000):
        law = DiscreteGaussianLaw(Fraction((deviation * SCALE) ** 2))
        (found,) = tree_of(np.full(1024, 1000.0), law, low=-500, high=500).estimates(quantile(0.5))
        assert -500 <= found.low <= found.value <= found.high <= 500
        errors.append(found.noise_error)
    assert errors[0] < errors[1] < errors[2]
    # A rank is off by z deviations, and a leaf holds 1,000 rows.
    sharp = 1.96 * 10_000 * deviations(1024, 0.5)[512] / 1000
    assert sharp - 2 < errors[2] < 1.6 * sharp + 2


def test_a_gap_in_the_middle_is_inside_the_interval():
    counts = np.zeros(64)
    counts[:10], counts[50:] = 1400.0, 1000.0
    law = DiscreteGaussianLaw(Fraction((1000 * SCALE) ** 2))
    (found,) = tree_of(counts, law).estimates(quantile(0.5))
    assert found.low <= 9 and found.high >= 50


@pytest.mark.parametrize("aggregate", [quantile(0.5), quantile(0.0), LEAST, LARGEST])
def test_a_group_that_may_be_empty_gives_nothing_but_the_bounds(aggregate):
    law = DiscreteGaussianLaw(Fraction((100 * SCALE) ** 2))
    empty, full = tree_of([np.zeros(128), np.full(128, 100.0)], law, low=18, high=90).estimates(aggregate)
    assert (empty.value, empty.low, empty.high, empty.noise_error) == (None, 18.0, 90.0, 36.0)
    assert full.value is not None


def test_extremes_leave_as_many_rows_beyond_as_the_noise_of_a_rank_hides():
    law = DiscreteGaussianLaw(Fraction((100 * SCALE) ** 2))
    tree = tree_of(np.full(1024, 100.0), law)
    edge = 1.96 * 100 * deviations(1024, 0.0).max()
    (least,), (largest,), (median,) = (tree.estimates(each) for each in (LEAST, LARGEST, quantile(0.5)))
    assert least.value == pytest.approx(edge / 100, abs=1)
    assert largest.value == pytest.approx(1023 - edge / 100, abs=1)
    assert least.value < median.value < largest.value
    shown = f"{round(edge, 1 - math.floor(math.log10(edge))):,.0f}"
    assert tree.notes(LARGEST) == (f"MAX(x) is a private extreme: about {shown} rows may lie above it.",)
    assert tree.notes(LEAST)[0].endswith("rows may lie below it.")
    assert "in each group" in tree_of(np.full((2, 8), 100.0), law).notes(LEAST)[0]
    assert tree.notes(quantile(0.5)) == ()


def test_the_least_never_exceeds_the_largest_even_in_small_groups():
    draw = np.random.default_rng(11)
    law = DiscreteGaussianLaw(Fraction((30 * SCALE) ** 2))
    counts = draw.integers(0, 12, (200, 64)) * SCALE
    noisy = nodes(counts) + draw.normal(0, 30 * SCALE, (200, 127))
    tree = Tree(TreeLayout(64, 0, 63, 1, Fraction(1)), law, ranks(noisy), 0.95)
    known = 0
    for least, middle, most in zip(*map(tree.estimates, (LEAST, quantile(0.5), LARGEST)), strict=True):
        if middle.value is not None:
            assert least.value <= middle.value <= most.value
            known += 1
    assert known > 100


def test_a_laplace_tree_is_read_with_longer_tails():
    scale = Fraction(30_000 * SCALE)
    normal = DiscreteGaussianLaw(2 * scale**2)  # the same variance
    one, other = (
        tree_of(np.full(1024, 1000.0), law).estimates(quantile(0.5))[0] for law in (normal, DiscreteLaplaceLaw(scale))
    )
    assert one.noise_error <= other.noise_error < 1.3 * one.noise_error


def test_a_column_with_one_value_has_it_as_every_quantile():
    tree = tree_of([[1000.0]], low=7)
    assert [tree.estimates(each)[0].value for each in (quantile(0.5), LEAST, LARGEST)] == [7, 7, 7]


def test_quantiles_are_told_apart_in_writing():
    assert written(quantile(0.5)) != written(quantile(0.9))
