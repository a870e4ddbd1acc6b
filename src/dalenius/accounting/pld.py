"""PLD: the guarantee of a composition, by the distribution of its privacy loss.

The loss of a composition is the sum of independent losses, so its law is a convolution, and a convolution is a
product of Fourier transforms. Two things set this apart from the usual implementation:

* **Tilting.** Before the transform every law is multiplied by e^(θx), with θ the best order for the δ (or ε) asked
  about; afterwards it is divided out. The sum then has its bulk where the answer is decided, so rounding errors are
  relative to the answer: δ = 10⁻³⁰ is as precise as δ = 10⁻³.
* **One product.** All transforms are multiplied on one grid, whose step follows from the composition itself (the
  rounding may add at most a 10⁻⁵ part to the variance), instead of many convolutions on a fixed step.

Every approximation errs upwards: connect-the-dots rounding, truncated tails at infinity, wrapped-around mass by a
Chernoff bound, and a bound on the transform's own rounding added to every probability.

Valid when the parameters of all events are fixed beforehand; the questions themselves may be adaptive. Not a
filter: see docs/explanation/filters.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import fft

from dalenius.accounting import conversions, events, parameters
from dalenius.accounting.events import Event, Single
from dalenius.accounting.guarantees import ApproxDP
from dalenius.accounting.losses import Array, Grid, Pair, discretized, merged_gaussian, pair, support
from dalenius.accounting.neighbors import Neighbors, common_neighbors
from dalenius.errors import InputError

ComplexArray: TypeAlias = npt.NDArray[np.complex128]

# How much of the total variance the grid may add, how fine it always is, and how large a transform may get.
VARIANCE_SHARE = 1e-5
FEWEST_POINTS = 2**15
MOST_POINTS = 2**22
# Tilted mass that may wrap around, and the share of δ that truncated tails may take.
WRAPPED = 1e-14
TRUNCATED_SHARE = 1e-9
# Connect-the-dots shares are computed with a relative error below this (cancellation of two masses).
SHARE_ERROR = 2.0**-24
_NOTHING = 1e-300


@dataclass(frozen=True)
class PLD:
    """A composition of events, held as what it is and evaluated on demand.

    >>> from dalenius.accounting.events import Laplace, Repeated
    >>> pld = PLD.of(Repeated(Laplace(10), 100))
    >>> 4.6926 <= pld.epsilon(1e-6) <= 4.6930
    True
    >>> pld.epsilon(1e-6) < (pld + pld).epsilon(1e-6)
    True
    """

    counts: tuple[tuple[Single, int], ...]
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    @classmethod
    def of(cls, event: Event) -> PLD:
        """The PLD of an event; an event without a loss distribution is refused (see `supported`)."""
        counts = events.tally(event)
        for single in counts:
            existing(single)
        return cls(tuple(counts.items()), event.neighbors)

    def __add__(self, other: PLD) -> PLD:
        relation = common_neighbors([self.neighbors, other.neighbors])
        total = dict(self.counts)
        for single, times in other.counts:
            total[single] = total.get(single, 0) + times
        return PLD(tuple(total.items()), relation)

    def epsilon(self, delta: float) -> float:
        """The smallest ε at δ, for the worse of adding and removing; infinite if there is none."""
        delta = parameters.delta(delta)
        return max(law.epsilon(delta) for law in self._laws)

    def delta(self, epsilon: float) -> float:
        """δ(ε)."""
        return max(law.delta(float(parameters.real(epsilon, "epsilon"))) for law in self._laws)

    def group(self, size: int, epsilon: float) -> float:
        """δ at ε for groups of k units: δ(ε/k)·(e^ε−1)/(e^(ε/k)−1)."""
        parameters.count(size, "size")
        return conversions.group_delta(epsilon / size, self.delta(epsilon / size), size)

    def to_approx(self, delta: float) -> ApproxDP:
        """(ε(δ), δ)-DP."""
        return ApproxDP(self.epsilon(delta), delta, self.neighbors)

    @cached_property
    def _laws(self) -> tuple[Composition, ...]:
        """One law for removal, and one for addition where it differs."""
        losses = list(_merged(self.counts))
        forward = Composition(losses)
        if all(loss.symmetric for loss, _ in losses):
            return (forward,)
        return forward, Composition([(loss.reversed(), times) for loss, times in losses])


def supported(single: Single) -> bool:
    """Whether an event has a loss distribution."""
    return pair(single) is not None


def existing(event: Event) -> Pair:
    """The event's dominating pair, which must exist."""
    loss = pair(event)
    if loss is None:
        raise InputError(
            f"{type(event).__name__} has no loss distribution here.",
            why="Only its zCDP or RDP guarantee is known.",
            fix="Use account(), which falls back on those.",
        )
    return loss


def _merged(counts: Iterable[tuple[Single, int]]) -> Iterator[tuple[Pair, int]]:
    """The pairs to compose; all Gaussians are one Gaussian, exactly."""
    gaussians = [events.Repeated(single, times) for single, times in counts if isinstance(single, events.Gaussian)]
    if gaussians:
        yield existing(merged_gaussian(events.Composed(tuple(gaussians)))), 1
    for single, times in counts:
        if not isinstance(single, events.Gaussian):
            yield existing(single), times


