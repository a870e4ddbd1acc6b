"""Bit vectors: yes or no to each of d questions, under one ε for the whole vector."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.accounting import parameters
from dalenius.errors import InputError
from dalenius.local import chances, coins
from dalenius.local.randomisers.randomiser import Randomiser, Reports, Values, bytes_for, sized

LARGEST = 2**16
MOST_SENT = 400
"""A file states the exact ratio; with more bits its numbers would pass the 4,300 digits that JSON readers take."""


@dataclass(frozen=True)
class BitVector(Randomiser):
    """Draws s of the d bits without looking at them, and flips each of these with chance a/2³².

    Guarantee:
        ε for the *whole* vector: the neighbouring vector may differ in all d bits, of which s are sent. The ratio is
        ((2³² − a)/a)^s, and a is the least integer for which that is at most e^ε. Which bits are sent is drawn before.

    References:
        Warner (1965), for each bit; Nguyên et al. (2016), "Collecting and analyzing data from smart device users with
        local differential privacy", for sending few of them.

    s is chosen by the closed form unless it is given: with φ = a/2³², a bit's share among n people has variance
    ((d/s)/(1 − 2φ)² − 1)/4n, whatever the share. For ε below about 2.9 that is least for s = 1, and for larger ones at
    about s = ε/2.2; to send all d bits at ε/d each is never better unless d is smaller than that.

    A report is the places of the s bits in ascending order, each in 1, 2 or 4 bytes, low byte first (nothing, if all
    are sent), and then the s bits, the first the lowest of its byte; unused bits are 0. A tally has two rows: for each
    bit, how often it was sent, and how often as 1.

    >>> vector = BitVector(epsilon=1.0, size=10)
    >>> vector.sent, vector.report_bytes, vector.encode([[1, 0] * 5]).shape
    (1, 2, (1, 2))
    >>> BitVector(epsilon=8.0, size=10).sent, BitVector(epsilon=8.0, size=2).sent
    (4, 2)
    """

    name: ClassVar[str] = "bit-vector"

    size: int
    sent: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", sized(self.size, "size", least=1, most=LARGEST))
        object.__setattr__(self, "sent", sized(self.sent, "sent", least=0, most=min(self.size, MOST_SENT)))
        if not self.sent:
            object.__setattr__(self, "sent", best_sent(parameters.epsilon(self.epsilon), self.size))
        super().__post_init__()

    @cached_property
    def flip(self) -> int:
        """The a of the chance a/2³² that a bit that is sent is flipped."""
        a = chances.smallest(self._ratio, self.epsilon, 1, chances.ONE // 2)
        if a == 1:
            raise chances.too_large(self.epsilon)
        return a

    def _ratio(self, a: int) -> Fraction:
        return Fraction(chances.ONE - a, a) ** self.sent

    @property
    def integers(self) -> Mapping[str, int]:
        """A."""
        return {"flip": self.flip}

    @cached_property
    def ratio(self) -> Fraction:
        """((2³² − a)/a)^s."""
        return chances.informative(self._ratio(self.flip), self.epsilon)

    @property
    def public_bytes(self) -> int:
        """The places of the bits that are sent."""
        return 0 if self.sent == self.size else self.sent * self._width

    @property
    def report_bytes(self) -> int:
        """Places and bits."""
        return self.public_bytes + -(-self.sent // 8)

    @property
    def _width(self) -> int:
        return bytes_for(self.size - 1)

    def law(self, value: Any, public: bytes = b"") -> dict[bytes, Fraction]:
        """Of each of the 2^s reports about these places."""
        (truth,) = self.checked([value])
        places = np.frombuffer(public, f"<u{self._width}") if public else np.arange(self.size)
        flip = chances.chance(self.flip)
        law = {}
        for pattern in range(2**self.sent):
            flipped = sum(int(truth[place]) != pattern >> at & 1 for at, place in enumerate(places.tolist()))
            chance = flip**flipped * (1 - flip) ** (self.sent - flipped)
            law[public + pattern.to_bytes(-(-self.sent // 8), "little")] = chance
        return law

    def variance(self, reports: int) -> float:
        """((d/s)/(1 − 2φ)² − 1)/4n, of any bit's share; for a *fixed* population."""
        return (float(self.size / (self.sent * self._gap**2)) - 1) / 4 / reports

    @property
    def _gap(self) -> Fraction:
        return 1 - 2 * chances.chance(self.flip)

    def shares(self, counts: NDArray[np.int64], reports: int) -> NDArray[np.float64]:
        """½ + d·(ones − sent/2)/(s·n·(1 − 2φ)): unbiased, because each bit is sent by a share s/d of all on average."""
        sent, ones = counts
        scale = self.size / (self.sent * reports * float(self._gap))
        return np.asarray(0.5 + scale * (ones - sent / 2), np.float64)

    def checked(self, values: object) -> Values:
        """One row of zeros and ones for each person."""
        found = np.asarray(values)
        if found.ndim != 2 or found.shape[1] != self.size or found.dtype.kind not in "biu":
            raise InputError(
                f"Values must be rows of {self.size:,} bits.",
                why="Everybody answers the same questions.",
                fix="Give one row of zeros and ones for each person.",
            )
        outside = ((found != 0) & (found != 1)).any(axis=1)
        if outside.any():
            raise InputError(
                f"Row {int(np.argmax(outside)) + 1:,} holds something that is no bit.",
                why="Only 0 and 1 are.",
                fix="Turn it into zeros and ones.",
            )
        return found.astype(np.bool_)

    def _encode(self, values: Values, reports: Reports) -> None:
        people = len(values)
        if self.sent < self.size:
            places = _subsets(self.size, self.sent, people)
            reports[:, : self.public_bytes] = places.astype(f"<u{self._width}").view(np.uint8)
            values = np.take_along_axis(values, places, axis=1)
        flips = coins.coins(self.flip, people * self.sent).reshape(people, self.sent)
        reports[:, self.public_bytes :] = np.packbits(values ^ flips, axis=1, bitorder="little")

    def _places_of(self, reports: Reports) -> NDArray[np.int64]:
        if self.sent == self.size:
            return np.broadcast_to(np.arange(self.size), (len(reports), self.size))
        head = np.ascontiguousarray(reports[:, : self.public_bytes])
        return head.view(f"<u{self._width}").astype(np.int64)

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        places = self._places_of(reports)
        for at in range(places.shape[1] if self.sent < self.size else 0):
            yield at * self._width, places[:, at] >= self.size, "names a bit that there is not"
            if at:
                yield at * self._width, places[:, at] <= places[:, at - 1], "names bits that do not ascend"
        if spare := -self.sent % 8:
            yield self.report_bytes - 1, reports[:, -1] >> (8 - spare) > 0, "has bits set after its last one"

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """How often each bit was sent, and as 1."""
        return 2, self.size

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        places = self._places_of(reports).ravel()
        bits = np.unpackbits(reports[:, self.public_bytes :], axis=1, count=self.sent, bitorder="little").ravel()
        counts[0] += np.bincount(places, minlength=self.size)
        counts[1] += np.bincount(places[bits.astype(np.bool_)], minlength=self.size)

    def _parts(self, count: int) -> Iterator[slice]:
        return (slice(at, min(at + self._at_once, count)) for at in range(0, count, self._at_once))

    @property
    def _at_once(self) -> int:
        return max(64, 2**18 // self.size)  # of people: values take d bytes each


def best_sent(epsilon: float, size: int) -> int:
    """The s ≤ d with the least (d/s)·((e^x + 1)/(e^x − 1))², x = ε/s.

    It falls and then rises with s, so the first that is not better than the one before it ends the search.

    >>> [best_sent(epsilon, 100) for epsilon in (0.5, 2.0, 4.0, 8.0)]
    [1, 1, 2, 4]
    """
    best = 1
    while best < min(size, MOST_SENT) and _cost(epsilon, best + 1) < _cost(epsilon, best):
        best += 1
    return best


def _cost(epsilon: float, sent: int) -> float:
    return 1 / (sent * math.tanh(epsilon / sent / 2) ** 2)


def _subsets(size: int, chosen: int, people: int) -> NDArray[np.int64]:
    """Uniform subsets, ascending: Floyd's method, which draws once for each member and rejects nothing."""
    found = np.empty((people, chosen), np.int64)
    for at, top in enumerate(range(size - chosen, size)):
        drawn = coins.uniform(top + 1, people).astype(np.int64)
        seen = (found[:, :at] == drawn[:, None]).any(axis=1)
        found[:, at] = np.where(seen, top, drawn)
    return np.sort(found, axis=1)
