"""Who is signed in: a cookie of 256 random bits, known here by its hash, in memory, for as long as its token is good.

The token itself is looked at once, when somebody signs in, and kept nowhere.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import cookie_parser

from dalenius.errors import AuthMissingError

if TYPE_CHECKING:
    from starlette.types import Scope

    from dalenius.analyst import Analyst
    from dalenius.app.http.service import Service
    from dalenius.ledger.tokens import Token

COOKIE = "dalenius_session"
LIFE = 12 * 3600.0  # seconds
IDLE = 2 * 3600.0
_MOST = 10_000
_MOST_OF_ONE = 50  # of one token; the oldest end
_REMEMBERED = 50  # questions


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was answered in this session: in memory only, gone when it ends.

    Attributes:
        sql: Its words.
        epsilon: The price that it was asked at.
        paid: What it cost.
    """

    sql: str
    epsilon: float
    paid: float


@dataclass
class Session:
    """One browser that is signed in."""

    service: Service
    token: Token
    began: float = field(default_factory=time.monotonic)
    used: float = field(default_factory=time.monotonic)
    ended: bool = False
    asked: deque[Asked] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    @property
    def over(self) -> bool:
        """Whether its time has passed, whatever became of its token."""
        now = time.monotonic()
        return self.ended or now - self.began > LIFE or now - self.used > IDLE

    def look(self) -> bool:
        """Whether it is still good, its token included; being looked at is no use. To be called in a thread."""
        if self.over or not self.service.tokens.is_good(self.token.id):
            self.ended = True
        return not self.ended

    def check(self) -> Token:
        """The token, if it is still good and the session has not ended; raises otherwise. To be called in a thread."""
        if not self.look():
            raise _over()
        self.used = time.monotonic()
        return self.token

    @property
    def analyst(self) -> Analyst:
        """What this analyst may do without touching data."""
        return self.service.curator.analyst(self.token.analyst)


class Sessions:
    """All browsers that are signed in to this server process."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def begin(self, token: Token) -> str:
        """A new session; returns the cookie."""
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            for key in [key for key, each in self._sessions.items() if each.over]:
                self._drop(key)
            mine = [key for key, each in self._sessions.items() if each.token.id == token.id]
            for key in mine[: max(0, len(mine) + 1 - _MOST_OF_ONE)]:
                self._drop(key)
            while len(self._sessions) >= _MOST:
                self._drop(next(iter(self._sessions)))
            self._sessions[_hash(cookie)] = Session(self.service, token)
        return cookie

    def known(self, cookie: str | None) -> Session | None:
        """The session of a cookie, if its time has not passed; its token is not looked at again."""
        found = self._sessions.get(_hash(cookie)) if cookie else None
        return None if found is None or found.over else found

    def find(self, cookie: str | None) -> Session | None:
        """The session of a cookie, if it is good now. To be called in a thread."""
        found = self.known(cookie)
        if found is None:
            return None
        try:
            found.check()
        except AuthMissingError:
            return None
        return found

    def end(self, cookie: str | None) -> None:
        """Signs out."""
        with self._lock:
            if cookie:
                self._drop(_hash(cookie))

    def _drop(self, key: str) -> None:
        found = self._sessions.pop(key, None)
        if found is not None:
            found.ended = True


def cookie_of(scope: Scope) -> str | None:
    """The cookie that came with a request, or with a socket."""
    given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"]
    return cookie_parser("; ".join(given)).get(COOKIE)


def _hash(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()


def _over() -> AuthMissingError:
    return AuthMissingError(
        "You are no longer signed in.", why="The session or its token has ended.", fix="Sign in again."
    )
