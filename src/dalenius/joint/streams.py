"""Chance from keys: the keystream of AES-256-CTR, and keys derived from keys.

A party draws one seed for a run from the operating system; every other random number of the run comes from it by name.
Two parties that hold the same key draw the same numbers without a word between them. A party that starts a run again
with the seed it had sends the same bytes again.

*Guarantee.* Numbers that look uniform to who does not hold the key, as far as AES-256 and HMAC-SHA-256 are
pseudo-random functions.
"""

from __future__ import annotations

import hmac
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 32
"""Bytes of a seed."""


def fresh_seed() -> bytes:
    """A seed from the operating system."""
    return os.urandom(SEED)


def derive(seed: bytes, *names: object) -> bytes:
    """A seed of its own for each list of names.

    >>> derive(bytes(32), "deal", 1) == derive(bytes(32), "deal", 2)
    False
    """
    told = b"".join(len(each).to_bytes(4, "big") + each for each in (str(name).encode() for name in names))
    return hmac.digest(seed, told, "sha256")


class Stream:
    """The numbers of one seed, in order."""

    __slots__ = ("_cipher",)

    def __init__(self, seed: bytes) -> None:
        # each seed is used for one stream only, so the counter may begin at zero
        self._cipher = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int, kind: np.dtype[Any]) -> NDArray[Any]:
        """The next `count` words, as an array that may be written to."""
        size = count * kind.itemsize
        out = np.empty(size + 15, np.uint8)
        self._cipher.update_into(_zeros(size), out.data)
        return out[:size].view(kind)


_blank = bytes(1 << 16)


def _zeros(size: int) -> bytes:
    global _blank  # noqa: PLW0603 - zeros that grow to the largest request
    if len(_blank) < size:
        _blank = bytes(size)
    return _blank if len(_blank) == size else memoryview(_blank)[:size]  # type: ignore[return-value]
