"""Laplace noise on integers (SPEC M1, M12 in L1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from dalenius.accounting import events
from dalenius.accounting.neighbors import Neighbors
from dalenius.mechanisms.interface import (
    IntArray,
    Noisy,
    Vector,
    add,
    count,
    integers,
    of_dimension,
    probability,
    rational,
    settle,
)
from dalenius.mechanisms.laws import DiscreteLaplaceLaw

if TYPE_CHECKING:
    from fractions import Fraction

    from dalenius.accounting.parameters import Real


@dataclass(frozen=True)
class Laplace:
    """Adds discrete Laplace noise of scale b = Δ1/ε, an exact rational: P(k) = tanh(1/2b)·exp(−|k|/b).

    Guarantee:
        ε-DP for a value, or a vector as a whole, of L1 sensitivity Δ1.

    Assumes:
        ``sensitivity`` bounds Σ_j |v_j(D) − v_j(D′)| over neighbours of the stated relation. The vector has
        a public length, ``dimension``.

    References:
        Dwork, McSherry, Nissim & Smith (2006), Prop. 1; on the integers Ghosh, Roughgarden & Sundararajan
        (2009). Σ_j (|y_j − v′_j| − |y_j − v_j|) ≤ Δ1 gives the ratio e^(Δ1/b) = e^ε point by point.

    >>> mechanism = Laplace(epsilon=0.5, sensitivity=3)
    >>> mechanism.scale
    Fraction(6, 1)
    >>> noisy = mechanism.release(1000)
    >>> noisy.event.scale == 6, abs(noisy.value - 1000) < 600, noisy.noise_error()
    (True, True, 18)
    """

    epsilon: Real
    sensitivity: int = 1
    dimension: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        rational(self.epsilon, "epsilon")
        settle(
            self,
            sensitivity=count(self.sensitivity, "sensitivity"),
            dimension=count(self.dimension, "dimension"),
            neighbors=Neighbors.of(self.neighbors),
        )
        self.event  # noqa: B018 — a scale out of range is refused now, not at the first release

    @property
    def scale(self) -> Fraction:
        """The scale b = Δ1/ε, exactly."""
        return self.sensitivity / rational(self.epsilon, "epsilon")

    @property
    def noise(self) -> DiscreteLaplaceLaw:
        """The law of each coordinate's noise."""
        return DiscreteLaplaceLaw(self.scale)

    @cached_property
    def event(self) -> events.DiscreteLaplace:
        """What a release does, known before it."""
        return events.DiscreteLaplace(self.scale, self.sensitivity, self.dimension, self.neighbors)

    @overload
    def release(self, value: int) -> Noisy[int]: ...
    @overload
    def release(self, value: Vector) -> Noisy[IntArray]: ...
    def release(self, value: object) -> Noisy[Any]:
        """``value`` plus noise, each coordinate its own."""
        exact = of_dimension(integers(value), self.dimension)
        drawn = self.noise.draw(None if isinstance(exact, int) else exact.size)
        return Noisy(add(exact, drawn), self.event, self.noise)

    def noise_error(self, confidence: float = 0.95) -> int:
        """Half-width of one coordinate from the noise alone; needs no data, so it serves previews."""
        return self.noise.noise_error(confidence)

    def utility(self, beta: float) -> int:
        """α = ⌈Δ1/ε·ln(d/β)⌉: all d coordinates are within α of the truth with probability 1 − β.

        Rounded up to an integer, since the noise is one: P(|X| > α) = e^(−α/b)·2/(e^(1/b)+1) ≤ e^(−α/b)
        holds at integers, not between them.

        >>> Laplace(epsilon=1, sensitivity=1, dimension=100).utility(beta=0.05)
        8
        """
        return math.ceil(self.scale * (math.log(self.dimension) - math.log(probability(beta, "beta"))))
