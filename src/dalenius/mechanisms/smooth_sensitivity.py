"""Smooth sensitivity on integers (SPEC M10), with the median as the worked case.

The proof for discrete noise and rational scales is in `docs/explanation/smooth-sensitivity.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dalenius.accounting import events
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms.interface import Released, bounds, clip_to_bounds, probability, rational, settle, whole
from dalenius.mechanisms.laws import MARGIN, DiscreteLaplaceLaw
from dalenius.mechanisms.sensitivity import median_rank, median_sensitivity

if TYPE_CHECKING:
    from dalenius.accounting.parameters import Real

_WEIGHT_BITS = 40
_GROWTH_BITS = 32


@dataclass(frozen=True)
class SmoothSensitivity:
    """Adds discrete Laplace noise of scale 2S/ε; S is at least the local sensitivity and changes slowly.

    S(D) = max_k A_k(D)·w_k, with A_k the largest local sensitivity within k changes of D, and weights w_0 =
    1, w_{k+1} = w_k/(1+τ) rounded up to a multiple of 2⁻⁴⁰. τ is ε/(2 ln(2/δ)) rounded down. All of it is
    rational.

    Guarantee:
        (ε, δ)-DP. S(D) ≤ (1+τ)·S(D′), since A_k(D) ≤ A_{k+1}(D′) and w_k ≤ (1+τ)·w_{k+1}. Exchanging the
        scale costs e^(ε/2) except in the tail |x| > s·ln(2/δ), of probability at most δ; shifting the
        centre costs e^(ε/2). Nissim et al. have e^β with β = ε/(2 ln(2/δ)) in place of 1 + τ; 1 + β is what
        the discrete proof needs.

    Assumes:
        ``at_distance(k)`` ≥ A_k(D) and itself satisfies A_k(D) ≤ A_{k+1}(D′). What is released is the value
        alone: the scale 2S/ε is a function of the data and must not leave, so there is no noise error to
        show.

    References:
        Nissim, Raskhodnikova & Smith (2007), §2 (smooth bounds, admissible noise).

    >>> mechanism = SmoothSensitivity(epsilon=1, delta=1e-6)
    >>> mechanism.smooth_bound(lambda k: 0 if k < 10 else 1000, most=1000, furthest=50) < 720
    True
    """

    epsilon: Real
    delta: Real
    neighbors: Neighbors = Neighbors.SUBSTITUTE

    def __post_init__(self) -> None:
        settle(self, neighbors=Neighbors.of(self.neighbors))
        probability(self.delta, "delta")
        self.event, self.growth  # noqa: B018
        if self.growth == 0:
            raise InputError(
                "epsilon is too small for smooth sensitivity.",
                why="It must be above 2⁻²⁶.",
                fix="Give more ε.",
            )

    @cached_property
    def growth(self) -> Fraction:
        """τ ≤ ε/(2·max(1, ln(2/δ)))."""
        length = Fraction(max(1.0, math.log(2) - math.log(float(self.delta))) + MARGIN)
        exact = rational(self.epsilon, "epsilon") / (2 * length)
        return Fraction(math.floor(exact * 2**_GROWTH_BITS), 2**_GROWTH_BITS)

    @cached_property
    def event(self) -> events.Approx:
        """What a release does, known before it."""
        return events.Approx(self.epsilon, self.delta, self.neighbors)

    def smooth_bound(self, at_distance: Callable[[int], int], *, most: int, furthest: int) -> Fraction:
        """S(D) = max_k A_k·w_k, exactly. It is a function of the data: do not show it.

        Args:
            at_distance: k → A_k(D), non-decreasing.
            most: A bound on all A_k, public.
            furthest: A k from which on A_k may be taken as ``most``, such as the number of units.
        """
        most = _at_least(1, most, "most")
        weights = self._weights(_at_least(1, furthest, "furthest"))
        # past the list the weight stays what it is at its end, and no A_k exceeds `most`; A_0 counts in any case
        local = min(_at_least(0, at_distance(0), "at_distance"), most)
        best = max(most * weights[-1], local * weights[0])
        # A_k does not decrease and w_k does not increase: between a and b nothing exceeds A_b·w_a
        pending = [(0, len(weights) - 1, most)]
        while pending:
            a, b, at_end = pending.pop()
            if at_end * weights[a] <= best:
                continue
            middle = (a + b) // 2
            here = min(_at_least(0, at_distance(middle), "at_distance"), most)
            best = max(best, here * weights[middle])
            if a < middle:
                pending.append((a, middle - 1, here))
            if middle < b:
                pending.append((middle + 1, b, at_end))
        return Fraction(best, weights[0])

    def _weights(self, furthest: int) -> list[int]:
        """w_k in units of 2⁻⁴⁰ for k = 0, 1, …, up to ``furthest`` or to where rounding up holds them still."""
        top, bottom = (1 + self.growth).as_integer_ratio()
        weights = [1 << _WEIGHT_BITS]
        while len(weights) <= furthest:
            weight = -(-weights[-1] * bottom // top)
            if weight == weights[-1]:
                break
            weights.append(weight)
        return weights

    def release(self, value: object, at_distance: Callable[[int], int], *, most: int, furthest: int) -> Released[int]:
        """``value`` plus noise of scale 2S/ε."""
        exact = whole(value, "value")
        smooth = self.smooth_bound(at_distance, most=most, furthest=furthest)
        return Released(exact + self.noise(smooth).draw(), self.event)

    def noise(self, smooth: Fraction) -> DiscreteLaplaceLaw:
        """The law of the noise at a smooth bound."""
        return DiscreteLaplaceLaw(2 * smooth / rational(self.epsilon, "epsilon"))

    def utility(self, smooth: Fraction, beta: float) -> int:
        """⌈2S/ε·ln(1/β)⌉: the error but for probability β, given S."""
        return math.ceil(self.noise(smooth).scale * -math.log(probability(beta, "beta")))


def _at_least(least: int, value: object, name: str) -> int:
    number = whole(value, name)
    if number < least:
        raise InputError(f"{name} must be at least {least}.", why="It bounds a change.", fix=f"Check {name}.")
    return number


@dataclass(frozen=True)
class SmoothMedian:
    """The median of integers in {low, …, high} with noise scaled to its smooth sensitivity.

    The median is the value of rank ⌈n/2⌉. A_k = max_{0 ≤ t ≤ k+1} (x_{m+t} − x_{m+t−k−1}), with ``low``
    before the first value and ``high`` after the last.

    Guarantee:
        (ε, δ)-DP when one unit's value is exchanged; the number of units is public.

    Assumes:
        Each unit owns one value. ``low`` and ``high`` are declared; values are clip_to_bounds to them.

    References:
        Nissim, Raskhodnikova & Smith (2007), §3.1.

    >>> mechanism = SmoothMedian(epsilon=1, delta=1e-6, low=0, high=1000)
    >>> 300 < mechanism.release(list(range(1001)) * 5).value < 700
    True
    """

    epsilon: Real
    delta: Real
    low: int
    high: int

    def __post_init__(self) -> None:
        low, high = bounds(self.low, self.high)
        if low == high:
            raise InputError("low must be below high.", why="The values lie between them.", fix="Check the bounds.")
        settle(self, low=low, high=high)
        self.mechanism  # noqa: B018

    @cached_property
    def mechanism(self) -> SmoothSensitivity:
        """The general mechanism behind it."""
        return SmoothSensitivity(self.epsilon, self.delta)

    @property
    def event(self) -> events.Approx:
        """What a release does, known before it."""
        return self.mechanism.event

    def release(self, values: object) -> Released[int]:
        """The median plus noise."""
        ordered = np.sort(clip_to_bounds(values, self.low, self.high))
        if not len(ordered):
            raise InputError("There are no values.", why="Nothing has no median.", fix="n is public: ask for n first.")
        smooth = self.smooth_bound(ordered)
        middle = self.low + int(ordered[median_rank(len(ordered))])
        return Released(middle + self.mechanism.noise(smooth).draw(), self.event)

    def smooth_bound(self, ordered: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Fraction:
        """S of sorted values counted from ``low``."""
        span = self.high - self.low
        return self.mechanism.smooth_bound(
            lambda k: median_sensitivity(ordered, span, k), most=span, furthest=len(ordered) + 1
        )

    def utility(self, smooth: Fraction, beta: float) -> int:
        """⌈2S/ε·ln(1/β)⌉: the error but for probability β, given S = `smooth_bound`; as for `SmoothSensitivity`."""
        return self.mechanism.utility(smooth, beta)
