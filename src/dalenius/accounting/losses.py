"""Privacy-loss distributions of single events, as dominating pairs.

A pair (P, Q) dominates a mechanism when H_x(M(D)‖M(D′)) ≤ H_x(P‖Q) for every x and all neighbours, H_x the
hockey-stick divergence δ(x). Dominating pairs compose, adaptively too [ZDW22, Thm. 10], so all a mechanism has to
tell is the law of its loss L = ln(dP/dQ): atoms, a continuous part, and mass at infinity.

Putting it on a grid is *connect the dots* [DGKKM22]: the mass of each interval goes to its two ends so that both
its P-mass and its Q-mass are kept. That draws chords over the convex curve e^x ↦ δ(x): never below it.

References:
    [ZDW22] Zhu, Dong & Wang, Optimal Accounting of Differential Privacy via Characteristic Function (2022).
    [DGKKM22] Doroshenko et al., Connect the Dots (2022).
    [DDR20] Dong, Durfee & Rogers, Optimal DP Composition for Exponential Mechanisms (2020).
    [BBG18] Balle, Barthe & Gaboardi, Privacy Amplification by Subsampling (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

from dalenius.accounting import events
from dalenius.accounting.conversions import amplified_epsilon
from dalenius.accounting.events import Event

Array: TypeAlias = npt.NDArray[np.float64]
Masses: TypeAlias = tuple[Array, Array]  # (P, Q)

# The exact law of discrete noise lists its atoms; past this many a coarser sound bound is used instead.
MOST_ATOMS = 4_000_000


@dataclass(frozen=True)
class Curve:
    """The continuous part of a loss: P- and Q-mass of (x, ∞) and of (−∞, x), each precise in its own tail."""

    above: Callable[[Array], Masses]
    below: Callable[[Array], Masses]
    low: float
    high: float

    def reversed(self) -> Curve:
        """The loss of (Q, P): −L, and the measures change places."""

        def swap(function: Callable[[Array], Masses]) -> Callable[[Array], Masses]:
            def masses(x: Array) -> Masses:
                p, q = function(-x)
                return q, p

            return masses

        return Curve(swap(self.below), swap(self.above), -self.high, -self.low)


@dataclass(frozen=True)
class DominatingPair:
    """A dominating pair, by the law of its loss under P. Q has mass p·e^(−loss) at an atom."""

    atoms: Array = field(default_factory=lambda: np.empty(0))
    masses: Array = field(default_factory=lambda: np.empty(0))
    curve: Curve | None = None
    infinity: float = 0.0
    symmetric: bool = True
    others: Array | None = None  # the Q-masses, where p·e^(−loss) would lose them

    @property
    def q_masses(self) -> Array:
        """What Q has at the atoms."""
        if self.others is not None:
            return self.others
        with np.errstate(divide="ignore", over="ignore"):
            return np.exp(np.log(self.masses) - self.atoms)

    def reversed(self) -> DominatingPair:
        """(Q, P): removal seen as addition. Pairs with mass at infinity are symmetric here, so they stay."""
        if self.symmetric:
            return self
        curve = self.curve.reversed() if self.curve else None
        return DominatingPair(-self.atoms, self.q_masses, curve, symmetric=False, others=self.masses)


@dataclass(frozen=True)
class Grid:
    """A loss on the lattice h·ℤ: ``probabilities[i]`` at h·(offset + i), the rest at infinity."""

    offset: int
    probabilities: Array
    infinity: float
    interval: float

    @cached_property
    def losses(self) -> Array:
        """Where the probabilities stand."""
        index = np.arange(self.offset, self.offset + self.probabilities.size, dtype=np.int64)
        return index.astype(np.float64) * self.interval

    @cached_property
    def held(self) -> tuple[Array, Array]:
        """The losses that have any probability, and theirs: of a few atoms far apart, a few points of very many."""
        where = np.flatnonzero(self.probabilities)
        return self.losses[where], self.probabilities[where]


def inner(one: Array, other: Array) -> float:
    """Σ one·other, in this thread alone.

    By `@` OpenBLAS would share a long one with a thread for each core, which then wait for more at full speed: several
    times the processor's work, and on a busy machine several times the time.
    """
    return float((one * other).sum())


def dominating_pair(event: Event) -> DominatingPair | None:
    """The dominating pair of an event, or None where only a guarantee of another kind is known."""
    match event:
        case events.Gaussian():
            return gaussian(1 / float(event.noise_multiplier))
        case events.Laplace():
            return laplace(1 / float(event.noise_multiplier))
        case events.DiscreteGaussian():
            return discrete_gaussian(event)
        case events.DiscreteLaplace():
            return discrete_laplace(event)
        case events.Exponential():
            return bounded_range(float(event.epsilon))
        case events.NoisyMax() | events.Pure():
            return randomized_response(float(event.epsilon), 2)
        case events.RandomizedResponse():
            return randomized_response(float(event.epsilon), event.categories)
        case events.Approx():
            return approximate(float(event.epsilon), float(event.delta))
        case (
            events.PoissonSampled(event=events.Approx() as inner)
            | events.SampledWithoutReplacement(event=events.Approx() as inner)
        ):
            rate = float(event.rate)
            return approximate(amplified_epsilon(float(inner.epsilon), rate), rate * float(inner.delta))
        case events.PoissonSampled():
            loss = dominating_pair(merge_gaussians(event.event))
            return poisson_sampled(loss, float(event.rate)) if loss else None
        case events.SampledWithoutReplacement():
            loss = dominating_pair(merge_gaussians(event.event))
            return sampled_without_replacement(loss, float(event.rate)) if loss else None
        case _:
            return None


def merge_gaussians(event: Event) -> Event:
    """A composition of Gaussians as the one Gaussian it equals, 1/m² = Σ 1/m_i²; anything else as it is."""
    parts = []
    for single, times in events.flatten(event):
        if not isinstance(single, events.Gaussian):
            return event
        parts.append(times / float(single.noise_multiplier) ** 2)
    total = math.fsum(parts)
    return events.Gaussian(1 / math.sqrt(total), event.neighbors) if total else event


def gaussian(shift: float) -> DominatingPair:
    """N(μ, 1) against N(0, 1): L is N(μ²/2, μ²) under P and N(−μ²/2, μ²) under Q."""
    half = shift * shift / 2

    def above(x: Array) -> Masses:
        return special.ndtr((half - x) / shift), special.ndtr((-half - x) / shift)

    def below(x: Array) -> Masses:
        return special.ndtr((x - half) / shift), special.ndtr((x + half) / shift)

    return DominatingPair(curve=Curve(above, below, -math.inf, math.inf))


def laplace(epsilon: float) -> DominatingPair:
    """Laplace noise at ε: atoms at ±ε (½ and ½e^(−ε)), between them the density ¼e^((x−ε)/2)."""
    inside = _half_slope(epsilon, 0.5)
    atoms, masses = np.array([-epsilon, epsilon]), np.array([math.exp(-epsilon) / 2, 0.5])
    return DominatingPair(atoms, masses, inside, others=masses[::-1])


def bounded_range(epsilon: float) -> DominatingPair:
    """Any mechanism whose loss has range ε: P(L > x) = (1−e^((x−ε)/2))/(1−e^(−ε)) on [−ε, ε].

    Among losses confined to [t−ε, t] the worst puts mass on the two ends [DDR20]. The best t for the profile at x
    is (x+ε)/2, which gives δ(x) = (1−e^((x−ε)/2))²/(1−e^(−ε)); this is the pair with that profile.
    """
    return DominatingPair(curve=_half_slope(epsilon, -1 / math.expm1(-epsilon)))


def _half_slope(epsilon: float, height: float) -> Curve:
    """P(L > x) = h·(1 − e^((x−ε)/2)) on [−ε, ε]; written so that no exponent is above 0."""

    def above(x: Array) -> Masses:
        return -height * np.expm1((x - epsilon) / 2), -height * np.exp(-(epsilon + x) / 2) * np.expm1((x - epsilon) / 2)

    def below(x: Array) -> Masses:
        return -height * np.exp((x - epsilon) / 2) * np.expm1(-(x + epsilon) / 2), -height * np.expm1(
            -(x + epsilon) / 2
        )

    return Curve(above, below, -epsilon, epsilon)


def randomized_response(epsilon: float, categories: int) -> DominatingPair:
    """k-ary randomized response. With k = 2 it is the worst ε-DP mechanism there is [Kairouz et al. 2015]."""
    other = math.exp(-epsilon) / (1 + (categories - 1) * math.exp(-epsilon))
    truth = 1 / (1 + (categories - 1) * math.exp(-epsilon))
    atoms, masses = [-epsilon, epsilon], [other, truth]
    if categories > 2:
        atoms, masses = [-epsilon, 0.0, epsilon], [other, (categories - 2) * other, truth]
    return DominatingPair(np.array(atoms), np.array(masses))


def approximate(epsilon: float, delta: float) -> DominatingPair:
    """The worst (ε, δ)-DP mechanism: with probability δ it gives the unit away [Kairouz et al. 2015]."""
    inner = randomized_response(epsilon, 2)
    return DominatingPair(inner.atoms, inner.masses * (1 - delta), infinity=delta)


def discrete_laplace(event: events.DiscreteLaplace) -> DominatingPair:
    """Loss (|x| − |x−Δ|)/b at each integer x. For vectors, or too many atoms, the worst pair at Δ/b."""
    sensitivity, scale = event.sensitivity, float(event.scale)
    epsilon = float(sensitivity / event.scale)
    if event.dimension > 1 or sensitivity > MOST_ATOMS:
        return randomized_response(epsilon, 2)
    ratio = math.exp(-1 / scale)
    between = np.arange(1, sensitivity, dtype=np.float64)
    atoms = np.concatenate([[-epsilon], (2 * between - sensitivity) / scale, [epsilon]])
    inner = math.tanh(0.5 / scale) * np.exp((between - sensitivity) / scale)
    masses = np.concatenate([[math.exp(-epsilon) / (1 + ratio)], inner, [1 / (1 + ratio)]])
    return DominatingPair(atoms, masses)


def discrete_gaussian(event: events.DiscreteGaussian) -> DominatingPair | None:
    """Loss (2xΔ − Δ²)/2σ² at each integer x, for one number; x is the noisy value, Δ the larger true one.

    The noise is log-concave, so a smaller shift is dominated by the largest integer one, ⌊√Δ²⌋.
    """
    variance = float(event.variance)
    shift = math.isqrt(event.squared_sensitivity)
    reach = math.ceil(40 * math.sqrt(variance)) + 2  # e^(−800): nothing a double can hold lies beyond
    if event.dimension > 1 or 2 * reach + shift > MOST_ATOMS:
        return None
    noise = np.arange(-reach - shift, reach + 1, dtype=np.float64)  # where P or Q has any mass
    weights, others = (np.exp(-((noise + move) ** 2) / (2 * variance)) for move in (0, shift))
    atoms = (2 * noise + shift) * shift / (2 * variance)
    return DominatingPair(atoms, weights / weights.sum(), others=others / others.sum())


def poisson_sampled(inner: DominatingPair, rate: float) -> DominatingPair | None:
    """(1−q)Q + qP against Q, the removal of a unit; its reverse is the addition [ZDW22, Thm. 11].

    L′ = ln(1 − q + q·e^L). For pairs without mass at infinity: what Q alone could show would need an atom of its own.
    """
    if rate == 1:
        return inner
    if inner.infinity > 0:
        return None

    def sampled_loss(loss: Array) -> Array:
        large = loss + np.log(rate + (1 - rate) * np.exp(-np.abs(loss)))  # no overflow, for loss > 0
        return np.where(loss > 1, large, np.log1p(rate * np.expm1(np.minimum(loss, 1))))

    q_masses = inner.q_masses
    return DominatingPair(
        sampled_loss(inner.atoms),
        rate * inner.masses + (1 - rate) * q_masses,
        _sampled_curve(inner.curve, rate) if inner.curve else None,
        symmetric=False,
        others=q_masses,
    )


def sampled_without_replacement(inner: DominatingPair, rate: float) -> DominatingPair | None:
    """δ′(ln(1+q(e^x−1))) = q·δ(x) for x ≥ 0 [BBG18, Thm. 9], and symmetric, as substitution is.

    For positive losses that is the law of Poisson sampling; negative ones mirror it, and what is left sits at 0.
    """
    if rate == 1:
        return inner
    one_sided = poisson_sampled(inner, rate)
    if one_sided is None:
        return None
    positive = one_sided.atoms > 0
    atoms, masses = one_sided.atoms[positive], one_sided.masses[positive]
    mirrored = one_sided.q_masses[positive]
    p_above, q_above = float(masses.sum()), float(mirrored.sum())
    curve = None
    if one_sided.curve:
        source = one_sided.curve
        at_zero = source.above(np.zeros(1))
        p_above, q_above = p_above + float(at_zero[0][0]), q_above + float(at_zero[1][0])
        curve = _mirrored_curve(source, float(at_zero[0][0]), float(at_zero[1][0]))
    at_origin = max(0.0, 1 - p_above - q_above)
    return DominatingPair(
        np.concatenate([-atoms, [0.0], atoms]), np.concatenate([mirrored, [at_origin], masses]), curve
    )


def _sampled_curve(inner: Curve, rate: float) -> Curve:
    def original(x: Array) -> Array:
        """The L with ln(1 − q + q·e^L) = x; −∞ below ln(1 − q)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            near = np.log1p(np.maximum(np.expm1(np.minimum(x, 30.0)) / rate, -1.0))
            far = x - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(x, 30.0)))
        return np.where(x > 30.0, far, near)

    def mix(function: Callable[[Array], Masses]) -> Callable[[Array], Masses]:
        def masses(x: Array) -> Masses:
            p, q = function(np.clip(original(x), inner.low, inner.high))
            return rate * p + (1 - rate) * q, q

        return masses

    def image(loss: float) -> float:
        if loss == math.inf:
            return math.inf
        return math.log1p(-rate) if loss == -math.inf else math.log1p(rate * math.expm1(loss))

    return Curve(mix(inner.above), mix(inner.below), image(inner.low), image(inner.high))


