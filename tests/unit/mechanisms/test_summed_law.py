"""The law of two noises together: its tails against the sum itself, term by term."""

from fractions import Fraction

import numpy as np
import pytest

from dalenius.mechanisms.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw, SummedLaw, variance_of


def chances(law, reach):
    """P(X = k) for |k| ≤ reach, in doubles. What is below 1e-100 is left out: products of such take a hundred times as
    long as others, where they are too small for the usual form of a double."""
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    if isinstance(law, DiscreteGaussianLaw):
        found = np.exp(-k * k / (2 * float(law.variance)))
    else:
        found = np.exp(-abs(k) / float(law.scale))
    found[found < 1e-100] = 0
    return found / found.sum()


PAIRS = [
    *((DiscreteGaussianLaw, one, other) for one, other in [("0.05", "0.3"), ("0.5", "9"), ("3", "3"), ("4", "4")]),
    *((DiscreteGaussianLaw, one, other) for one, other in [("3.99", "400"), ("2", "40000"), ("250", "900")]),
    *((DiscreteLaplaceLaw, one, other) for one, other in [("0.2", "0.2"), ("1", "1"), ("1", "30"), ("0.01", "5")]),
    *((DiscreteLaplaceLaw, one, other) for one, other in [("40", "40"), ("40", "40.001"), ("3", "70")]),
]


@pytest.mark.parametrize(("kind", "one", "other"), PAIRS)
def test_its_tails_are_those_of_the_sum_and_never_less(kind, one, other):
    law = SummedLaw(kind(Fraction(one)), kind(Fraction(other)))
    spread = variance_of(law) ** 0.5
    reach = int(60 * max(spread, 2)) if kind is DiscreteLaplaceLaw else int(30 * max(spread, 2))
    summed = np.convolve(chances(law.first, reach), chances(law.second, reach))
    middle = 2 * reach
    # scales that are nearly equal are moved apart by a thousandth: 0.1% of the exponent
    apart = 0.02 if kind is DiscreteLaplaceLaw else 1e-7
    for k in {1, 2, 3, max(1, int(spread)), max(1, int(2 * spread)), max(1, int(4 * spread))}:
        truth = summed[middle + k :].sum()
        if truth > 1e-9:
            assert truth * (1 - 1e-9) <= law.upper_tail(k) <= truth * (1 + apart)
    for confidence in (0.5, 0.95, 0.999):
        error = law.noise_error(confidence)
        outside = 1 - summed[middle - error : middle + error + 1].sum()
        assert outside <= 1 - confidence + 1e-12
        inner = 1 - summed[middle - error + 1 : middle + error].sum() if error else 1.0
        assert inner > (1 - confidence) * (1 - apart)  # the least such k


def test_large_scales_are_quick_and_the_order_does_not_matter():
    for kind, sizes in ((DiscreteGaussianLaw, (2**40, 2**44, 1)), (DiscreteLaplaceLaw, (10**9, 10**10, 1))):
        for one in sizes:
            for other in sizes:
                laws = kind(Fraction(one)), kind(Fraction(other))
                law = SummedLaw(*laws)
                assert law.noise_error() == SummedLaw(*laws[::-1]).noise_error() >= max(x.noise_error() for x in laws)
    wide = SummedLaw(DiscreteGaussianLaw(Fraction(2**40)), DiscreteGaussianLaw(Fraction(2**40)))
    assert wide.noise_error(0.95) == pytest.approx(1.959964 * 2**20.5, rel=1e-5)


def test_two_kinds_are_never_added():
    with pytest.raises(TypeError):
        SummedLaw(DiscreteGaussianLaw(Fraction(1)), DiscreteLaplaceLaw(Fraction(1)))
