"""Rényi divergences of the sampled discrete Gaussian, as upper bounds down to the last digit, and noise for a price.

One step releases f(S) + noise: S has each unit independently with probability q, f sums integer vectors, noise is
discrete Gaussian N_ℤ(0, σ²) on each number. Adding a unit with vector v, ‖v‖² ≤ Δ², turns the law of a step from a
mixture over S of μ₀ into one of μ = (1−q)·μ₀ + q·μ₁, where μ₀ is the noise around f(S) and μ₁ that around f(S) + v.

Guarantee (docs/decisions/0032-charging-sampled-noise.md has every step):
    *Worst pair.* e^((α−1)D_α) is jointly convex, so D_α of the mixtures is at most that of (μ, μ₀), or of (μ₀, μ), for
    one S; and as f(S) and v are whole, μ₀ may be taken around 0 [MTZ19, Thm. 4].

    *Whole orders.* With r = μ₁/μ₀ and s = Δ²/2σ², E_μ₀[r^k] = e^(k(k−1)‖v‖²/2σ²) exactly for whole k: the sum over the
    lattice of e^(−‖x−kv‖²/2σ²) is the same for every whole vector kv. So, in any dimension,

        A_α = E_μ₀[(1 − q + q·r)^α] ≤ Σ_k C(α,k)·(1−q)^(α−k)·q^k·e^(k(k−1)s),   (α−1)·D_α(μ‖μ₀) = ln A_α.

    *The other direction* costs no more. x ↦ v − x maps the lattice onto itself and exchanges μ₀ and μ₁, so
    E_μ₀[g(r)] = E_μ₀[r·g(1/r)], and it is enough that, for every r ≥ 1, with a = 1 − q + qr and b = 1 − q + q/r,

        a^α − a^(1−α) ≥ r·(b^(1−α) − b^α).

    At α = 1 both sides are q(r − 1). They are √a·2sinh((α−½)·ln a) and r√b·2sinh((α−½)·ln(1/b)); since ab ≥ 1, ln a is
    the larger logarithm, and a quotient sinh(tx)/sinh(ty) with x ≥ y grows with t. So the left side stays above.

    *Between whole orders* (α−1)·D_α is convex in α, and 0 at α = 1: its chord lies above it. D_α ≤ αs besides, as
    sampling never costs more than none.

All rounding is outward: sums, products and quotients of positive decimals of 60 digits are rounded up one by one, and
`exp` and `ln`, which the decimal module rounds correctly to nearest, are moved to the next decimal above. So a result
is never below the formula, above it by less than 10⁻⁵⁰·(ln A + 1), and the same on every machine.

References:
    [MTZ19] Mironov, Talwar & Zhang, Rényi Differential Privacy of the Sampled Gaussian Mechanism (2019).
    [CKS20] Canonne, Kamath & Steinke, The Discrete Gaussian for Differential Privacy (2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from functools import lru_cache

from dalenius.accounting import parameters
from dalenius.accounting.events import RATE_BITS, SampledGaussian
from dalenius.accounting.parameters import Real
from dalenius.errors import InputError

_UP = Context(60, ROUND_CEILING, MIN_EMIN, MAX_EMAX, traps=[InvalidOperation, DivisionByZero, Overflow])
_ONE = Decimal(1)
# Past these an unsampled step is the bound: its divergence is αs.
_MOST_TERMS = 20_000
_MOST_GROWTH = 10**6  # of α(α−1)s: e to that
_VARIANCE_BITS = 24  # of a variance that is calibrated
_CLOSE = Fraction(1, 2**18)  # how closely


def sampling_rate(wanted: Real) -> Fraction:
    """The largest rate, not above the one wanted, that units can be drawn with exactly; at least 2⁻³².

    >>> float(sampling_rate(0.01))
    0.009999999776482582
    """
    whole = math.floor(Fraction(parameters.probability(wanted, "rate")) * 2**RATE_BITS)
    return Fraction(max(1, whole), 2**RATE_BITS)


def divergence(event: SampledGaussian, order: Fraction) -> Decimal:
    """D_α of all steps together, adaptive ones too: at most, and in both directions.

    >>> event = SampledGaussian(sampling_rate(0.01), 1, steps=10_000)
    >>> round(float(divergence(event, Fraction(2))), 4)
    1.7181
    """
    one = _step_divergence(event.rate, 1 / (2 * event.squared_multiplier), order)
    return _UP.multiply(_UP.create_decimal(event.steps), one)


def _step_divergence(rate: Fraction, scale: Fraction, order: Fraction) -> Decimal:
    """D_α of one step, with s = ``scale``."""
    unsampled = _up(order * scale)
    low = math.floor(order)
    if rate == 1 or low + 1 > _MOST_TERMS or (low + 1) * low * scale > _MOST_GROWTH:
        return unsampled
    below = _UP.multiply(_up(low + 1 - order), _log_moment(rate, scale, low))
    above = _UP.multiply(_up(order - low), _log_moment(rate, scale, low + 1)) if order > low else Decimal(0)
    return min(unsampled, _UP.divide(_UP.add(below, above), _down(order - 1)))


@lru_cache(maxsize=4096)
def _log_moment(rate: Fraction, scale: Fraction, order: int) -> Decimal:
    """ln A_α at a whole order; 0 at 1.

    Of the terms w_k·g_k, with w_k the binomial weights and g_k = e^(k(k−1)s), each follows from the one before.
    """
    if order == 1:
        return Decimal(0)
    odds = _up(rate / (1 - rate))
    weight = _power(_up(1 - rate), order)
    first = _exp(_up(2 * scale))
    growth = ratio = _ONE  # g_k, and g_(k+1)/g_k = e^(2ks)
    total = weight
    for k in range(order):
        weight = _UP.divide(_UP.multiply(_UP.multiply(weight, Decimal(order - k)), odds), Decimal(k + 1))
        growth = _UP.multiply(growth, ratio)
        ratio = _UP.multiply(ratio, first)
        total = _UP.add(total, _UP.multiply(weight, growth))
    return _UP.next_plus(_UP.ln(total))


def calibrate_sampled(
    rate: Fraction, steps: int, rho: float, orders: Iterable[Fraction], *, least: Real = 1
) -> Fraction:
    """The least σ²/Δ², but ``least``, at which so many sampled steps cost at most ρ at each of the orders.

    Args:
        rate: With which each unit enters a step (`sampling_rate`).
        steps: How many.
        rho: What they may cost: d(α)/α at no order is more.
        orders: Of every filter that is to be charged, and of the price itself (`orders.tight`).
        least: No less noise is returned. Below σ = Δ the cost of small rates explodes.

    >>> variance = calibrate_sampled(sampling_rate(0.01), 1000, 0.02, [Fraction(8), Fraction(19)])
    >>> 1.7 < math.sqrt(variance) < 1.8
    True
    """
    wanted, limits = tuple(orders), Fraction(float(parameters.positive(rho, "rho")))
    if not wanted or min(wanted) <= 1:
        raise InputError(
            "Sampled noise is calibrated at orders above 1.",
            why="Its cost is another one at each order.",
            fix="Give the order of each filter, and that of the price.",
        )

    def excess(variance: Fraction) -> float:
        """What they cost over what they may cost, at the worst order."""
        event = SampledGaussian(rate, variance, steps=steps)
        return max(_quotient(Fraction(divergence(event, order)), limits * order) for order in wanted)

    low = _rounded(Fraction(least))
    if (over_low := excess(low)) <= 1:
        return low
    high = low
    while (over_high := excess(high)) > 1:
        low, over_low = high, over_high
        high = _rounded(
            high * Fraction(min(max(over_high, 2.0), 2.0**20))
        )  # large noise costs as the inverse of its σ²
        if high > parameters.LARGEST / 2:
            raise InputError(
                "No amount of noise makes so many steps cost so little.",
                why=f"ρ = {rho:g} for {steps:,} steps is too small.",
                fix="Take fewer steps, or pay a larger ε.",
            )
    turn = 0
    while high - low > high * _CLOSE:
        turn += 1
        found = _rounded((low + high) / 2)
        if turn % 3:  # where the logarithms' secant falls, and then just below what holds
            part = math.log(over_low) / (math.log(over_low) - math.log(over_high)) if over_high < 1 else 1.0
            found = _rounded(low * Fraction(float(high / low) ** part)) if turn % 3 == 1 else high * (1 - _CLOSE / 2)
            found = min(max(found, low * (1 + _CLOSE / 4)), high * (1 - _CLOSE / 4))
        over = excess(found)
        if over > 1:
            low, over_low = found, over
        else:
            high, over_high = found, over
    return _rounded(high)


def _quotient(value: Fraction, limit: Fraction) -> float:
    """As a double, and above 1 whenever it is."""
    found = float(min(value / limit, Fraction(2**60)))
    return max(found, 1 + 2**-52) if value > limit else min(found, 1.0)


def _rounded(value: Fraction) -> Fraction:
    """Up to so many binary digits."""
    unit = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - _VARIANCE_BITS)
    return math.ceil(value / unit) * unit


def _up(value: Fraction | int) -> Decimal:
    """The decimal at or above."""
    exact = Fraction(value)
    return _UP.divide(Decimal(exact.numerator), Decimal(exact.denominator))


def _down(value: Fraction) -> Decimal:
    """The decimal at or below a value above 0."""
    above = _UP.divide(Decimal(-value.numerator), Decimal(value.denominator))
    return above.copy_negate()  # a minus would round it to the digits of the caller


def _exp(exponent: Decimal) -> Decimal:
    return _UP.next_plus(_UP.exp(exponent))


def _power(base: Decimal, exponent: int) -> Decimal:
    """By squaring, each product rounded up."""
    found = _ONE
    for bit in f"{exponent:b}":
        found = _UP.multiply(found, found)
        if bit == "1":
            found = _UP.multiply(found, base)
    return found
