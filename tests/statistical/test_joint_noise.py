"""Noise that parties make together: its law against the exact convolution, and what a coalition can tell.

Each test rejects noise that is as stated with a chance below 1e-6, and says so of noise whose scale is 20% too small.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.conftest import LONG
from tests.together import NAMES, hospitals

from dalenius.accounting import events
from dalenius.app.joint_seat import Seat
from dalenius.audit.lower_bounds.bounding import lower_bound
from dalenius.audit.lower_bounds.claims import Claim
from dalenius.errors import InputError
from dalenius.mechanisms.summed_gaussian import LEAST, SummedGaussian
from dalenius.queries.jointly.kind import measured
from dalenius.queries.jointly.planning import JointAsk

pytestmark = pytest.mark.statistical

ALARM = 1e-7
RHO = Fraction(1, 20)
CLIP, OVERLAP = 2, 3  # a person at all three parties, with two rows at each


def made(parties: int = 3, colluding: int = 1, overlap: int = OVERLAP) -> SummedGaussian:
    return SummedGaussian.priced(
        RHO, squared_sensitivity=(overlap * CLIP) ** 2, dimension=1, parties=parties, colluding=colluding
    )


def one_law(variance: float, reach: int) -> np.ndarray:
    k = np.arange(-reach, reach + 1)
    law = np.exp(-k * k / (2 * variance))
    scaled: np.ndarray = law / law.sum()
    return scaled


def convolved(variance: float, parties: int, reach: int) -> np.ndarray:
    """The exact law of a sum of discrete Gaussians, from −parties·reach on."""
    one = found = one_law(variance, reach)
    for _ in range(parties - 1):
        found = np.convolve(found, one)
    return found


def drawn(mechanism: SummedGaussian, parties: int, rounds: int) -> np.ndarray:
    return sum((mechanism.own.draw(rounds).astype(np.int64) for _ in range(parties)), np.zeros(rounds, np.int64))


def fits(values: np.ndarray, variance: float, parties: int) -> bool:
    """Pearson's test against the exact convolution; rare values count as one."""
    reach = math.ceil(12 * math.sqrt(variance))
    law = convolved(variance, parties, reach)
    middle = parties * reach
    counts = np.bincount(np.clip(values + middle, 0, 2 * middle), minlength=law.size).astype(float)
    expected = law * values.size
    common = expected >= 8
    counts = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    statistic = ((counts - expected) ** 2 / expected).sum()
    return bool(stats.chi2.sf(statistic, counts.size - 1) > ALARM)


@pytest.mark.parametrize(("parties", "colluding"), [(3, 1), (5, 2)])
def test_the_sum_follows_the_exact_convolution_and_a_smaller_scale_does_not(parties: int, colluding: int):
    mechanism = made(parties, colluding)
    values = drawn(mechanism, parties, 1_000_000 if LONG else 40_000)
    assert fits(values, float(mechanism.part), parties)
    assert not fits(values, float(mechanism.part) / 0.64, parties)  # as noise 20% too small for what is stated


def test_the_law_for_intervals_is_that_of_the_sum():
    mechanism = made()
    variance = float(mechanism.part)
    law = convolved(variance, 3, math.ceil(14 * math.sqrt(variance)))
    middle = law.size // 2
    for k in (1, 5, 20, mechanism.noise.noise_error(0.95), mechanism.noise.noise_error(0.999)):
        assert mechanism.noise.upper_tail(k) == pytest.approx(law[middle + k :].sum(), rel=1e-7)


def test_the_price_bounds_every_divergence_of_the_exact_convolution():
    mechanism = SummedGaussian(LEAST, 9, 1, 3, 1)  # the least noise, where τ weighs most
    law = convolved(16.0, 2, 140)  # of the two that do not collude
    with np.errstate(divide="ignore"):
        logs = np.log(law)
    here, there = logs[:-3], logs[3:]
    both = np.isfinite(here) & np.isfinite(there)
    for order in (1.5, 2, 4, 8, 16):
        terms = order * here[both] + (1 - order) * there[both]
        divergence = (terms.max() + math.log(np.exp(terms - terms.max()).sum())) / (order - 1)
        assert divergence <= order * float(mechanism.rho) * (1 + 1e-9)
        assert divergence >= order * float(mechanism.rho) * 0.99  # and hardly more than that is paid


def audited(noisy: SummedGaussian, honest: int, moved: int):
    """What tells two tables apart, one person's rows at all parties apart, for who knows the noise of the others."""

    def draw(side: int, rounds: int) -> np.ndarray:
        return drawn(noisy, honest, rounds) + side * moved

    exact = Claim(events.Gaussian(1 / math.sqrt(2 * float(RHO))), 1e-6)
    return lower_bound(draw, exact, samples=2_000_000 if LONG else 400_000, confidence=1 - 1e-6)


def test_a_coalition_that_subtracts_its_own_noise_learns_no_more_than_is_charged():
    mechanism = made()
    found = audited(mechanism, honest=2, moved=OVERLAP * CLIP)
    assert not found.broken, found.worst
    assert all(each.epsilon <= each.claimed for each in found.bounds)


def test_noise_for_one_party_only_is_caught_where_a_person_is_at_three():
    found = audited(made(overlap=1), honest=2, moved=OVERLAP * CLIP)
    assert found.broken


def test_noise_that_counts_on_the_coalition_is_caught():
    everybody = SummedGaussian(made().part * 2 / 3, (OVERLAP * CLIP) ** 2, 1, 3, 1)  # σ²/n where σ²/(n − t) belongs
    found = audited(everybody, honest=2, moved=OVERLAP * CLIP)
    assert found.broken


def test_a_price_never_buys_more_than_it_costs():
    for rho in (Fraction(1, 10**6), Fraction(1, 40), Fraction(3), Fraction(10**4)):
        for parties, colluding in ((2, 1), (3, 1), (3, 2), (15, 7)):
            found = SummedGaussian.priced(
                rho, squared_sensitivity=36, dimension=1000, parties=parties, colluding=colluding
            )
            assert found.rho <= rho and found.part >= LEAST
    with pytest.raises(InputError):
        SummedGaussian(Fraction(15), 1, 1, 3, 1)
    with pytest.raises(InputError):
        SummedGaussian.priced(Fraction(1), squared_sensitivity=1, dimension=1, parties=3, colluding=3)


def test_what_parties_bring_has_just_that_noise(tmp_path: Path):
    found = hospitals(tmp_path, people=3)
    rounds = 60_000 if LONG else 4_000
    total, part = np.zeros(3 * rounds, np.int64), Fraction(0)
    for each in found:
        name = each.party.card.name
        question = "SELECT region, COUNT(*) FROM visits GROUP BY region"
        planned = Seat.of(each.party, JointAsk(question, 3.0, name, NAMES, 1)).planned
        exact = [[0, 1000, -1000]]
        total += np.array([measured(planned, exact) for _ in range(rounds)]).reshape(-1) - np.tile(exact[0], rounds)
        part = planned.mechanisms[0].part
    # so wide a law that it is smooth: a sum of three discrete Gaussians within a unit step of a normal one
    law = stats.norm(0, math.sqrt(3 * float(part)))
    spread = total + np.random.default_rng(1).uniform(-0.5, 0.5, total.size)
    assert stats.kstest(spread, law.cdf).pvalue > ALARM
    assert stats.kstest(spread / 0.8, law.cdf).pvalue < ALARM
