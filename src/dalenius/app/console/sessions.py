"""Who is signed in: a cookie of 256 random bits, known here by its hash, in memory, for as long as its token is good.

The token itself is looked at once, when somebody signs in, and kept nowhere.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dalenius.errors import AuthMissingError

if TYPE_CHECKING:
    from dalenius.analyst import Analyst
    from dalenius.app.http.service import Service
    from dalenius.ledger.tokens import Token

COOKIE = "dalenius_session"
LIFE = 12 * 3600.0  # seconds
IDLE = 2 * 3600.0
_MOST = 10_000


@dataclass
class Session:
    """One browser that is signed in."""

    service: Service
    token: Token
    began: float = field(default_factory=time.monotonic)
    used: float = field(default_factory=time.monotonic)
    ended: bool = False

    def check(self) -> Token:
        """The token, if it is still good and the session has not ended; raises otherwise. To be called in a thread."""
        now = time.monotonic()
        if self.ended or now - self.began > LIFE or now - self.used > IDLE:
            raise _over()
        found = next((each for each in self.service.tokens.all() if each.id == self.token.id), None)
        if found is None or found.state != "active":
            self.ended = True
            raise _over()
        self.used = now
        return found

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
            now = time.monotonic()
            old = [key for key, each in self._sessions.items() if each.ended or now - each.began > LIFE]
            for key in old:
                del self._sessions[key]
            while len(self._sessions) >= _MOST:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[_hash(cookie)] = Session(self.service, token)
        return cookie

    def find(self, cookie: str | None) -> Session | None:
        """The session of a cookie, if it is good now. To be called in a thread."""
        found = self._sessions.get(_hash(cookie)) if cookie else None
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
            found = self._sessions.pop(_hash(cookie), None) if cookie else None
        if found is not None:
            found.ended = True


def _hash(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()


def _over() -> AuthMissingError:
    return AuthMissingError(
        "You are no longer signed in.", why="The session or its token has ended.", fix="Sign in again."
    )
