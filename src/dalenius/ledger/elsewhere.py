"""The history of another home, looked at from outside: nothing is written there, waited for, or brought up to date.

Nor is anything proved: the keys of that home are not ours to use. Whoever can write its file can make it name too much
or too little, and could as well delete the home. So it is read as what a stranger may have put there: only from homes
of this user or of root, only a plain table, for a few seconds, and only so much of it. What is no ledger has protected
nothing; a ledger that cannot be read may have, and stops whoever asks until somebody has looked at it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dalenius.errors import OtherHomeError
from dalenius.ledger.database import NAME

_BUSY = 1.0  # seconds; a home that is busy is not waited for
_SECONDS = 5.0
_ROWS = 100_000
_LENGTH = 2**26  # of one record: some hundred thousand files
_STEPS = 10_000  # of SQLite's machine, between two looks at the clock
_NO_LEDGER = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}  # another file; a table without these columns


def actions_of(home: Path, kinds: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """What the owner of a home recorded, of some kinds, oldest first; nothing where there is no ledger to be read.

    Raises:
        OtherHomeError: There is one, and it is broken, locked, or more than can be read in a few seconds.
    """
    file = home / NAME
    if not _is_trusted(home) or not _is_trusted(file) or not os.path.isfile(file):  # noqa: PTH113
        return
    end = time.monotonic() + _SECONDS
    try:
        with closing(_open(file)) as connection:
            _limit(connection, end)
            for body in _bodies(connection, kinds, end):
                found = json.loads(body)
                if isinstance(found, dict):
                    yield found
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) not in _NO_LEDGER:
            raise _unreadable(home) from None
    except (ValueError, RecursionError, OverflowError, MemoryError, OSError):
        raise _unreadable(home) from None


def trusted_owners() -> frozenset[int]:
    """Whose homes are looked at: anybody else could say anything in theirs, and stop whom they like."""
    return frozenset({0, os.geteuid()}) if hasattr(os, "geteuid") else frozenset({0})


def _is_trusted(path: Path) -> bool:
    try:
        return path.stat().st_uid in trusted_owners() and os.access(path, os.R_OK)
    except OSError:
        return False


def _open(file: Path) -> sqlite3.Connection:
    # With nobody at it, the file is all there is, and opening it in any other way would leave files beside it.
    mode = "mode=ro" if os.path.isfile(f"{file}-wal") else "immutable=1"  # noqa: PTH113
    return sqlite3.connect(f"file:{quote(str(file.absolute()))}?{mode}", uri=True, timeout=_BUSY)


def _limit(connection: sqlite3.Connection, end: float) -> None:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LENGTH)
    connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    connection.execute("PRAGMA trusted_schema = OFF")


def _bodies(connection: sqlite3.Connection, kinds: Sequence[str], end: float) -> Iterator[str]:
    # A view could compute for ever, and a virtual table run what it likes: neither has a page of its own.
    plain = "SELECT 1 FROM sqlite_master WHERE lower(name) = 'entries' AND type = 'table' AND rootpage > 0"
    if connection.execute(plain).fetchone() is None:
        return
    marks = ", ".join("?" * len(kinds))
    asked = f"SELECT body FROM entries WHERE kind IN ({marks}) ORDER BY number"  # noqa: S608 (marks alone)
    for number, (body,) in enumerate(connection.execute(asked, tuple(kinds))):
        if number >= _ROWS or time.monotonic() > end:
            raise ValueError
        yield str(body)


def _unreadable(home: Path) -> OtherHomeError:
    return OtherHomeError(
        "Another home is near, and its ledger cannot be read.",
        why="It is broken, locked or too large. What it has protected would get a second budget here.",
        fix="Look whether that home is in use; repair it, or move away what is no home.",
        home=home,
    )
