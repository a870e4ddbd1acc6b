"""Comparisons, choices, truncation and small sorts of secret whole numbers.

*Guarantee.* As for `bits`: nothing is opened but numbers that are masked uniformly modulo p. Results are exact, not
probably right.

*Assumes.* Numbers that are compared differ by less than p/2: bounds must be public and kept by who shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius.joint.bgw import multiply
from dalenius.joint.bits import decompose, negative, to_field
from dalenius.joint.shares import Shares

if TYPE_CHECKING:
    from dalenius.joint.fields import Mersenne
    from dalenius.joint.run import Run


async def less(run: Run, a: Shares, b: Shares, field: Mersenne) -> Shares:
    """1 where a < b, else 0."""
    (count,) = a.shape
    return (await to_field(run, await negative(run, a - b, field), field, count))[0]


async def choose(run: Run, condition: Shares, a: Shares, b: Shares) -> Shares:
    """a where the condition is 1, b where it is 0: b + condition·(a − b)."""
    return b + await multiply(run, condition, a - b)


async def truncate(run: Run, numbers: Shares, field: Mersenne, places: int) -> Shares:
    """The whole part of number / 2^`places`, rounded down; exact for numbers from −p/4 to p/4.

    With z = number + 2^(q−2) ≥ 0, the lowest bits of z are split off and the rest is divisible: times 2^−places is a
    division. Truncation that rounds by chance is cheaper, but its masks of k + κ bits would hide too little in 61 bits.
    """
    (count,) = numbers.shape
    offset = 1 << (field.exponent - 2)
    lifted = numbers.plus(field.array([offset]))
    low = await to_field(run, await decompose(run, lifted, field, places), field, count)
    weights = [1 << at for at in range(places)]
    rest = lifted - Shares(field, field.combine(weights, list(low.values)))
    halves = field.scalar_inverse((1 << places) % field.order)
    return rest.times(halves).plus(field.array([-(offset >> places)]))


async def fixed_product(run: Run, a: Shares, b: Shares, field: Mersenne, places: int) -> Shares:
    """The product of numbers with `places` binary places, with as many, rounded down."""
    return await truncate(run, await multiply(run, a, b), field, places)


async def sort(run: Run, numbers: Shares, field: Mersenne) -> Shares:
    """The numbers in ascending order, by Batcher's odd-even merge: which are exchanged depends on none of them.

    For small lists: n·log²n comparisons in about log²n/2 steps (Batcher 1968; Knuth, volume 3, 5.2.2, algorithm M).
    """
    (count,) = numbers.shape
    values = numbers.values.copy()
    for low, high in _exchanges(count):
        a, b = Shares(field, values[low]), Shares(field, values[high])
        swap = await less(run, b, a, field)
        moved = await multiply(run, swap, a - b)
        values = values.copy()
        values[low] = (a - moved).values
        values[high] = (b + moved).values
    return Shares(field, values)


def _exchanges(count: int) -> list[tuple[list[int], list[int]]]:
    """Which places are compared with which, step by step."""
    found = []
    highest = 1 << max(0, (count - 1).bit_length() - 1)
    p = highest if count > 1 else 0
    while p:
        q, r, d = highest, 0, p
        while True:
            low = [at for at in range(count - d) if at & p == r]
            if low:
                found.append((low, [at + d for at in low]))
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
        p >>= 1
    return found
