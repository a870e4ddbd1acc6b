"""How long units' vectors are reckoned to be, against vectors that are drawn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.measuring.limits.counts import LengthCounts
from dalenius.measuring.limits.expected_lengths import Lengths, effective_groups, misfit
from dalenius.measuring.limits.histogram import CLASSES
from dalenius.measuring.plan import require

UNITS = 20_000


def counted(lengths: np.ndarray, deviation: float = 10.0) -> LengthCounts:
    """Units by class, with noise."""
    counts = np.zeros(CLASSES)
    whole = np.ceil(lengths - 1e-9)
    some = whole >= 1
    np.add.at(counts, (1 + np.ceil(2 * np.log2(whole[some]) - 1e-9)).astype(int), 1)
    noise = np.random.default_rng(1).normal(0, deviation, CLASSES)
    return LengthCounts(tuple(int(each) for each in np.round(counts + noise)), gaussian=Fraction(deviation**2))


def known(counts: LengthCounts, *, norms: bool = False) -> Lengths:
    return require(Lengths.of(counts, norms=norms))


def drawn(rows: np.ndarray, groups: int) -> np.ndarray:
    """The length of each unit's vector, where its rows fall at random into groups."""
    random = np.random.default_rng(2)
    return np.array([np.linalg.norm(random.multinomial(each, [1 / groups] * groups)) for each in rows])


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.maximum(np.random.default_rng(3).poisson(9, UNITS), 1)


def test_units_and_what_they_add_come_back_from_noisy_counts(rows):
    found = known(counted(rows))
    assert found.number == pytest.approx(UNITS, rel=0.02) and found.total == pytest.approx(rows.sum(), rel=0.05)
    assert found.kept(6) == pytest.approx(np.minimum(rows, 6).sum(), rel=0.05)


def test_of_noise_alone_nothing_is_known():
    assert Lengths.of(counted(np.zeros(0))) is None


@pytest.mark.parametrize("groups", [1, 4, 30])
def test_rows_at_random_have_the_lengths_that_are_drawn(rows, groups):
    found = known(counted(rows)).spread(groups)
    lengths = drawn(rows[:4000], groups)
    assert found.units @ found.lengths / found.number == pytest.approx(lengths.mean(), rel=0.05)
    # and from the lengths it is told into how many groups they fell
    norms = known(counted(np.repeat(lengths, 5)), norms=True)
    assert effective_groups(known(counted(rows)), norms, 100) == pytest.approx(groups, rel=0.35)


def test_a_condition_leaves_as_many_rows_of_each_as_chance_does(rows):
    found = known(counted(rows)).thinned(1.0, 0.1)
    left = np.random.default_rng(4).binomial(rows, 0.1)
    assert found.number == pytest.approx((left > 0).sum(), rel=0.05)
    assert found.total == pytest.approx(left.sum(), rel=0.05)
    assert misfit(found, counted(left).noisy, 10.0) < 2 < misfit(found, counted(rows).noisy, 10.0)


def test_a_thin_tail_is_there_though_each_of_its_classes_has_less_than_one_unit():
    sizes = np.asarray(2.0 ** np.arange(20), dtype=np.float64)
    tail = Lengths(np.full(20, 0.3), sizes, sizes, sizes)
    assert sum(tail.counts()) == 6 and max(tail.counts()) == 1


def test_a_limit_takes_rows_from_those_who_are_longer_and_from_no_others():
    lengths = np.array([1.0, 4.0])
    two = Lengths(np.array([100.0, 50.0]), lengths, np.array([1.0, 4.0]), lengths)
    assert two.rows_kept(4) == 1 and two.rows_kept(2) == pytest.approx((100 + 50 * 4 / 2) / 300)
