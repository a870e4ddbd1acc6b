"""Optimised local hashing (SPEC P3): everybody hashes with a key of their own, and reports the bucket k-arily."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.local import chances, coins
from dalenius.local.hashing import MultiplyShift
from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.randomiser import PureOracle, Reports, Values, bytes_for, sized, slices

_MOST_BUCKETS = 2**12


@dataclass(frozen=True)
class LocalHashing(PureOracle):
    """A fresh key of the hash `MultiplyShift`, and k-ary randomized response on the bucket of the value.

    Guarantee:
        The key is drawn before the value is looked at. Given the key, a report is one of `KAry` over g buckets, so its
        ratio is that of `KAry`, whatever the hash does.

    Estimates:
        A report supports the values that its key sends to its bucket: the own one with p = 1 − β + β/g, where β is the
        chance of a uniform bucket; another one with q = (1−β)·Σ w² + β/g, where w are the exact chances of the buckets
        (hashes of two values are independent over the key). Both are exact; Σ w² is 1/g or a little more.

    References:
        Wang, Blocki, Li & Jha (2017), section 4.4, with g ≈ e^ε + 1. Here g has the least mean variance over d values
        of equal share, by the closed form.

    A report is the key (a, b), 4 bytes each for d ≤ 2¹⁶ and else 8, then the bucket in 1 or 2; all low byte first. A
    tally counts, for each value, the reports that support it.

    Attributes:
        buckets: g; 0 takes the best one.

    >>> randomiser = LocalHashing(epsilon=1.0, size=1024)
    >>> randomiser.buckets, randomiser.report_bytes
    (4, 9)
    """

    buckets: int = 0
    name: ClassVar[str] = "local-hashing"

    def _settle(self) -> None:
        buckets = sized(self.buckets, "buckets", least=0, most=_MOST_BUCKETS) or best_buckets(self.epsilon, self.size)
        object.__setattr__(self, "buckets", buckets)

    @cached_property
    def response(self) -> KAry:
        """What perturbs the bucket."""
        return KAry(self.epsilon, self.buckets)

    @cached_property
    def family(self) -> MultiplyShift:
        """What hashes."""
        return MultiplyShift(self.size, self.buckets)

    @property
    def integers(self) -> Mapping[str, int]:
        """The chance of a uniform bucket as `lie`, the bits of a half key as `lane`."""
        return {"lie": self.response.lie, "lane": self.family.width}

    @cached_property
    def ratio(self) -> Fraction:
        """That of k-ary randomized response over the buckets."""
        return self.response.ratio

    @cached_property
    def p(self) -> Fraction:
        """1 − β + β/g."""
        return self.response.p

    @cached_property
    def q(self) -> Fraction:
        """(1−β)·Σ w² + β/g."""
        lie = chances.chance(self.response.lie)
        together = Fraction(sum(w * w for w in self.family.weights.tolist()), 2**self.family.width)
        return (1 - lie) * together + lie / self.buckets

    @property
    def public_bytes(self) -> int:
        """Those of the key."""
        return self.family.width // 4

    @property
    def report_bytes(self) -> int:
        """The key and the bucket."""
        return self.public_bytes + bytes_for(self.buckets - 1)

    @property
    def _packed(self) -> np.dtype[Any]:
        key = f"<u{self.family.width // 8}"
        return np.dtype([("a", key), ("b", key), ("bucket", f"<u{bytes_for(self.buckets - 1)}")])

    def law(self, value: int, public: bytes = b"") -> dict[bytes, Fraction]:
        """Of each bucket, given the key."""
        key = np.frombuffer(public, f"<u{self.family.width // 8}").astype(self.family.dtype)
        bucket = self.family.bucket(key[:1], key[1:], np.array([value], np.uint32))
        return {public + report: chance for report, chance in self.response.law(int(bucket[0])).items()}

    def _encode(self, values: Values, reports: Reports) -> None:
        packed = reports.view(self._packed)[:, 0]
        keys = self.family.keys(len(values))
        packed["a"], packed["b"] = keys[:, 0], keys[:, 1]
        lies = coins.coins(self.response.lie, len(values))
        others = coins.uniform(self.buckets, len(values))
        packed["bucket"] = np.where(lies, others, self.family.bucket(keys[:, 0], keys[:, 1], values))

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        yield self.public_bytes, reports.view(self._packed)[:, 0]["bucket"] >= self.buckets, "holds no bucket"

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        packed, lane = reports.view(self._packed)[:, 0], self.family.dtype
        self.family.holding(packed["a"].astype(lane), packed["b"].astype(lane), packed["bucket"], counts)

    def _fold_parts(self, count: int) -> Iterator[slice]:
        return slices(count, 2**15)


def best_buckets(epsilon: float, size: int) -> int:
    """The g with the least mean variance over all values, when each has the share 1/size."""
    grown = math.exp(min(epsilon, 30.0))

    def mean_variance(g: int) -> float:
        p, q = grown / (grown + g - 1), 1 / g
        return (p * (1 - p) / size + (1 - 1 / size) * q * (1 - q)) / (p - q) ** 2

    most = min(_MOST_BUCKETS, 2 * math.ceil(grown + 1))
    return min(range(2, most + 1), key=mean_variance)
