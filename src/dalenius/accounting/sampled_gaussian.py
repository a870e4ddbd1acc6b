"""Rényi divergences of the sampled Gaussian mechanism, as upper bounds down to the last digit.

Noise of standard deviation 1 and shift μ = Δ/σ. With r(t) = e^(μt − μ²/2), the ratio of N(μ, 1) to N(0, 1) at t, and
φ the density of N(0, 1), the ratio after sampling at rate q is e^ℓ = 1 − q + q·r. Every bound here is one on

    A_α − 1 = E[e^(αℓ)] − 1 = ∫ φ·(e^(αℓ) − 1 − α(e^ℓ − 1)),   then   d(α) = ln(A_α)/(α − 1),

where E[e^ℓ] = 1 was used. The integrand is nowhere negative, so nothing cancels, however small the divergence.

All rounding is outward: arguments move away from 0 by more than their own error, exponents move up, what a sum
leaves out is bounded and added. Parameters that are no doubles become the next worse double.

References:
    [MTZ19] Mironov, Talwar & Zhang, Rényi Differential Privacy of the Sampled Gaussian Mechanism (2019).
    [BBG18] Balle, Barthe & Gaboardi, Privacy Amplification by Subsampling (2018).
    [WBK19] Wang, Balle & Kasiviswanathan, Subsampled Rényi Differential Privacy (2019).
    [TW14] Trefethen & Weideman, The Exponentially Convergent Trapezoidal Rule (2014).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy import special

from dalenius.accounting.losses import Array
from dalenius.accounting.parameters import Real

_OUTWARD = 1 + 2**-44  # more than the relative error of any argument here, a few hundred units in the last place
_SLACK = 1e-12  # on ln(A − 1): more than the error of a logarithm and of a sum of positive terms
_DIGITS = 36.0  # a quadrature may err by e^(−36) of its result, which is added
_MOST_TERMS = 2048
_MOST_NODES = 5000
_CHORDS = 4000
_LOG_ROOT_2PI = math.log(2 * math.pi) / 2


def poisson(rate: Real, noise_multiplier: float, orders: Array) -> Array:
    """d(α) under add-remove, when each unit enters the sample independently with probability ``rate``.

    Guarantee:
        The worst pair is (1−q)·N(0, σ²) + q·N(1, σ²) against N(0, σ²) [MTZ19, Thm. 4], and of its two directions
        this one [MTZ19, Thm. 5]. Whole orders by the binomial sum, others by quadrature; neither is ever below d(α).
        By Minkowski's inequality ln A_α ≤ α·ln(1 − q + q·e^((α−1)/2σ²)), which is taken where noise is so
        small that a quadrature would take too long: there it cannot be told from the truth.
    """
    q, shift = _parameters(rate, noise_multiplier)
    with np.errstate(all="ignore"):
        logs = [_log_moment(_log_excess(q, shift, order)) for order in map(float, orders)]
        return _divergence(logs, orders)


def without_replacement(rate: Real, noise_multiplier: float, orders: Array) -> Array:
    """d(α) under substitution, when a share ``rate`` of the units is drawn without replacement.

    Guarantee:
        δ′(ln(1 + q(e^x − 1))) = q·δ(x) for x ≥ 0 [BBG18, Thm. 9] bounds the profile in both directions, hence every
        Rényi divergence, as that is an average of profiles. The pair with that profile has the loss ℓ of Poisson
        sampling where r > 1, its mirror image, and 0 otherwise, so that

            A_α − 1 = ∫_{r>1} φ·B(ℓ),   B(ℓ) = (e^((α−1)ℓ) − 1)·(e^ℓ − e^(−(α−1)ℓ)).

        It is at most twice that of Poisson sampling, as B is at most twice the integrand there; at whole orders that
        is never above the bound of [WBK19, Thm. 27].
    """
    q, shift = _parameters(rate, noise_multiplier)
    with np.errstate(all="ignore"):
        logs = []
        for order in map(float, orders):
            twice = _log_excess(q, shift, order) + math.log(2)
            chords = _log_chords(q, shift, order) if q < 1 else math.inf
            gaussian = order * (order - 1) * shift * shift / 2
            logs.append(min(_log_moment(min(twice, chords)), gaussian))
        return _divergence(logs, orders)


def _parameters(rate: Real, noise_multiplier: float) -> tuple[float, float]:
    """(q, μ), both rounded up: A_α grows with either."""
    q = float(rate)
    if Fraction(q) < rate:
        q = math.nextafter(q, 1.0)
    return q, max(1 / noise_multiplier * _OUTWARD, 1e-150)  # so that μ² is a double


def _divergence(logs: list[float], orders: Array) -> Array:
    values: Array = np.nextafter(np.array(logs) / (orders - 1) * _OUTWARD, np.inf)
    return np.where(np.isnan(values), np.inf, values)


def _log_moment(log_excess: float) -> float:
    """The logarithm of A from that of A − 1."""
    return float(np.logaddexp(0.0, log_excess))


def _minkowski(q: float, shift: float, order: float) -> float:
    """ln A ≤ α·ln(1−q + q·‖r‖_α), the norm of a sum being at most the sum of the norms; ‖r‖_α = e^((α−1)μ²/2)."""
    return order * float(_loss(np.array((order - 1) * shift * shift / 2 * _OUTWARD), q))


def _log_excess(q: float, shift: float, order: float) -> float:
    """An upper bound on ln(A_α − 1) of Poisson sampling."""
    if q == 1:
        exponent = order * (order - 1) * shift * shift / 2 * _OUTWARD
        return float(_log_expm1(np.array(exponent))) + _SLACK
    if order.is_integer() and order <= _MOST_TERMS:
        return _log_binomial_sum(q, shift, int(order))
    return min(_log_trapezoids(q, shift, order), float(_log_expm1(np.array(_minkowski(q, shift, order)))) + _SLACK)


def _log_binomial_sum(q: float, shift: float, order: int) -> float:
    """ln Σ_{k≥2} C(α,k)(1−q)^(α−k)q^k·(e^(k(k−1)μ²/2) − 1) [MTZ19, Sec. 3.3], Σ C(α,k)(1−q)^(α−k)q^k = 1 taken off."""
    k = np.arange(2, order + 1, dtype=np.float64)
    growth = _log_expm1(k * (k - 1) * shift * shift / 2)
    parts = np.array([_log_binomials(order), k * math.log(q), (order - k) * math.log1p(-q), growth])
    return _log_sum(parts.sum(axis=0) + 2**-49 * np.abs(parts).sum(axis=0)) + _SLACK


@lru_cache(maxsize=128)
def _log_binomials(order: int) -> Array:
    """The logarithms of C(α, k) for k = 2 … α."""
    found, logs = order, []
    for k in range(2, order + 1):
        found = found * (order - k + 1) // k
        logs.append(math.log(found))
    return np.array(logs)


def _log_trapezoids(q: float, shift: float, order: float) -> float:
    """ln of the integral for any order, by the trapezoidal rule; infinite where it would take too long.

    The integrand is analytic for |Im t| < π/μ: only there 1 − q + q·r can be 0. On lines |Im t| = a its integral is at
    most e^(a²/2)·(A + 1 + 2α), since |r| stays as it is and |φ| grows by e^(a²/2). So a sum of step h errs by at most
    2e^(a²/2)(A + 1 + 2α)/(e^(2πa/h) − 1) [TW14, Thm. 5.1], with Minkowski's bound for A. Steps of 0.3 give all digits.

    Of the tails that the sum leaves out, the left one is at most the integrand without φ at r = 0, times the mass
    there; on the right φ·e^(αℓ) falls by e^(−Rh) or more with every step, R being the distance to αμ.
    """
    small = 2 * math.log(q) + math.log(order * (order - 1) / 2) + min(0.0, 2 * math.log(shift))
    large = order * math.log(q) + order * (order - 1) * shift * shift / 2
    above = float(np.logaddexp(_minkowski(q, shift, order), math.log1p(2 * order))) * _OUTWARD
    about = large if large > 1 else small  # where ln(A − 1) lies: the step follows from it, soundness does not
    needed = _DIGITS + above - about
    if not math.isfinite(needed):
        return math.inf
    strip = min(math.pi / shift / _OUTWARD, math.sqrt(2 * needed))
    step = 2 * math.pi * strip / (needed + strip * strip / 2)
    reach = math.sqrt(2 * needed) + 1
    first, last = math.floor(-(reach + shift / 2) / step), math.ceil((order * shift + reach - shift / 2) / step)
    if last - first > _MOST_NODES:
        return math.inf
    index = np.arange(first, last + 1, dtype=np.float64)
    t = shift / 2 + index * step
    loss = _loss(index * (step * shift), q)  # at these nodes r = e^(μhj): no digit is lost
    logs = _log_convex(loss, order - 1) + _log_density(t)
    decay = 2 * math.pi * strip / step
    error = math.log(2) + strip * strip / 2 + above - decay - math.log1p(-math.exp(-decay))
    left = float(_log_convex(_loss(np.array(-math.inf), q), order - 1) + special.log_ndtr(t[0]))
    right = order * loss[-1] + _log_density(t[-1]) - _log_expm1(np.array(reach * step))
    inside = math.log(step) + _log_sum(np.append(logs, right))
    return _log_sum(np.array([inside, left, error])) + _SLACK


def _log_chords(q: float, shift: float, order: float) -> float:
    """ln of ∫_{r>1} φ·B(ℓ), by chords: B is convex and grows with t there, so chords between nodes lie above it.

    A chord's ends weigh φ with hat functions: ∫ φ(t)·hat((t−t_j)/h) dt ≤ h·φ(t_j)·(sinh(y)/y)², y = t_j·h/2, where only
    e^(−(t−t_j)²/2) ≤ 1 was dropped. Steps are small enough for three digits. The tail as in `_log_trapezoids`, with
    B ≤ 2e^(αℓ), and hats that grow by at most e^(h²) with every step.
    """
    reach = math.sqrt(2 * (_DIGITS - 2 * math.log(q) - min(0.0, 2 * math.log(shift))))
    end = order * shift + reach
    step = max(min(0.02, 0.1 / (order * shift)), end / _CHORDS)
    if not 0 < step < 0.1:  # so little noise that twice the other bound is as good
        return math.inf
    index = np.arange(1, math.ceil(end / step) + 1, dtype=np.float64)
    t = shift / 2 + index * step
    loss = _loss(index * (step * shift), q)
    growth = loss + _log_expm1((order - 1) * loss) + np.log(-np.expm1(-order * loss))
    hats = 2 * (t * step / 2 + np.log(-np.expm1(-t * step) / (t * step)))
    logs = growth + _log_density(t) + hats * _OUTWARD
    right = order * loss[-1] + _log_density(t[-1]) - _log_expm1(np.array((reach - step) * step))
    return math.log(step) + _log_sum(np.append(logs, right + hats[-1] + math.log(2))) + _SLACK


def _log_sum(logs: Array) -> float:
    """The logarithm of a sum of exponentials."""
    top = float(np.max(logs))
    return top + math.log(float(np.sum(np.exp(logs - top)))) if math.isfinite(top) else top


def _log_density(t: Array) -> Array:
    """ln φ(t), rounded up."""
    return -(t * t) / 2 * (1 - 2**-49) - _LOG_ROOT_2PI


def _loss(log_ratio: Array, q: float) -> Array:
    """ℓ = ln(1 − q + q·e^s), away from 0."""
    gain = q * np.expm1(np.minimum(log_ratio, 700.0))
    near = np.where(gain < -0.5, np.log((1 - q) + q * np.exp(np.minimum(log_ratio, 0.0))), np.log1p(gain))
    far = np.logaddexp(math.log1p(-q) if q < 1 else -math.inf, math.log(q) + log_ratio)
    loss: Array = np.where(log_ratio > 700.0, far, near) * _OUTWARD
    return loss


def _log_convex(loss: Array, x: float) -> Array:
    """ln(e^(αℓ) − 1 − α(e^ℓ − 1)), α = 1 + x: it is e^ℓ·F(ℓ) with F(ℓ) = (e^(xℓ) − 1) + x(e^(−ℓ) − 1).

    Near 0 by the series F(ℓ) = Σ_{k≥2} x(x^(k−1) + (−1)^k)·ℓ^k/k!, of which 16 terms leave less than a digit.
    """
    scale = max(x, 1.0)
    y = np.clip(loss * scale, -0.5, 0.5)
    series = np.zeros_like(loss)
    for k in range(17, 1, -1):
        series = series * y + x * (x ** (k - 1) + (-1) ** k) / (scale**k * math.factorial(k))
    near = 2 * np.log(np.abs(loss * scale)) + np.log(series)
    far = np.log(np.expm1(np.minimum(x * loss, 30.0)) + x * np.expm1(-loss))
    farther = x * loss + np.log1p(-np.exp(-x * loss) * (1 - x * np.expm1(-loss)))
    logs: Array = loss + np.where(np.abs(loss) * scale <= 0.5, near, np.where(x * loss > 30.0, farther, far))
    return logs


def _log_expm1(exponent: Array) -> Array:
    """ln(e^y − 1) for y ≥ 0 without overflow."""
    logs: Array = np.where(
        exponent > 1, exponent + np.log1p(-np.exp(-exponent)), np.log(np.expm1(np.minimum(exponent, 1)))
    )
    return logs