class Composition:
    """The sum of independent losses, each some number of times, in one direction."""

    def __init__(self, losses: list[tuple[Pair, int]]) -> None:
        self._losses = losses
        self._total = sum(times for _, times in losses)
        self._fine: tuple[float, list[Grid]] | None = None

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 with δ(ε) ≤ δ."""
        if not self._losses:
            return 0.0
        if delta == 0:
            return math.inf if self._infinity else max(0.0, self._greatest)
        if self._infinity >= delta:
            return math.inf
        left = delta - self._infinity
        tilt = _best_tilt(lambda t: (self._coarse_log_moment(t) - math.log(left)) / t)
        tail = self._tail(tilt, truncated=TRUNCATED_SHARE * left)
        return min(tail.epsilon(delta), max(0.0, self._greatest))

    def delta(self, epsilon: float) -> float:
        """δ(ε)."""
        if not self._losses:
            return 0.0
        if epsilon >= self._greatest:
            return self._infinity
        tilt = _best_tilt(lambda t: self._coarse_log_moment(t) - t * epsilon)
        bound = math.exp(max(-690.0, min(0.0, self._coarse_log_moment(tilt) - tilt * epsilon)))
        return min(1.0, self._tail(tilt, truncated=TRUNCATED_SHARE * bound).delta(epsilon))

    @cached_property
    def _infinity(self) -> float:
        return -math.expm1(sum(times * math.log1p(-loss.infinity) for loss, times in self._losses))

    @cached_property
    def _greatest(self) -> float:
        """The largest finite loss there can be."""
        most = 0.0
        for loss, times in self._losses:
            ends = [float(loss.atoms.max())] if loss.atoms.size else []
            most += times * max([*ends, loss.curve.high] if loss.curve else ends)
        return most

    @cached_property
    def _coarse(self) -> list[tuple[Array, Array, int]]:
        """Each loss on a rough grid of its own, far into the tails: enough to choose the tilt and the window."""
        grids = ((_rough(loss, _NOTHING, 500), times) for loss, times in self._losses)
        return [(grid.losses, grid.probabilities, times) for grid, times in grids]

    @cached_property
    def _variance(self) -> float:
        """Of the bulk of the sum, without rare extremes: what the step of the grid is measured by."""
        grids = ((_rough(loss, 1e-6, 2000), times) for loss, times in self._losses)
        return math.fsum(times * _variance(grid.losses, grid.probabilities) for grid, times in grids)

    def _coarse_log_moment(self, tilt: float) -> float:
        return sum(times * _log_moment(x, p, tilt) for x, p, times in self._coarse)

    def _tail(self, tilt: float, truncated: float) -> Tail:
        spread = self._coarse_window(tilt)
        by_variance = 2 * math.sqrt(VARIANCE_SHARE * self._variance / self._total)
        interval = max(min(by_variance, spread / FEWEST_POINTS), spread / MOST_POINTS)
        truncated = max(truncated / self._total, _NOTHING)
        grids = [discretized(loss, interval, truncated) for loss, _ in self._losses]
        return _composed(grids, [times for _, times in self._losses], interval, tilt)

    def _coarse_window(self, tilt: float) -> float:
        low, high = _window(self._coarse_log_moment, tilt)
        return high - low


@dataclass(frozen=True)
class Tail:
    """The upper part of a composed law: P-mass at each loss, in units of e^scale so that nothing underflows."""

    losses: Array
    masses: Array
    scale: float
    infinity: float
    shift: float  # what the rounding of shares may hide, added to ε

    def delta(self, epsilon: float) -> float:
        """Σ over losses above ε of (1 − e^(ε−loss))·mass, and the mass at infinity."""
        above = self.losses > epsilon - self.shift
        weights = -np.expm1(np.minimum(epsilon - self.shift - self.losses[above], 0.0))
        return self.infinity + math.exp(self.scale) * float(weights @ self.masses[above])

    def epsilon(self, delta: float) -> float:
        """The smallest ε with δ(ε) ≤ δ: solved on the piece between two losses where it lies."""
        target = (delta - self.infinity) * math.exp(-self.scale)
        if target <= 0:
            return math.inf
        # δ falls along the losses: bisect for the first at which it is small enough …
        low, high = -1, self.losses.size - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._at(middle) <= target else (middle, high)
        # … and between it and the one before, δ(ε) = upper − e^(ε−loss)·lower.
        upper = float(self.masses[high:].sum())
        lower = float(self.masses[high:] @ np.exp(self.losses[high] - self.losses[high:]))
        before = float(self.losses[low]) if low >= 0 else 0.0
        if upper <= target:
            return max(0.0, before + self.shift)
        return max(0.0, before, float(self.losses[high]) + math.log((upper - target) / lower)) + self.shift

    def _at(self, index: int) -> float:
        """δ at one of the losses, in units of e^scale, the mass at infinity left out."""
        return float(-np.expm1(self.losses[index] - self.losses[index:]) @ self.masses[index:])


def _composed(grids: list[Grid], counts: list[int], interval: float, tilt: float) -> Tail:
    def log_moment(t: float) -> float:
        parts = zip(grids, counts, strict=True)
        return math.fsum(times * _log_moment(grid.losses, grid.probabilities, t) for grid, times in parts)

    low, high = _window(log_moment, tilt)
    start = math.floor(low / interval)
    size = fft.next_fast_len(math.ceil(high / interval) - start + 2, real=True)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    log_scale, origin, log_kept = 0.0, 0, 0.0
    for grid, times in zip(grids, counts, strict=True):
        exponent = tilt * grid.losses
        peak = float(exponent[grid.probabilities > 0].max())
        tilted = grid.probabilities * np.exp(np.minimum(exponent - peak, 0.0))
        mass = float(tilted.sum())
        transform = fft.rfft(_folded(tilted / mass, size), size)
        spectrum *= transform if times == 1 else _power(transform, times)
        log_scale += times * (peak + math.log(mass))
        origin += times * grid.offset
        log_kept += times * math.log1p(-grid.infinity)
    law = fft.irfft(spectrum, size)
    law = np.roll(law, (origin - start) % size)
    # Rounding: each transform errs by a few ulp per level, relative; factors add their relative errors up.
    total = sum(counts)
    rounding = np.finfo(float).eps * (4 * math.log2(size) + 2) * total * float(np.abs(spectrum).sum()) * 2 / size
    law = np.maximum(law, 0.0) + rounding

    losses = (start + np.arange(size, dtype=np.float64)) * interval
    # Untilt, in units of e^scale at the reference loss, and leave out what lies so far below that it overflows.
    reference = (low + high) / 2
    keep = losses > max(-interval, reference - 600 / tilt)
    losses, law = losses[keep], law[keep]
    masses = law * np.exp(-tilt * (losses - reference))
    scale = log_scale - tilt * reference
    wrapped = WRAPPED * math.exp(min(0.0, log_scale - tilt * high))
    return Tail(losses, masses, scale, -math.expm1(log_kept) + wrapped, total * interval * SHARE_ERROR)


def _power(transform: ComplexArray, times: int) -> ComplexArray:
    """transform^times, without the rounding of many multiplications."""
    magnitude = np.maximum(np.abs(transform), _NOTHING)
    power: ComplexArray = np.exp(times * np.log(magnitude) + 1j * times * np.angle(transform))
    return power


def _folded(values: Array, size: int) -> Array:
    """Wrapped around, as the transform sees it."""
    if values.size <= size:
        return values
    padded = np.zeros(-(-values.size // size) * size)
    padded[: values.size] = values
    folded: Array = padded.reshape(-1, size).sum(axis=0)
    return folded


def _window(log_moment: Callable[[float], float], tilt: float) -> tuple[float, float]:
    """Where the tilted law has all but WRAPPED of its mass, by Chernoff's bound with a few multiples of its width."""
    at = log_moment(tilt)
    step = tilt * 1e-3
    curvature = max((log_moment(tilt + step) - 2 * at + log_moment(tilt - step)) / step**2, 1e-300)
    width = math.sqrt(curvature)
    need = math.log(2 / WRAPPED)
    low, high = -math.inf, math.inf
    for factor in (1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 20.0):
        move = factor / width
        high = min(high, (log_moment(tilt + move) - at + need) / move)
        low = max(low, (at - log_moment(tilt - move) - need) / move)
    return low, max(high, low)


