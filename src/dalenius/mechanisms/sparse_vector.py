"""The sparse vector technique (SPEC M7): many questions "is it above?", paid for by the few that are.

Most published variants are wrong; `docs/explanation/sparse-vector.md` lists them, and a test catches each.
"""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from dalenius.accounting import events, parameters
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms.interface import Released, count, one_way, probability, rational, settle, vector, whole
from dalenius.mechanisms.laws import DiscreteLaplaceLaw

if TYPE_CHECKING:
    from dalenius.accounting.parameters import Real


@dataclass(frozen=True)
class SparseVector:
    """Says which of a stream of integers are at or above one noisy threshold, up to c times.

    With ε₁ = share·ε and ε₂ = ε − ε₁: the threshold gets Lap(Δ/ε₁), once; each value gets fresh
    Lap(2cΔ/ε₂), or Lap(cΔ/ε₂) when all values move the same way between neighbours (``monotonic``). At the
    default share ½ and c = 1 these are Lap(2Δ/ε) and Lap(4Δ/ε). Noise is discrete Laplace.

    Guarantee:
        ε-DP for the whole stream, however many values are below, each chosen after the answers before it.

    Assumes:
        ``sensitivity`` bounds the change of every value between neighbours. Only the comparisons are
        released: neither the noisy values nor the threshold.

    References:
        Lyu, Su & Li, Understanding the sparse vector technique (2017), Alg. 7, Thm. 4 (and Thm. 5,
        monotonic). Dwork & Roth (2014), Thm. 3.23, 3.24. Compared with their Alg. 2, which draws a new
        threshold per hit at Lap(2cΔ/ε), the threshold's noise here does not grow with c. On the integers
        the proof is unchanged: it shifts the threshold's noise by Δ and each value's by at most 2Δ, whole
        numbers, at the price of e^(Δ/b) per shift, which discrete Laplace grants as continuous does: P(X =
        z) ≤ e^(s/b)·P(X = z + s), and so for P(X ≥ z).

    >>> mechanism = SparseVector(epsilon=1, sensitivity=1, hits=1)
    >>> mechanism.release([0, 0, 9000, 0], threshold=4500).value
    (False, False, True)
    """

    epsilon: Real
    sensitivity: int = 1
    hits: int = 1
    monotonic: bool = False
    threshold_share: Real = Fraction(1, 2)
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        settle(
            self,
            sensitivity=count(self.sensitivity, "sensitivity"),
            hits=count(self.hits, "hits"),
            neighbors=Neighbors.of(self.neighbors),
        )
        if rational(self.threshold_share, "threshold_share") >= 1:
            raise InputError(
                "threshold_share must be below 1.",
                why="The values need a part of ε.",
                fix="Use Fraction(1, 2).",
            )
        one_way(self.monotonic, self.neighbors)
        for law in (self.threshold_noise, self.value_noise):
            rational(law.scale, "noise scale")

    @staticmethod
    def best_share(hits: int, *, monotonic: bool = False) -> Fraction:
        """The share that makes comparisons least noisy: ε₁ : ε₂ = 1 : (2c)^⅔, or 1 : c^⅔ [Lyu et al., §4.2].

        >>> SparseVector.best_share(4)
        Fraction(1, 5)
        """
        factor = parameters.count(hits, "hits") * (1 if monotonic else 2)
        return Fraction(round(2**20 / (1 + factor ** (2 / 3))), 2**20).limit_denominator(2**16)

    @property
    def threshold_noise(self) -> DiscreteLaplaceLaw:
        """Scale Δ/ε₁."""
        return DiscreteLaplaceLaw(
            self.sensitivity / (rational(self.epsilon, "epsilon") * Fraction(self.threshold_share))
        )

    @property
    def value_noise(self) -> DiscreteLaplaceLaw:
        """Scale 2cΔ/ε₂, or cΔ/ε₂."""
        change = self.sensitivity * self.hits * (1 if self.monotonic else 2)
        return DiscreteLaplaceLaw(change / (rational(self.epsilon, "epsilon") * (1 - Fraction(self.threshold_share))))

    @cached_property
    def event(self) -> events.Pure:
        """What the whole stream does, charged before its first value."""
        return events.Pure(self.epsilon, self.neighbors)

    def start(self, threshold: int) -> Stream:
        """Draws the threshold's noise and waits for values."""
        return Stream(self, whole(threshold, "threshold"))

    def release(self, values: object, threshold: int) -> Released[tuple[bool, ...]]:
        """The answers to ``values`` in order, up to and including the c-th hit."""
        exact = vector(values, "values")
        stream = self.start(threshold)
        answers = []
        for value in exact:
            answers.append(stream.above(int(value)))
            if not stream.hits_left:
                break
        return Released(tuple(answers), self.event)

    def utility(self, values: int, beta: float) -> int:
        """α: with probability 1 − β, among that many values each hit is ≥ T − α and each miss < T + α.

        α = ⌈b₁·ln(2/β)⌉ + ⌈b₂·ln(2k/β)⌉ for scales b₁, b₂ of threshold and values: each part fails with
        probability at most β/2. At c = 1, share ½ it is below the 8Δ(ln k + ln(2/β))/ε of Dwork & Roth,
        Thm. 3.24 (up to rounding).
        """
        log_beta = math.log(probability(beta, "beta") / 2)
        log_values = math.log(parameters.count(values, "values"))
        return math.ceil(self.threshold_noise.scale * -log_beta) + math.ceil(
            self.value_noise.scale * (log_values - log_beta)
        )


class Stream:
    """One run of `SparseVector`: it holds the threshold's noise and counts the hits.

    A second copy would give c more hits on the same threshold, so it cannot be copied or pickled, and a
    forked child is refused.
    """

    def __init__(self, mechanism: SparseVector, threshold: int) -> None:
        self._mechanism = mechanism
        self._value_noise = mechanism.value_noise
        self._noisy_threshold = threshold + mechanism.threshold_noise.draw()
        self._left = mechanism.hits
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def event(self) -> events.Pure:
        """What the whole stream does."""
        return self._mechanism.event

    @property
    def hits_left(self) -> int:
        """How many times it can still say yes."""
        return self._left

    def above(self, value: int) -> bool:
        """Whether value + noise ≥ threshold + noise."""
        exact = whole(value, "value")
        # before the lock, which in a forked child nobody may be left to release
        if self._process != os.getpid():
            _refuse(
                "This stream belongs to another process.",
                "Its threshold may serve only one stream of answers.",
            )
        with self._lock:
            if not self._left:
                _refuse(
                    "This stream has given all its hits.",
                    "Each further answer would cost more than was charged.",
                )
            hit: bool = exact + self._value_noise.draw() >= self._noisy_threshold
            self._left -= hit
            return hit

    def __reduce__(self) -> NoReturn:
        _refuse("A running sparse vector cannot be copied.", "Each copy would answer up to all its hits.")

    def __repr__(self) -> str:
        return f"<Stream of {self._mechanism!r}, {self._left} hits left>"


def _refuse(message: str, why: str) -> NoReturn:
    raise InputError(message, why=why, fix="Charge and start a new one.")
