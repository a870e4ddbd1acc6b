from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.parties import inputs, together

from dalenius.joint.bgw import reveal
from dalenius.joint.bits import decompose, masks, negative, open_bits, to_field
from dalenius.joint.comparing import choose, fixed_product, less, sort, truncate
from dalenius.joint.fields import BIG, SHORT, Mersenne
from dalenius.joint.run import Run

FIELDS = [BIG, SHORT, Mersenne(7), Mersenne(5)]


def corners(field: Mersenne) -> np.ndarray:
    """Where carries, wraps and signs change, on both sides."""
    p = field.order
    found = {0, 1, 2, p - 1, p - 2, p // 2, p // 2 - 1, p // 2 + 1, p // 2 + 2}
    found |= {(1 << at) + off for at in range(field.exponent) for off in (-1, 0, 1)}
    return np.array(sorted(each for each in found if 0 <= each < p), np.uint64)


def all_and_corners(field: Mersenne) -> np.ndarray:
    # small fields: every number, many times over, so that masks meet it in every way
    return np.repeat(np.arange(field.order, dtype=np.uint64), 40) if field.exponent < 8 else np.tile(corners(field), 5)


@pytest.mark.parametrize("field", FIELDS, ids=lambda each: each.name)
@pytest.mark.parametrize(("count", "threshold"), [(3, 1), (5, 2)])
def test_signs_and_bits_are_exact_over_the_whole_field(field: Mersenne, count: int, threshold: int):
    numbers = all_and_corners(field)

    async def program(run: Run) -> Any:
        (z,) = await inputs(run, (numbers,), field)
        signs = await open_bits(run, await negative(run, z, field), numbers.size)
        bits = await open_bits(run, await decompose(run, z, field, field.exponent), numbers.size)
        low = await open_bits(run, await decompose(run, z, field, 1), numbers.size)
        return signs[0], bits, low[0]

    signs, bits, low = together(count, threshold, program)[0]
    assert (signs == (numbers > field.order // 2)).all()
    for at in range(field.exponent):
        assert (bits[at] == (numbers >> np.uint64(at)) & np.uint64(1)).all()
    assert (low == bits[0]).all()


@pytest.mark.parametrize(("count", "threshold"), [(3, 1), (5, 2), (7, 3)])
def test_numbers_are_compared_chosen_and_sorted(count: int, threshold: int):
    generator = np.random.default_rng(26)
    a = generator.integers(0, 2**32, 100)
    b = np.where(np.arange(100) % 3, generator.integers(0, 2**32, 100), a + np.arange(100) % 2)

    async def program(run: Run) -> Any:
        x, y = await inputs(run, (a, b))
        smaller = await less(run, x, y, BIG)
        ordered = [BIG.signed(await reveal(run, await sort(run, x[:size], BIG))) for size in (1, 2, 13)]
        return await reveal(run, smaller), await reveal(run, await choose(run, smaller, x, y)), ordered

    smaller, least, ordered = together(count, threshold, program)[0]
    assert (smaller == (a < b)).all()
    assert (least == np.minimum(a, b)).all()
    for each in ordered:
        assert (each == np.sort(a[: each.size])).all()


@pytest.mark.parametrize("field", [BIG, SHORT], ids=lambda each: each.name)
def test_truncation_rounds_down_exactly(field: Mersenne):
    quarter = field.order // 4
    numbers = np.array([0, 1, -1, 127, 128, -127, -128, -129, quarter, -quarter, 12345, -54321])

    async def program(run: Run) -> Any:
        (z,) = await inputs(run, (numbers,), field)
        return [field.signed(await reveal(run, await truncate(run, z, field, places))) for places in (1, 7, 16)]

    for places, found in zip((1, 7, 16), together(3, 1, program)[0], strict=True):
        assert (found == numbers >> places).all()


def test_fixed_point_products_keep_their_places():
    async def program(run: Run) -> Any:
        a, b = await inputs(run, ([int(2.5 * 2**16), int(-1.25 * 2**16)], [(4 * 2**16), (3 * 2**16)]))
        return BIG.signed(await reveal(run, await fixed_product(run, a, b, BIG, 16))) / 2**16

    assert together(3, 1, program)[0].tolist() == [10.0, -3.75]


def test_bits_become_numbers_in_both_values():
    numbers = np.arange(130)

    async def program(run: Run) -> Any:
        (z,) = await inputs(run, (numbers,))
        rows = await decompose(run, z, BIG, 8)
        return await reveal(run, await to_field(run, rows, BIG, 130))

    found = together(3, 1, program)[0]
    assert (found == [numbers >> at & 1 for at in range(8)]).all()


@pytest.mark.statistical
@pytest.mark.parametrize(("count", "threshold"), [(3, 1), (5, 2)])
def test_masks_are_uniform_over_the_whole_field(count: int, threshold: int):
    # false alarm: chi-square above its 1 − 1e-7 quantile
    from scipy.stats import chi2

    field = Mersenne(5)
    size = 31 * 400

    async def program(run: Run) -> Any:
        mask = await masks(run, field, size)
        return await reveal(run, mask.number)

    found = np.bincount(together(count, threshold, program)[0].astype(int), minlength=31)
    assert ((found - 400) ** 2 / 400).sum() < chi2.isf(1e-7, 30)
