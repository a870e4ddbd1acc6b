from __future__ import annotations

import numpy as np
import pytest

from dalenius.errors import InputError
from dalenius.joint.binary import Binary, pack_bits, transpose_bits, unpack_bits, words_for
from dalenius.joint.streams import Stream


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_products_and_weights_are_those_of_single_elements(degree: int):
    field = Binary(degree)
    stream = Stream(bytes(32))
    a, b = field.random(stream, (degree, 3)), field.random(stream, (degree, 3))
    product = field.multiply(a, b)
    for weight in range(field.order):
        sums = field.combine((weight, 1), (a, b))
        for place in ((word, bit) for word in range(3) for bit in range(0, 64, 7)):
            x, y = field.element(a, place), field.element(b, place)
            assert field.element(product, place) == field.scalar_multiply(x, y)
            assert field.element(sums, place) == field.scalar_multiply(weight, x) ^ y


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_it_is_a_field(degree: int):
    field = Binary(degree)
    for a in range(1, field.order):
        assert sorted(field.scalar_multiply(a, b) for b in range(field.order)) == list(range(field.order))
        assert field.scalar_multiply(a, field.scalar_inverse(a)) == 1
        for b in range(field.order):
            for c in range(field.order):
                left = field.scalar_multiply(a, b ^ c)
                assert left == field.scalar_multiply(a, b) ^ field.scalar_multiply(a, c)
                assert field.scalar_multiply(field.scalar_multiply(a, b), c) == field.scalar_multiply(
                    a, field.scalar_multiply(b, c)
                )


@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000])
def test_bits_are_turned_over(count: int):
    numbers = Stream(bytes(32)).words(count, np.dtype("<u8"))
    rows = transpose_bits(numbers)
    assert rows.shape == (64, words_for(count))
    for bit in (0, 1, 31, 32, 60, 63):
        assert (unpack_bits(rows[bit], count) == (numbers >> np.uint64(bit)) & np.uint64(1)).all()
    bits = (numbers & np.uint64(1)).astype(bool)
    assert (pack_bits(bits) == rows[0]).all()


def test_the_field_holds_a_point_for_each_party():
    assert [Binary.holding(each).order for each in (2, 3, 4, 7, 8, 15)] == [4, 4, 8, 8, 16, 16]
    with pytest.raises(InputError):
        Binary.holding(16)


def test_the_first_difference_is_found():
    field = Binary(3)
    values = field.zeros((3, 2, 4))
    values[2, 1, 3] = 1 << 17
    assert field.first(values) == (7, 17)
    assert field.element(values, (7, 17)) == 4
