"""Randomisers of numbers: their ratio, their expectation and their variance, by exact enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import pvariance

import numpy as np
import pytest
from tests.laws import follows_law

from dalenius.errors import InputError, ReportInvalidError
from dalenius.local import chances
from dalenius.local.estimators.means import mean
from dalenius.local.randomisers import piecewise
from dalenius.local.randomisers.duchi import Duchi
from dalenius.local.randomisers.hybrid import Hybrid
from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.mean_randomiser import MeanRandomiser
from dalenius.local.randomisers.piecewise import Piecewise
from dalenius.local.tallies import Tally

KINDS: tuple[type[MeanRandomiser], ...] = (Duchi, Piecewise, Hybrid)
EPSILONS = (0.05, 0.5, 1.0, 3.0, 8.0)
SMALL = [kind(epsilon, 0, steps, 1) for kind in KINDS for epsilon in EPSILONS[1:4] for steps in (1, 4)]


def named(randomiser: MeanRandomiser) -> str:
    return f"{randomiser.name}-{randomiser.epsilon:g}-{randomiser.steps}"


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", KINDS)
def test_ratio_expectation_and_variance_are_exact(
    kind: type[MeanRandomiser], epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fine, steps in ((24, 1), (24, 2), (24, 5), (40, 40), (1024, 1)):
        monkeypatch.setattr(piecewise, "_FINE", fine)  # fewer codes, by the same formulas
        _check_exactly(kind(epsilon, 0, steps, 1))


def _check_exactly(randomiser: MeanRandomiser) -> None:
    codes, places = range(randomiser.codes), sorted({0, 1, 2, randomiser.steps} & set(range(randomiser.steps + 1)))
    laws = [[randomiser.chance_of(code, place) for code in codes] for place in places]
    worst = max(max(column) / min(column) for column in zip(*laws, strict=True))
    assert worst == randomiser.ratio and chances.within(worst, randomiser.epsilon)
    assert 0.99 * randomiser.epsilon <= randomiser.actual_epsilon <= randomiser.epsilon
    estimates = [randomiser.estimate(code) for code in codes]
    for place, law in zip(places, laws, strict=True):
        assert sum(law) == 1
        assert sum(map(Fraction.__mul__, law, estimates)) == place
        squares = ((value - place) ** 2 for value in estimates)
        assert sum(map(Fraction.__mul__, law, squares)) == randomiser.spread(place)


@pytest.mark.parametrize("randomiser", [kind(1.0, -1, 1, 0.5) for kind in KINDS], ids=named)
def test_reports_follow_the_law(randomiser: MeanRandomiser) -> None:
    assert all(follows_law(randomiser, value, 60_000) for value in (-1.0, 0.5))


@pytest.mark.parametrize("randomiser", SMALL, ids=named)
def test_what_a_tally_tells_is_what_the_reports_tell(randomiser: MeanRandomiser) -> None:
    values = np.arange(300) % (randomiser.steps + 1)
    reports = randomiser.encode(values)
    tally = randomiser.fold(reports[:100]) + randomiser.fold(reports[100:])
    estimates = [randomiser.estimate(int.from_bytes(row.tobytes(), "little")) for row in reports]
    assert randomiser.sums(tally) == (sum(estimates), sum(each**2 for each in estimates))
    found = mean(tally)
    assert found.value == pytest.approx(float(sum(estimates) / 300))
    own = pvariance(map(float, estimates)) / 299
    assert found.error == pytest.approx(math.sqrt(max(own, randomiser.least_variance(300))))


def test_variances_tend_to_those_of_the_papers() -> None:
    for epsilon in (0.5, 1.0, 3.0):
        e, root = math.exp(epsilon), math.exp(epsilon / 2)
        for x in (-1.0, 0.0, 0.6):
            duchi = ((e + 1) / (e - 1)) ** 2 - x * x
            piecewise = x * x / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
            mixed = duchi if epsilon <= 0.61 else duchi / root + piecewise * (1 - 1 / root)
            for kind, known in ((Duchi, duchi), (Piecewise, piecewise), (Hybrid, mixed)):
                assert kind(epsilon, -1, 1, 0.001).variance([x] * 10) == pytest.approx(known / 10, rel=0.01)


def test_the_worst_variance_is_that_of_the_worst_value() -> None:
    for kind in KINDS:
        randomiser = kind(2.0, 0, 50, 5)
        each = [randomiser.variance([value] * 7) for value in randomiser.grid]
        assert randomiser.worst_variance(7) == pytest.approx(max(each))
        assert randomiser.variance(randomiser.grid) == pytest.approx(np.mean(each) * 7 / 11)


def test_decimal_steps_make_the_grid_that_is_written() -> None:
    assert Duchi(1.0, 0, 0.3, 0.1).steps == 3
    assert Duchi(1.0, 0, 0.3, 0.1).checked([0.3, 0.26, 0.24, 0]).tolist() == [3, 3, 2, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_bad_grids_values_and_reports_are_refused(kind: type[MeanRandomiser]) -> None:
    for low, high, step in ((0, 1, 0.3), (1, 0, 0.1), (0, 1, 0), (0, 1, 1e-9), (0, math.inf, 1), (0, math.nan, 1)):
        with pytest.raises(InputError):
            kind(1.0, low, high, step)
    for epsilon in (0, 1e-11, 60.0):
        with pytest.raises(InputError):
            kind(epsilon, 0, 10, 1)
    randomiser = kind(1.0, 0, 10, 1)
    for values in ([0.0, 10.5], [math.nan], ["1"], [[1.0]]):
        with pytest.raises(InputError) as error:
            randomiser.encode(values)
        assert "10.5" not in str(error.value)
    with pytest.raises(InputError, match="Value 2 "):
        randomiser.encode([3, -1])
    bad = randomiser.encode([1, 2, 3])
    bad[1] = 255
    with pytest.raises(ReportInvalidError, match=f"Report 2 .*byte {randomiser.report_bytes}"):
        randomiser.fold(bad)


def test_means_are_of_randomisers_of_numbers() -> None:
    other = KAry(1.0, 3)
    with pytest.raises(InputError, match="k-ary"):
        mean(other.fold(other.encode([0, 1])))
    with pytest.raises(InputError, match="few reports"):
        mean(Tally(duchi := Duchi(1.0, 0, 1, 1), 1, np.zeros(duchi.tally_shape, np.int64)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_variance_is_that_of_the_best_value(kind: type[MeanRandomiser]) -> None:
    randomiser = kind(3.0, -4, 46, 0.5)
    exact = min(float(randomiser.spread(place)) for place in range(randomiser.steps + 1)) / 4 / 7
    assert randomiser.least_variance(7) == pytest.approx(exact, rel=0.02)  # the best place may lie between two
    assert randomiser.least_variance(7) <= exact * (1 + 1e-12)


def test_reports_that_are_all_alike_leave_an_error() -> None:
    """Twenty people at the end of the grid often all send the same bit; their mean is not known for certain."""
    duchi = Duchi(4.0, 0, 100, 1)
    found = mean(Tally(duchi, 20, np.array([20])))
    assert found.error == pytest.approx(math.sqrt(duchi.variance([100.0] * 20)))
    assert found.value - found.margin() < 100 < found.value


def test_a_range_that_floats_cannot_span_is_refused() -> None:
    with pytest.raises(InputError, match="no grid"):
        Duchi(1.0, -1e308, 1e308, 1e307)
