"""Sealed bids: for each price how much a bidder would buy (above zero) or sell (below zero).

A bidder shares its curve among the servers itself and seals each server's part with that server's public key. t
servers get a seed of 32 bytes, the others the numbers that make the polynomial go through the curve. The bidder's own
public key goes along, so that the servers can seal its amount for it.

*Guarantee.* Any t servers learn nothing of a bid (Shamir 1979, with seeds as in `shamir`). A server reads only its own
part: X25519, HKDF-SHA-256 and AES-256-GCM, bound to auction, server and bidder's key. *Assumes* that bids fall with the
price and keep to the bounds: a bidder who breaks that can move the price, as one who lies about what it wants can.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dalenius.errors import InputError
from dalenius.joint.fields import BIG
from dalenius.joint.shamir import Scheme, lagrange
from dalenius.joint.streams import SEED, Stream, fresh_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dalenius.joint.config import Card

    Array = NDArray[np.uint64]

MOST = 10**9
"""The largest amount at one price. A thousand million such bids stay below half of 2^61 − 1."""
_HEAD = struct.Struct("<8sI32sI")
_MAGIC = b"DLBID001"
_PART = struct.Struct("<I")


@dataclass(frozen=True)
class SealedBid:
    """What a bidder hands in.

    Attributes:
        prices: At how many prices it bids.
        key: The bidder's public key.
        parts: For each server what it alone can open.
    """

    prices: int
    key: bytes
    parts: tuple[bytes, ...]

    def pack(self) -> bytes:
        """Its bytes."""
        head = _HEAD.pack(_MAGIC, self.prices, self.key, len(self.parts))
        return head + b"".join(_PART.pack(len(part)) + part for part in self.parts)

    @classmethod
    def unpack(cls, data: bytes) -> SealedBid:
        """The bid in such bytes.

        Raises:
            InputError: They are none.
        """
        try:
            magic, prices, key, count = _HEAD.unpack_from(data)
            parts, at = [], _HEAD.size
            for _ in range(count if magic == _MAGIC else 0):
                (length,) = _PART.unpack_from(data, at)
                at += _PART.size
                parts.append(data[at : at + length])
                at += length
        except struct.error:
            magic, at = b"", -1
        if magic != _MAGIC or at != len(data):
            raise InputError("This is no sealed bid.", why="Its form is another.", fix="Ask the bidder for a new one.")
        return cls(prices, key, tuple(parts))


def seal_bid(
    auction: str,
    curve: Sequence[int] | NDArray[np.int64],
    servers: Sequence[Card],
    threshold: int,
    key: X25519PrivateKey,
) -> SealedBid:
    """A bid, sealed for these servers.

    Args:
        auction: The auction's name.
        curve: For each price, lowest first, how much to buy (or, below zero, to sell).
        servers: Their cards, in the auction's order.
        threshold: So many servers together learn nothing.
        key: The bidder's secret key, which opens its amount later.

    Raises:
        InputError: The curve rises, or an amount is too large.
    """
    amounts = np.asarray(curve, np.int64)
    if amounts.ndim != 1 or not amounts.size or int(np.abs(amounts).max()) > MOST:
        raise InputError(
            "This is no bid.", why=f"It needs amounts up to {MOST}, one for each price.", fix="Correct it."
        )
    if (np.diff(amounts) > 0).any():
        raise InputError(
            "The bid rises with the price.",
            why="Then no price need exist at which the market clears.",
            fix="Buy no more, and sell no less, at a higher price.",
        )
    seeds = [fresh_seed() for _ in range(threshold)]
    drawn = [BIG.random(Stream(seed), amounts.shape) for seed in seeds]
    points = tuple(range(threshold + 1))
    rest = range(threshold + 1, len(servers) + 1)
    dealt = BIG.combine_all([lagrange(BIG, points, each) for each in rest], [BIG.array(amounts), *drawn])
    public = key.public_key().public_bytes_raw()
    contents = [*seeds, *(bytes(BIG.pack(each)) for each in dealt)]
    parts = [
        seal(content, server.box, _context(auction, server.name, public))
        for content, server in zip(contents, servers, strict=True)
    ]
    return SealedBid(int(amounts.size), public, tuple(parts))


def open_part(auction: str, bid: SealedBid, server: Card, at: int, opener: X25519PrivateKey) -> Array | None:
    """A server's shares of a bid (`at` counts servers from 1), or None where it cannot be opened."""
    if at > len(bid.parts):
        return None
    content = unseal(bid.parts[at - 1], opener, _context(auction, server.name, bid.key))
    if content is None:
        return None
    if len(content) == SEED:
        return BIG.random(Stream(content), (bid.prices,))
    try:
        return BIG.unpack(content, (bid.prices,))
    except ValueError:
        return None


def seal_amount(auction: str, server: str, bid: SealedBid, share: int) -> bytes:
    """A server's share of a bidder's amount, for the bidder alone."""
    return seal(share.to_bytes(8, "little"), bid.key, _context(auction, server, bid.key))


def open_amount(
    auction: str, answers: Sequence[bytes], servers: Sequence[Card], threshold: int, key: X25519PrivateKey
) -> int:
    """The bidder's own amount, from the answers of all servers, in any order.

    Raises:
        InputError: Too few answers can be opened, or they do not fit together.
    """
    public = key.public_key().public_bytes_raw()
    shares: dict[int, Array] = {}
    for at, server in enumerate(servers, 1):
        for data in answers:
            content = unseal(data, key, _context(auction, server.name, public))
            if content is not None and len(content) == 8:
                shares[at] = np.frombuffer(content, "<u8")
    scheme = Scheme(BIG, len(servers), threshold)
    if len(shares) <= threshold or scheme.agrees(shares).any():
        raise InputError(
            "The amount cannot be opened.",
            why="Too few servers' answers are for this key and auction, or they do not fit together.",
            fix="Collect the answers of all servers again.",
        )
    return int(BIG.signed(scheme.reconstruct(shares))[0])


def seal(content: bytes, receiver: bytes, context: bytes) -> bytes:
    """Bytes that only the holder of a key can read: a fresh public key, then the encrypted content."""
    own = X25519PrivateKey.generate()
    public = own.public_key().public_bytes_raw()
    key = _sealing_key(own.exchange(X25519PublicKey.from_public_bytes(receiver)), public, receiver, context)
    return public + AESGCM(key).encrypt(bytes(12), content, context)  # each key seals once, so the nonce may be zero


def unseal(data: bytes, opener: X25519PrivateKey, context: bytes) -> bytes | None:
    """What was sealed, or None where it was sealed for another key or context, or is damaged."""
    if len(data) < 48:
        return None
    try:
        shared = opener.exchange(X25519PublicKey.from_public_bytes(data[:32]))
        key = _sealing_key(shared, data[:32], opener.public_key().public_bytes_raw(), context)
        return AESGCM(key).decrypt(bytes(12), data[32:], context)
    except (InvalidTag, ValueError):
        return None


def _sealing_key(shared: bytes, sender: bytes, receiver: bytes, context: bytes) -> bytes:
    return HKDF(SHA256(), 32, None, b"dalenius sealed" + sender + receiver + context).derive(shared)


def _context(auction: str, server: str, bidder: bytes) -> bytes:
    return "\x00".join((auction, server, bidder.hex())).encode()
