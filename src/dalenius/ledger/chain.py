"""The history as a chain: every entry's hash covers the one before it.

    hash₀ = HMAC(key, "dalenius ledger")        hashₙ = HMAC(key, hashₙ₋₁ ‖ number ‖ kind ‖ time ‖ body)

Any change, removal or reordering breaks the chain from there on; without the key nobody can mend it. What a chain alone
cannot show is a cut tail, which is still a valid chain. So head and length stand in a second file, the anchor, where a
cut tail or a restored old copy shows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalenius.errors import LedgerCorruptError, LedgerUnavailableError

ANCHOR = "ledger.anchor"
_SLOT = 256


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


# --- the anchor


@dataclass(frozen=True, slots=True)
class Head:
    """How long the history is, and the hash of its last entry."""

    count: int
    hash: bytes


class Anchor:
    """The file in which the head is remembered.

    It is written after each commit, so it may lag by the entries of a crash, but is never ahead of an honest ledger.
    Two slots take turns: a write torn by a power cut spoils one and leaves the other. It is not flushed to disk by
    itself (that would double the cost of a charge): a killed process loses nothing, a power cut at worst makes the
    anchor lag.
    """

    def __init__(self, home: Path, key: bytes) -> None:
        self._file = home / ANCHOR
        self._key = key
        self._known: tuple[bytes, Head] | None = None  # the last content that was checked, and what it says

    @property
    def exists(self) -> bool:
        """Whether there is one."""
        return self._file.exists()

    def create(self, head: Head) -> None:
        """A new file; refuses to replace one."""
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.pwrite(descriptor, self._slot(head) * 2, 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self) -> Head:
        """The longest head that is authentic."""
        try:
            content = self._file.read_bytes()
        except FileNotFoundError:
            raise _corrupt("is missing") from None
        except OSError:
            raise _closed() from None
        return self._longest(content)

    def advance(self, head: Head) -> None:
        """Remembers a longer head; a shorter one, from a process that was overtaken, is ignored."""
        import fcntl  # here: who only reads receipts needs no locks, and may work where there are none

        try:
            descriptor = os.open(self._file, os.O_RDWR)
        except FileNotFoundError:
            raise _corrupt("is missing") from None
        except OSError:
            raise _closed() from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            content = os.pread(descriptor, 2 * _SLOT, 0)
            if self._longest(content).count < head.count:
                start, slot = (head.count % 2) * _SLOT, self._slot(head)
                os.pwrite(descriptor, slot, start)
                self._known = content[:start] + slot + content[start + _SLOT :], head
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # by itself, since a forked child may hold the descriptor too
            os.close(descriptor)

    def _slot(self, head: Head) -> bytes:
        text = f"{head.count} {head.hash.hex()}"
        return f"{text} {self._mac(text)}".encode().ljust(_SLOT - 1) + b"\n"

    def _mac(self, text: str) -> str:
        return hmac.digest(self._key, b"anchor " + text.encode(), "sha256").hex()

    def _longest(self, content: bytes) -> Head:
        known = self._known
        if known is not None and known[0] == content:
            return known[1]
        heads = []
        for start in (0, _SLOT):
            words = content[start : start + _SLOT].decode("ascii", "replace").split()
            if len(words) == 3 and hmac.compare_digest(words[2], self._mac(f"{words[0]} {words[1]}")):
                heads.append(Head(int(words[0]), bytes.fromhex(words[1])))
        if not heads:
            raise _corrupt("does not verify")
        longest = max(heads, key=lambda head: head.count)
        self._known = content, longest
        return longest


def _corrupt(what: str) -> LedgerCorruptError:
    return LedgerCorruptError(
        f"The anchor of the ledger ({ANCHOR}) {what}.",
        why="It remembers how long the history is; without it a shortened history would not show.",
        fix="Restore it from your backup, together with the ledger.",
    )


def _closed() -> LedgerUnavailableError:
    return LedgerUnavailableError(
        "The anchor of the ledger cannot be used.",
        why="This user may not read or write it, or too many files are open.",
        fix="Give this user access to the home and its files.",
    )
