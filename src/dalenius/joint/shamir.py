"""Shamir's sharing: a secret is the value at 0 of a random polynomial of degree t, party i holds the value at i.

*Guarantee.* Any t shares are uniform and independent of the secret; any t + 1 give it away (Shamir 1979, "How to share
a secret"). The shares of a sum are the sums of the shares.

Here the shares of t parties come from keys that the dealer has with each of them, and the polynomial is the one through
those points and the secret: as uniform as before, for a t-th of the shares nothing travels, and what an observer
without the keys could tell from it breaks AES.

References: A. Shamir, CACM 22(11), 1979; for shares out of keys, R. Cramer, I. Damgård and Y. Ishai, TCC 2005.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dalenius.errors import InputError
from dalenius.joint.decoding import locate_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.joint.streams import Stream

    Array = NDArray[np.uint64]


class Field(Protocol):
    """What sharing asks of a field; `Mersenne` and `Binary` are ones."""

    def __hash__(self) -> int: ...
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def order(self) -> int: ...  # noqa: D102
    def pack(self, values: Array) -> bytes | memoryview: ...  # noqa: D102
    def unpack(self, data: bytes | bytearray | memoryview, shape: tuple[int, ...]) -> Array: ...  # noqa: D102
    def size(self, shape: tuple[int, ...]) -> int: ...  # noqa: D102
    def zeros(self, shape: tuple[int, ...]) -> Array: ...  # noqa: D102
    def random(self, stream: Stream, shape: tuple[int, ...]) -> Array: ...  # noqa: D102
    def add(self, a: Array, b: Array) -> Array: ...  # noqa: D102
    def subtract(self, a: Array, b: Array) -> Array: ...  # noqa: D102
    def negative(self, a: Array) -> Array: ...  # noqa: D102
    def total(self, values: Array) -> Array: ...  # noqa: D102
    def multiply(self, a: Array, b: Array) -> Array: ...  # noqa: D102
    def dot(self, a: Array, b: Array) -> Array: ...  # noqa: D102
    def combine(self, weights: Sequence[int], arrays: Sequence[Array]) -> Array: ...  # noqa: D102
    def combine_all(self, rows: Sequence[Sequence[int]], arrays: Sequence[Array]) -> list[Array]: ...  # noqa: D102
    def first(self, values: Array) -> tuple[int, int]: ...  # noqa: D102
    def element(self, values: Array, place: tuple[int, int]) -> int: ...  # noqa: D102
    def scalar_add(self, a: int, b: int) -> int: ...  # noqa: D102
    def scalar_subtract(self, a: int, b: int) -> int: ...  # noqa: D102
    def scalar_multiply(self, a: int, b: int) -> int: ...  # noqa: D102
    def scalar_inverse(self, a: int) -> int: ...  # noqa: D102


@lru_cache(maxsize=4096)
def lagrange(field: Field, points: tuple[int, ...], at: int) -> tuple[int, ...]:
    """The weights that give a polynomial's value at one point from its values at others.

    >>> from dalenius.joint.fields import BIG
    >>> [weight - BIG.order if weight > BIG.order // 2 else weight for weight in lagrange(BIG, (1, 2, 3), 0)]
    [3, -3, 1]
    """
    weights = []
    for i in points:
        over, under = 1, 1
        for j in points:
            if j != i:
                over = field.scalar_multiply(over, field.scalar_subtract(at, j))
                under = field.scalar_multiply(under, field.scalar_subtract(i, j))
        weights.append(field.scalar_multiply(over, field.scalar_inverse(under)))
    return tuple(weights)


@dataclass(frozen=True)
class Scheme:
    """Sharing among `parties` parties, of which any `threshold` together learn nothing."""

    field: Field
    parties: int
    threshold: int

    def __post_init__(self) -> None:
        if not 1 <= self.threshold < self.parties:
            raise InputError(
                f"{self.threshold} of {self.parties} parties cannot be the most that may collude.",
                why="At least one party may, and not all.",
                fix="Take a threshold below half of the parties.",
            )
        if self.parties >= self.field.order:
            raise InputError(
                f"{self.field.name} is too small for {self.parties} parties.",
                why="Each needs a point of its own, and 0 is the secret's.",
                fix="Take a larger field.",
            )

    def seeded(self, dealer: int) -> tuple[int, ...]:
        """The parties whose shares of what `dealer` deals come from a key: the next t after it."""
        return tuple((dealer - 1 + step) % self.parties + 1 for step in range(1, self.threshold + 1))

    def sent_to(self, dealer: int) -> tuple[int, ...]:
        """The parties to whom a share is sent."""
        return tuple((dealer - 1 + step) % self.parties + 1 for step in range(self.threshold + 1, self.parties))

    def deal(self, dealer: int, secret: Array, keys: Mapping[int, Stream], scale: int = 1) -> dict[int, Array]:
        """The shares of `scale` times a secret, for all but the seeded parties."""
        seeded = self.seeded(dealer)
        drawn = [self.field.random(keys[party], secret.shape) for party in seeded]
        points = (0, *seeded)
        to = (dealer, *self.sent_to(dealer))
        rows = []
        for party in to:
            first, *rest = lagrange(self.field, points, party)
            rows.append((self.field.scalar_multiply(first, scale), *rest))
        return dict(zip(to, self.field.combine_all(rows, [secret, *drawn]), strict=True))

    def reconstruct(self, shares: Mapping[int, Array], degree: int | None = None) -> Array:
        """The secret, from the first `degree` + 1 shares (t + 1 by default); the others are not looked at."""
        needed = (self.threshold if degree is None else degree) + 1
        if len(shares) < needed:
            raise InputError(
                f"{len(shares)} shares are too few.", why=f"It takes {needed}.", fix="Wait for more parties."
            )
        points = tuple(sorted(shares)[:needed])
        return self.field.combine(lagrange(self.field, points, 0), [shares[each] for each in points])

    def open(self, shares: Mapping[int, Array]) -> tuple[Array, bool]:
        """The secret, and whether all shares lie on one polynomial of degree t, in one pass."""
        points = sorted(shares)
        base, others = points[: self.threshold + 1], points[self.threshold + 1 :]
        rows = [lagrange(self.field, tuple(base), each) for each in (0, *others)]
        secret, *expected = self.field.combine_all(rows, [shares[each] for each in base])
        return secret, all(np.array_equal(shares[each], found) for each, found in zip(others, expected, strict=True))

    def agrees(self, shares: Mapping[int, Array], degree: int | None = None) -> Array:
        """For each secret, zeros where all shares lie on one polynomial: shape (checks, …).

        With n shares of degree t there are n − t − 1 checks, so up to that many wrong shares are noticed.
        """
        needed = (self.threshold if degree is None else degree) + 1
        points = tuple(sorted(shares))
        base = points[:needed]
        found = []
        for other in points[needed:]:
            expected = self.field.combine(lagrange(self.field, base, other), [shares[each] for each in base])
            found.append(expected ^ shares[other])
        shape = next(iter(shares.values())).shape
        return np.stack(found) if found else np.zeros((0, *shape), np.uint64)

    def wrong(self, shares: Mapping[int, Array]) -> tuple[int, ...] | None:
        """Whose shares are wrong: () if none is, None if some are but nobody can say whose.

        Names up to (n − t − 1) / 2 parties, so all of up to t where n ≥ 3t + 1 (Berlekamp and Welch).
        """
        found: set[int] = set()
        most = (len(shares) - self.threshold - 1) // 2
        while True:
            kept = {party: share for party, share in shares.items() if party not in found}
            bad = self.agrees(kept)
            if not bad.any():
                return tuple(sorted(found))
            place = self.field.first(np.bitwise_or.reduce(bad, axis=0))
            values = {party: self.field.element(share, place) for party, share in kept.items()}
            located = locate_errors(self.field, values, self.threshold)
            if located is None or len(found) + len(located) > most:
                return None
            found |= set(located)
