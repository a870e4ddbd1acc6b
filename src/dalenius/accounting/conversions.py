"""Formulas that turn a guarantee into one of another kind, for a group, or of a sample.

Pure functions of floats, standard library only. Every function is an upper bound on what it converts to. References:

* [BS16] Bun & Steinke, Concentrated Differential Privacy (2016): Prop. 1.4 (ε-DP ⇒ ε²/2-zCDP), Prop. 1.9 (group).
* [CKS20] Canonne, Kamath & Steinke, The Discrete Gaussian (2020): Cor. 13, the tight zCDP → (ε, δ) conversion;
  Prop. 12, the same for one Rényi order.
* [BW18] Balle & Wang, Improving the Gaussian Mechanism (2018): Thm. 8, the exact δ(ε) of Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

# Roots are found to this relative precision, and always returned on the safe side.
_PRECISION = 1e-13


def pure_rho(epsilon: float) -> float:
    """The ρ of ε-DP: min(ε²/2, ε). The first is [BS16]; the second because D_α ≤ ε ≤ εα.

    >>> pure_rho(0.1)
    0.005000000000000001
    """
    return min(epsilon * epsilon / 2, epsilon)


def bounded_range_rho(epsilon: float) -> float:
    """The ρ of a mechanism whose privacy loss has range ε, such as the exponential mechanism: ε²/8.

    Cesar & Rogers (2021). Never more than what ε-DP gives.
    """
    return min(epsilon * epsilon / 8, epsilon)


def rdp_log_delta(order: float, divergence: float, epsilon: float) -> float:
    """ln δ(ε) of an (α, d)-RDP mechanism: δ ≤ exp((α−1)(d−ε))/(α−1) · (1−1/α)^α  [CKS20, Prop. 12]."""
    return (order - 1) * (divergence - epsilon) + _log_correction(order)


def rdp_epsilon_at(order: float, divergence: float, delta: float) -> float:
    """ε(δ) of an (α, d)-RDP mechanism, the inverse of `rdp_log_delta`."""
    return max(0.0, divergence + _order_cost(order, delta))


def _log_correction(order: float) -> float:
    """ln of (1−1/α)^α/(α−1), written so that it keeps its digits near α = 1 and for huge α."""
    return (order - 1) * math.log1p(-1 / order) - math.log(order)


def _order_cost(order: float, delta: float) -> float:
    """c(α), what the conversion at order α adds to the divergence."""
    return (_log_correction(order) - math.log(delta)) / (order - 1)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """δ(ε) of a ρ-zCDP mechanism, by the best order [CKS20, Cor. 13].

    >>> zcdp_delta(zcdp_rho(1.0, 1e-6), 1.0) <= 1.000001e-6
    True
    """
    if rho == 0:
        return 0.0
    best = _minimum_over_orders(lambda order: rdp_log_delta(order, order * rho, epsilon), (epsilon + rho) / (2 * rho))
    return min(1.0, math.exp(min(0.0, best)))


@lru_cache(maxsize=4096)
def zcdp_epsilon(rho: float, delta: float) -> float:
    """ε(δ) of a ρ-zCDP mechanism, tight [CKS20, Cor. 13].

    Any order gives a valid ε, so an imperfect minimiser costs accuracy, never soundness.

    >>> round(zcdp_epsilon(0.185, 1e-6), 2)
    3.0
    """
    if rho == 0:
        return 0.0
    if delta == 0:
        return math.inf
    guess = 1 + math.sqrt(-math.log(delta) / rho)
    best = _minimum_over_orders(lambda order: rdp_epsilon_at(order, order * rho, delta), guess)
    return min(best, zcdp_epsilon_standard(rho, delta))


def zcdp_epsilon_standard(rho: float, delta: float) -> float:
    """The textbook conversion ρ + 2√(ρ ln 1/δ) [BS16, Prop. 1.3]: closed form, a little loose.

    >>> zcdp_epsilon_standard(0.5, 1e-6) > zcdp_epsilon(0.5, 1e-6)
    True
    """
    return rho + 2 * math.sqrt(-rho * math.log(delta))


@lru_cache(maxsize=4096)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """ρ(ε, δ): the largest ρ whose tight conversion at δ gives at most ε.

    This is what a typed ε costs: the budget, an allotment and a question all use this one function.

    >>> round(zcdp_rho(1.0, 1e-6), 4)
    0.0244
    """
    # One order α promises ε = ρα + c(α), so it allows ρ = (ε − c(α))/α; the best order allows the most.
    log_inverse = -math.log(delta)
    standard = (epsilon / (math.sqrt(log_inverse) + math.sqrt(log_inverse + epsilon))) ** 2
    guess = 1 + math.sqrt(log_inverse / standard)
    best = -_minimum_over_orders(lambda order: (_order_cost(order, delta) - epsilon) / order, guess)
    rho = max(best, standard) * (1 - _PRECISION)
    while zcdp_epsilon(rho, delta) > epsilon:  # the two searches may differ in the last digits
        rho *= 1 - _PRECISION
    return rho


def gaussian_delta(multiplier: float, epsilon: float) -> float:
    """The exact δ(ε) of Gaussian noise with σ/Δ = ``multiplier`` [BW18, Thm. 8].

    δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), μ = Δ/σ.
    """
    shift = 1 / multiplier
    if shift < 1e-3:
        # Φ(x) = e^(−x²/2)·erfcx(−x/√2)/2, and both terms share the factor: their difference is a derivative.
        middle = epsilon / (shift * math.sqrt(2))
        gap = _erfcx_slope(middle) * shift / math.sqrt(2)
        upper = shift / 2 - epsilon / shift
        return math.exp(-upper * upper / 2) * gap / 2 * (1 + shift * shift)
    upper, lower = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
    if upper < -5:
        # Both terms are tiny and close: Φ(x) = e^(−x²/2)·erfcx(−x/√2)/2 puts a common factor outside.
        root = math.sqrt(2)
        gap = _erfcx(-upper / root) - _erfcx(-lower / root)
        return max(0.0, math.exp(-upper * upper / 2) * gap / 2)
    log_second = epsilon + _log_normal_cdf(lower)
    return max(0.0, _normal_cdf(upper) - math.exp(log_second))


@lru_cache(maxsize=4096)
def gaussian_epsilon(multiplier: float, delta: float) -> float:
    """The exact ε(δ) of Gaussian noise.

    >>> round(gaussian_epsilon(1.0, 1e-6), 4)
    4.8866
    """
    if gaussian_delta(multiplier, 0.0) <= delta:
        return 0.0
    return smallest(lambda epsilon: gaussian_delta(multiplier, epsilon) <= delta, 1.0)


def group_delta(epsilon: float, delta: float, size: int) -> float:
    """δ of an (ε, δ)-DP mechanism for groups of ``size``, at kε: δ·(e^{kε}−1)/(e^ε−1)  [Vadhan 2017, Lemma 2.2]."""
    if delta == 0:
        return 0.0
    if epsilon == 0:
        return min(1.0, size * delta)
    log_factor = (size - 1) * epsilon + math.log(-math.expm1(-size * epsilon)) - math.log(-math.expm1(-epsilon))
    return min(1.0, math.exp(min(700.0, log_factor)) * delta)


def amplified_epsilon(epsilon: float, rate: float) -> float:
    """ε′ = ln(1 + q(e^ε − 1)), exactly; "≈ qε" holds only for small ε.

    A mechanism on a random part of the data says less about each unit. For Poisson sampling under add-remove and for
    sampling m of n without replacement under substitute (q = m/n); the δ becomes qδ. Balle, Barthe & Gaboardi (2018),
    Thm. 8 and 9.

    >>> amplified_epsilon(1.0, 1.0)
    1.0
    >>> round(amplified_epsilon(1.0, 0.01), 5)
    0.01704
    """
    if rate == 1:
        return epsilon
    if epsilon < 1:
        return math.log1p(rate * math.expm1(epsilon))
    return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))


def smallest(holds: Callable[[float], bool], guess: float, precision: float = _PRECISION) -> float:
    """The least x > 0 at which a monotone condition holds; the returned x satisfies it.

    Returns infinity when it does not hold anywhere up to 1e18·guess.
    """
    low, high = guess / 2, guess
    while not holds(high):
        low, high = high, high * 2
        if high > guess * 1e18:
            return math.inf
    while low > guess * 1e-18 and holds(low):
        low, high = low / 2, low
    while high - low > precision * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def largest(holds: Callable[[float], bool], guess: float, precision: float = _PRECISION) -> float:
    """The greatest x > 0 at which a monotone condition holds; the returned x satisfies it (0 if none does)."""
    low, high = guess, guess * 2
    while not holds(low):
        low, high = low / 2, low
        if low < guess * 1e-18:
            return 0.0
    while holds(high):
        low, high = high, high * 2
        if high > guess * 1e18:
            return high
    while high - low > precision * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _minimum_over_orders(objective: Callable[[float], float], guess: float) -> float:
    """Golden-section search over ln(α − 1), around a good guess; the objectives here have one valley."""
    ratio = (math.sqrt(5) - 1) / 2
    centre = math.log(max(guess - 1, 1e-9))
    low, high = centre - 6.0, centre + 6.0

    def value(log_order: float) -> float:
        return objective(1 + math.exp(log_order))

    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(60):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = value(right)
    return min(at_left, at_right)


def _normal_cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _log_normal_cdf(x: float) -> float:
    if x > -5:
        return math.log(_normal_cdf(x))
    return -x * x / 2 + math.log(_erfcx(-x / math.sqrt(2)) / 2)


def _erfcx(x: float) -> float:
    """e^(x²)·erfc(x), for x ≥ 3 by its continued fraction (Lentz), to full precision."""
    if x < 3:
        return math.exp(x * x) * math.erfc(x)
    fraction = 0.0
    for step in range(60, 0, -1):
        fraction = step / 2 / (x + fraction)
    return 1 / (math.sqrt(math.pi) * (x + fraction))


def _erfcx_slope(x: float) -> float:
    """−d/dx erfcx(x) = 2/√π − 2x·erfcx(x), for x ≥ 0; far out by its series, where the two terms nearly cancel."""
    if x < 12:
        return 2 / math.sqrt(math.pi) - 2 * x * _erfcx(x)
    square = x * x
    series = 1 / (2 * square) - 3 / (4 * square**2) + 15 / (8 * square**3) - 105 / (16 * square**4)
    return 2 / math.sqrt(math.pi) * (series + 945 / (32 * square**5))
