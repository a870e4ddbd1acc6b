"""The samplers follow their laws: chi-square against exact probabilities, tails included.

Every test rejects when its p-value is below `ALARM`. The chi-square approximation at 1e-7 with at least 50 expected
per cell is good to a small factor, so the false-alarm rate stays below 1e-6 per test. Every law is also tested with a
scale 20% too small, which must be rejected. Arrays are so fast to draw that `make test` takes the full counts too.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.conftest import LONG

from dalenius.mechanisms import noise
from dalenius.mechanisms.noise import _exact

pytestmark = pytest.mark.statistical

ALARM = 1e-7
DRAWS = 4_000_000
LEAST = 50  # expected in every cell

LAPLACE = [Fraction(1, 3), Fraction(7, 5), 0.1, 10, 16, 17, 1000, 12345.678]
GAUSSIAN = [Fraction(1, 3), Fraction(7, 5), 0.5, 1, 10, 1000, 12345.678]


class Cells:
    """A partition of the integers: zero, and intervals of |k| on either side, the last one open.

    Attributes:
        edges: Where the intervals of |k| begin; the first is 1.
        probabilities: Of zero, then of each interval above zero, then of each below.
    """

    def __init__(self, edges: list[int], zero: Decimal, beyond: list[Decimal]) -> None:
        """`beyond[i]` is P(k ≥ edges[i])."""
        inner = [a - b for a, b in pairwise(beyond)] + beyond[-1:]
        self.edges = edges
        self.probabilities = np.array([float(p) for p in [zero, *inner, *inner]])
        assert abs(self.probabilities.sum() - 1) < 1e-12

    def counts(self, values: np.ndarray) -> np.ndarray:
        def side(magnitudes: np.ndarray) -> np.ndarray:
            places = np.searchsorted(np.array(self.edges), magnitudes, side="right") - 1
            return np.bincount(places, minlength=len(self.edges))

        return np.concatenate([[(values == 0).sum()], side(values[values > 0]), side(-values[values < 0])])

    def p_value(self, values: np.ndarray) -> float:
        """Chi-square with cells of few expected draws put together."""
        expected = self.probabilities * len(values)
        few = expected < LEAST
        counts = self.counts(values)
        pooled_expected = np.append(expected[~few], expected[few].sum())
        pooled_counts = np.append(counts[~few], counts[few].sum())
        if pooled_expected[-1] < LEAST:  # too few even together: into the largest cell
            pooled_expected[pooled_expected.argmax()] += pooled_expected[-1]
            pooled_counts[pooled_expected.argmax()] += pooled_counts[-1]
            pooled_expected, pooled_counts = pooled_expected[:-1], pooled_counts[:-1]
        statistic = ((pooled_counts - pooled_expected) ** 2 / pooled_expected).sum()
        return float(stats.chi2.sf(statistic, len(pooled_expected) - 1))


def edges_up_to(reach: float, scale: float, draws: int) -> list[int]:
    """At most 150 edges, evenly spaced up to `reach` times the scale; fewer for few draws, to fill the cells."""
    pieces = min(150, draws // 400)
    return sorted({1, *(math.ceil(scale * reach * i / pieces) for i in range(1, pieces + 1))})


def decimal(x) -> Decimal:
    exact = Fraction(x)
    return Decimal(exact.numerator) / exact.denominator


def laplace_cells(scale, draws: int) -> Cells:
    """P(k ≥ e) = α^e/(1 + α) for e ≥ 1."""
    with localcontext() as context:
        context.prec = 60
        rate = 1 / decimal(scale)
        alpha = (-rate).exp()
        edges = edges_up_to(math.log(draws / 100), float(scale), draws)
        return Cells(edges, (1 - alpha) / (1 + alpha), [(-rate * e).exp() / (1 + alpha) for e in edges])


def gaussian_cells(sigma, draws: int) -> Cells:
    """Sums of exp(−k²/2σ²), by recurrence in 60 digits, until the terms fall below 1e-40."""
    with localcontext() as context:
        context.prec = 60
        step = (-1 / (2 * decimal(sigma) ** 2)).exp()
        weights, weight, factor = [Decimal(1)], Decimal(1), step
        while weight > Decimal("1e-40"):
            weight *= factor  # exp(−(k+1)²/2σ²) = exp(−k²/2σ²)·step^(2k+1)
            factor *= step * step
            weights.append(weight)
        tails = [Decimal(0)]
        for weight in reversed(weights[1:]):
            tails.append(tails[-1] + weight)
        tails.reverse()  # tails[k] = Σ of the weights beyond k
        total = 1 + 2 * tails[0]
        edges = [e for e in edges_up_to(math.sqrt(2 * math.log(draws / 100)), float(sigma), draws) if e <= len(tails)]
        return Cells(edges, 1 / total, [tails[e - 1] / total for e in edges])


@pytest.mark.parametrize("scale", LAPLACE, ids=str)
def test_discrete_laplace_follows_its_law(scale):
    draws = DRAWS
    cells = laplace_cells(scale, draws)
    assert cells.p_value(noise.discrete_laplace(scale, draws)) > ALARM
    assert cells.p_value(noise.discrete_laplace(Fraction(scale) * Fraction(4, 5), draws)) < ALARM


@pytest.mark.parametrize("sigma", GAUSSIAN, ids=str)
def test_discrete_gaussian_follows_its_law(sigma):
    draws = DRAWS
    cells = gaussian_cells(sigma, draws)
    assert cells.p_value(noise.discrete_gaussian(sigma, draws)) > ALARM
    assert cells.p_value(noise.discrete_gaussian(Fraction(sigma) * Fraction(4, 5), draws)) < ALARM


def test_an_irrational_sigma_is_given_by_its_variance():
    draws = DRAWS
    cells = gaussian_cells(math.sqrt(20.5), draws)  # off by 1e-16: far below what the draws can show
    assert cells.p_value(noise.discrete_gaussian(variance=Fraction(41, 2), size=draws)) > ALARM
    assert cells.p_value(noise.discrete_gaussian(variance=Fraction(41, 2) * Fraction(16, 25), size=draws)) < ALARM


@pytest.mark.parametrize("scale", [Fraction(7, 5), 10, 1000], ids=str)
def test_scalar_draws_follow_the_same_laws(scale, rounds):
    draws = rounds(400_000)
    for cells, draw in (
        (laplace_cells(scale, draws), noise.discrete_laplace),
        (gaussian_cells(scale, draws), noise.discrete_gaussian),
    ):
        assert cells.p_value(np.array([draw(scale) for _ in range(draws)])) > ALARM
        assert cells.p_value(np.array([draw(scale * Fraction(4, 5)) for _ in range(draws)])) < ALARM


@pytest.mark.parametrize("scale", [Fraction(1, 3), 10, 12345.678, *([Fraction(7, 5), 1000] if LONG else [])], ids=str)
def test_rational_arithmetic_alone_follows_the_same_laws(scale, rounds):
    draws = rounds(100_000)
    for cells, draw in (
        (laplace_cells(scale, draws), noise.discrete_laplace),
        (gaussian_cells(scale, draws), noise.discrete_gaussian),
    ):
        with _exact._always():
            values = draw(scale, draws)
            too_small = draw(Fraction(scale) * Fraction(4, 5), draws)
        assert cells.p_value(values) > ALARM
        assert cells.p_value(too_small) < ALARM


@pytest.mark.parametrize("scale", [2**51, 2**60, 1e300], ids=str)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_very_wide_noise_follows_its_law(law, scale, rounds):
    """At such scales a step is nothing: Kolmogorov–Smirnov against the continuous law."""
    draw: Any
    draw, shape = {
        "laplace": (noise.discrete_laplace, stats.laplace),
        "gaussian": (noise.discrete_gaussian, stats.norm),
    }[law]

    def p_value(factor) -> float:
        values = draw(factor * Fraction(scale), rounds(200_000))
        return float(stats.kstest([float(Fraction(v) / Fraction(scale)) for v in values.tolist()], shape.cdf).pvalue)

    assert p_value(1) > ALARM
    assert p_value(Fraction(4, 5)) < ALARM


@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_the_samplers_agree_with_opendp(law, scale, rounds):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    draws = rounds(200_000)
    draw: Any
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if law == "laplace":
        cells, draw = laplace_cells(scale, draws), noise.discrete_laplace
        theirs = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)([0] * draws)
    else:
        cells, draw = gaussian_cells(scale, draws), noise.discrete_gaussian
        theirs = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)([0] * draws)

    def p_value(values: np.ndarray) -> float:
        table = np.array([cells.counts(values), cells.counts(np.array(theirs))])
        enough = table.sum(axis=0) >= 2 * LEAST
        pooled = np.column_stack([table[:, enough], table[:, ~enough].sum(axis=1)])
        if pooled[:, -1].sum() < 2 * LEAST:
            pooled = pooled[:, :-1]
        return float(stats.chi2_contingency(pooled).pvalue)

    assert p_value(draw(scale, draws)) > ALARM
    assert p_value(draw(Fraction(scale) * Fraction(4, 5), draws)) < ALARM


@pytest.mark.parametrize("gamma", [Fraction(1, 7), Fraction(1), 2.5, 5], ids=str)
def test_coins_have_their_probability(gamma):
    draws = DRAWS
    for coin, probability in (
        (noise.bernoulli_exp, math.exp(-gamma)),
        (noise.bernoulli_logistic, 1 / (1 + math.exp(-gamma))),
    ):
        heads = int(coin(gamma, draws).sum())
        assert stats.binomtest(heads, draws, probability).pvalue > ALARM
        heads = int(coin(gamma * Fraction(4, 5), draws).sum())
        assert stats.binomtest(heads, draws, probability).pvalue < ALARM


@pytest.mark.parametrize("n", [2, 3, 10, 1000, 3 * 2**61, 2**63, 2**63 + 2**62, 10**40], ids=str)
def test_uniform_integers_are_uniform(n):
    draws, cells = 400_000, min(n, 1000)

    def p_value(limit: int) -> float:
        places = [value * cells // n for value in noise.uniform_int(limit, draws).tolist()]
        return float(stats.chisquare(np.bincount(places, minlength=cells)).pvalue)

    assert p_value(n) > ALARM  # for large n the cells are equal to within 2⁻⁵⁰
    assert p_value(max(1, n * 4 // 5)) < ALARM
