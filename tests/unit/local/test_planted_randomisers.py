"""Bugs that were planted: the checks every randomiser passes must not let them through."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytest
from tests.randomisers import check_estimates, check_reports, prove_ratio, skewed

from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.optimised_unary import OptimisedUnary
from dalenius.local.randomisers.randomiser import Reports, Values
from dalenius.local.randomisers.symmetric_unary import SymmetricUnary
from dalenius.local.randomisers.unary import put_bits

VALUES = list(range(4))


class NeverClears(OptimisedUnary):
    """A true bit is always sent: whoever sees it 0 knows that the value is another one. A RAPPOR client did this."""

    def _encode(self, values: Values, reports: Reports) -> None:
        super()._encode(values, reports)
        put_bits(reports, values, np.ones(len(values), np.bool_))


class NeverClearsSymmetric(SymmetricUnary):
    """The same, where the law is computed from the chance that was forgotten."""

    @property
    def own(self) -> int:
        return 2**32


class RoundsToNearest(OptimisedUnary):
    """Chances rounded the other way: the ratio is a little more than e^ε."""

    @cached_property
    def other(self) -> int:
        return super().other - 1


class LiesTooRarely(KAry):
    """Lies less often than its law says: e^0.25 in ratio."""

    def _encode(self, values: Values, reports: Reports) -> None:
        KAry(self.epsilon + 0.25, self.size)._encode(values, reports)  # the law is that of ε


def test_the_same_checks_pass_without_a_bug() -> None:
    for right in (OptimisedUnary(1.0, 4), SymmetricUnary(1.0, 4), KAry(1.0, 4)):
        prove_ratio(right, VALUES)
        check_reports(right, 1, VALUES, 5_000)


def test_a_bit_that_is_never_cleared_is_caught_by_its_reports() -> None:
    with pytest.raises(AssertionError):
        check_reports(NeverClears(1.0, 4), 1, VALUES, 5_000)


def test_a_bit_that_is_never_cleared_is_caught_by_its_law() -> None:
    with pytest.raises((AssertionError, ZeroDivisionError)):
        prove_ratio(NeverClearsSymmetric(1.0, 4), VALUES)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.0, 8.0])
def test_chances_rounded_the_wrong_way_are_caught(epsilon: float) -> None:
    with pytest.raises(AssertionError):
        prove_ratio(RoundsToNearest(epsilon, 4), VALUES)


def test_lies_that_are_too_rare_are_caught() -> None:
    with pytest.raises(AssertionError):
        check_reports(LiesTooRarely(1.0, 4), 1, VALUES, 20_000)
    with pytest.raises(AssertionError):
        check_estimates(lambda _: LiesTooRarely(1.0, 100), skewed(2000, 100), 200, 0.05)
