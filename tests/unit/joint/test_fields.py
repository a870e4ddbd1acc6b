from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InputError
from dalenius.joint.fields import BIG, SHORT, Mersenne
from dalenius.joint.streams import Stream, derive, fresh_seed

FIELDS = [BIG, SHORT, Mersenne(3), Mersenne(5), Mersenne(7)]


def corners(field: Mersenne) -> list[int]:
    p = field.order
    tops = (p - 1, p - 2, p // 2, p // 2 + 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 60) + (1 << 31) - 1)
    return sorted({each for each in (0, 1, 2, 3, *tops) if 0 <= each < p})


def pairs(field: Mersenne) -> tuple[np.ndarray, np.ndarray]:
    stream = Stream(bytes(32))
    found = corners(field)
    a = np.array([x for x in found for _ in found], np.uint64)
    b = np.array(found * len(found), np.uint64)
    more = field.random(stream, (2, 40_000))  # more than a block
    return np.concatenate([a, more[0]]), np.concatenate([b, more[1]])


@pytest.mark.parametrize("field", FIELDS, ids=lambda each: each.name)
def test_arithmetic_is_that_of_whole_numbers(field: Mersenne):
    a, b = pairs(field)
    x, y, p = a.astype(object), b.astype(object), field.order
    assert (field.add(a, b) == (x + y) % p).all()
    assert (field.subtract(a, b) == (x - y) % p).all()
    assert (field.negative(a) == -x % p).all()
    assert (field.multiply(a, b) == x * y % p).all()
    assert int(field.dot(a, b)) == int((x * y).sum()) % p
    assert int(field.total(a)) == int(x.sum()) % p


@pytest.mark.parametrize("field", FIELDS, ids=lambda each: each.name)
@pytest.mark.parametrize("weights", [(1, 1), (2, -1), (3, -3), (-3, -4), (1 << 40, 5**20), (-1, -2), (0, 7)])
def test_weighted_sums_are_those_of_whole_numbers(field: Mersenne, weights: tuple[int, int]):
    a, b = pairs(field)
    w = [each % field.order for each in weights]
    expected = (w[0] * a.astype(object) + w[1] * b.astype(object)) % field.order
    assert (field.combine(w, (a, b)) == expected).all()
    halves = [each * pow(2, -1, field.order) % field.order for each in w]
    assert (field.combine(halves, (a, b)) == expected * pow(2, -1, field.order) % field.order).all()


def test_weighted_sums_of_many_arrays_do_not_overflow():
    top = np.full(3, BIG.order - 1, np.uint64)
    for count in range(1, 17):
        weights = [BIG.order - 2 - each * 10**15 for each in range(count)]
        expected = sum(weights) * (BIG.order - 1) % BIG.order
        assert int(BIG.combine(weights, [top] * count)[0]) == expected


@given(st.integers(-(BIG.order // 2), BIG.order // 2))
def test_signed_numbers_come_back(number: int):
    assert int(BIG.signed(BIG.array([number]))[0]) == number


@pytest.mark.parametrize("field", FIELDS, ids=lambda each: each.name)
def test_numbers_travel(field: Mersenne):
    a, _ = pairs(field)
    assert (field.unpack(bytes(field.pack(a)), a.shape) == a).all()
    assert len(field.pack(a)) == field.size(a.shape)


def test_what_may_wrap_around_is_refused_beforehand():
    BIG.require(2**60 - 1)
    for field, bound in ((BIG, 2**60), (SHORT, 2**30), (BIG, 10**30)):
        with pytest.raises(InputError, match="coarser step"):
            field.require(bound)


def test_what_is_no_number_of_the_field_is_refused():
    for field in (BIG, SHORT, Mersenne(3)):
        with pytest.raises(ValueError, match="outside the field"):
            field.unpack(np.array([field.order], field.wire).tobytes(), (1,))
    for bad in ([0.5], [BIG.order], [-(BIG.order // 2) - 1]):
        with pytest.raises(InputError):
            BIG.array(bad)
    with pytest.raises(InputError):
        Mersenne(11)


@pytest.mark.statistical
@pytest.mark.parametrize("exponent", [3, 5])
def test_random_numbers_are_uniform(exponent: int):
    # false alarm: chi-square above its 1 − 1e-7 quantile
    from scipy.stats import chi2

    field = Mersenne(exponent)
    count = 100_000
    found = np.bincount(field.random(Stream(fresh_seed()), (count,)).astype(int), minlength=field.order)
    expected = count / field.order
    assert found.size == field.order
    assert ((found - expected) ** 2 / expected).sum() < chi2.isf(1e-7, field.order - 1)


def test_two_with_one_key_draw_the_same_and_other_names_other_numbers():
    key = fresh_seed()
    first, second = Stream(derive(key, "a", 1)), Stream(derive(key, "a", 1))
    assert (BIG.random(first, (5,)) == BIG.random(second, (5,))).all()
    assert (BIG.random(first, (3,)) == BIG.random(second, (3,))).all()
    assert derive(key, "a", 1) != derive(key, "a1")
    assert derive(key, "a", "1b") != derive(key, "a1", "b")
