"""ε of trained models by loss distributions: what discrete Gaussian noise is worth as if it were continuous.

A figure for a model card, about that model alone, its parameters fixed beforehand. Nothing is charged by it: a ledger
whose questions are chosen adaptively cannot add up loss distributions (docs/explanation/filters.md).

Guarantee:
    Let M be the run with discrete Gaussian noise, M′ the same run with *rounded* Gaussian noise of the same σ. Whole
    numbers are added, so M′ is the run with continuous noise, rounded: its δ(ε) is at most that of sampled Gaussians,
    whose worst pairs are known [ZDW22]. If the transcripts of M and M′ are within τ of each other in total variation,
    on each of two neighbours, then M is (ε, δ′ + (1 + e^ε)·τ)-DP wherever M′ is (ε, δ′)-DP: P(M ∈ E) ≤ P(M′ ∈ E) + τ ≤
    e^ε·P(M′₂ ∈ E) + δ′ + τ ≤ e^ε·(P(M₂ ∈ E) + τ) + δ′ + τ. The event's own δ comes on top.

    *τ.* One number of noise: p(k) ∝ φ(k), r(k) = ∫φ over k ± ½, y = k/σ. Then r/φ = ∫ e^(−t²/2σ²)·cosh(yt/σ) dt over
    |t| ≤ ½, which lies between 1 − 1/24σ² and, for |y| ≤ σ, 1 + 1.07·y²/24σ². So |r/φ − 1| ≤ 1.07·max(1, y²)/24σ²,
    and as E[max(1, y²)²] ≤ 4, χ²(r‖p) ≤ 4·(1.07/24)²/σ⁴ < 1/125σ⁴: for σ ≥ 2²⁰ that leaves room for the sum of φ over
    all k, which is 1 but for e^(−2π²σ²), and for |y| > σ, which has less than e^(−σ²/4). KL is at most χ², adds up over
    steps and numbers (chosen adaptively too, by its chain rule, and mixed over samples, by convexity), and by Pinsker's
    inequality n numbers give τ ≤ √(n/250)/σ².

References:
    [ZDW22] Zhu, Dong & Wang, Optimal Accounting of Differential Privacy via Characteristic Function (2022), Thm. 11.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dalenius.accounting import costs, events, orders, parameters
from dalenius.accounting.events import Event
from dalenius.accounting.pld import PLD
from dalenius.errors import InputError

FINEST = 2**20  # σ in steps of the grid, from which on the distance above is proved
_OUTWARD = 1 + 2**-40
_NEARER = 1e-6  # how far ε may be guessed too high
_MOST = 700.0  # whose exponential is still a double


def model_epsilon(event: Event, delta: float) -> float:
    """The ε at a δ of an event with sampled noise, taken alone: by loss distributions, or by the best order.

    >>> from fractions import Fraction
    >>> steps = events.SampledGaussian(Fraction(42_949_673, 2**32), 2**80, 2**80, steps=10_000)
    >>> round(model_epsilon(steps, 1e-5), 3)
    6.188
    """
    left = parameters.delta(delta) - costs.fixed_delta(event)
    if left <= 0:
        return math.inf
    found = orders.epsilon_of(Fraction(0), (event,), left, Fraction(2))
    try:
        return min(found, pld_epsilon(event, delta))
    except (ArithmeticError, InputError):  # losses that leave the doubles, or a grid that is too coarse
        return found


def pld_epsilon(event: Event, delta: float) -> float:
    """The same by loss distributions; infinite where there is none.

    Raises:
        InputError: The grid is too coarse for the noise.
    """
    left = parameters.delta(delta) - costs.fixed_delta(event)
    if left <= 0:
        return math.inf
    continuous, distance = _continuous(event)
    law = PLD.of(continuous)
    guess = law.epsilon(left)
    while math.isfinite(guess) and guess < _MOST:
        guess += _NEARER
        paid = left - (1 + math.exp(guess)) * distance
        if paid <= parameters.SMALLEST_DELTA:
            return math.inf
        found = law.epsilon(paid)
        if found <= guess:
            return found
        guess = found
    return math.inf


def _continuous(event: Event) -> tuple[Event, float]:
    """The event with continuous noise in the place of discrete, and how far transcripts may be apart in all."""
    parts: list[Event] = []
    divergence = 0.0  # KL, in all
    for single, times in events.tally(event).items():
        match single:
            case events.SampledGaussian():
                noise: Event = events.PoissonSampled(single.rate, _gaussian(single))
                number = times * single.steps
            case events.DiscreteGaussian() if single.variance >= FINEST**2:
                noise, number = _gaussian(single), times
            case _:
                parts.append(events.Repeated(single, times))
                continue
        parts.append(events.Repeated(noise, number))
        divergence += number * single.dimension / (125 * float(single.variance) ** 2)
    return events.Composed(tuple(parts)), math.sqrt(divergence / 2) * _OUTWARD


def _gaussian(single: events.SampledGaussian | events.DiscreteGaussian) -> events.Gaussian:
    """The same noise, continuous; its multiplier rounded down."""
    if single.variance < FINEST**2:
        raise InputError(
            "The noise is too coarse for a loss distribution.",
            why=f"How far it is from continuous noise is proved for σ of at least {FINEST:,} steps of the grid.",
            fix="Use a finer grid.",
        )
    return events.Gaussian(math.sqrt(single.variance / single.squared_sensitivity) / _OUTWARD, single.neighbors)
