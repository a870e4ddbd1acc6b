"""Owner actions on record: of which kinds there are, who did it, and why.

Records name who did something, as "cli:USER" or "token:ID". Whoever works on the machine itself acts as the user of the
operating system. A server acts for whoever sent the request, and that is a token: the user of its process would say
nothing about who did it. Reasons are words that somebody can read later, not a keystroke.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dalenius.errors import InputError
from dalenius.ledger.chain import canonical

# Kinds that anyone may `record`; the others are written by their own methods, which keep totals in step.
OWNER_KINDS = frozenset({"policy", "limits", "publication", "refresh", "closed", "token", "note"})
# Kinds that say who did it ("by"); entries of before that do not are as good.
AUTHORED = OWNER_KINDS | {"budget", "allotment", "epoch", "suspension"}
# What decides which rows a question about a table reads, and whether it may.
TABLE_KINDS = ("policy", "refresh", "closed", "epoch")

CURATOR = "curator"  # nobody told it to: a rule of the policy did
_AUTHOR: ContextVar[str] = ContextVar("author", default="")

WORDS, CHARACTERS, LONGEST = 3, 10, 2000
ENOUGH = f"A reason has at least {WORDS} words and {CHARACTERS} characters."


@contextmanager
def acting(who: str) -> Iterator[None]:
    """What is recorded inside, in this thread or task, was done by ``who``."""
    before = _AUTHOR.set(who)
    try:
        yield
    finally:
        _AUTHOR.reset(before)


def author() -> str:
    """Who does what is done here."""
    return _AUTHOR.get() or f"cli:{_user()}"


def token_author(id_: str) -> str:
    """The author that a token is."""
    return f"token:{id_}"


def _user() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name  # not by a variable, which anybody sets
    except (ImportError, KeyError):
        pass
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"


def explains(reason: str) -> bool:
    """Whether a reason says something: of at least three words and ten characters.

    >>> explains("wave 2, drawn from people not in wave 1"), explains("new"), explains(". . . . . . . .")
    (True, False, False)
    """
    words = [each for each in reason.split() if any(letter.isalnum() for letter in each)]
    return len(words) >= WORDS and len(" ".join(words)) >= CHARACTERS


def require_reason(reason: str) -> str:
    """A reason for a small step, which must be there; without blanks around it."""
    found = reason.strip()
    if not found or len(found) > LONGEST or not found.isprintable():
        raise InputError(
            "This needs a reason.",
            why=f"It stays in the history: one line of up to {LONGEST:,} printable characters.",
            fix="Give one (--reason): what happened, or what was agreed.",
        )
    return found


def check_plain(data: Mapping[str, Any]) -> None:
    """Refuses what cannot be written down as JSON."""
    try:
        canonical(data).encode()
    except (TypeError, ValueError):
        raise InputError(
            "This cannot be recorded.", why="A record is plain JSON data.", fix="Give strings, numbers, lists."
        ) from None


def check_named(value: str, what: str) -> None:
    """Refuses what is no name for a data set or an analyst."""
    if not value or len(value) > 200 or not value.isprintable():
        raise InputError(
            f"This is no name for a {what}.", why="It is empty, too long or unprintable.", fix="Choose another."
        )
