"""The reference measurer adds the noise that its price says, no less and no more."""

from fractions import Fraction

import numpy as np
import pytest
from bench.synthetic.counts import InMemory

from dalenius.synthesis.domain import sized
from dalenius.synthesis.scores import Dependence, Distance
from dalenius.synthesis.views import whole

RHO = Fraction(1, 50)


def fresh(sizes, rows=0, rho=RHO):
    return InMemory(sized(sizes), np.zeros((rows, len(sizes)), np.int32), rho)


@pytest.mark.statistical
def test_tables_have_the_noise_of_their_own_share():
    """An estimated variance of N draws scatters by √(2/N) = 0.7%: 5% is 7 of that, and 20% would not pass."""
    sizes = (200, 200)
    view, other = whole([0, 1], sizes), whole([0], sizes)
    for share in (Fraction(1, 4), Fraction(3, 4)):
        asked = fresh(sizes)
        found = asked.measure([(view, share * RHO), (other, (1 - share) * RHO)])
        expected = float(1 / (2 * share * RHO))
        assert found[0].variance == pytest.approx(expected)
        assert found[0].values.var() == pytest.approx(expected, rel=0.05)
        assert found[1].variance == pytest.approx(float(1 / (2 * (1 - share) * RHO)))
        assert asked.left == 0


@pytest.mark.statistical
def test_scores_have_the_noise_of_their_sensitivities():
    """10,000 draws: √(2/N) = 1.4%, and 8% is 5.6 of that (2e-8)."""
    sizes = (2, 2)
    view = whole([0, 1], sizes)
    asked = [Distance(view, np.zeros(4, np.int64))] * 6_000 + [Dependence(view, 0)] * 4_000
    found = fresh(sizes).scores(asked, RHO)
    expected = (6_000 + 4_000 * 16) / (2 * float(RHO))
    assert found.sigma**2 == pytest.approx(expected)
    assert found.values.var() == pytest.approx(expected, rel=0.08)


@pytest.mark.statistical
def test_choices_follow_the_exponential_mechanism():
    """P = 1/(1 + e^(−ε·s/2)) with ε = √8ρ; of 4,000 draws 0.04 is 5.4 deviations of 0.0074 at p ≈ 0.68."""
    sizes = (2, 2)
    view = whole([0, 1], sizes)
    rho, gap = Fraction(1, 50), 4
    epsilon = (8 * float(rho)) ** 0.5
    scores = [Distance(view, np.array([gap, 0, 0, 0])), Distance(view, np.zeros(4, np.int64))]
    asked = fresh(sizes, rho=4000 * rho)
    share = np.mean([asked.choose(scores, rho) == 0 for _ in range(4000)])
    assert share == pytest.approx(1 / (1 + np.exp(-epsilon * gap / 2)), abs=0.04)
    assert asked.left == 0


def test_exact_counts_stand_behind_the_noise():
    asked = fresh((3, 2), rows=500, rho=Fraction(10**6))
    found = asked.measure([(whole([0, 1], (3, 2)), Fraction(10**5))])
    assert found[0].values.tolist() == [500, 0, 0, 0, 0, 0]  # noise of σ = 0.002 is nought
    assert asked.scores([Dependence(whole([0, 1], (3, 2)), 0)], Fraction(10**5)).values.tolist() == [0]
