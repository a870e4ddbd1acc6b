"""The history as a chain: every entry's hash covers the one before it.

    hash₀ = HMAC(key, "dalenius ledger")        hashₙ = HMAC(key, hashₙ₋₁ ‖ number ‖ kind ‖ time ‖ body)

Any change, removal or reordering breaks the chain from there on; without the key nobody can mend it. What a chain alone
cannot show is a cut tail, which is still a valid chain: see `anchor`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


def canonical(data: Mapping[str, Any]) -> str:
    """The one way in which a body is written: equal data, equal bytes."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(content: bytes) -> str:
    """SHA-256 of a question or a release."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the history, as it stands in the file."""

    number: int
    kind: str
    time: str
    body: str
    hash: bytes

    @property
    def data(self) -> dict[str, Any]:
        """The body, read."""
        data = json.loads(self.body)
        if not isinstance(data, dict):
            raise ValueError("a body is an object")  # noqa: TRY004 (verify treats both alike)
        return data


def origin(key: bytes) -> bytes:
    """The hash before the first entry."""
    return hmac.digest(key, b"dalenius ledger", "sha256")


def link(key: bytes, previous: bytes, number: int, kind: str, time: str, body: str) -> bytes:
    """The hash of an entry. Lengths are written out, so that no two entries run together to the same bytes."""
    message = previous
    for part in (str(number), kind, time, body):
        encoded = part.encode()
        message += len(encoded).to_bytes(8, "big") + encoded
    return hmac.digest(key, message, "sha256")
