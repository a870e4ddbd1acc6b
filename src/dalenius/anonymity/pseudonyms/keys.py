"""The key of pseudonyms: 32 bytes of the system's chance, in a file that only its owner reads (0600).

Whoever has it can make every pseudonym again, and so find anybody: the file belongs apart from what is published, and
is deleted when nobody is to be found again. Each way of making pseudonyms works with a key of its own, derived from
this one, so that what one gives away is of no use against another.
"""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path

from dalenius.anonymity.private_files import read_private, write_private
from dalenius.errors import InputError

_BYTES = 32
_MARK = "dalenius-pseudonym-key-1"


def create_key(file: Path) -> bytes:
    """A new key, in a file of its own.

    Raises:
        InputError: There is such a file: another key would make other pseudonyms.
        SourceUnavailableError: It cannot be written.
    """
    key = secrets.token_bytes(_BYTES)
    write_private(file, f"{_MARK} {key.hex()}\n", replace=False)
    return key


def read_key(file: Path) -> bytes:
    """The key in a file.

    Raises:
        InputError: The file is no key, or others may read it.
        SourceUnavailableError: It cannot be read.
    """
    mark, _, text = read_private(file).strip().partition(" ")
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if mark != _MARK or len(key) != _BYTES:
        raise InputError(
            f"{file.name} is no key for pseudonyms.",
            why="A key file has one line, which dalenius wrote.",
            fix="Name the key file of the first run, or a file that is not there yet: then a key is made.",
        )
    return key


def key_in(file: Path) -> bytes:
    """The key in a file, which is made where there is none."""
    return read_key(file) if file.exists() else create_key(file)


def derived(key: bytes, purpose: str) -> bytes:
    """The key for one purpose: HMAC-SHA256 is a pseudo-random function, so the keys say nothing about one another."""
    return hmac.digest(key, f"dalenius {purpose}".encode(), "sha256")
