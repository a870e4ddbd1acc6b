"""The tails of the two laws, against sums over all integers."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from dalenius.accounting.conversions import gaussian_delta
from dalenius.mechanisms.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw, discrete_gaussian_delta

SCALES = [Fraction(1, 50), Fraction(1, 3), Fraction(1), Fraction(7, 5), Fraction(10), Fraction(1234, 7)]
VARIANCES = [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(17, 3), Fraction(100), Fraction(40_000)]


def laplace_tail(scale: Fraction, k: int) -> float:
    """P(|X| > k) by summation."""
    weights = [math.exp(-float(j / scale)) for j in range(int(60 * scale) + 60)]
    return 2 * math.fsum(weights[k + 1 :]) / (2 * math.fsum(weights) - 1)


def gaussian_weights(variance: Fraction) -> list[float]:
    return [math.exp(-j * j / (2 * float(variance))) for j in range(int(45 * math.sqrt(variance)) + 45)]


def gaussian_tail(variance: Fraction, k: int) -> float:
    weights = gaussian_weights(variance)
    return 2 * math.fsum(weights[k + 1 :]) / (2 * math.fsum(weights) - 1)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999])
@pytest.mark.parametrize("scale", SCALES)
def test_the_noise_error_of_laplace_is_the_least_that_covers(scale, confidence):
    k = DiscreteLaplaceLaw(scale).noise_error(confidence)
    assert laplace_tail(scale, k) <= 1 - confidence
    assert k == 0 or laplace_tail(scale, k - 1) > 1 - confidence


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999])
@pytest.mark.parametrize("variance", VARIANCES)
def test_the_noise_error_of_gaussian_is_the_least_that_covers(variance, confidence):
    k = DiscreteGaussianLaw(variance).noise_error(confidence)
    assert gaussian_tail(variance, k) <= 1 - confidence
    assert k == 0 or gaussian_tail(variance, k - 1) > 1 - confidence


@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.95, 1 - 1e-9])
def test_a_wide_gaussian_is_bounded_from_above_and_closely(confidence):
    variance = Fraction(2**20 + 1)
    k = DiscreteGaussianLaw(variance).noise_error(confidence)
    exact = next(k for k in range(k - 3, k + 1) if gaussian_tail(variance, k) <= 1 - confidence)
    assert 0 <= k - exact <= 1


def test_huge_scales_do_not_overflow():
    assert DiscreteLaplaceLaw(Fraction(10**90)).noise_error() > 10**90
    assert DiscreteGaussianLaw(Fraction(10**90)).noise_error() > 10**45


def hockey_stick(variance: Fraction, shift: int, epsilon: float) -> float:
    """Σ max(0, P(x) − e^ε·P(x − shift)), straight from the definition."""
    weights = gaussian_weights(variance)
    total = 2 * math.fsum(weights) - 1
    reach = len(weights) - 1

    def p(x: int) -> float:
        return weights[abs(x)] / total if abs(x) <= reach else 0.0

    return math.fsum(max(0.0, p(x) - math.exp(epsilon) * p(x - shift)) for x in range(-reach, reach + shift + 1))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(3), Fraction(50)])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_profile_of_one_number_is_the_hockey_stick_divergence(variance, sensitivity, epsilon):
    found = discrete_gaussian_delta(variance, sensitivity, epsilon)
    exact = max(hockey_stick(variance, shift, epsilon) for shift in range(1, sensitivity + 1))
    assert found == pytest.approx(exact, rel=1e-7, abs=1e-15)
    assert found >= exact * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_the_profile_grows_with_the_shift(epsilon):
    deltas = [hockey_stick(Fraction(20), shift, epsilon) for shift in range(1, 12)]
    assert deltas == sorted(deltas)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("sensitivity", [1, 100, 400, 5000])
def test_past_the_sum_the_profile_is_bounded_from_above(sensitivity, epsilon):
    """The bound at the first variance that is not summed, against the sum at that variance."""
    below, above = Fraction(2**20), Fraction(2**20) * (1 + Fraction(1, 2**30))
    summed, bounded = (discrete_gaussian_delta(v, sensitivity, epsilon) for v in (below, above))
    # the two variances differ by 1e-9, so their exact profiles do by a tiny factor
    assert bounded >= summed * (1 - 1e-5)
    assert bounded <= summed * 1.05 + 1e-3 / math.sqrt(2**20)


def test_the_discrete_profile_tends_to_the_continuous_one():
    sigma = 900
    ours = discrete_gaussian_delta(Fraction(sigma**2), 300, 1.0)
    assert ours == pytest.approx(gaussian_delta(sigma / 300, 1.0), rel=0.01)


def exact_delta(variance: Fraction, sensitivity: int, epsilon: float) -> Decimal:
    """δ(ε) to 60 digits, as the sum of all that exceeds e^ε times the shifted law."""
    with localcontext() as context:
        context.prec = 120
        spread = Decimal(variance.numerator) / variance.denominator
        weights = {k: (-Decimal(k * k) / (2 * spread)).exp() for k in range(-60, 61)}
        total = sum(weights.values())
        factor = Decimal(epsilon).exp()
        gaps = (w - factor * weights.get(k + sensitivity, Decimal(0)) for k, w in weights.items())
        return sum((max(Decimal(0), gap) for gap in gaps), Decimal(0)) / total


@pytest.mark.parametrize(
    ("epsilon", "variance", "sensitivity"),
    [
        (98.41572986293279, 0.015241465994197321, 1),
        (70.59018710873659, 0.007083137479573525, 1),
        (34.45799723172256, 0.014510419646203126, 1),
        *((e, 1.5 / e, 1) for e in (15.3, 40.7, 71.1, 99.9, 203.7)),
        *((e, 6.0 / e, 2) for e in (31.9, 57.7, 83.1)),
        (1.0, 4.0, 1),
        (0.5, 2.0, 3),
    ],
)
def test_delta_is_never_too_small_where_the_threshold_is_next_to_an_integer(epsilon, variance, sensitivity):
    exact = exact_delta(Fraction(variance), sensitivity, epsilon)
    found = Decimal(discrete_gaussian_delta(Fraction(variance), sensitivity, epsilon))
    assert found >= exact
    # slightly more: 2⁻⁵⁰·ε times the probability of the integer at the threshold
    level = round(epsilon * variance / sensitivity - sensitivity / 2)
    assert found <= exact * (1 + Decimal("1e-8")) + Decimal(epsilon * 2.0**-48 * math.exp(-(level**2) / (2 * variance)))
