"""Many secure coins of chance a/2³², and uniform integers, at once.

Every draw is exact: 32 fresh bits against an integer, or a rejection. The bits are those of `mechanisms.noise`
(AES-256 in counter mode, keyed by the operating system), and no argument sets a seed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.local.chances import ONE
from dalenius.mechanisms.noise import bits


def lanes(count: int) -> NDArray[np.uint32]:
    """Independent uniform integers of 32 bits; read-only."""
    return bits.words(-(-count // 2)).view(np.uint32)[:count]


def coins(chance: int, count: int) -> NDArray[np.bool_]:
    """Independent coins, each True with chance/2³².

    >>> bool(coins(2**32, 3).all()), bool(coins(0, 3).any())
    (True, False)
    """
    if chance == ONE:
        return np.ones(count, np.bool_)
    return lanes(count) < np.uint32(chance)


def uniform(n: int, count: int) -> NDArray[np.uint32]:
    """Independent uniform integers in [0, n), for 1 ≤ n ≤ 2³².

    A lane u gives ⌊u·n/2³²⌋ unless u·n mod 2³² < 2³² mod n; those few are drawn again (Lemire 2019). Where n is a
    power of two nothing is rejected.
    """
    drawn = lanes(count)
    if n == ONE:
        return drawn
    if n & (n - 1) == 0:
        return drawn >> np.uint32(33 - n.bit_length()) if n > 1 else np.zeros(count, np.uint32)
    product = drawn.astype(np.uint64)
    product *= np.uint64(n)
    found = (product >> np.uint64(32)).astype(np.uint32)
    (again,) = np.nonzero(product.view(np.uint32)[_LOW::2] < np.uint32(ONE % n))
    if again.size:
        found[again] = uniform(n, again.size)
    return found


_LOW = 0 if np.little_endian else 1  # which half of a word holds its low 32 bits
