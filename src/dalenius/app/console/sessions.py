"""Who is signed in, and how one signs in and out again.

A session is a cookie of 256 random bits, known here by its hash, in memory, for as long as its token is good. The token
itself is looked at once, when somebody signs in, and kept nowhere. The page where that is done is plain, without any
script: nothing is run before it is known for whom.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Annotated
from urllib.parse import parse_qs

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.requests import cookie_parser
from starlette.responses import Response

from dalenius.app.console import HOME, PAGES, SIGN_IN, SIGN_OUT
from dalenius.app.console.style import ICON, SIGN_IN_STYLE
from dalenius.app.http.limits import RateLimit
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

_WORDS = {
    "over": "Your session has ended. Sign in again.",
    "wrong": "This is not a token that is valid now. Ask the owner for one.",
    "many": "Too many tries from this address. Wait a minute.",
    "out": "You are signed out.",
}
# Beside the guard's: of two policies both hold.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sign in · dalenius</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<link rel="icon" href="{icon}"><style>{style}</style></head>
<body><main>
<p class="name"><img src="{icon}" alt="" width="28" height="28"> dalenius</p>
<h1>Sign in</h1>
<p>Ask about sensitive tables without seeing anybody in them. Paste the token that the owner of the data gave you.</p>
{said}
<form method="post" action="{action}">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="off" autofocus required maxlength="200"
 placeholder="dalenius_…">
<button type="submit">Sign in</button>
</form>
<p class="more">A token is shown once, when it is made: in the console's page Protect, or by
<code>dalenius token create</code>. It is not kept in this browser; closing it, or {hours:.0f} hours, ends your
session.</p>
</main></body></html>
"""


@dataclass(frozen=True, slots=True)
class PastQuestion:
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
    asked: deque[PastQuestion] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

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


def install_sign_in(app: FastAPI, sessions: Sessions) -> None:
    """Adds the page, and where its forms lead."""
    tries = RateLimit(rate=0.2, burst=20, concurrency=64)

    @app.get(SIGN_IN, include_in_schema=False)
    async def sign_in(
        to: Annotated[str, Query(max_length=100)] = "", say: Annotated[str, Query(max_length=10)] = ""
    ) -> Response:
        return _page(to, say)

    @app.post(SIGN_IN, include_in_schema=False)
    async def enter(request: Request, to: Annotated[str, Query(max_length=100)] = "") -> Response:
        address = request.client.host if request.client else ""
        text = _token(await request.body())
        try:
            token = await sessions.service.holder(text)
        except AuthMissingError:  # a good token is let in all the same: others may share the address
            if tries.exhausted(address):
                return _page(to, "many", 429)
            tries.spend(address)
            return _page(to, "wrong", 401)
        sessions.end(request.cookies.get(COOKIE))
        cookie = sessions.begin(token)
        where = to if to in PAGES and token.role in PAGES[to].roles else HOME[token.role]
        response = RedirectResponse(where, 303)
        # Without an age: gone with the browser, if not before.
        response.set_cookie(
            COOKIE, cookie, httponly=True, samesite="strict", secure=sessions.service.settings.encrypted
        )
        return response

    @app.post(SIGN_OUT, include_in_schema=False)
    async def leave(request: Request) -> Response:
        sessions.end(request.cookies.get(COOKIE))
        response = RedirectResponse(f"{SIGN_IN}?say=out", 303)
        response.delete_cookie(COOKIE)
        return response


def _token(form: bytes) -> str:
    """The token of a form, which is short: the guard lets nothing longer through (`guard.FORM`)."""
    try:
        return parse_qs(form.decode("latin-1"), max_num_fields=10).get("token", [""])[0].strip()
    except ValueError:  # more fields than the form has
        return ""


def _page(to: str, say: str, status: int = 200) -> Response:
    """The form; what is put into it is known beforehand."""
    words = _WORDS.get(say, "")
    said = f'<p role="{"status" if say == "out" else "alert"}">{escape(words)}</p>' if words else ""
    action = f"{SIGN_IN}?to={to}" if to in PAGES else SIGN_IN
    filled = _PAGE.format(icon=escape(ICON), style=SIGN_IN_STYLE, said=said, action=escape(action), hours=LIFE / 3600)
    return HTMLResponse(filled, status, headers={"Content-Security-Policy": _POLICY})
