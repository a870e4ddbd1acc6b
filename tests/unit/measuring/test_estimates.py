"""Intervals cover as often as they say, and edges stay within the bounds.

Coverage is counted over 4,000 draws from fixed seeds and must be within 95% ± 1.5%. That is 4.35 standard deviations
of a Binomial(4000, 0.95), so a right interval would be turned down for one seed in 70,000; an interval 20% too
narrow covers 88% (Gaussian) or 91% (Laplace) and is let through for less than one seed in a million.
"""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dalenius.measuring.estimates import NoisySum, half_width, noise_variance, total
from dalenius.measuring.statistics.moments import mean, variance
from dalenius.mechanisms.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw

DRAWS = 4_000
CONFIDENCE = 0.95
SLACK = 0.015
ONE = Fraction(1)
# n rows with mean 30 and variance 400 around the centre 50, on a grid of 1/10 within [0, 100]
N, CENTRE, STEP = 20_000, 500, Fraction(1, 10)
S, Q = -200 * N, (200**2 + 40_000) * N
SCALES = (20, 10_000, 5_000_000)  # of the noise in n, s and q

FORMS = {
    "mean": 30.0,
    "variance": 400.0,
    "sample variance": 400.0 * N / (N - 1),
    "deviation": 20.0,
}


def law(kind, scale):
    return DiscreteGaussianLaw(Fraction(scale) ** 2) if kind == "gaussian" else DiscreteLaplaceLaw(Fraction(scale))


def estimate(form, n, s, q, *, step=STEP, centre=CENTRE, low=Fraction(0), high=Fraction(100)):
    scale = {"step": step, "centre": centre, "low": low, "high": high, "confidence": CONFIDENCE}
    if form == "mean":
        return mean(n, s, **scale)
    del scale["centre"]  # a variance does not move with it
    return variance(n, s, q, **scale, sample=form.startswith("sample"), root=form == "deviation")


