"""A bidder's side of an auction, in files: a curve, the sealed bid, the key that stays at home, and the amount."""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
import os
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from dalenius._fields import Fields
from dalenius.errors import DaleniusError, InputError
from dalenius.joint.bids import open_amount, seal_bid
from dalenius.joint.config import Card, check_distinct

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class BidderKey:
    """What a bidder keeps: with it the servers' answers become an amount.

    Attributes:
        auction: The auction's name.
        servers: The servers, in order.
        threshold: So many together learn nothing.
        key: The secret key.
    """

    auction: str
    servers: tuple[Card, ...]
    threshold: int
    key: X25519PrivateKey

    def text(self) -> str:
        """Its file."""
        return json.dumps(
            {
                "auction": self.auction,
                "threshold": self.threshold,
                "key": base64.b64encode(self.key.private_bytes_raw()).decode(),
                "servers": [each.text() for each in self.servers],
            }
        )

    @classmethod
    def read(cls, file: Path) -> BidderKey:
        """The key in a file.

        Raises:
            InputError: It is none.
        """
        try:
            fields = Fields(json.loads(file.read_text(encoding="utf-8")), "bidder's key")
            secret = base64.b64decode(fields.text("key"), validate=True)
            cards = tuple(Card.parse(str(text), file.name) for text in fields.any("servers"))
            key = X25519PrivateKey.from_private_bytes(secret)
            return cls(fields.text("auction"), cards, fields.whole("threshold"), key)
        except (OSError, ValueError, TypeError, binascii.Error, DaleniusError):
            raise InputError(
                f"{file.name} is no bidder's key.",
                why="Its form is another.",
                fix="Name what 'dalenius joint bid' wrote.",
            ) from None


def write_bid(curve: Path, auction: str, servers: Sequence[Card], output: Path) -> Path:
    """Seals the curve in a CSV file with the columns price and amount; writes the bid, and beside it the bidder's key.

    Returns:
        The key's file.
    """
    check_distinct(tuple(servers))
    threshold = (len(servers) - 1) // 2
    if threshold < 1:
        raise InputError(
            f"{len(servers)} servers are too few.",
            why="With fewer than three, one alone could read bids.",
            fix="Name three.",
        )
    kept = BidderKey(auction, tuple(servers), threshold, X25519PrivateKey.generate())
    sealed = seal_bid(auction, read_curve(curve), servers, threshold, kept.key)
    key = output.with_suffix(".key")
    with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        out.write(kept.text())
    output.write_bytes(sealed.pack())
    return key


def read_curve(file: Path) -> list[int]:
    """The amounts of a CSV file with the columns price and amount, one line for each price, lowest first."""
    try:
        rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig"))))
        prices = [float(row["price"]) for row in rows]
        amounts = [int(row["amount"]) for row in rows]
    except (OSError, UnicodeDecodeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"{file.name} is no bid.",
            why="It needs the columns price and amount, with whole amounts: above zero to buy, below zero to sell.",
            fix="Write one line for each price of the auction.",
        ) from None
    if any(low >= high for low, high in pairwise(prices)):
        raise InputError(f"{file.name} is no bid.", why="Its prices do not rise.", fix="Sort its lines by price.")
    return amounts


def open_answers(key: BidderKey, answers: Sequence[Path]) -> int:
    """The bidder's amount, from the files that the servers wrote for it, in any order."""
    return open_amount(key.auction, [each.read_bytes() for each in answers], key.servers, key.threshold, key.key)