def _mirrored_curve(source: Curve, p_above: float, q_above: float) -> Curve:
    """The part of ``source`` above 0, and its mirror image below. ``*_above`` are its masses above 0."""

    def above(x: Array) -> Masses:
        p, q = source.above(np.abs(x))
        # above a negative x lies all of the positive part, and the mirrored part between x and 0
        return np.where(x >= 0, p, p_above + q_above - q), np.where(x >= 0, q, q_above + p_above - p)

    def below(x: Array) -> Masses:
        p, q = above(-x)
        return q, p

    return Curve(above, below, -source.high, source.high)


def atoms_delta(loss: DominatingPair, epsilon: float) -> float:
    """δ(ε) of a pair that has atoms only, by summing them: no grid."""
    return loss.infinity + inner(np.maximum(-np.expm1(epsilon - loss.atoms), 0.0), loss.masses)


def discretize(loss: DominatingPair, interval: float, tail: float) -> Grid:
    """The loss on the lattice of ``interval``, pessimistic; at most ``tail`` of mass at each end is moved up."""
    pieces = [_atoms_on_grid(loss, interval)] if loss.atoms.size else []
    infinity = loss.infinity
    if loss.curve:
        piece = _curve_on_grid(loss.curve, interval, tail)
        infinity += piece.infinity
        pieces.append(piece)
    offset = min(piece.offset for piece in pieces)
    end = max(piece.offset + piece.probabilities.size for piece in pieces)
    probabilities = np.zeros(end - offset)
    for piece in pieces:
        start = piece.offset - offset
        probabilities[start : start + piece.probabilities.size] += piece.probabilities
    return Grid(offset, probabilities, infinity, interval)


