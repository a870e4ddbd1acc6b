"""The console's own door, behind the server's guard: who is signed in, from where, and to which page.

Nothing of the web framework runs for who is not signed in: no page is built, no file is served, no socket is opened.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse, RedirectResponse

from dalenius.app.console import HOME, PAGES, SIGN_IN, SIGN_OUT
from dalenius.app.console.sessions import Session, Sessions, cookie_of
from dalenius.app.http.guard import UPLOAD
from dalenius.app.http.limits import RateLimit, TooManyError
from dalenius.app.http.responses import MethodError, no_such_path
from dalenius.errors import AuthDeniedError, AuthMissingError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from dalenius.app.http.settings import Settings

SESSION = "dalenius_session"  # where pages find it in the request's state
SOCKET = "/_nicegui_ws/"
# Of the framework's own version only: below any other path it would build a page of what is not there.
_KINDS = "static|libraries|components|resources|dynamic_resources|esm"
_FILES = re.compile(rf"/_nicegui/{re.escape(version('nicegui'))}/({_KINDS})/")
# What there is besides pages and files; anything else would end in the framework's page of what is not there.
_FORMS = {SIGN_IN: ("GET", "POST"), SIGN_OUT: ("POST",), UPLOAD: ("POST",)}
_SOCKETS = 100  # of one token at once


class Door:
    """Wraps the console's application."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app, self._sessions = app, sessions
        # A page lives in memory until its browser has been away for a while: nobody needs very many.
        self._pages = RateLimit(rate=2, burst=60, concurrency=32)
        self._sockets = RateLimit(rate=20, burst=200, concurrency=_SOCKETS)
        self._files = RateLimit(rate=200, burst=1000, concurrency=128)  # one page is some fifty

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one socket."""
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        elif scope["type"] == "http":
            # The framework would write it into the page.
            scope["headers"] = [each for each in scope["headers"] if each[0] != b"x-forwarded-prefix"]
            await self._request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        session = self._sessions.known(cookie_of(scope))
        if path not in PAGES and path not in _FORMS and not _FILES.match(path):
            raise no_such_path() if session is not None else _missing()
        methods = _FORMS.get(path, ("GET",))
        if scope["method"] not in methods:
            raise MethodError("Not with this method.", why=f"This is for {' and '.join(methods)}.", fix="Use the page.")
        if scope["method"] != "GET" and not same_origin(scope, self._sessions.service.settings):
            raise _foreign()
        if path in PAGES:
            await self._page(path, scope, receive, send)
        elif path in {SIGN_IN, SIGN_OUT}:
            await self._app(scope, receive, send)
        elif session is not None:
            await self._limited(self._files, session, scope, receive, send)
        else:
            raise _missing()

    async def _page(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        cookie = cookie_of(scope)
        session = await self._sessions.service.run(lambda: self._sessions.find(cookie))
        if session is None:
            await RedirectResponse(f"{SIGN_IN}?to={path}", 303)(scope, receive, send)
        elif session.token.role not in PAGES[path].roles:
            await RedirectResponse(HOME[session.token.role], 303)(scope, receive, send)
        else:
            scope.setdefault("state", {})[SESSION] = session
            try:
                await self._limited(self._pages, session, scope, receive, send)
            except TooManyError:
                words = "Too many pages at once. Wait a few seconds, and load this one again."
                await PlainTextResponse(words, 429, {"Retry-After": "5"})(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A page's line to the server: only for a page of this server, in a browser that is signed in."""
        settings = self._sessions.service.settings
        session = self._sessions.known(cookie_of(scope)) if same_origin(scope, settings) else None
        if session is None or not scope["path"].startswith(SOCKET):
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            await self._limited(self._sockets, session, scope, receive, send)
        except TooManyError:
            await send({"type": "websocket.close", "code": 1008})

    async def _limited(self, limits: RateLimit, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        limits.admit(session.token.id)
        try:
            await self._app(scope, receive, send)
        finally:
            limits.done(session.token.id)


def same_origin(scope: Scope, settings: Settings) -> bool:
    """Whether a page of this server sent it, not one of another site with this browser's cookie."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    given = headers.get(b"origin", b"").decode("latin-1")
    host = headers.get(b"host", b"?").decode("latin-1")
    return given == (settings.public_url or f"{'https' if settings.tls else 'http'}://{host}")


def _missing() -> AuthMissingError:
    return AuthMissingError("You are not signed in.", why="The session has ended.", fix="Sign in again.")


def _foreign() -> AuthDeniedError:
    return AuthDeniedError(
        "Not from there.",
        why="Only a page of this server may do this, under the address that the server knows.",
        fix="Behind a proxy, tell the server its address: public_url in config.toml, or --public-url.",
    )
