"""Where values lie of which at most the mean is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.measuring.value_spread import EVEN, ValueSpread, may_differ

PARTS = st.floats(0, 1)


@given(st.floats(0.001, 0.999), PARTS)
def test_the_place_below_which_a_part_lies_is_found_again(mean: float, part: float):
    spread = ValueSpread.of(0, 1, mean)
    assert spread.below(spread.place(part)) == pytest.approx(part, abs=1e-6)


@pytest.mark.parametrize("mean", [0.01, 0.1, 0.4, 0.5, 0.6, 0.9, 0.99])
def test_the_mean_is_the_one_that_was_asked_for(mean: float):
    spread = ValueSpread.of(-100, 100, -100 + 200 * mean)
    steps = 20_000
    assert sum(spread.place((at + 0.5) / steps) for at in range(steps)) / steps == pytest.approx(mean, rel=1e-3)


def test_without_a_mean_or_with_one_outside_the_bounds_values_spread_evenly():
    assert ValueSpread.of(0, 10, None) == ValueSpread.of(0, 10, 10) == ValueSpread.of(0, 10, -3) == EVEN
    assert ValueSpread.of(0, 10, 5).place(0.3) == pytest.approx(0.3)


@pytest.mark.parametrize("square", [1.1, 2.0, 4.0])
def test_values_that_are_known_to_differ_have_that_mean_and_mean_square(square: float):
    spread, steps = ValueSpread.of(0, 100_000, 300, square), 20_000
    places = [100_000 * spread.place((at + 0.5) / steps) for at in range(steps)]
    mean = sum(places) / steps
    assert mean == pytest.approx(300, rel=0.01)
    assert sum(each * each for each in places) / steps / mean**2 == pytest.approx(square, rel=0.05)
    assert spread.below(spread.place(0.3)) == pytest.approx(0.3)


def test_values_that_would_not_fit_between_the_bounds_are_not_log_normal():
    assert may_differ(0, 100, 50, 1.15) and not may_differ(0, 100, 50, 2.5)
    assert ValueSpread.of(0, 100, 50, 2.5) == ValueSpread.of(0, 100, 50)
