"""The line between a page and the server: each page answers to the browser that opened it, and to nobody else.

The framework knows a page by a number that its browser sends along. Here the number alone opens nothing: the socket
must be of the same session, and once that has ended, the next thing that is done on the page leads away from it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from dalenius.app.console.door import SESSION
from dalenius.app.console.map import OVER
from dalenius.app.console.sessions import cookie_of

if TYPE_CHECKING:
    from dalenius.app.console.sessions import Session, Sessions

_SAID = ("event", "javascript_response", "ack", "log")  # what a socket says about a page, after its handshake


@cache
def _handlers() -> dict[str, Callable[..., Any]]:
    """The framework's own, as they were first: a process may make several servers, one after another."""
    from nicegui import core

    return dict(core.sio.handlers["/"])


def seal(sessions: Sessions) -> None:
    """Puts a check before each handler of the framework's sockets."""
    from nicegui import core, ui
    from nicegui.client import Client
    from socketio.exceptions import ConnectionRefusedError as Refused  # type: ignore[import-untyped]

    sio = core.sio
    handlers = _handlers()

    def whose(page: str) -> Session | None:
        client = Client.instances.get(page)
        found: Session | None = None if client is None else client.request.scope["state"][SESSION]
        return found

    def opens(environ: dict[str, Any], page: str) -> bool:
        mine = sessions.known(cookie_of(environ["asgi.scope"]))
        return mine is not None and mine is whose(page)

    async def connect(sid: str, environ: dict[str, Any], auth: Any = None) -> None:
        page = parse_qs(environ.get("QUERY_STRING", "")).get("client_id", [""])[0]
        if not opens(environ, page):
            raise Refused("Implicit handshake failed")  # at these words, the framework's script loads the page anew
        await handlers["connect"](sid, environ, auth)

    async def handshake(sid: str, data: dict[str, Any]) -> bool:
        return opens(sio.get_environ(sid), data["client_id"]) and await handlers["handshake"](sid, data)

    def checked(name: str) -> Callable[[str, dict[str, Any]], None]:
        def said(sid: str, message: dict[str, Any]) -> None:
            page = message["client_id"]
            if page not in sio.rooms(sid):  # which it is in since its handshake
                return
            session = whose(page)
            if session is not None and not session.over:
                handlers[name](sid, message)
            elif name == "event":
                with Client.instances[page]:
                    ui.navigate.to(OVER)

        return said

    sio.on("connect", handler=connect)
    sio.on("handshake", handler=handshake)
    for each in _SAID:
        sio.on(each, handler=checked(each))