def _atoms_on_grid(loss: DominatingPair, interval: float) -> Grid:
    index = np.floor(loss.atoms / interval)
    # share of the upper end: (1 − e^(a−l)) / (1 − e^(a−b)) keeps both masses
    share = np.clip(np.expm1(index * interval - loss.atoms) / math.expm1(-interval), 0.0, 1.0)
    first = int(index.min())
    position = (index - first).astype(np.int64)
    size = int(position.max()) + 2
    lower = np.bincount(position, loss.masses * (1 - share), size)
    upper = np.bincount(position + 1, loss.masses * share, size)
    return Grid(first, np.asarray(lower + upper, dtype=np.float64), 0.0, interval)


def _curve_on_grid(curve: Curve, interval: float, tail: float) -> Grid:
    low, high = support(curve, tail)
    first, last = math.floor(low / interval), math.ceil(high / interval)
    last = max(last, first + 1)
    edges = np.clip(np.arange(first, last + 1) * interval, curve.low, curve.high)
    p_above, q_above = curve.above(edges)
    p_below, q_below = curve.below(edges)
    right = edges[:-1] >= 0  # take differences of the smaller tail
    p_mass = np.maximum(np.where(right, p_above[:-1] - p_above[1:], p_below[1:] - p_below[:-1]), 0.0)
    q_mass = np.maximum(np.where(right, q_above[:-1] - q_above[1:], q_below[1:] - q_below[:-1]), 0.0)
    starts = np.arange(first, last) * interval
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        to_upper = (p_mass - np.exp(starts) * q_mass) / -math.expm1(-interval)
    to_upper = np.where(np.isfinite(to_upper) & (starts < 700), np.clip(to_upper, 0.0, p_mass), p_mass)  # in doubt, up
    probabilities = np.zeros(last - first + 1)
    probabilities[:-1] += p_mass - to_upper
    probabilities[1:] += to_upper
    probabilities[0] += max(0.0, float(p_below[0]))  # the lower tail moves up to the first point …
    return Grid(first, probabilities, max(0.0, float(p_above[-1])), interval)  # … and the upper tail to infinity


