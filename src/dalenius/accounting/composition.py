"""Composition theorems that look at nothing but the (ε, δ) of each part: basic, advanced, optimal.

Each takes a tally (event → how often) and a total δ, and returns ε, or None where it does not apply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy import special

from dalenius.accounting import costs
from dalenius.accounting.events import Approx, Exponential, Single
from dalenius.accounting.guarantees import PureDP
from dalenius.accounting.losses import Array, approximate, inner
from dalenius.accounting.pld import Composition, Tail

Tally = Mapping[Single, int]
_MOST_TERMS = 4_000_000


def basic(counts: Tally, delta: float) -> float | None:
    """Σε. Parts without a pure ε share the δ evenly, each at its own best ε.

    Dwork & Roth (2014), Thm. 3.16.

    >>> from dalenius.accounting.events import Pure
    >>> basic({Pure(0.5): 3}, 0.0)
    1.5
    """
    parts = _parts(counts, delta)
    if parts is None:
        return None
    total = math.fsum(times * epsilon for epsilon, _, times in parts)
    if sum(counts.values()) == 1 and all(costs.pure_epsilon(single) is not None for single in counts):
        return PureDP(total).to_approx(delta).epsilon
    return total


def advanced(counts: Tally, delta: float) -> float | None:
    """√(2 ln(1/δ′)·Σε²) + Σ ε(e^ε−1), δ′ what the parts leave over. Without the second term it is not a bound.

    Dwork, Rothblum & Vadhan (2010), Thm. III.3, for unequal ε.

    >>> from dalenius.accounting.events import Pure
    >>> 1.0 < advanced({Pure(0.01): 10_000}, 1e-6) < 6.3
    True
    """
    parts = _parts(counts, delta / 2 if _needs_delta(counts) else delta)
    slack = delta if parts is None else delta - math.fsum(times * own for _, own, times in parts)
    if parts is None or slack <= 0:
        return None
    if any(epsilon > 300 for epsilon, _, _ in parts):
        return None  # e^ε is past any use, and near overflow
    squares = math.fsum(times * epsilon * epsilon for epsilon, _, times in parts)
    drift = math.fsum(times * epsilon * math.expm1(epsilon) for epsilon, _, times in parts)
    return math.sqrt(2 * math.log(1 / slack) * squares) + drift


def optimal(counts: Tally, delta: float) -> float | None:
    """The least ε that (ε_i, δ_i) alone can promise: every part taken as the worst mechanism of its kind.

    Kairouz, Oh & Viswanath (2015), Thm. 3.3 for equal parts: exact. Unequal parts (computing the optimum is
    #P-hard, Murtagh & Vadhan 2016) by their loss distribution, from above.

    >>> from dalenius.accounting.events import Pure
    >>> optimal({Pure(0.1): 1}, 0.0), round(optimal({Pure(0.1): 100}, 1e-6), 4)
    (0.1, 4.7746)
    """
    parts = _parts(counts, delta / 2 if _needs_delta(counts) else delta)
    if parts is None:
        return None
    if len({(epsilon, own) for epsilon, own, _ in parts}) == 1:
        epsilon, own, _ = parts[0]
        times = sum(times for _, _, times in parts)
        if epsilon > 0 and times <= _MOST_TERMS:
            return equal_parts(epsilon, own, times, delta)
    losses = []
    for epsilon, own, times in parts:
        if epsilon > 0 or own > 0:
            losses.append((approximate(epsilon, own), times))
    return Composition(losses).epsilon(delta)


def equal_parts(epsilon: float, own_delta: float, times: int, delta: float) -> float:
    """ε at δ of k mechanisms, each (ε₀, δ₀)-DP [Kairouz, Oh & Viswanath (2015), Thm. 3.3].

    The loss of the worst one is ±ε₀, so that of all k is (k−2i)ε₀ with binomial probability.
    """
    if delta == 0:
        return times * epsilon if own_delta == 0 else math.inf
    wrong = np.arange(times + 1, dtype=np.float64)[::-1]
    log_false = -epsilon - math.log1p(math.exp(-epsilon))
    log_true = -math.log1p(math.exp(-epsilon))
    log_mass = _log_binomial(times, wrong) + wrong * log_false + (times - wrong) * log_true
    infinity = -math.expm1(times * math.log1p(-own_delta))
    return _binomial_tail((times - 2 * wrong) * epsilon, log_mass + math.log1p(-infinity), infinity).epsilon(delta)


def exponential_mechanisms(event: Exponential, times: int, delta: float) -> float:
    """The exact ε of k exponential mechanisms whose scores are all fixed beforehand.

    With losses confined to ranges [t−ε, t], the worst are two-point laws that share one t; given the target, it is
    enough to look at t_l = (ε_g + (l+1)ε)/(k+1). Choosing the next question after an answer lets the analyst
    move t, which costs more: use `account` for that.

    References:
        Dong, Durfee & Rogers, Optimal DP Composition for Exponential Mechanisms (2020).

    >>> from dalenius.accounting.events import Pure
    >>> round(exponential_mechanisms(Exponential(0.1), 100, 1e-6), 3) < optimal({Pure(0.1): 100}, 1e-6)
    True
    """
    epsilon = float(event.epsilon)
    low, high = 0.0, times * epsilon
    for _ in range(60):
        middle = (low + high) / 2
        if exponential_delta(epsilon, times, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def exponential_delta(epsilon: float, times: int, target: float) -> float:
    """δ at ε_g = ``target`` of k exponential mechanisms with fixed scores (see `exponential_mechanisms`)."""
    lower = np.arange(times + 1, dtype=np.float64)  # how many losses are at the lower end, t − ε
    log_binomial = _log_binomial(times, lower)
    worst = 0.0
    levels = np.clip((target + (lower + 1) * epsilon) / (times + 1), 0.0, epsilon)
    for level in np.unique(levels):
        upper_probability = -math.expm1(level - epsilon) / -math.expm1(-epsilon)
        if not 0 < upper_probability < 1:
            worst = max(worst, -math.expm1(min(0.0, target - times * level)) if upper_probability >= 1 else 0.0)
            continue
        log_mass = log_binomial + lower * math.log1p(-upper_probability)
        log_mass += (times - lower) * math.log(upper_probability)
        gain = -np.expm1(np.minimum(target - times * level + lower * epsilon, 0.0))
        worst = max(worst, inner(np.exp(log_mass), gain))
    return worst


def _parts(counts: Tally, delta: float) -> list[tuple[float, float, int]] | None:
    """(ε, δ, times) of each part: pure where there is a pure ε, else an even share of what δ is left."""
    fixed = math.fsum(times * costs.fixed_delta(single) for single, times in counts.items())
    open_parts = sum(times for single, times in counts.items() if _is_open(single))
    if fixed > delta or (open_parts and delta <= fixed):
        return None
    share = (delta - fixed) / open_parts if open_parts else 0.0
    parts = []
    for single, times in counts.items():
        own = costs.fixed_delta(single)
        if _is_open(single):
            epsilon, own = costs.approximate_epsilon(single, share), own + share
        else:
            pure = costs.pure_epsilon(single)
            epsilon = costs.approximate_epsilon(single, 0.0) if pure is None else pure
        if epsilon is None or not math.isfinite(epsilon):
            return None
        parts.append((epsilon, own, times))
    return parts


def _is_open(single: Single) -> bool:
    """Whether its ε depends on the δ it is given."""
    return costs.pure_epsilon(single) is None and not isinstance(single, Approx)


def _needs_delta(counts: Tally) -> bool:
    return any(_is_open(single) for single in counts)


def _log_binomial(total: int, chosen: Array) -> Array:
    logs: Array = special.gammaln(total + 1) - special.gammaln(chosen + 1) - special.gammaln(total - chosen + 1)
    return logs


def _binomial_tail(
    losses: Array,
    log_mass: Array,
    infinity: float,
) -> Tail:
    """Losses in ascending order, as a tail; only the non-negative ones matter for ε ≥ 0."""
    keep = losses >= 0
    losses, log_mass = losses[keep], log_mass[keep]
    scale = float(log_mass.max())
    return Tail(losses, np.exp(log_mass - scale), scale, infinity, 0.0)
