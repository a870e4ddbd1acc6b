"""What clipping took, from noisy counts: against units whose losses are known, and never less than nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.measuring.limits.choosing import choose_limit
from dalenius.measuring.limits.clipping import FAVOUR, NOTHING, Loss, Spread, loss_of_counts, loss_of_share
from dalenius.measuring.limits.counts import LengthCounts
from dalenius.measuring.limits.histogram import CLASSES, see_classes
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.laplace import Laplace

LAW = DiscreteGaussian(variance=400, dimension=CLASSES)


def counts_of(lengths):
    found = np.zeros(CLASSES, dtype=int)
    whole = np.ceil(np.asarray(lengths) - 1e-9)
    np.add.at(found, 1 + np.ceil(2 * np.log2(whole) - 1e-9).astype(int), 1)
    return found.tolist()


def scattered(rows, groups, seed=3):
    """Units' vectors whose rows fall into groups by chance."""
    chance = np.random.default_rng(seed)
    return np.array([chance.multinomial(each, [1 / groups] * groups) for each in rows])


def truth(vectors, clip):
    lengths = np.sqrt((vectors**2).sum(1))
    factor = np.minimum(1, clip / lengths)
    kept = (vectors * factor[:, None]).sum(0)
    return lengths, kept, vectors.sum(0) - kept


@pytest.mark.parametrize("groups", [1, 4, 60])
@pytest.mark.parametrize("law", ["geometric", "lognormal"])
def test_the_share_lost_is_that_of_the_rows_and_not_of_their_norms(groups, law):
    chance = np.random.default_rng(7)
    rows = chance.geometric(0.08, 20_000) if law == "geometric" else np.ceil(np.exp(chance.normal(2, 0.8, 20_000)))
    vectors = scattered(rows.astype(int), groups)
    lengths, kept, lost = truth(vectors, clip := max(2, math.ceil(20 / math.sqrt(groups))))
    found = loss_of_counts(counts_of(lengths), LAW, clip, Spread(groups, groups > 1, kept.sum(), rows=True))
    assert found is not None
    assert found.factor == pytest.approx(lost.sum() / kept.sum(), rel=0.2)


def test_units_that_are_all_alike_may_lie_at_the_end_of_their_class():
    """12 rows each, and a limit of 10: the class goes from 12 to 16, and nothing tells where they are."""
    found = loss_of_counts(counts_of([12.0] * 5000), LAW, 10, Spread(1, False, 50_000, rows=True))
    assert found is not None
    assert found.factor - 2 * found.deviation - found.more < 0.2 < found.factor + 2 * found.deviation


def test_where_no_unit_stands_out_nothing_is_known():
    assert loss_of_counts([3, *[-5, 4] * 64], LAW, 10, Spread(1, False, 0, rows=True)) is None


def test_classes_that_stand_out_only_together_tell_a_limit_but_no_share():
    few = [0, *[70] * 8, *[0] * 120]  # of each three and a half deviations, of all together ten
    assert see_classes(few, LAW) and loss_of_counts(few, LAW, 4, Spread(1, False, 2000, rows=True)) is None


def test_a_limit_above_all_units_takes_next_to_nothing():
    found = loss_of_counts(counts_of([5.0] * 9000), LAW, 64, Spread(1, False, 45_000, rows=True))
    assert found is not None and found.share < 0.01


def test_a_higher_limit_never_loses_more():
    lengths = np.exp(np.random.default_rng(1).normal(2, 1, 30_000)) + 1
    spread = Spread(1, False, lengths.sum(), rows=False)
    found = [loss_of_counts(counts_of(lengths), LAW, clip, spread) for clip in (2, 5, 12, 40, 200)]
    factors = [each.factor for each in found if each is not None]
    assert len(factors) == 5 and factors == sorted(factors, reverse=True)


