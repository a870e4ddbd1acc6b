"""Optimised unary encoding (SPEC P2): the many zeros are kept well, the single 1 is a fair coin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dalenius.local import chances
from dalenius.local.randomisers.unary import Unary, ratio_of_bits


@dataclass(frozen=True)
class OptimisedUnary(Unary):
    """The own bit is 1 with chance p = ½, every other one with chance q.

    Guarantee:
        The ratio is (1−q)/q, and 2³²q is the least integer for which that is at most e^ε: q ≈ 1/(e^ε+1).

    References:
        Wang, Blocki, Li & Jha (2017), section 4.3: p = ½ has the least variance for rare values.

    >>> OptimisedUnary(epsilon=2.0, size=10).report_bytes
    2
    """

    name: ClassVar[str] = "optimised-unary"

    @property
    def own(self) -> int:
        """2³¹."""
        return chances.ONE // 2

    @cached_property
    def other(self) -> int:
        """2³²·q."""
        q = chances.smallest(lambda a: ratio_of_bits(self.own, a), self.epsilon, 1, chances.ONE // 2)
        if q == 1:
            raise chances.too_large(self.epsilon)
        return q