def coverage(form, kind, scales=SCALES, n=N):
    """Share of draws whose interval covers the truth; and of those whose interval does if it is a fifth narrower."""
    draw = np.random.default_rng(list(f"{form} {kind}".encode()))
    sample = draw.normal if kind == "gaussian" else draw.laplace
    laws = [law(kind, scale) for scale in scales]
    noise = np.stack([np.rint(sample(0, scale, DRAWS)) for scale in scales], axis=1).astype(np.int64).tolist()
    covered = narrower = 0
    for x, y, z in noise:
        e = estimate(
            form, NoisySum(n + x, laws[0]), NoisySum(S * n // N + y, laws[1]), NoisySum(Q * n // N + z, laws[2])
        )
        assert math.isclose(e.noise_error, max(e.high - e.value, e.value - e.low))
        covered += e.low <= FORMS[form] <= e.high
        narrower += e.value - 0.8 * (e.value - e.low) <= FORMS[form] <= e.value + 0.8 * (e.high - e.value)
    return covered / DRAWS, narrower / DRAWS


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("form", FORMS)
def test_intervals_cover_as_often_as_they_say(form, kind):
    covered, narrower = coverage(form, kind)
    assert abs(covered - CONFIDENCE) <= SLACK
    assert narrower < CONFIDENCE - SLACK


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("scales", [(200, 200, 1), (2_000, 20, 1)], ids=["both matter", "the count is all"])
def test_the_noise_of_the_count_is_in_the_interval(kind, scales):
    assert abs(coverage("mean", kind, scales=scales)[0] - CONFIDENCE) <= SLACK


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("factors", [(1, 1), (3, 1), (1, 1, 1), (1, 1.0005, 7), (5, 2, 1)])
def test_half_widths_of_sums_are_quantiles(kind, factors):
    noise = [(factor * (-1) ** i, law(kind, 1_000)) for i, factor in enumerate(factors)]
    width = half_width(noise, CONFIDENCE)
    draw = np.random.default_rng(7)
    sample = draw.normal if kind == "gaussian" else draw.laplace
    sums = np.abs(sum(c * sample(0, 1_000, 400_000) for c, _ in noise))
    # 400,000 draws: a standard deviation is 0.034%, so 0.2% is a false alarm for one seed in 10⁸
    assert abs(np.mean(sums <= width) - CONFIDENCE) < 0.002
    assert np.mean(sums <= 0.8 * width) < CONFIDENCE - 0.02


def test_half_widths_change_smoothly_where_scales_meet():
    one = law("laplace", 1_000)
    widths = [half_width([(1.0, one), (factor, one)], CONFIDENCE) for factor in (0.99, 0.9999, 1.0, 1.0001, 1.01)]
    assert all(narrow <= wide * (1 + 1e-9) for narrow, wide in pairwise(widths))
    assert widths[-1] / widths[0] < 1.02


def test_half_widths_of_one_part_are_exact_and_of_none_zero():
    one = law("laplace", 10)
    assert half_width([(-2.5, one), (0.0, one)], CONFIDENCE) == 2.5 * one.noise_error(CONFIDENCE)
    assert half_width([(0.0, one)], CONFIDENCE) == half_width([], CONFIDENCE) == 0


def test_extreme_confidence_and_scales_give_finite_widths():
    laws = [law("laplace", Fraction(1, 10**3)), law("laplace", 10**30), law("laplace", 10**30)]
    for confidence in (1e-6, 0.5, 1 - 1e-12):
        assert 0 < half_width([(1.0, each) for each in laws], confidence) < math.inf


@pytest.mark.parametrize("scale", [Fraction(1, 2000), Fraction(1, 5), Fraction(3), Fraction(10**9)])
def test_the_variance_of_a_law_is_that_of_its_probabilities(scale):
    rate = float(1 / scale)
    k = np.arange(1, 400)
    p = np.tanh(rate / 2) * np.exp(-k * rate)
    expected = 2 * float(scale) ** 2 if scale > 1000 else 2 * float((k * k * p).sum())
    assert math.isclose(noise_variance(DiscreteLaplaceLaw(scale)), expected, rel_tol=1e-9, abs_tol=1e-300)


def test_totals_are_whole_where_steps_are():
    gauss = law("gaussian", 10)
    count = total(NoisySum(1234, gauss), ONE, CONFIDENCE)
    assert (count.value, type(count.value), count.noise_error, count.low, count.high) == (1234, int, 20, 1214, 1254)
    assert total(NoisySum(-3, gauss), Fraction(5), CONFIDENCE, shift=1).value == -14
    tenths = total(NoisySum(1234, gauss), STEP, CONFIDENCE, shift=100)
    assert tenths.value == 223.4 and isinstance(tenths.value, float)
    assert total(NoisySum(1, gauss), ONE, CONFIDENCE, shift=Fraction(1, 2)).value == 1.5


@pytest.mark.parametrize("n", [0, -1, -(10**6)])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_without_people_nothing_is_said(n, kind):
    parts = [NoisySum(value, law(kind, 10)) for value in (n, 5, 70)]
    e = estimate("mean", *parts)
    assert (e.value, e.noise_error, e.low, e.high) == (None, 50, 0, 100)
    e = estimate("variance", *parts)
    assert (e.value, e.noise_error, e.low, e.high) == (None, 1250, 0, 2500)
    e = estimate("deviation", *parts)
    assert (e.value, e.noise_error, e.low, e.high) == (None, 25, 0, 50)
    e = estimate("sample variance", *parts)
    assert (e.value, e.low, e.high) == (None, 0, 5000)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_of_few_people_only_the_bounds_are_sure(kind):
    parts = [NoisySum(value, law(kind, 10)) for value in (15, 600, 70_000)]
    for form, low, high in (
        ("mean", 0, 100),
        ("variance", 0, 2500),
        ("deviation", 0, 50),
        ("sample variance", 0, 5000),
    ):
        e = estimate(form, *parts)
        assert (e.low, e.high) == (low, high) and low <= e.value <= high


def test_a_sample_variance_needs_two():
    one = [NoisySum(value, law("gaussian", Fraction(1, 100))) for value in (1, 5, 70)]
    assert estimate("sample variance", *one).value is None
    assert estimate("variance", *one).value == 0.45


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_integers_wider_than_machines_pass(kind):
    n, s, q = 2**70, -(2**90), 2**125
    parts = [NoisySum(value, law(kind, scale)) for value, scale in ((n, 2**40), (s, 2**60), (q, 2**90))]
    wide = {"low": Fraction(-(2**30)), "high": Fraction(2**30), "step": ONE, "centre": 2**21}
    e = estimate("mean", *parts, **wide)
    assert e.value == 2**20 and 0 < e.noise_error < 1 and e.low < e.value < e.high
    e = estimate("variance", *parts, **wide)
    assert e.value == 2**55 - 2**40 and 0 < e.noise_error < e.value and e.low < e.value < e.high
    assert total(NoisySum(2**90, law(kind, 1)), ONE, CONFIDENCE).value == 2**90


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("extra", [-30_000, 0, 30_000, 10**9])
def test_at_the_bound_the_interval_stays_inside(kind, extra):
    """All rows at the upper bound, so the noisy mean may fall outside, even so far that no interval is left."""
    n, s = NoisySum(N, law(kind, 20)), NoisySum(500 * N + extra, law(kind, 20_000))
    e = estimate("mean", n, s, s)
    assert 0 <= e.low <= e.value <= e.high == 100 and e.low < 100
    assert e.noise_error == max(e.high - e.value, e.value - e.low) > 0
    if extra == 10**9:
        assert (e.low, e.value) == (0, 100)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_an_interval_that_noise_moved_past_the_bound_is_no_wider_than_it_was(kind):
    """All rows at the upper bound: with a chance of one in forty the whole interval lies beyond it."""
    n, noise = NoisySum(N, law(kind, 20)), law(kind, 20_000)
    inside = estimate("mean", n, NoisySum(500 * N, noise), n)
    half = inside.noise_error * 10 * N  # as a sum of tenths
    outside = [estimate("mean", n, NoisySum(500 * N + round(share * half), noise), n) for share in (1.2, 1.6)]
    assert outside[0].value == outside[1].value == 100 == outside[0].high
    for each in outside:
        assert 0.8 * inside.noise_error < each.noise_error < 1.3 * inside.noise_error


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_a_variance_is_never_negative_nor_larger_than_bounds_allow(kind):
    laws = [law(kind, scale) for scale in SCALES]
    for q, value in ((-(10**6), 0), (10**12, 2500)):
        for form in ("variance", "deviation"):
            e = estimate(form, NoisySum(N, laws[0]), NoisySum(0, laws[1]), NoisySum(q, laws[2]))
            assert e.value == (math.sqrt(value) if form == "deviation" else value)
            assert 0 <= e.low <= e.value <= e.high <= 2500 and e.noise_error > 0


def test_a_mean_at_the_centre_does_not_depend_on_the_count():
    n, s = NoisySum(N, law("laplace", 20)), NoisySum(0, law("laplace", 10_000))
    e = estimate("mean", n, s, s)
    assert e.value == 50
    assert math.isclose(e.noise_error, s.law.noise_error(CONFIDENCE) / N / 10, rel_tol=1e-3)
