"""The planner ranks by closed forms, and says what local privacy costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dalenius.errors import InputError
from dalenius.local import KAry, PureOracle, estimate, plan


def test_few_values_want_k_ary_and_many_do_not() -> None:
    assert plan(100_000, 2, 1.0).best.name == "k-ary"
    assert plan(100_000, 4, 3.0).best.name == "k-ary"
    assert plan(100_000, 4096, 1.0).choices[-1].name == "k-ary"


def test_the_best_is_within_a_few_per_cent_of_the_least_error_and_no_longer_than_it_must_be() -> None:
    for size in (2, 5, 64, 4096):
        for epsilon in (0.1, 1.0, 3.0, 8.0):
            found = plan(10**6, size, epsilon)
            least = min(each.error for each in found.choices)
            assert found.best.error <= 1.015 * least
            assert all(
                found.best.report_bytes <= each.report_bytes for each in found.choices if each.error <= 1.015 * least
            )


def test_the_error_is_the_mean_over_the_domain_whatever_the_shares_are() -> None:
    for choice in plan(5000, 8, 1.0).choices:
        if not isinstance(choice.randomiser, PureOracle):
            continue
        for shares in (np.full(8, 1 / 8), np.eye(8)[0]):
            variance = np.mean([choice.randomiser.variance(share, 5000) for share in shares])
            assert choice.error**2 == pytest.approx(variance, rel=1e-12)


def test_collisions_of_sketches_are_part_of_their_error() -> None:
    """However many report, a sketch is off by what shares its buckets: 1/(k(m−1)) at worst."""
    found = {each.name: each for each in plan(10**12, 4096, 1.0).choices}
    assert found["count-mean-sketch"].error > 0.0019
    assert found["hadamard"].error < 1e-5


def test_a_real_survey_is_as_far_off_as_was_planned(rounds) -> None:
    """256 × 40 squared errors (long: × 800), a deviation of 1.4%: 8% is more than five of them."""
    found = plan(20_000, 256, 1.0).best
    truth = np.bincount(np.arange(20_000) % 256, minlength=256) / 20_000
    errors = [
        np.mean((estimate(found.randomiser.fold(found.randomiser.encode(np.arange(20_000) % 256))).shares - truth) ** 2)
        for _ in range(rounds(800))
    ]
    assert np.mean(errors) == pytest.approx(found.error**2, rel=0.08)


def test_local_error_falls_with_the_root_of_the_people_and_central_error_with_the_people() -> None:
    few, many = plan(10_000, 64, 1.0), plan(1_000_000, 64, 1.0)
    assert few.best.error / many.best.error == pytest.approx(10, rel=0.01)
    assert few.central / many.central == pytest.approx(100)
    assert many.penalty / few.penalty == pytest.approx(10, rel=0.01)


def test_central_is_the_standard_deviation_of_discrete_laplace_noise() -> None:
    alpha = math.exp(-1 / 2)
    law = [(1 - alpha) / (1 + alpha) * alpha ** abs(k) * k * k for k in range(-400, 401)]
    assert plan(1000, 2, 1.0).central == pytest.approx(math.sqrt(sum(law)) / 1000)


@pytest.mark.parametrize(
    ("people", "size", "epsilon", "match"),
    [
        (0, 4, 1.0, "people"),
        (10**13, 4, 1.0, "more than there are"),
        (10, 1, 1.0, "domain"),
        (10, 2**40, 1.0, "too large"),
        (10, 4, 0.0, "epsilon"),
        (10, 4, -1.0, "epsilon"),
        (10, 4, float("nan"), "epsilon"),
        (10, 4, 40.0, "protects nobody"),
    ],
)
def test_absurd_surveys_are_refused(people: int, size: int, epsilon: float, match: str) -> None:
    with pytest.raises(InputError, match=match):
        plan(people, size, epsilon)


def test_an_epsilon_that_has_no_chances_is_refused_by_all() -> None:
    with pytest.raises(InputError, match="No randomiser"):
        plan(10, 4, 1e-12)


def test_what_cannot_serve_is_named() -> None:
    refused = dict(plan(1000, 10**7, 1.0).refused)
    assert "randomized-response" in refused and "bytes" in refused["optimised-unary"]
    assert KAry.name not in refused
