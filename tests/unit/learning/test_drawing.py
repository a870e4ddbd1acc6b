"""Units are drawn each with the same chance, into slots that hardly ever overflow."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.seeded_noise import seeded_noise

from dalenius.accounting.sampled_discrete import sampling_rate
from dalenius.errors import InputError
from dalenius.learning import drawing
from dalenius.learning.drawing import draw_units, overflow, slots_for

CAPACITY = 64
ALARM = 1e-6  # of each test


def _seems_right(rate: Fraction, draws: int) -> bool:
    """Whether places are drawn at a rate, each whoever else is; wrong with chance 1e-6.

    Looked at are each place, each pair of places, all of them together, and how much the number drawn varies.
    """
    drawn = np.zeros((draws, CAPACITY + 1), bool)
    for each in drawn:
        each[draw_units(rate, CAPACITY, CAPACITY)] = True
    drawn, chance = drawn[:, :CAPACITY], float(rate)
    alone = [stats.binomtest(int(hits), draws, chance).pvalue for hits in drawn.sum(axis=0)]
    together = (drawn.T.astype(float) @ drawn)[np.triu_indices(CAPACITY, 1)]
    pairs = 2 * np.minimum(stats.binom.cdf(together, draws, chance**2), stats.binom.sf(together - 1, draws, chance**2))
    whole = stats.binomtest(int(drawn.sum()), draws * CAPACITY, chance).pvalue
    spread = ((drawn.sum(axis=1) - CAPACITY * chance) ** 2).sum() / (CAPACITY * chance * (1 - chance))
    # of a sum of squares whose fourth moments are those of a binomial number
    wide = math.sqrt(draws * (2 + (1 - 6 * chance * (1 - chance)) / (CAPACITY * chance * (1 - chance))))
    varies = 2 * stats.norm.sf(abs(spread - draws) / wide)
    return bool(min(min(alone) * CAPACITY, pairs.min() * len(pairs), whole, varies) > ALARM / 4)


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(5, 16), sampling_rate(0.1), Fraction(3 * 2**23, 2**32)])
def test_every_place_is_drawn_with_the_same_chance_whoever_else_is(rate: Fraction, rounds: Callable[[int], int]):
    with seeded_noise(7):
        assert _seems_right(rate, max(4000, rounds(80_000)))


@pytest.mark.statistical
def test_a_rate_that_is_a_tenth_too_high_is_caught(monkeypatch: pytest.MonkeyPatch):
    right = drawing._drawn
    monkeypatch.setattr(drawing, "_drawn", lambda whole, capacity: right(whole + whole // 10, capacity))
    with seeded_noise(7):
        assert not _seems_right(Fraction(5, 16), 4000)


@pytest.mark.statistical
def test_drawing_a_fixed_number_instead_is_caught(monkeypatch: pytest.MonkeyPatch):
    chance = np.random.default_rng(1)

    def fixed(whole: int, capacity: int) -> np.ndarray:
        return np.sort(chance.permutation(capacity)[: round(capacity * whole / 2**32)])

    monkeypatch.setattr(drawing, "_drawn", fixed)
    assert not _seems_right(Fraction(1, 2), 4000)


@pytest.mark.statistical
def test_drawing_neighbours_together_is_caught(monkeypatch: pytest.MonkeyPatch):
    right = drawing._drawn

    def both(whole: int, capacity: int) -> np.ndarray:
        first = 2 * right(whole, capacity // 2)
        return np.concatenate([first, first + 1])

    monkeypatch.setattr(drawing, "_drawn", both)
    with seeded_noise(7):
        assert not _seems_right(Fraction(5, 16), 4000)


def test_bits_below_the_first_eight_decide_where_they_must():
    with seeded_noise(3):
        for whole in (1, 2**24, 2**24 + 1, 2**32 - 1):
            draw_units(Fraction(whole, 2**32), 1000, 1000)
        all_but = [len(draw_units(Fraction(2**32 - 1, 2**32), 500, 500)) for _ in range(20)]
        assert all_but == [500] * 20
        hits = sum((draw_units(Fraction(3 * 2**22, 2**32), 10**5, 10**4) < 10**5).sum() for _ in range(20))
        assert stats.binomtest(int(hits), 2 * 10**6, 3 * 2**22 / 2**32).pvalue > ALARM


def test_slots_are_as_many_as_said_whatever_was_drawn():
    for rate, capacity, slots in ((Fraction(1, 2), 30, 40), (Fraction(1, 2), 200, 10), (Fraction(1), 9, 9)):
        found = draw_units(rate, capacity, slots)
        assert len(found) == slots
        real = found[found < capacity]
        assert len(set(real.tolist())) == len(real) and found.max() <= capacity


def test_a_surplus_is_dropped_by_chance():
    with seeded_noise(5):
        dropped = [set(range(10)) - set(draw_units(Fraction(1), 10, 7).tolist()) for _ in range(200)]
    assert set.union(*dropped) == set(range(10))


def _covers(capacity: int, rate: Fraction, slots: int, steps: int, told: float) -> bool:
    """Whether the chance of an overflow that is told is no less than the real one."""
    real = steps * stats.binom.sf(slots - 1, capacity, float(rate))
    return told >= min(1.0, real) * (1 - 1e-9)


def test_the_chance_of_an_overflow_is_never_told_too_small():
    for capacity in (10, 1000, 51_265):
        for rate in (Fraction(1, 2), Fraction(1, 100), sampling_rate(0.005)):
            for slots in range(1, min(capacity, 700), 13):
                assert _covers(capacity, rate, slots, 50, overflow(rate, capacity, slots, 50))


def test_slots_too_few_by_a_tenth_are_caught():
    rate = sampling_rate(0.005)
    slots = slots_for(rate, 51_265, 1000, 1e-15)
    assert _covers(51_265, rate, slots, 1000, 1e-15)
    assert not _covers(51_265, rate, slots - slots // 10, 1000, 1e-15)
    assert not _covers(51_265, rate, slots, 1000, overflow(rate, 51_265, slots, 1000) * 1e-6)


def test_a_full_step_needs_a_slot_for_everybody():
    assert slots_for(Fraction(1), 77, 10, 1e-15) == 77
    assert overflow(Fraction(1), 77, 77, 10) == 0
    with pytest.raises(InputError):
        slots_for(Fraction(1, 2), 77, 10, 0.0)
