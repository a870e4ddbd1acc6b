"""Symmetric unary encoding (SPEC P2): a 1 is kept as often as a 0."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dalenius.local import chances
from dalenius.local.randomisers.unary import Unary, ratio_of_bits


@dataclass(frozen=True)
class SymmetricUnary(Unary):
    """Each bit is flipped with chance q, so p = 1 − q.

    Guarantee:
        The ratio is ((1−q)/q)², and 2³²q is the least integer for which that is at most e^ε: q ≈ 1/(e^(ε/2)+1).

    References:
        Erlingsson, Pihur & Korolova (2014), basic RAPPOR; Wang et al. (2017), where it is called SUE.

    >>> SymmetricUnary(epsilon=2.0, size=10).report_bytes
    2
    """

    name: ClassVar[str] = "symmetric-unary"

    @cached_property
    def other(self) -> int:
        """2³²·q."""
        q = chances.smallest(lambda a: ratio_of_bits(chances.ONE - a, a), self.epsilon, 1, chances.ONE // 2)
        if q == 1:
            raise chances.too_large(self.epsilon)
        return q

    @property
    def own(self) -> int:
        """2³² − 2³²·q."""
        return chances.ONE - self.other
