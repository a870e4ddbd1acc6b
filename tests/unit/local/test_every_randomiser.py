"""What each randomiser promises, by exact enumeration: its ratio, its law, its expectation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.errors import InputError, ReportInvalidError
from dalenius.local import chances
from dalenius.local.randomisers import RANDOMISERS
from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.randomiser import FrequencyOracle, PureOracle, Randomiser

EPSILONS = (1e-4, 0.1, 0.5, 1.0, 3.0, 8.0, 16.0)

# Small enough for every report to be listed.
SMALL: list[Randomiser] = [KAry(epsilon, size) for epsilon in EPSILONS for size in (2, 3, 7)]


def named(randomiser: Randomiser) -> str:
    return f"{randomiser.name}-{randomiser.fields()}"


def values_of(randomiser: Randomiser) -> range:
    assert isinstance(randomiser, FrequencyOracle)
    return range(randomiser.size)


def publics(randomiser: Randomiser) -> list[bytes]:
    """Some public parts, drawn as the randomiser draws them; one empty one where there is none."""
    if not randomiser.public_bytes:
        return [b""]
    drawn = randomiser.encode([0] * 5)
    return [row.tobytes() for row in drawn[:, : randomiser.public_bytes]]


@pytest.mark.parametrize("randomiser", SMALL, ids=named)
def test_no_report_is_more_than_the_ratio_more_likely_under_one_value_than_under_another(
    randomiser: Randomiser,
) -> None:
    worst = Fraction(0)
    for public in publics(randomiser):
        laws = [randomiser.law(value, public) for value in values_of(randomiser)]
        for law in laws:
            assert sum(law.values()) == 1
            assert law.keys() == laws[0].keys()
        for report in laws[0]:
            chances_of = [law[report] for law in laws]
            assert min(chances_of) > 0
            worst = max(worst, max(chances_of) / min(chances_of))
    assert worst == randomiser.ratio
    assert chances.within(worst, randomiser.epsilon)
    assert chances.within(worst, randomiser.actual_epsilon)
    assert randomiser.actual_epsilon <= randomiser.epsilon
    assert randomiser.actual_epsilon >= randomiser.epsilon * 0.99  # and little is given away by rounding


@pytest.mark.parametrize("randomiser", [one for one in SMALL if isinstance(one, PureOracle)], ids=named)
def test_p_and_q_are_what_the_law_and_the_fold_give(randomiser: PureOracle) -> None:
    if randomiser.public_bytes:
        pytest.skip("averages over keys: tests of the hash show it")
    for value in values_of(randomiser):
        expected = [Fraction(0)] * randomiser.size
        for report, chance in randomiser.law(value).items():
            supported = randomiser.fold(np.frombuffer(report, np.uint8)[None]).counts
            expected = [e + chance * int(c) for e, c in zip(expected, supported, strict=True)]
        assert expected == [randomiser.p if x == value else randomiser.q for x in values_of(randomiser)]


def test_every_randomiser_of_categories_is_proved_here() -> None:
    assert {type(one) for one in SMALL} >= {cls for cls in RANDOMISERS if issubclass(cls, FrequencyOracle)}


@pytest.mark.parametrize("cls", [cls for cls in RANDOMISERS if issubclass(cls, FrequencyOracle)])
@pytest.mark.parametrize("epsilon", [1e-12, 200.0, 0.0, -1.0, float("nan"), float("inf"), "1"])
def test_an_epsilon_without_chances_is_refused(cls: type[FrequencyOracle], epsilon: float) -> None:
    with pytest.raises(InputError):
        cls(epsilon, 8)


@pytest.mark.parametrize("randomiser", SMALL[::3], ids=named)
def test_reports_of_another_width_are_refused(randomiser: Randomiser) -> None:
    for shape in ((3, randomiser.report_bytes + 1), (3,), (3, 0)):
        with pytest.raises(ReportInvalidError):
            randomiser.fold(np.zeros(shape, np.uint8))
