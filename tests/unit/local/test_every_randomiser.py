"""What each randomiser of categories promises, by exact enumeration: its ratio, its law, its expectation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.randomisers import named, prove_ratio, prove_support

from dalenius.errors import InputError, ReportInvalidError
from dalenius.local import chances, reports
from dalenius.local.domain import Domain
from dalenius.local.randomisers import RANDOMISERS
from dalenius.local.randomisers.count_mean_sketch import CountMeanSketch
from dalenius.local.randomisers.hadamard import Hadamard
from dalenius.local.randomisers.hadamard_sketch import HadamardSketch
from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.local_hashing import LocalHashing
from dalenius.local.randomisers.optimised_unary import OptimisedUnary
from dalenius.local.randomisers.randomiser import FrequencyOracle, PureOracle
from dalenius.local.randomisers.randomized_response import RandomizedResponse
from dalenius.local.randomisers.subset_selection import SubsetSelection
from dalenius.local.randomisers.symmetric_unary import SymmetricUnary

EPSILONS = (1e-6, 0.1, 1.0, 3.0, 8.0, 15.0)  # from hardly anything to hardly any privacy


def small(epsilon: float) -> list[FrequencyOracle]:
    """Each of them, small enough for every report to be listed."""
    found: list[FrequencyOracle] = [
        RandomizedResponse(epsilon),
        *(KAry(epsilon, size) for size in (2, 3, 7)),
        *(SymmetricUnary(epsilon, size) for size in (2, 5)),
        *(OptimisedUnary(epsilon, size) for size in (2, 5)),
        *(LocalHashing(epsilon, 6, buckets) for buckets in (2, 3, 8)),
        *(Hadamard(epsilon, size, rows) for size, rows in ((2, 1), (5, 2), (8, 3))),
        *(SubsetSelection(epsilon, size, chosen) for size, chosen in ((2, 1), (5, 1), (6, 2), (9, 4))),
        CountMeanSketch(epsilon, 5, 4, 4),
        HadamardSketch(epsilon, 5, 4, 8),
    ]
    return found


SMALL = [one for epsilon in EPSILONS for one in small(epsilon)]
CATEGORIES = [cls for cls in RANDOMISERS if issubclass(cls, FrequencyOracle)]


@pytest.mark.parametrize("randomiser", SMALL, ids=named)
def test_no_report_is_more_than_the_ratio_more_likely_under_one_value_than_under_another(
    randomiser: FrequencyOracle,
) -> None:
    prove_ratio(randomiser, list(range(randomiser.size)))


@pytest.mark.parametrize("randomiser", SMALL, ids=named)
def test_little_is_given_away_by_rounding(randomiser: FrequencyOracle) -> None:
    steps = 2.0**-30 * (1 + np.exp(randomiser.epsilon)) * randomiser.size / randomiser.epsilon
    assert randomiser.actual_epsilon >= randomiser.epsilon * (1 - 8 * steps)


@pytest.mark.parametrize(
    "randomiser", [one for one in small(1.0) if isinstance(one, PureOracle) and not one.public_bytes], ids=named
)
def test_p_and_q_are_what_the_law_and_the_fold_give(randomiser: PureOracle) -> None:
    prove_support(randomiser, [b""])


@pytest.mark.parametrize("randomiser", [one for one in small(1.0) if isinstance(one, Hadamard)], ids=named)
def test_p_and_q_of_hadamard_are_exact_over_all_keys(randomiser: Hadamard) -> None:
    prove_support(
        randomiser, [key.to_bytes(randomiser.public_bytes, "little") for key in range(2**randomiser.key_bits)]
    )


def test_every_randomiser_of_categories_is_proved_here() -> None:
    assert {type(one) for one in SMALL} >= set(CATEGORIES)


@pytest.mark.parametrize("cls", CATEGORIES)
@pytest.mark.parametrize("epsilon", [1e-12, 200.0, 0.0, -1.0, float("nan"), float("inf"), "1", True])
def test_an_epsilon_without_chances_is_refused(cls: type[FrequencyOracle], epsilon: float) -> None:
    with pytest.raises(InputError):
        cls(epsilon, 2)


@pytest.mark.parametrize("cls", CATEGORIES)
def test_values_outside_the_domain_are_refused_with_their_place(cls: type[FrequencyOracle]) -> None:
    randomiser = cls(1.0, 2)
    for values in ([0, 1, 2], [0, 1, -1], np.array([0, 1, 2**40])):
        with pytest.raises(InputError, match="Value 3 "):
            randomiser.encode(values)
    for wrong in ([0.5], ["a"], [[0]], 1, [None]):
        with pytest.raises(InputError, match="whole numbers"):
            randomiser.encode(wrong)


@pytest.mark.parametrize("randomiser", small(1.0), ids=named)
def test_reports_of_another_width_are_refused(randomiser: FrequencyOracle) -> None:
    for shape in ((3, randomiser.report_bytes + 1), (3,), (3, 0)):
        with pytest.raises(ReportInvalidError):
            randomiser.fold(np.zeros(shape, np.uint8))


@pytest.mark.parametrize("randomiser", small(1.0), ids=named)
def test_just_the_possible_reports_are_taken(randomiser: FrequencyOracle) -> None:
    """All reports of one byte, and every other last byte of longer ones, against the law."""
    template = randomiser.encode([0])[0]
    taken = randomiser.law(0, template[: randomiser.public_bytes].tobytes())
    for byte in range(randomiser.public_bytes, randomiser.report_bytes):
        for changed in range(256):
            rows = np.stack([randomiser.encode([1])[0], template])
            rows[1, byte] = changed
            if rows[1].tobytes() in taken:
                assert randomiser.fold(rows).reports == 2
            else:
                with pytest.raises(ReportInvalidError, match=r"Report 2 .*byte"):
                    randomiser.fold(rows)


@pytest.mark.parametrize("randomiser", small(1.0), ids=named)
def test_tallies_merge_by_addition(randomiser: FrequencyOracle) -> None:
    made = randomiser.encode(np.arange(1000) % randomiser.size)
    assert randomiser.fold(made[:300]) + randomiser.fold(made[300:]) == randomiser.fold(made)
    with pytest.raises(InputError):
        randomiser.fold(made) + KAry(0.5, 11).fold(KAry(0.5, 11).encode([1]))


@pytest.mark.parametrize("randomiser", small(1.0), ids=named)
def test_its_fields_make_it_again(randomiser: FrequencyOracle) -> None:
    assert type(randomiser)(**randomiser.fields()) == randomiser
    assert all(type(number) is int for number in randomiser.integers.values())


def test_the_exact_comparison_with_a_power_of_e_does_not_err_next_to_it() -> None:
    assert chances.within(Fraction(27182818284590452353, 10**19), 1.0)
    assert not chances.within(Fraction(27182818284590452354, 10**19), 1.0)


@pytest.mark.parametrize("randomiser", small(1.0), ids=named)
def test_its_file_comes_back_and_no_shorter_or_longer_one_is_taken(randomiser: FrequencyOracle) -> None:
    domain = Domain.numbered(randomiser.size)
    made = randomiser.encode(np.arange(20) % randomiser.size)
    data = reports.to_bytes(randomiser, made, domain)
    found = reports.from_bytes(data, domain)
    assert found.randomiser == randomiser
    assert (found.reports == made).all()
    for wrong in (data[:-1], data + b"\0", data + made[0].tobytes()):
        with pytest.raises(ReportInvalidError, match="byte"):
            reports.from_bytes(wrong, domain)
