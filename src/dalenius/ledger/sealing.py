"""Bytes that only this home reads: encrypted and authenticated under a key of the home, one for each purpose."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger

_NONCE = 12


def seal(ledger: Ledger, plain: bytes, purpose: bytes, about: bytes = b"") -> bytes:
    """The bytes, sealed.

    Args:
        ledger: Whose home.
        plain: What is sealed.
        purpose: What it is for, with a version: what is sealed for one purpose does not open for another.
        about: What it belongs to; it opens only where the same is said.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE)
    return nonce + AESGCM(_key(ledger, purpose)).encrypt(nonce, plain, purpose + about)


def unseal(ledger: Ledger, sealed: bytes, purpose: bytes, about: bytes = b"") -> bytes | None:
    """As `seal` wrote them; None where it was not written with this home's key, for this purpose and about this."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(_key(ledger, purpose)).decrypt(sealed[:_NONCE], sealed[_NONCE:], purpose + about)
    except (InvalidTag, ValueError):
        return None


def _key(ledger: Ledger, purpose: bytes) -> bytes:
    return hmac.new(ledger.keys.chain, purpose, hashlib.sha256).digest()
