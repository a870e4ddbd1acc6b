"""Every mechanism has the noise it states: the right scale is accepted, one 20% too small is rejected.

Each case counts how often an event happens in n independent releases; under the stated law that is
Binomial(n, p) with p summed here from the theorem, not taken from the code. An exact two-sided binomial
test rejects below 1e-7, which is its false-alarm rate. The planted error is an ε larger by 5/4, or for
smooth sensitivity a scale smaller by 4/5; the design is such that it slips through with probability below
1e-6, which each test works out first. The short form has as few releases as that takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.conftest import LONG

from dalenius import mechanisms as m

pytestmark = pytest.mark.statistical

ALARM = 1e-7
EPSILON = Fraction(1)
TOO_LARGE = Fraction(5, 4)
FAR = 10**6
LINE = tuple(tuple(-abs(x - y) for y in range(4)) for x in range(4))


@dataclass
class Case:
    """``count(ε, n)`` counts an event in n runs of the mechanism; ``chance(ε)`` is its probability by the theorem."""

    count: Callable[[Fraction, int], int]
    chance: Callable[[Fraction], float]
    rounds: int = 400_000

    @cached_property
    def chances(self) -> tuple[float, float]:
        """Of the event, at the stated scale and with the planted error."""
        return self.chance(EPSILON), self.chance(TOO_LARGE)

    def slips_through(self, n: int) -> float:
        """How probable it is that the planted error passes for the stated scale, in n runs."""
        stated, planted = self.chances
        least = int(stats.binom.ppf(ALARM / 4, n, stated))  # the largest count that would still be rejected
        return float(stats.binom.sf(least, n, planted))

    @property
    def runs(self) -> int:
        """As many as the long form has, or as few as see the error."""
        return self.rounds if LONG else next(n for n in range(1000, self.rounds, 250) if self.slips_through(n) < 1e-6)


def laplace_tail(scale: float, k: int) -> float:
    """P(X ≥ k), k ≥ 1, for P(x) ∝ exp(−|x|/scale), by summation."""
    weights = np.exp(-np.arange(0, int(60 * scale) + 60) / scale)
    return float(weights[k:].sum() / (2 * weights.sum() - 1))


def gaussian_tail(variance: float, k: int) -> float:
    """P(X ≥ k), k ≥ 1, for P(x) ∝ exp(−x²/2σ²), by summation."""
    weights = np.exp(-(np.arange(0, int(40 * math.sqrt(variance)) + 40) ** 2) / (2 * variance))
    return float(weights[k:].sum() / (2 * weights.sum() - 1))


def analytic_variance(epsilon: float, delta: float) -> float:
    """The σ² at which Σ_k max(0, P(k) − e^ε·P(k + 1)) is δ, by bisection."""

    def exceeds(variance: float) -> bool:
        k = np.arange(-500, 501)
        p = np.exp(-(k**2) / (2 * variance))
        return float(np.maximum(0, p[:-1] - math.exp(epsilon) * p[1:]).sum() / p.sum()) > delta

    low, high = 1.0, 1000.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


def analytic(epsilon: Fraction, n: int) -> int:
    mechanism = m.Gaussian.analytic(epsilon=epsilon, delta=1e-6, squared_sensitivity=1)
    return repeated(lambda: abs(mechanism.release(0).value) >= 8, n)


def far_off(mechanism, n: int, k: int) -> int:
    return int((np.abs(mechanism.release(np.zeros(n, dtype=np.int64)).value) >= k).sum())


def repeated(run: Callable[[], bool], n: int) -> int:
    return sum(run() for _ in range(n))


def chosen(mechanism: Any, values: Any, n: int, *more: Any) -> list[Any]:
    """What one mechanism releases in n runs."""
    return [mechanism.release(values, *more).value for _ in range(n)]


def loses(rate: float, gap: int) -> float:
    """P(the worse of two candidates) for weights exp(rate·score)."""
    return 1 / (1 + math.exp(rate * gap))


def sparse_vector_hit(epsilon: Fraction, gap: int) -> float:
    """P(value + Lap(4/ε) ≥ threshold + Lap(2/ε)) for a value so much below, summed over both noises."""
    one, two = 2 / float(epsilon), 4 / float(epsilon)
    z = np.arange(-int(45 * one), int(45 * one) + 1)
    p = math.tanh(0.5 / one) * np.exp(-np.abs(z) / one)
    hits = [laplace_tail(two, k) if k >= 1 else 1 - laplace_tail(two, 1 - k) for k in (gap + z).tolist()]
    return float(np.dot(p, hits))


class Shrunk(m.SmoothSensitivity):
    """Smooth sensitivity with the planted error."""

    def noise(self, smooth):
        return super().noise(smooth * Fraction(4, 5))


class ShrunkMedian(m.SmoothMedian):
    """The same for the median."""

    @property
    def mechanism(self):
        return Shrunk(self.epsilon, self.delta)


def smooth(epsilon: Fraction, n: int) -> int:
    mechanism = (m.SmoothSensitivity if epsilon == EPSILON else Shrunk)(EPSILON, 1e-6)
    return repeated(lambda: abs(mechanism.release(0, lambda k: 5, most=5, furthest=9).value) >= 25, n)


def smooth_median(epsilon: Fraction, n: int) -> int:
    # one value at the edge: its local sensitivity, and so S, is the whole range
    mechanism = (m.SmoothMedian if epsilon == EPSILON else ShrunkMedian)(EPSILON, 1e-6, 0, 5)
    return repeated(lambda: abs(mechanism.release([0]).value) >= 25, n)


CASES = {
    "laplace": Case(
        lambda e, n: far_off(m.Laplace(e, 3, dimension=n), n, 8), lambda e: 2 * laplace_tail(3 / float(e), 8)
    ),
    "geometric": Case(
        lambda e, n: far_off(m.Geometric(e, dimension=n), n, 3), lambda e: 2 * laplace_tail(1 / float(e), 3)
    ),
    "gaussian by rho": Case(
        lambda e, n: far_off(m.Gaussian.of_rho(rho=e**2 / 32, squared_sensitivity=4, dimension=n), n, 14),
        lambda e: 2 * gaussian_tail(64 / float(e) ** 2, 14),
    ),
    "gaussian classical": Case(
        lambda e, n: far_off(
            m.Gaussian.classical(epsilon=e / 2, delta=0.01, squared_sensitivity=1, dimension=n), n, 11
        ),
        lambda e: 2 * gaussian_tail(2 * math.log(125) * 4 / float(e) ** 2, 11),
    ),
    "gaussian analytic": Case(analytic, lambda e: 2 * gaussian_tail(analytic_variance(float(e), 1e-6), 8)),
    "discrete gaussian": Case(
        lambda e, n: far_off(m.DiscreteGaussian(9 / e**2, 1, n), n, 6),
        lambda e: 2 * gaussian_tail(9 / float(e) ** 2, 6),
    ),
    "exponential": Case(
        lambda e, n: chosen(m.Exponential(e), [0, 6], n).count(0),
        lambda e: loses(float(e) / 2, 6),
        200_000,
    ),
    "exponential, monotonic": Case(
        lambda e, n: chosen(m.Exponential(e, monotonic=True), [0, 3], n).count(0),
        lambda e: loses(float(e), 3),
        200_000,
    ),
    "noisy max": Case(
        # both coins show heads with probability e^(−3); then one of the two
        lambda e, n: chosen(m.NoisyMax(e), [0, 6], n).count(0),
        lambda e: math.exp(-3 * float(e)) / 2,
        400_000,
    ),
    "top-k": Case(
        lambda e, n: n - [first for first, _ in chosen(m.TopK(e, k=2), [0, 6, 0], n)].count(1),
        lambda e: 2 * math.exp(-3 * float(e)) / (1 + 2 * math.exp(-3 * float(e))),
        200_000,
    ),
    "quantile": Case(
        lambda e, n: chosen(m.Quantile(e, 0, 1), [1, 1, 1], n).count(0),
        lambda e: loses(float(e), 3),
        200_000,
    ),
    "sample and aggregate": Case(
        lambda e, n: chosen(m.SampleAndAggregate(e, 6, 0, 1), {}, n, lambda block: 1, lambda unit: 0).count(0),
        lambda e: loses(float(e) / 2, 6),
        200_000,
    ),
    "sparse vector": Case(
        lambda e, n: repeated(lambda: m.SparseVector(e).release([-12], threshold=0).value[0], n),
        lambda e: sparse_vector_hit(e, 12),
    ),
    "propose-test-release, the test": Case(
        lambda e, n: n - _tested(e, 3, n).count(None),
        # the threshold depends on ε; three below it the noise must exceed three
        lambda e: laplace_tail(1 / float(e), 4),
    ),
    "propose-test-release, the release": Case(
        lambda e, n: sum(abs(value) >= 13 for value in _tested(e, -FAR, n)),
        lambda e: 2 * laplace_tail(5 / float(e), 13),
    ),
    "smooth sensitivity": Case(smooth, lambda e: 2 * laplace_tail(10 / float(e), 25)),
    "smooth median": Case(smooth_median, lambda e: 2 * laplace_tail(10 / float(e), 25)),
    "key selection": Case(
        # 45 below the threshold, whatever that is: the noise, of variance 900/ε², must make up for it
        lambda e, n: len(
            (chosen := m.KeySelection(Fraction(2**39, 900) * e**2, 0.001, 8)).release([chosen.threshold - 45] * n).value
        ),
        lambda e: gaussian_tail(900 / float(e) ** 2, 45),
    ),
    "randomized response": Case(
        lambda e, n: int((m.RandomizedResponse(3 * e).release(np.ones(n, dtype=np.int64)).value == 0).sum()),
        lambda e: 1 / (1 + math.exp(3 * float(e))),
    ),
    "randomized response, k-ary": Case(
        lambda e, n: int((m.RandomizedResponse(4 * e, 5).release(np.full(n, 2)).value == 4).sum()),
        lambda e: 1 / (4 + math.exp(4 * float(e))),
    ),
    "finite response": Case(
        lambda e, n: int((m.FiniteResponse(3 * e, LINE).release(np.zeros(n, dtype=np.int64)).value == 3).sum()),
        lambda e: math.exp(-1.5 * float(e)) / sum(math.exp(-0.5 * float(e) * d) for d in range(4)),
    ),
}


def _tested(epsilon: Fraction, below: int, n: int) -> list[Any]:
    """Runs at a distance so far below the threshold."""
    mechanism = m.ProposeTestRelease(epsilon, Fraction(1, 10**6), bound=5)
    distance = mechanism.threshold - below
    return [mechanism.release(0, distance=distance).value for _ in range(n)]


def p_value(count: int, n: int, chance: float) -> float:
    return float(stats.binomtest(count, n, chance).pvalue)


@pytest.mark.parametrize("name", CASES)
def test_the_stated_scale_is_accepted(name):
    case = CASES[name]
    n = case.runs
    assert p_value(case.count(EPSILON, n), n, case.chances[0]) >= ALARM


@pytest.mark.parametrize("name", CASES)
def test_a_scale_20_percent_too_small_is_rejected(name):
    case = CASES[name]
    n = case.runs
    assert case.slips_through(n) < 1e-6, "the test has too few rounds to see the error"
    assert p_value(case.count(TOO_LARGE, n), n, case.chances[0]) < ALARM
