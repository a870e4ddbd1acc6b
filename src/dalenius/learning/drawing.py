"""Which units are in a step: each with the same chance, by secure bits, in slots whose number is public.

Guarantee:
    Every place of the room is drawn with probability k/2³² exactly, independently of all others: a uniform whole
    number of 32 bits is below k. Its first 8 bits decide, and the other 24 where they leave it open. Whether somebody
    is in that place plays no part; an empty place adds 0. So what is drawn depends on public facts alone, and time and
    memory of a step are those of ``slots`` units, however many were drawn.

    More places drawn than slots: some are dropped, by secure bits. How likely that is at all is in the event's δ.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dalenius.accounting.events import RATE_BITS
from dalenius.errors import InputError
from dalenius.mechanisms.noise import bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Places = NDArray[np.int64]


def draw_units(rate: Fraction, capacity: int, slots: int) -> Places:
    """The places in a step; slots without one have the place ``capacity``, which is always empty.

    >>> sorted(draw_units(Fraction(1), 3, 3).tolist())
    [0, 1, 2]
    """
    drawn = np.arange(capacity) if rate == 1 else _drawn(int(rate * 2**RATE_BITS), capacity)
    if len(drawn) > slots:
        drawn = _without_surplus(drawn, slots)
    found = np.full(slots, capacity, np.int64)
    found[: len(drawn)] = drawn
    return found


def _drawn(whole: int, capacity: int) -> Places:
    """Each place whose 32 bits are below ``whole``."""
    first = bits.words(-(-capacity // 8)).view(np.uint8)[:capacity]
    top, rest = divmod(whole, 2**24)
    drawn = np.flatnonzero(first <= top)
    open_ = first[drawn] == top
    below = np.ones(len(drawn), bool)
    more = bits.words(int(open_.sum())) >> np.uint64(40)
    below[open_] = more < np.uint64(rest)
    return drawn[below]


def _without_surplus(drawn: Places, slots: int) -> Places:
    """Those whose secret number is among the lowest."""
    order = np.argsort(bits.words(len(drawn)), kind="stable")
    return np.sort(drawn[order[:slots]])


def overflow(rate: Fraction, capacity: int, slots: int, steps: int) -> float:
    """At most the chance that some step has as many drawn as slots, or more: T·P(Bin(n, q) ≥ b).

    P(Bin(n, q) ≥ b) ≤ exp(−n·KL(b/n ‖ q)) [Hoeffding (1963), Thm. 1]. That b are *too* many, and not b + 1, leaves
    room for the one unit by which neighbours differ (docs/decisions/0032-charging-sampled-noise.md).

    >>> overflow(Fraction(1, 100), 10_000, 200, 50) < 1e-14
    True
    """
    if slots > capacity or rate == 1:
        return 0.0
    share, chance = slots / capacity, float(rate)
    if share <= chance:
        return 1.0
    divergence = share * math.log(share / chance)
    if share < 1:
        divergence += (1 - share) * (math.log1p(-share) - math.log1p(-chance))
    # a part in 10⁹ more than enough for the rounding of the logarithms
    return min(1.0, steps * math.exp(-capacity * divergence * (1 - 1e-9)) * (1 + 1e-9))


def slots_for(rate: Fraction, capacity: int, steps: int, most: float) -> int:
    """The least number of slots that overflow with a chance of at most that.

    >>> slots_for(Fraction(1, 100), 25_600, 1000, 1e-15)
    414
    """
    if not 0 < most < 1:
        raise InputError("This is no chance.", why="It must lie between 0 and 1.", fix="Give 1e-15 or so.")
    low, high = math.floor(capacity * rate), capacity if rate == 1 else capacity + 1
    while high - low > 1:
        middle = (low + high) // 2
        if overflow(rate, capacity, middle, steps) <= most:
            high = middle
        else:
            low = middle
    return high
