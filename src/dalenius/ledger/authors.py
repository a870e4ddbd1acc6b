"""Who does something to the ledger: the owner's records name it, as "cli:USER" or "token:ID".

Whoever works on the machine itself acts as the user of the operating system. A server acts for whoever sent the
request, and that is a token: the user of its process would say nothing about who did it.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CURATOR = "curator"  # nobody told it to: a rule of the policy did
_AUTHOR: ContextVar[str] = ContextVar("author", default="")


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


def token(id_: str) -> str:
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
