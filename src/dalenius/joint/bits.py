"""Bits of secret numbers: masks whose bits are shared, adders, and bits on their way between fields.

A secret z is opened as c = z + r for a mask r that nobody knows and whose bits are shared. What remains is to take r
from the public c, bit by bit.

*Mask.* t + 1 dealers each share a uniform number of the field and its bits; r is their sum. One dealer at least is
outside any t parties, so r is uniform modulo p to them, over all 61 bits, and c tells nothing. A mask of k + κ bits for
numbers of k bits, as is common, would leave κ < 61 − k bits of hiding: here c is hidden without a remainder.

*Adder.* Modulo p = 2^q − 1, −r is r with all bits turned over, and a carry out of the highest bit comes back into the
lowest. So c − r₁ − … is a sum of q-bit numbers with end-around carry: full adders bring it down to X + Y (their carries
need one product each, and go round), and a tree of carries of depth log q does the rest.

*The one odd case.* 0 has two forms, all bits 0 and all bits 1. X + Y, with the carry taken as that of X + Y + 1, gives
0 for both, unless X and Y are both all ones; their last adder then had three numbers of all ones, and c, being below
p, is none.

*Guarantee.* As for products (`bgw`), each opened number being masked by a uniform one. *Assumes* semi-honest parties;
the dealers' bits are taken to be those of their numbers.

*References.* I. Damgård, M. Fitzi, E. Kiltz, J. Nielsen and T. Toft, TCC 2006, and T. Nishide and K. Ohta, PKC 2007,
for comparison by the lowest bit of 2z; P. Mohassel and P. Rindal, CCS 2018, for carry-save adders on shares; A. Aly,
E. Orsini, D. Rotaru, N. Smart and T. Wood, WAHC 2019, for random bits shared in two fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalenius.joint.bgw import multiply, reveal, share
from dalenius.joint.binary import pack_bits, transpose_bits, unpack_bits, words_for
from dalenius.joint.shares import Shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.joint.fields import Mersenne
    from dalenius.joint.run import Run

    Array = NDArray[np.uint64]

_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Mask:
    """Uniform numbers that nobody knows.

    Attributes:
        number: Shares of them.
        parts: Shares of the bits of the dealers' numbers, whose sum they are: one row for each bit.
    """

    number: Shares
    parts: tuple[Shares, ...]


def dealers(run: Run) -> tuple[int, ...]:
    """So many that one at least is in no coalition of t."""
    return tuple(range(1, run.threshold + 2))


async def masks(run: Run, field: Mersenne, count: int) -> Mask:
    """Fresh masks; uniform modulo p to any t parties."""
    who = dealers(run)
    words = words_for(count)
    numbers: Array | None = None
    rows: Array | None = None
    if run.me in who:
        numbers = field.random(run.own, (count,))
        rows = run.bits.from_bits(transpose_bits(numbers)[: field.exponent])
    shared = await share(run, field, numbers, (count,), who)
    shape = (run.bits.degree, field.exponent, words)
    parts = await share(run, run.bits, rows, shape, who)
    total = field.combine((1,) * len(who), [shared[each].values for each in who])
    return Mask(Shares(field, total), tuple(parts[each] for each in who))


async def negative(run: Run, numbers: Shares, field: Mersenne) -> Shares:
    """Whether each number is below zero, that is above p/2: a row of bits.

    2z mod p is even for 0 ≤ z < p/2 and odd otherwise (Nishide and Ohta 2007), since p is odd. Its lowest bit is that
    of X + Y, turned over where X + Y reaches p.
    """
    x, y = await _opened(run, numbers + numbers, field)
    carry = await _carry(run, x, y)
    return x[:, :1] + y[:, :1] + carry


async def decompose(run: Run, numbers: Shares, field: Mersenne, count: int) -> Shares:
    """The lowest `count` bits of numbers from 0 to p − 1: one row for each bit, lowest first."""
    x, y = await _opened(run, numbers, field)
    carry = await _carry(run, x, y)
    if count == 1:
        return x[:, :1] + y[:, :1] + carry
    x, y = x[:, :count], y[:, :count]
    half = x + y
    generate, propagate = await multiply(run, x, y), half
    # after step s, row i covers the 2s rows up to i (Kogge and Stone 1973)
    step = 1
    while step < count:
        left = propagate[:, step:]
        both = await _products(run, left, (generate[:, :-step], propagate[:, :-step]))
        generate = _join(generate[:, :step], generate[:, step:] + both[0])
        propagate = _join(propagate[:, :step], both[1])
        step *= 2
    into = generate + await multiply(run, propagate, _repeat(carry, count))
    return _join(half[:, :1] + carry, half[:, 1:] + into[:, :-1])


async def to_field(run: Run, bits: Shares, field: Mersenne, count: int) -> Shares:
    """Bits as the numbers 0 and 1: of each row the first `count`. Shape (rows, count).

    The bits are opened under random bits that are shared in both fields; v ⊕ d = d or 1 − d.
    """
    rows = bits.shape[1]
    both_bits, both_numbers = await _dual_bits(run, field, rows, count)
    opened = await reveal(run, bits + both_bits)
    flipped = np.stack([unpack_bits(row, count) for row in opened[0]]).astype(bool)
    values = both_numbers.values
    return Shares(field, np.where(flipped, field.subtract(np.ones(1, np.uint64), values), values))


async def open_bits(run: Run, bits: Shares, count: int) -> NDArray[np.uint8]:
    """Opens rows of bits to all parties."""
    opened = await reveal(run, bits)
    return np.stack([unpack_bits(row, count) for row in opened[0]])


async def _dual_bits(run: Run, field: Mersenne, rows: int, count: int) -> tuple[Shares, Shares]:
    """Random bits that nobody knows, shared as bits and as numbers: those of t + 1 dealers, added modulo 2."""
    who = dealers(run)
    words = words_for(count)
    drawn: Array | None = None
    numbers: Array | None = None
    if run.me in who:
        drawn = run.own.words(rows * words, np.dtype("<u8")).reshape(rows, words)
        numbers = np.stack([unpack_bits(row, count) for row in drawn]).astype(np.uint64)
    shape = (run.bits.degree, rows, words)
    in_bits = await share(run, run.bits, None if drawn is None else run.bits.from_bits(drawn), shape, who)
    in_field = await share(run, field, numbers, (rows, count), who)
    first, *others = who
    bits, values = in_bits[first], in_field[first]
    for each in others:
        bits = bits + in_bits[each]
        product = await multiply(run, values, in_field[each])
        total = field.combine((1, 1, -2), [values.values, in_field[each].values, product.values])
        values = Shares(field, total)
    return bits, values


async def _opened(run: Run, numbers: Shares, field: Mersenne) -> tuple[Shares, Shares]:
    """Two q-bit numbers whose sum with end-around carry is the number: opened under a mask, which is taken away."""
    (count,) = numbers.shape
    mask = await masks(run, field, count)
    opened = await reveal(run, numbers + mask.number)
    terms = [_flip(part) for part in mask.parts]
    while len(terms) > 2:
        terms = [*await _full_add(run, *terms[:3]), *terms[3:]]
    public = Shares(run.bits, run.bits.from_bits(transpose_bits(opened)[: field.exponent]))
    return await _full_add(run, terms[0], terms[1], public)


async def _full_add(run: Run, a: Shares, b: Shares, c: Shares) -> tuple[Shares, Shares]:
    """Three numbers become two with the same sum: bit by bit their parity, and their majority one place higher."""
    majority = await multiply(run, a + c, b + c) + c
    return a + b + c, Shares(run.bits, np.roll(majority.values, 1, axis=1))


async def _carry(run: Run, x: Shares, y: Shares) -> Shares:
    """The carry out of X + Y + 1, a row of bits: whether X + Y ≥ 2^q − 1."""
    generate, propagate = await multiply(run, x, y), x + y
    while (rows := generate.shape[1]) > 1:
        pairs = rows // 2 * 2
        high, low = propagate[:, 1:pairs:2], (generate[:, 0:pairs:2], propagate[:, 0:pairs:2])
        products = await _products(run, high, low)
        generate = _join(generate[:, 1:pairs:2] + products[0], generate[:, pairs:])
        propagate = _join(products[1], propagate[:, pairs:])
    return generate + propagate  # never both


async def _products(run: Run, left: Shares, rights: tuple[Shares, ...]) -> list[Shares]:
    """Products of one factor with several, in one round."""
    rows = left.shape[1]
    repeated = Shares(run.bits, np.concatenate([left.values] * len(rights), axis=1))
    found = await multiply(run, repeated, Shares(run.bits, np.concatenate([each.values for each in rights], axis=1)))
    return [found[:, rows * at : rows * (at + 1)] for at in range(len(rights))]


def _flip(bits: Shares) -> Shares:
    """Bits turned over: 1 is added."""
    found = bits.values.copy()
    found[0] ^= _ONES
    return Shares(bits.field, found)


def _join(first: Shares, second: Shares) -> Shares:
    return Shares(first.field, np.concatenate([first.values, second.values], axis=1))


def _repeat(row: Shares, rows: int) -> Shares:
    return Shares(row.field, np.broadcast_to(row.values, (row.shape[0], rows, row.shape[2])))


__all__ = ["Mask", "dealers", "decompose", "masks", "negative", "open_bits", "pack_bits", "to_field"]
