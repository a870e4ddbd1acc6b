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
from dalenius.accounting.losses import (
    Array,
    DominatingPair,
    Grid,
    discretize,
    dominating_pair,
    extent,
    inner,
    merge_gaussians,
)
from dalenius.accounting.neighbors import Neighbors, common_neighbors
from dalenius.errors import InputError

ComplexArray: TypeAlias = npt.NDArray[np.complex128]

# How much of the total variance the grid may add, how fine it always is, and how large a transform may get.
VARIANCE_SHARE = 1e-5
FEWEST_POINTS = 2**15
MOST_POINTS = 2**22
MOST_GRID_POINTS = 2**20  # of all single losses together
# Tilted mass that may wrap around, and the share of δ that truncated tails may take.
WRAPPED = 1e-14
TRUNCATED_SHARE = 1e-9
# Connect-the-dots shares are computed with an error below this, and what cancels on fine grids (see `_misplaced`).
SHARE_ERROR = 2.0**-24
_NOTHING = 1e-300
_UNDERFLOW = -746.0  # whose exponential is 0


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
        """The PLD of an event; an event without a loss distribution is refused (see `has_pair`)."""
        counts = events.tally(event)
        for single in counts:
            require_pair(single)
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
        """δ(ε), for ε ≥ 0."""
        if parameters.real(epsilon, "epsilon") < 0:
            raise InputError("ε must not be negative.", why="δ(ε) is asked for ε ≥ 0.", fix="Give an ε of at least 0.")
        return max(law.delta(float(epsilon)) for law in self._laws)

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
        losses = list(_merge(self.counts))
        forward = Composition(losses)
        if all(loss.symmetric for loss, _ in losses):
            return (forward,)
        return forward, Composition([(loss.reversed(), times) for loss, times in losses])


def has_pair(single: Single) -> bool:
    """Whether an event has a loss distribution."""
    return dominating_pair(single) is not None


def require_pair(event: Event) -> DominatingPair:
    """The event's dominating pair, which must exist."""
    loss = dominating_pair(event)
    if loss is None:
        raise InputError(
            f"{type(event).__name__} has no loss distribution here.",
            why="Only its zCDP or RDP guarantee is known.",
            fix="Use account(), which falls back on those.",
        )
    return loss


def _merge(counts: Iterable[tuple[Single, int]]) -> Iterator[tuple[DominatingPair, int]]:
    """The pairs to compose; all Gaussians are one Gaussian, exactly."""
    gaussians = [events.Repeated(single, times) for single, times in counts if isinstance(single, events.Gaussian)]
    if gaussians:
        yield require_pair(merge_gaussians(events.Composed(tuple(gaussians)))), 1
    for single, times in counts:
        if not isinstance(single, events.Gaussian):
            yield require_pair(single), times


