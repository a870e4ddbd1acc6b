"""What is accepted, what is refused before anything is drawn, and what comes back."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dalenius.errors import InputError
from dalenius.mechanisms import noise
from dalenius.mechanisms.noise import bits

NOT_NUMBERS = [True, False, np.True_, "1", b"1", 1j, None, [1], (1,), {}, Decimal(1), np.array([1.0]), object]
NOT_FINITE = [float("nan"), float("inf"), float("-inf"), np.float64("nan"), np.float32("inf")]
NEGATIVE = [-1, -1.5, Fraction(-1, 3), np.int64(-2)]


class Untouchable:
    """Fails the test when anything is drawn."""

    def words(self, count: int) -> np.ndarray:
        pytest.fail("something was drawn")


@pytest.fixture
def _nothing_drawn():
    with bits._injected(Untouchable()):
        yield


@pytest.mark.usefixtures("_nothing_drawn")
@pytest.mark.parametrize("bad", [*NOT_NUMBERS, *NOT_FINITE, *NEGATIVE, 0, 0.0, -0.0, Fraction(0)], ids=repr)
@pytest.mark.parametrize("size", [None, 10])
def test_a_bad_scale_is_refused_and_nothing_is_drawn(bad, size):
    with pytest.raises(InputError):
        noise.discrete_laplace(bad, size)
    with pytest.raises(InputError):
        noise.discrete_gaussian(bad, size)
    with pytest.raises(InputError):
        noise.discrete_gaussian(size=size, variance=bad)


@pytest.mark.usefixtures("_nothing_drawn")
@pytest.mark.parametrize("bad", [*NOT_NUMBERS, *NOT_FINITE, *NEGATIVE], ids=repr)
def test_a_bad_exponent_or_rate_is_refused_and_nothing_is_drawn(bad):
    for call in (
        lambda: noise.bernoulli_exp(bad),
        lambda: noise.bernoulli_logistic(bad, 3),
        lambda: noise.exponential_choice([1, 2], bad),
        lambda: noise.exponential_top_k([1, 2], bad, 1),
        lambda: noise.permute_and_flip([1, 2], bad),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.usefixtures("_nothing_drawn")
@pytest.mark.parametrize("bad", [-1, True, 1.0, "3", 2**31 + 1, 10**30, (2, 2), np.float64(3)], ids=repr)
def test_a_bad_size_is_refused_and_nothing_is_drawn(bad):
    for call in (
        lambda: noise.discrete_laplace(1, bad),
        lambda: noise.discrete_gaussian(1, bad),
        lambda: noise.bernoulli_exp(1, bad),
        lambda: noise.bernoulli_logistic(1, bad),
        lambda: noise.uniform_int(6, bad),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.usefixtures("_nothing_drawn")
def test_a_size_that_memory_cannot_hold_is_refused(monkeypatch):
    def exhausted(*_args, **_kwargs):
        raise MemoryError

    monkeypatch.setattr(np, "empty", exhausted)
    with pytest.raises(InputError, match="memory"):
        noise.discrete_laplace(1, 1000)


@pytest.mark.usefixtures("_nothing_drawn")
@pytest.mark.parametrize("bad", [0, -1, True, 2.0, "6", None])
def test_a_bad_n_is_refused(bad):
    with pytest.raises(InputError):
        noise.uniform_int(bad)


@pytest.mark.usefixtures("_nothing_drawn")
@pytest.mark.parametrize(
    "bad",
    [
        *([], [1.0, 2.0], [1, float("nan")], [True, False], ["1"], [[1, 2]], [1, None]),
        *("12", b"12", {1: 2}, {1, 2}, None, 5),
        *(np.array([1.0]), np.zeros((2, 2), int), np.array([True]), np.array([], int), np.array(3)),
    ],
    ids=repr,
)
def test_bad_scores_are_refused(bad):
    for call in (
        lambda: noise.exponential_choice(bad, 1),
        lambda: noise.exponential_top_k(bad, 1, 1),
        lambda: noise.permute_and_flip(bad, 1),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.usefixtures("_nothing_drawn")
@pytest.mark.parametrize("bad", [0, -1, 4, True, 1.0, None])
def test_a_bad_k_is_refused(bad):
    with pytest.raises(InputError):
        noise.exponential_top_k([1, 2, 3], 1, bad)


@pytest.mark.usefixtures("_nothing_drawn")
def test_sigma_and_variance_exclude_one_another():
    for arguments in ({}, {"sigma": 1, "variance": 1}):
        with pytest.raises(InputError, match="sigma or variance"):
            noise.discrete_gaussian(**arguments)


def test_one_draw_is_a_python_integer_and_many_are_int64():
    for draw in (noise.discrete_laplace, noise.discrete_gaussian, noise.uniform_int):
        assert type(draw(5)) is int
        sizes: list[Any] = [0, 1, 64, 65, 20_000, np.int64(3)]
        for size in sizes:
            values = draw(5, size)
            assert values.dtype == np.int64
            assert values.shape == (size,)
    assert type(noise.bernoulli_exp(1)) is bool
    assert noise.bernoulli_exp(1, 100).dtype == np.bool_


def test_numbers_of_every_kind_are_taken_for_what_they_are():
    ones: list[Any] = [1, 1.0, Fraction(1), np.int64(1), np.float64(1), np.float32(1), np.uint8(1), np.longdouble(1)]
    for one in ones:
        assert isinstance(noise.discrete_laplace(one), int)
        assert isinstance(noise.discrete_gaussian(variance=one), int)


@pytest.mark.parametrize("scale", [Fraction(1, 10**6), 1e-300, 5e-324, Fraction(1, 10**1000), 0.01])
def test_noise_of_a_tiny_scale_is_zero(scale):
    assert not noise.discrete_laplace(scale, 10_000).any()
    assert not noise.discrete_gaussian(scale, 10_000).any()
    assert noise.discrete_laplace(scale) == noise.discrete_gaussian(variance=scale**2 or scale) == 0


@pytest.mark.parametrize("scale", [2**52 + 1, 2**63, 1e300, Fraction(10) ** 400])
def test_noise_too_large_for_int64_is_exact_python_integers(scale):
    for draw in (noise.discrete_laplace, noise.discrete_gaussian):
        values = draw(scale, 200)
        assert values.dtype == object
        assert all(type(value) is int for value in values)
        assert len({value % 1024 for value in values.tolist()}) > 100  # the lowest bits are random too
        assert type(draw(scale)) is int
    assert max(noise.discrete_laplace(scale, 200)) > scale / 100


def test_uniform_integers_of_any_size_stay_in_their_range():
    for n in (1, 2, 3, 2**31, 2**63, 2**63 + 1, 2**64, 10**50):
        values = noise.uniform_int(n, 200)
        assert values.dtype == (np.int64 if n <= 2**63 else object)
        assert all(0 <= value < n for value in values.tolist())
        assert 0 <= noise.uniform_int(n) < n
        assert n < 2**60 or max(values.tolist()) > n // 4


def test_scores_of_any_integer_type_are_accepted():
    low, high = -(2**63), 2**63 - 1
    for scores in ([0, 10**6], (0, 10**6), range(0, 2 * 10**6, 10**6), np.array([0, 10**6], np.int32)):
        assert noise.exponential_choice(scores, 1) == noise.permute_and_flip(scores, 1) == 1
    assert noise.exponential_choice([low, high], 1) == 1
    assert noise.exponential_choice(np.array([high, low]), Fraction(1, 2**50)) == 0
    assert noise.exponential_choice([10**40, 3 * 10**40], 1e-30) == 1
    assert noise.exponential_top_k(np.array([2**64 - 1, 5], np.uint64), 1, 2) == [0, 1]
    assert noise.exponential_choice([7], 0) == 0


def test_far_apart_scores_are_peeled_one_after_the_other():
    assert noise.exponential_top_k([10**6 * i for i in range(6)], 1, 6) == [5, 4, 3, 2, 1, 0]
