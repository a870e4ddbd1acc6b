"""Receipts: proof that a release was charged, for whoever holds the public key."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius._fields import once
from dalenius.errors import InputError, LedgerCorruptError, SourceUnavailableError
from dalenius.ledger.chain import Entry, canonical

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from dalenius.ledger.home import LedgerKeys

VERSION = 1
PUBLICATION = "publication"
_LONGEST = 1_000_000  # bytes; a receipt has about a thousand


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was charged for one release, and where that stands in the history. Signed with Ed25519."""

    version: int
    id: str
    entry: int
    chain: str  # hash of the history up to and with that entry
    dataset: str
    analyst: str
    event: dict[str, Any]
    charge: dict[str, Any]
    question: str  # SHA-256
    release: str  # SHA-256
    time: str
    signature: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @property
    def signed_content(self) -> bytes:
        """What the signature covers: everything but itself."""
        data = asdict(self)
        del data["signature"]
        return canonical(data).encode()


def content(entry: Entry, charge: Mapping[str, Any]) -> Receipt:
    """What the receipt of an answer to a charge, or of its grant to another analyst, says; not signed yet.

    Both must have been proved: what is signed is believed. It is the same whenever it is written. A publication has no
    charge, no event and no price: its receipt says null, which is not zero.
    """
    data = entry.data
    if entry.kind == PUBLICATION:
        nothing = {"event": {}, "epsilon": None, "delta": None, "rho": None, "analyst": "", "question": data["key"]}
        charge = {**nothing, "dataset": data["dataset"]}
    own = data if entry.kind == "grant" else charge
    return Receipt(
        version=VERSION,
        id=f"R{entry.number}-{entry.hash.hex()[:12]}",
        entry=entry.number,
        chain=entry.hash.hex(),
        dataset=charge["dataset"],
        analyst=own["analyst"],
        event=charge["event"],
        charge={"epsilon": charge["epsilon"], "delta": charge["delta"], "rho": charge["rho"]},
        question=own["question"],
        release=data["release"],
        time=entry.time,
    )


def write(keys: LedgerKeys, blank: Receipt) -> Receipt:
    """The receipt, signed. The same entry gives the same receipt."""
    signature = keys.signing.sign(blank.signed_content)
    return replace(blank, signature=base64.b64encode(signature).decode())


def read(file: Path) -> Receipt:
    """A receipt from a file; only its form is checked."""
    try:
        with file.open("rb") as source:
            data = json.loads(source.read(_LONGEST), object_pairs_hook=once)
    except OSError:
        raise SourceUnavailableError(
            f"{file} cannot be read.", why="A receipt is a JSON file.", fix="Name an existing file."
        ) from None
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict) and isinstance(data.get("receipt"), dict):
        data = data["receipt"]  # the whole answer of `ask --json` holds one
    known = Receipt.__dataclass_fields__
    if not isinstance(data, dict) or set(data) != set(known) or not isinstance(data["signature"], str):
        raise InputError(
            f"{file.name} is not a receipt.",
            why=f"A receipt has {', '.join(known)}.",
            fix="Save the receipt as it was given.",
        )
    return Receipt(**data)


def check(receipt: Receipt, key: Ed25519PublicKey) -> None:
    """Refuses a receipt whose signature is not of this key."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(base64.b64decode(receipt.signature, validate=True), receipt.signed_content)
    except (InvalidSignature, ValueError, TypeError):
        raise LedgerCorruptError(
            f"Receipt {receipt.id} is not genuine.",
            why="Its signature does not fit its content and the public key.",
            fix="Ask who gave it to you for the original, and the owner for the right public key.",
        ) from None
