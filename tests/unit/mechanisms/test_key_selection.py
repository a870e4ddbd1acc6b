"""Keys are found with the promised chance, and no other: thresholds against sums worked out here, and their limits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms import KeySelection
from dalenius.mechanisms.interface import MOST_CANDIDATES
from dalenius.mechanisms.key_selection import WEIGHT


def tail(variance: int, k: int) -> Fraction:
    """P(X ≥ k) for P(x) ∝ exp(−x²/2σ²), summed exactly from doubles that are each good to 16 digits."""
    reach = 12 * math.isqrt(variance) + 12
    mass = [Fraction(math.exp(-x * x / (2 * variance))) for x in range(reach + 1)]
    whole = 2 * sum(mass) - mass[0]
    return sum(mass[k:], Fraction(0)) / whole if k >= 0 else 1 - sum(mass[1 - k :], Fraction(0)) / whole


def appears(selection: KeySelection, threshold: int, keys: int) -> Fraction:
    """The chance that any key of a lone unit with so many is released."""
    variance = selection.noise.variance
    assert variance.denominator == 1
    weight = math.floor(Fraction(WEIGHT) / Fraction(math.sqrt(keys)))
    return 1 - (1 - tail(variance.numerator, threshold - weight)) ** keys


def of_variance(variance: int, delta: float, cap: int, **more) -> KeySelection:
    return KeySelection(Fraction(2**40, 2 * variance), delta, cap, **more)


# From noise that is nothing beside a unit's weight (one key is the worst case) to noise as wide as the weights
# themselves (many keys are).
@pytest.mark.parametrize("variance", [1, 9, 400, 5000])
@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-6])
@pytest.mark.parametrize("cap", [1, 2, 7, 32])
def test_the_threshold_is_the_least_that_keeps_the_promise(variance, delta, cap):
    selection = of_variance(variance, delta, cap)
    assert selection.noise.variance == variance
    assert all(appears(selection, selection.threshold, keys) <= delta for keys in range(1, cap + 1))
    # one less breaks it for some number of keys
    assert any(appears(selection, selection.threshold - 1, keys) > delta for keys in range(1, cap + 1))


@pytest.mark.parametrize("cap", [1, 8, 200])
@pytest.mark.parametrize("rho", [0.0002, 0.01, 1, 50])
def test_the_threshold_is_the_least_for_wide_noise_too(rho, cap):
    """As wide as in use: the tail is then the normal one, with the correction for whole numbers."""
    selection, delta = KeySelection(rho, 1e-6, cap), 1e-6
    sigma = math.sqrt(2**40 / (2 * rho))

    def chance(threshold, keys):
        one = math.erfc((threshold - math.isqrt(2**40 // keys) - 0.5) / sigma / math.sqrt(2)) / 2
        return -math.expm1(keys * math.log1p(-one))

    assert all(chance(selection.threshold, keys) <= delta for keys in range(1, cap + 1))
    below = selection.threshold - max(1, math.ceil(sigma * 1e-8))  # tails are rounded up by 1e-9
    assert any(chance(below, keys) > delta for keys in range(1, cap + 1))


@pytest.mark.parametrize(("rho", "worst"), [(1e4, 1), (0.001, 32)])
def test_which_number_of_keys_is_the_worst_depends_on_the_noise(rho, worst):
    selection = KeySelection(rho, 1e-6, 32)
    chances = {keys: selection._chance(selection.threshold, keys) for keys in range(1, 33)}
    assert max(chances, key=chances.__getitem__) == worst


def test_one_units_weights_are_no_longer_than_the_sensitivity():
    for keys in range(1, 300):
        weight = KeySelection.weight(keys)
        assert keys * weight**2 <= WEIGHT**2 < keys * (weight + 1) ** 2
    assert KeySelection(1, 1e-6).squared_sensitivity == WEIGHT**2


def test_where_one_unit_replaces_another_two_vectors_move():
    swapped = KeySelection(Fraction(1, 100), 1e-6, 8, Neighbors.SUBSTITUTE)
    assert swapped.squared_sensitivity == 2 * WEIGHT**2
    assert swapped.noise.variance == 2 * KeySelection(Fraction(1, 100), 1e-6, 8).noise.variance
    assert swapped.event.neighbors is Neighbors.SUBSTITUTE


def test_the_noise_is_at_least_what_the_price_asks_for():
    for rho in (Fraction(1, 3), Fraction(22, 7), 0.1, 1e9, 1e15):
        selection = KeySelection(rho, 1e-6)
        assert selection.squared_sensitivity / (2 * selection.noise.variance) <= Fraction(rho)


def test_no_keys_give_no_keys():
    nothings: list[Any] = [[], (), np.array([], dtype=np.int64)]
    for nothing in nothings:
        selection = KeySelection(1, 1e-6)
        released = selection.release(nothing)
        assert released.value == () and released.event is selection.event


def test_keys_far_above_are_found_and_far_below_are_not():
    selection = KeySelection(1, 1e-6, 4)
    far = 100 * math.isqrt(selection.noise.variance.numerator)  # no double sees such a tail
    weights = [selection.threshold + (far if at % 3 == 0 else -far) for at in range(99)]
    assert selection.release(weights).value == tuple(range(0, 99, 3))
    assert selection.release(np.array(weights)).value == tuple(range(0, 99, 3))


def test_more_keys_than_fit_into_one_draw(monkeypatch):
    import dalenius.mechanisms.key_selection as module

    assert MOST_CANDIDATES > 10
    monkeypatch.setattr(module, "MOST_CANDIDATES", 10)
    weights = [0] * 95
    for at in (0, 9, 10, 11, 94):
        weights[at] = 10**12
    assert KeySelection(1, 1e-6).release(weights).value == (0, 9, 10, 11, 94)


def test_of_too_many_keys_the_heaviest_are_kept_in_their_order(monkeypatch):
    import dalenius.mechanisms.key_selection as module

    monkeypatch.setattr(module, "MOST_CANDIDATES", 7)
    weights = [10**12 * (1 + at % 10) for at in range(30)]
    assert KeySelection(1, 1e-6).release(weights, most=6).value == (8, 9, 18, 19, 28, 29)
    assert KeySelection(1, 1e-6).release(weights, most=30).value == tuple(range(30))


def test_a_weight_past_int64_is_no_trouble():
    assert KeySelection(1, 1e-6).release([2**80, 0]).value == (0,)


@pytest.mark.parametrize("units", [2, 10, 1000])
def test_a_least_number_of_units_moves_the_threshold(units):
    selection = KeySelection(0.05, 1e-6)
    sigma = math.sqrt(selection.noise.variance)
    sure = selection.sure(units)
    assert sure >= selection.threshold
    # one unit too few, each with this key alone: P(X ≥ 3.09σ) = 0.001
    assert math.erfc((sure - (units - 1) * WEIGHT) / sigma / math.sqrt(2)) / 2 <= 0.00101
    far = math.ceil(40 * sigma)
    assert selection.release([sure - far, sure + far], units=units).value == (1,)


def test_one_unit_or_none_is_the_threshold_itself():
    selection = KeySelection(0.05, 1e-6)
    assert selection.sure(0) == selection.sure(1) == selection.threshold


@pytest.mark.parametrize("delta", [0, 1, 1.5, -1e-6, math.nan, "x", True])
def test_a_wrong_delta_is_refused(delta):
    with pytest.raises(InputError):
        KeySelection(1, delta)


def test_the_least_delta_has_a_threshold():
    assert KeySelection(1, 1e-100, 200).threshold > KeySelection(1, 1e-99, 200).threshold


@pytest.mark.parametrize("beta", [0, 1, 2, -1, math.nan, "x"])
def test_a_wrong_beta_is_refused(beta):
    with pytest.raises(InputError):
        KeySelection(1, 1e-6).utility(beta)
