"""A double auction that nobody conducts: the servers find the price at which supply meets demand, and nothing else.

So Danish farmers and the one sugar factory traded their contracts in 2008: 1,200 sealed bids at 4,000 prices, three
servers.

The bids are summed share by share, which needs no word between servers, into the market's excess demand at each price.
It falls as the price rises; a binary search finds the lowest price at which it is not above zero.

*Guarantee.* Any t servers learn the price and nothing else of others' bids. The twelve bits that the search opens
follow from the price: each says on which side of it one price lies, so who knows the price can work them out
(semi-honest servers; bids as in `bids`). A bidder learns its own amount at that price.

*References.* P. Bogetoft et al., "Secure multiparty computation goes live", Financial Cryptography 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalenius.errors import InputError
from dalenius.joint.bids import SealedBid, open_part, seal_amount
from dalenius.joint.bits import negative, open_bits
from dalenius.joint.fields import BIG
from dalenius.joint.shares import Shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dalenius.joint.config import Party
    from dalenius.joint.run import Run


@dataclass(frozen=True)
class Outcome:
    """What an auction told.

    Attributes:
        price: The number of the lowest price at which no more is wanted than is offered; None where there is none.
        counted: For each bid whether it counted; one that any server could not open does not.
        amounts: For each bid this server's share of its amount, sealed for the bidder; empty without a price.
    """

    price: int | None
    counted: tuple[bool, ...]
    amounts: tuple[bytes, ...]


async def clear(run: Run, excess: Shares) -> int | None:
    """The lowest price at which excess demand, which falls with the price, is not above zero."""
    low, high = 0, excess.shape[0]
    while low < high:
        middle = (low + high) // 2
        wanted = await negative(run, -excess[middle : middle + 1], BIG)
        if (await open_bits(run, wanted, 1))[0, 0]:
            low = middle + 1
        else:
            high = middle
    return low if low < excess.shape[0] else None


async def hold(run: Run, party: Party, auction: str, prices: int, bids: Sequence[SealedBid]) -> Outcome:
    """Holds an auction; all servers must have the same bids in the same order."""
    if not bids:
        raise InputError("There are no bids.", why="Nothing can be traded.", fix="Collect bids first.")
    opener = party.opener()
    parts: list[NDArray[np.uint64] | None] = []
    for bid in bids:
        fits = bid.prices == prices and len(bid.parts) == run.parties
        parts.append(open_part(auction, bid, party.card, run.me, opener) if fits else None)
    counted = await _all_can(run, np.array([part is not None for part in parts]))
    shares = [part for part, counts in zip(parts, counted, strict=True) if part is not None and counts]
    if not shares:
        raise InputError("No bid can be opened by all servers.", why="They are for others.", fix="Collect new bids.")
    excess = Shares(BIG, BIG.total(np.stack(shares)))
    price = await clear(run, excess)
    amounts = [
        seal_amount(auction, party.card.name, bid, int(part[price])) if part is not None and counts else b""
        for bid, part, counts in zip(bids, parts, counted, strict=True)
        if price is not None
    ]
    return Outcome(price, tuple(bool(each) for each in counted), tuple(amounts))


async def _all_can(run: Run, mine: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which bids every server can open."""
    packed = np.packbits(mine).tobytes()
    got = await run.exchange(
        "which bids open", dict.fromkeys(run.others, packed), dict.fromkeys(run.others, len(packed))
    )
    found = mine.copy()
    for data in got.values():
        found &= np.unpackbits(np.frombuffer(data, np.uint8), count=mine.size).astype(bool)
    return found


def clear_openly(curves: NDArray[np.int64]) -> int | None:
    """The same price from bids that everybody may see: for tests, and for markets that are made up.

    >>> clear_openly(np.array([[5, 2, 0], [0, -3, -4]]))
    1
    """
    settled = np.flatnonzero(curves.sum(axis=0) <= 0)
    return int(settled[0]) if settled.size else None


def made_up_market(bidders: int, prices: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Made-up bids for demonstrations: each bidder buys below a few prices and sells above a few others."""
    grid = np.arange(prices)
    curves = np.zeros((bidders, prices), np.int64)
    for bidder in range(bidders):
        value = generator.normal(0.5, 0.15) * prices
        for _ in range(int(generator.integers(1, 4))):
            amount = int(generator.integers(1, 200))
            if generator.random() < 0.5:
                curves[bidder] += np.where(grid <= value * generator.uniform(0.8, 1.2), amount, 0)
            else:
                curves[bidder] -= np.where(grid >= value * generator.uniform(0.8, 1.2), amount, 0)
    return curves
