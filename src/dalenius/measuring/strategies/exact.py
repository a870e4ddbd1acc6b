"""Matrices times whole numbers of any length: in 64 bits where that is enough, else piece by piece."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dalenius.measuring.strategies.factors import Numbers

ROOM = 62  # bits, with one for the sign and one to spare


def apply_exactly(linear: Callable[[Numbers], Numbers], x: Numbers, growth: int) -> Numbers:
    """``linear(x)`` without overflow.

    ``linear`` adds and multiplies int64 only, and no result nor anything between is more than ``growth`` times as large
    as the largest entry. Where that might not fit, x = Σ_k x_k·2^(bits·k) with pieces that do, and the results are put
    together as Python's integers.

    >>> apply_exactly(lambda x: x * 3, np.array([2**70, -1], dtype=object), 3).tolist() == [3 * 2**70, -3]
    True
    """
    most = max(int(x.max(initial=0)), -int(x.min(initial=0)))
    if (most * growth).bit_length() <= ROOM:
        return linear(x.astype(np.int64))
    bits = ROOM - growth.bit_length()
    if bits < 1:
        raise OverflowError("A strategy's numbers are too large.")
    sign = np.where(x < 0, -1, 1)
    left: Numbers = np.asarray(abs(x.astype(object)), dtype=object)
    shift, found = 0, None
    while left.any():
        low = np.asarray(left & (2**bits - 1)).astype(np.int64)
        piece = linear(np.asarray(low * sign)).astype(object) * 2**shift
        found = piece if found is None else found + piece
        left, shift = np.asarray(left >> bits, dtype=object), shift + bits
    assert found is not None  # noqa: S101 - the largest is not zero
    return np.asarray(found, dtype=object)
