"""The console's own door, behind the server's guard: who is signed in, from where, and to which page.

Nothing of the web framework runs for who is not signed in: no page is built, no file is served, no socket is opened.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from dalenius.app.console.map import HOME, PAGES, SIGN_IN, SIGN_OUT
from dalenius.app.console.sessions import Session, Sessions, cookie_of
from dalenius.app.http.limits import Limits
from dalenius.app.http.problems import no_such_path
from dalenius.errors import AuthDeniedError, AuthMissingError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

SESSION = "dalenius_session"  # where pages find it in the request's state
_FILES = re.compile(r"/_nicegui/[0-9a-z.]+/(static|libraries|components|resources|dynamic_resources|esm)/")
_SOCKET = "/_nicegui_ws/"
_SOCKETS = 100  # of one token at once
_OPEN = frozenset({SIGN_IN, SIGN_OUT})


class Door:
    """Wraps the console's application."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app, self._sessions = app, sessions
        # A page lives in memory until its browser has been away for a while: nobody needs very many.
        self._pages = Limits(rate=2, burst=60, concurrency=32)
        self._sockets = Limits(rate=20, burst=200, concurrency=_SOCKETS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one socket."""
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        elif scope["type"] == "http":
            await self._request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if scope["method"] not in {"GET", "HEAD"} and not same_origin(scope):
            raise AuthDeniedError("Not from there.", why="Only a page of this server may do this.", fix="Use the page.")
        if path in _OPEN:
            await self._app(scope, receive, send)
            return
        cookie = cookie_of(scope)
        if path in PAGES and scope["method"] in {"GET", "HEAD"}:
            session = await self._sessions.service.run(lambda: self._sessions.find(cookie))
            if session is None:
                await RedirectResponse(f"{SIGN_IN}?to={path}", 303)(scope, receive, send)
            elif session.token.role not in PAGES[path].roles:
                await RedirectResponse(HOME[session.token.role], 303)(scope, receive, send)
            else:
                scope.setdefault("state", {})[SESSION] = session
                await self._limited(self._pages, session, scope, receive, send)
            return
        session = self._sessions.known(cookie)
        if session is None:
            raise AuthMissingError("You are not signed in.", why="The session has ended.", fix="Sign in again.")
        if path.startswith("/_nicegui") and not (_FILES.match(path) or path.startswith(_SOCKET)):
            raise no_such_path()
        await self._app(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A page's line to the server: only for a page of this server, in a browser that is signed in."""
        session = self._sessions.known(cookie_of(scope)) if same_origin(scope) else None
        if session is None or not scope["path"].startswith(_SOCKET):
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._limited(self._sockets, session, scope, receive, send)

    async def _limited(self, limits: Limits, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        limits.admit(session.token.id)
        try:
            await self._app(scope, receive, send)
        finally:
            limits.done(session.token.id)


def same_origin(scope: Scope) -> bool:
    """Whether a page of this server sent it, not one of another site with this browser's cookie."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    origin = headers.get(b"origin", b"")
    return origin.partition(b"://")[2] == headers.get(b"host", b"?")