def _best_tilt(objective: Callable[[float], float]) -> float:
    """The t > 0 that minimises a function with one valley, searched over its logarithm."""
    grid = np.exp(np.linspace(math.log(1e-4), math.log(1e7), 61))
    values = [objective(float(t)) for t in grid]
    best = int(np.argmin(values))
    low, high = math.log(grid[max(best - 1, 0)]), math.log(grid[min(best + 1, 60)])
    for _ in range(12):
        third = (high - low) / 3
        if objective(math.exp(low + third)) < objective(math.exp(high - third)):
            high -= third
        else:
            low += third
    return math.exp((low + high) / 2)


def _rough(loss: Pair, tail: float, points: int) -> Grid:
    low, high = support(loss.curve, tail) if loss.curve else (math.inf, -math.inf)
    if loss.atoms.size:
        low, high = min(low, float(loss.atoms.min())), max(high, float(loss.atoms.max()))
    return discretized(loss, max((high - low) / points, _NOTHING), tail)


def _log_moment(x: Array, p: Array, tilt: float) -> float:
    """ln Σ p·e^(tilt·x)."""
    exponent = tilt * x
    peak = float(exponent[p > 0].max())
    return peak + math.log(float(p @ np.exp(np.minimum(exponent - peak, 0.0))))


def _variance(x: Array, p: Array) -> float:
    mass = float(p.sum())
    mean = float(p @ x) / mass
    return float(p @ (x - mean) ** 2) / mass