def support(curve: Curve, tail: float) -> tuple[float, float]:
    """Where all of the curve's P-mass lies but ``tail`` at either end."""

    def above(x: float) -> bool:
        return float(curve.above(np.array([x]))[0][0]) <= tail

    def below(x: float) -> bool:
        return float(curve.below(np.array([-x]))[0][0]) <= tail

    low, high = curve.low, curve.high
    high = _first(above, 0.0 if low < 0 < high else max(low, 0.0), high)
    low = -_first(below, 0.0 if low < 0 < high else max(-high, 0.0), -low)
    return low, max(high, low)


def extent(loss: DominatingPair, tail: float) -> float:
    """How far a loss reaches from its lowest to its highest value, but for ``tail`` at either end."""
    low, high = support(loss.curve, tail) if loss.curve else (math.inf, -math.inf)
    if loss.atoms.size:
        low, high = min(low, float(loss.atoms.min())), max(high, float(loss.atoms.max()))
    return high - low


def _first(holds: Callable[[float], bool], start: float, end: float) -> float:
    """Some x between start and end at which a monotone condition holds, close to the first; ``end`` if none does."""
    if math.isfinite(end) and not holds(start + (end - start) * (1 - 1e-6)):
        return end
    step = 1e-30
    while start + step < end and not holds(start + step):
        step *= 16
    if start + step >= end:
        return end
    low, high = start + step / 16, start + step
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
