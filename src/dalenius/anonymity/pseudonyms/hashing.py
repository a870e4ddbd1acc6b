"""Keyed hashing: HMAC-SHA256 of column and value, cut to 128 bits.

A plain hash is no pseudonym: whoever can list the values (all telephone numbers, all names) hashes them all and looks
up (`dalenius attack dictionary`). With a key that only the owner has, HMAC is a pseudo-random function (Bellare 2006):
without the key its values tell nothing but which are equal. The column's name is hashed too, so the same value in two
columns has two pseudonyms, and in columns of one name in two tables the same: these can be joined.

128 bits: among n values, two share a pseudonym with probability at most n²/2¹²⁹, for 10⁹ values 1.5·10⁻²¹.
"""

from __future__ import annotations

import hmac

from dalenius.anonymity.pseudonyms.keys import derived

DIGITS = 32  # hexadecimal: 128 bits


def keyed_hash(key: bytes, column: str, value: str) -> str:
    """The pseudonym of a value.

    >>> keyed_hash(bytes(32), "name", "Ada") == keyed_hash(bytes(32), "name", "Ada")
    True
    >>> keyed_hash(bytes(32), "name", "Ada") == keyed_hash(bytes(32), "friend", "Ada")
    False
    """
    name = column.encode()
    # The length first: column "a" with value "bc" is not column "ab" with value "c".
    message = len(name).to_bytes(4, "big") + name + value.encode()
    return hmac.new(derived(key, "keyed hashing"), message, "sha256").hexdigest()[:DIGITS]