class Composition:
    """The sum of independent losses, each some number of times, in one direction."""

    def __init__(self, losses: list[tuple[DominatingPair, int]]) -> None:
        self._losses = losses
        self._total = sum(times for _, times in losses)

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 with δ(ε) ≤ δ, or a little more; infinite if there is none."""
        if not self._losses:
            return 0.0
        greatest = max(0.0, self._greatest)
        if delta == 0:
            return math.inf if self._infinity else greatest
        if self._infinity >= delta:
            return math.inf
        left = delta - self._infinity
        with np.errstate(all="ignore"):
            near = 1e-2 * math.sqrt(self._variance)
            tilt = self._best_tilt(lambda t: (self._coarse_log_moment(t) - math.log(left)) / t, near)
            tail = self._tail(tilt, truncated=TRUNCATED_SHARE * left)
            found = greatest if tail is None else tail.epsilon(delta)
        return greatest if math.isnan(found) else min(found, greatest)

    def delta(self, epsilon: float) -> float:
        """δ(ε) for ε ≥ 0, or a little more."""
        if not self._losses:
            return 0.0
        if epsilon >= self._greatest:
            return self._infinity
        with np.errstate(all="ignore"):
            tilt = self._best_tilt(lambda t: self._coarse_log_moment(t) - t * epsilon, 0.05)
            bound = math.exp(max(-690.0, min(0.0, self._coarse_log_moment(tilt) - tilt * epsilon)))
            tail = self._tail(tilt, truncated=TRUNCATED_SHARE * bound)
            found = 1.0 if tail is None else tail.delta(epsilon)
        return 1.0 if math.isnan(found) else min(1.0, found)

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
    def _coarse(self) -> list[tuple[Grid, int]]:
        """Each loss on a rough grid of its own, far into the tails: enough to choose the tilt and the window."""
        return [(_rough(loss, _NOTHING, 500), times) for loss, times in self._losses]

    @cached_property
    def _variance(self) -> float:
        """Of the bulk of the sum, without rare extremes: what the step of the grid is measured by."""
        grids = ((_rough(loss, 1e-6, 2000), times) for loss, times in self._losses)
        return math.fsum(times * _moments(grid, 0.0)[2] for grid, times in grids)

    def _coarse_log_moment(self, tilt: float) -> float:
        return math.fsum(times * _log_moment(grid, tilt) for grid, times in self._coarse)

    def _best_tilt(self, objective: Callable[[float], float], near: float) -> float:
        """The smallest t > 0 at which a function with one valley is within ``near`` of its least value.

        Measured by the width of the sum, and not so large that the moments lose their digits. Where the function keeps
        falling (δ below the mass of the greatest loss), a t that is nearly as good is much better behaved.
        """
        width = math.sqrt(max(self._variance, _NOTHING))
        reach = math.fsum(times * float(np.abs(grid.losses[[0, -1]]).max()) for grid, times in self._coarse)
        most = min(1e5 / width, 1e9 / max(reach, _NOTHING))
        grid = np.geomspace(min(1e-4 / width, most / 1e6), most, 81)
        values = np.array([objective(float(t)) for t in grid])
        values = np.where(np.isnan(values), np.inf, values)
        return float(grid[int(np.argmax(values <= values.min() + near))])

    def _tail(self, tilt: float, truncated: float) -> Tail | None:
        """The composed law around where ``tilt`` puts it; None when the numbers do not allow it."""
        window = _window(self._coarse, tilt)
        if window is None:
            return None
        spread = window[1] - window[0]
        truncated = max(truncated / self._total, _NOTHING)
        by_variance = 2 * math.sqrt(VARIANCE_SHARE * self._variance / self._total)
        interval = max(min(by_variance, spread / FEWEST_POINTS), spread / MOST_POINTS)
        # A coarser grid is still sound; one that does not fit into memory is nothing.
        widths = math.fsum(extent(loss, truncated) for loss, _ in self._losses)
        interval = max(interval, widths / MOST_GRID_POINTS, _NOTHING)
        grids = [(discretize(loss, interval, truncated), times) for loss, times in self._losses]
        return _compose(grids, interval, tilt)


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
        if epsilon - self.shift < self.losses[0] and self.losses[0] > 0:
            return 1.0  # what lies below the window is not known
        above = self.losses > epsilon - self.shift
        weights = -np.expm1(np.minimum(epsilon - self.shift - self.losses[above], 0.0))
        return self.infinity + math.exp(self.scale) * inner(weights, self.masses[above])

    def epsilon(self, delta: float) -> float:
        """The smallest ε with δ(ε) ≤ δ: solved on the piece between two losses where it lies."""
        target = (delta - self.infinity) * math.exp(-self.scale)
        if target <= 0:
            return math.inf
        # δ falls along the losses: the first at which it is small enough …
        high = self._first(target)
        low = high - 1
        if high == 0 and self.losses[0] > 0:
            return float(self.losses[0]) + self.shift  # no more is known than that it suffices
        # … and between it and the one before, δ(ε) = upper − e^(ε−loss)·lower.
        upper = float(self.masses[high:].sum())
        lower = inner(self.masses[high:], np.exp(self.losses[high] - self.losses[high:]))
        before = float(self.losses[low]) if low >= 0 else 0.0
        if upper <= target:
            return max(0.0, before + self.shift)
        return max(0.0, before, float(self.losses[high]) + math.log((upper - target) / lower)) + self.shift

    def _first(self, target: float) -> int:
        """The index of the first loss at which δ, in units of e^scale and without infinity, is at most the target.

        It is bisected for. What lies at or above `high` is summed up once: as seen from a loss d lower, its part of δ
        is e^−d·(δ at `high`) + (1 − e^−d)·(its mass), where nothing cancels.
        """
        low, high = -1, self.losses.size - 1
        beyond, mass = 0.0, float(self.masses[high])
        while high - low > 1:
            middle = (low + high) // 2
            nearer, lower = self.masses[middle:high], float(self.losses[middle] - self.losses[high])
            found = inner(-np.expm1(self.losses[middle] - self.losses[middle:high]), nearer)
            found += math.exp(lower) * beyond - math.expm1(lower) * mass
            if found <= target:
                high, beyond, mass = middle, found, mass + float(nearer.sum())
            else:
                low = middle
        return high


def _compose(grids: list[tuple[Grid, int]], interval: float, tilt: float) -> Tail | None:
    window = _window(grids, tilt)
    if window is None:
        return None
    low, high = window
    start = math.floor(low / interval)
    needed = math.ceil(high / interval) - start + 2
    if needed > 4 * MOST_POINTS:
        return None
    size = fft.next_fast_len(needed, real=True)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    log_scale, origin, log_kept, total = 0.0, 0, 0.0, 0
    reference = math.fsum(times * _moments(grid, tilt)[1] for grid, times in grids)  # where the tilted law has its bulk
    for grid, times in grids:
        exponent = tilt * grid.losses
        peak = float(exponent[grid.probabilities > 0].max())
        tilted = grid.probabilities * np.exp(np.minimum(exponent - peak, 0.0))
        mass = float(tilted.sum())
        transform = fft.rfft(_fold(tilted / mass, size), size)
        spectrum *= transform if times == 1 else _power(transform, times)
        log_scale += times * (peak + math.log(mass))
        origin += times * grid.offset
        log_kept += times * math.log1p(-grid.infinity)
        total += times
    law = fft.irfft(spectrum, size)
    law = np.roll(law, (origin - start) % size)
    # Rounding: each transform errs by a few ulp per level, relative; factors add their relative errors up.
    rounding = np.finfo(float).eps * (4 * math.log2(size) + 2) * total * float(np.abs(spectrum).sum()) * 2 / size
    law = np.maximum(law, 0.0) + rounding

    losses = (start + np.arange(size, dtype=np.float64)) * interval
    # Untilt, in units of e^scale at the reference loss, and leave out what lies so far below that it overflows.
    keep = losses > max(-interval, reference - 600 / tilt)
    losses, law = losses[keep], law[keep]
    masses = law * np.exp(-tilt * (losses - reference))
    scale = log_scale - tilt * reference
    wrapped = WRAPPED * math.exp(min(0.0, log_scale - tilt * high))
    if not losses.size or not math.isfinite(scale) or not np.isfinite(masses).all():
        return None
    return Tail(losses, masses, scale, -math.expm1(log_kept) + wrapped, _misplaced(grids))


def _misplaced(grids: list[tuple[Grid, int]]) -> float:
    """How far rounding may have moved mass down: a share is a difference of masses over a step, which cancel."""
    unit = 16 * float(np.finfo(float).eps)
    return math.fsum(
        times * min(grid.interval, grid.interval * SHARE_ERROR + unit * grid.probabilities.size)
        for grid, times in grids
    )


def _power(transform: ComplexArray, times: int) -> ComplexArray:
    """transform^times, without the rounding of many multiplications."""
    exponent = times * np.log(np.maximum(np.abs(transform), _NOTHING))
    kept = exponent > _UNDERFLOW
    power = np.zeros_like(transform)
    power[kept] = np.exp(exponent[kept] + 1j * times * np.angle(transform[kept]))
    return power


def _fold(values: Array, size: int) -> Array:
    """Wrapped around, as the transform sees it."""
    if values.size <= size:
        return values
    padded = np.zeros(-(-values.size // size) * size)
    padded[: values.size] = values
    folded: Array = padded.reshape(-1, size).sum(axis=0)
    return folded


def _window(grids: list[tuple[Grid, int]], tilt: float) -> tuple[float, float] | None:
    """Where the tilted law has all but WRAPPED of its mass: by Chernoff's bound, within the extreme losses."""
    log_moment = math.fsum(times * _log_moment(grid, tilt) for grid, times in grids)
    width = math.sqrt(math.fsum(times * _moments(grid, tilt)[2] for grid, times in grids))
    need = math.log(2 / WRAPPED)
    low = math.fsum(times * float(grid.losses[0]) for grid, times in grids)
    high = math.fsum(times * float(grid.losses[-1]) for grid, times in grids)
    for factor in (1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 20.0) if width > 0 else ():
        move = factor / width
        above = math.fsum(times * _log_moment(grid, tilt + move) for grid, times in grids)
        below = math.fsum(times * _log_moment(grid, tilt - move) for grid, times in grids)
        if math.isfinite(above):
            high = min(high, (above - log_moment + need) / move)
        if math.isfinite(below):
            low = max(low, (log_moment - below - need) / move)
    spare = max(grid.interval for grid, _ in grids)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high + spare):
        return None
    return low - spare, high + spare


def _rough(loss: DominatingPair, tail: float, points: int) -> Grid:
    return discretize(loss, max(extent(loss, tail) / points, _NOTHING), tail)


def _log_moment(grid: Grid, tilt: float) -> float:
    """ln Σ p·e^(tilt·x)."""
    losses, probabilities = grid.held
    exponent = tilt * losses
    peak = max(exponent[0], exponent[-1])
    total = inner(probabilities, np.exp(exponent - peak))
    return float(peak) + math.log(total) if total > 1e-250 else _moments(grid, tilt)[0]


def _moments(grid: Grid, tilt: float) -> tuple[float, float, float]:
    """ln Σ p·e^(tilt·x), and mean and variance of the law tilted so."""
    losses, probabilities = grid.held
    exponent = tilt * losses
    peak = float(exponent.max())
    weights = probabilities * np.exp(exponent - peak)
    mass = float(weights.sum())
    mean = inner(weights, losses) / mass
    return peak + math.log(mass), mean, inner(weights, (losses - mean) ** 2) / mass