sizes = st.floats(0, 1e6)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.floats(0, 50), st.floats(0, 5), st.floats(0, 5), sizes, st.floats(-1e6, 1e6), sizes, st.floats(0.5, 0.9999))
def test_the_reach_is_never_less_than_the_noise_and_grows_with_every_doubt(factor, off, more, chance, value, error, c):
    plain, doubted = Loss(factor), Loss(factor, off, more, chance, FAVOUR)
    assert plain.reach(value, error, 0.1, c) >= error
    assert doubted.reach(value, error, 0.1, c) >= plain.reach(value, error, 0.1, c) * (1 - 1e-12)
    assert NOTHING.reach(value, error, 0.1, c) == error
    assert plain.missed(value) >= 0


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.integers(-200, 5000), min_size=CLASSES, max_size=CLASSES), st.integers(1, 2**40), st.integers(1, 9))
def test_any_noisy_counts_give_finite_numbers(counts, clip, groups):
    for norm in (True, False):
        found = loss_of_counts(counts, LAW, clip, Spread(groups, groups > 1 and norm, 1e4, rows=norm))
        assert found is None or all(
            math.isfinite(each) and each >= 0 for each in (found.factor, found.deviation, found.more, found.chance)
        )
        assert found is None or 0 <= found.share <= 1


def test_a_share_alone_is_doubted_by_as_much_again():
    found = loss_of_share(0.2, 10, Spread(1, False, 1000, rows=True))
    assert found.factor == pytest.approx(0.25) and found.share == 0.2
    assert found.reach(1000, 0.0, 1.0, 0.95) == pytest.approx(500)
    assert loss_of_share(1.0, 10, Spread(5, True, 1000, rows=True)).factor < math.inf


@pytest.mark.parametrize("law", [LAW, Laplace(1 / 40, 1, CLASSES)])
def test_counts_come_back_from_json_with_their_noise(law):
    counts = LengthCounts.of(range(CLASSES), law)
    again = LengthCounts.of_json(counts.to_json())
    assert again == counts
    assert again.law.noise_error(0.95) == law.noise_error(0.95)


@pytest.mark.parametrize(("people", "alpha"), [(20_000, 1.6), (5_000, 1.3), (20_000, 2.5)])
def test_norms_that_were_counted_as_they_are_lose_no_more_than_is_told(people, alpha):
    """As `protect` counts them: √5 is in a class that no length has that was rounded up.

    20 draws each. Read as if they were rounded up, the loss was above what was told in 24 of 25 such draws or more.
    """
    chance = np.random.default_rng(9)
    missed = 0
    for _ in range(20):
        rows = np.minimum(np.floor(chance.random(people) ** (-1 / alpha)), 300).astype(int)
        vectors = chance.multinomial(rows, [1 / 24] * 24)
        lengths = np.sqrt((vectors**2).sum(1))
        exact = np.zeros(CLASSES, dtype=int)
        np.add.at(exact, 1 + np.ceil(2 * np.log2(lengths)).astype(int), 1)
        noisy = [round(each) for each in exact + chance.normal(0, 20, CLASSES)]
        clip = choose_limit(noisy, LAW, lambda limit: 3.0 * limit, 24, norms=True).limit
        _, kept, lost = truth(vectors, clip)
        found = loss_of_counts(noisy, LAW, clip, Spread(24, True, float(kept.sum()), rows=True, rounded=False))
        assert found is not None
        missed += lost.sum() / kept.sum() > found.factor + 1.96 * found.deviation + found.more
    assert missed <= 3


def test_a_part_of_the_rows_loses_no_more_than_all_of_them():
    own, every = Loss(0.05, 0.01, 0.3, 900.0, 1.0), Loss(0.001, 0.0005, 0.002, 400.0, kept=50_000)
    found = own.within(every, 10_000)
    assert found.most == pytest.approx(every.most * 5) and found.most < own.most
    assert found.factor == pytest.approx(0.005) and found.chance == 400 and found.favour == 1
    assert own.within(every, 100) == own  # all lose more than these have
    assert own.within(Loss(0.0), 10_000) == own  # nobody knows what all have


def test_a_part_that_is_reckoned_to_lose_less_may_still_lose_as_much_as_all_of_them():
    own, every = Loss(0.001, 0.0, 0.3), Loss(0.004, kept=10_000)
    found = own.within(every, 10_000)
    assert found.factor == 0.001 and found.most == pytest.approx(0.004)
