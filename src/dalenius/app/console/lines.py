"""The line between a page and the server: each page answers to the browser that opened it, and to nobody else.

The framework knows a page by a number that its browser sends along. Here the number alone opens nothing: the socket
must be of the same session, and once that has ended, the next thing that is done on the page leads away from it. What
is said on it is limited: in kind, in size, in number, and in what the framework would keep of it (`said`, `history`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from dalenius.app.console import OVER
from dalenius.app.console.door import SESSION
from dalenius.app.console.history import is_unread, limit_history
from dalenius.app.console.said import is_heard, is_too_long
from dalenius.app.console.sessions import cookie_of
from dalenius.app.http.limits import RateLimit

if TYPE_CHECKING:
    from socketio import AsyncServer

    from dalenius.app.console.sessions import Session, Sessions

_SAID = ("event", "javascript_response", "ack", "log")  # what a socket says about a page, after its handshake
_NAMES = ("tab_id", "old_tab_id", "document_id")  # which the framework keeps
_NAME = re.compile(r"[0-9A-Za-z-]{0,64}")
# Of what is said in one session; who types or drags says some twenty things a second. None of them is ever left out,
# or the page and the server would differ from then on: the line of who says more is cut.
_RATE, _BURST = 300.0, 3000.0


@cache
def _handlers() -> dict[str, Callable[..., Any]]:
    """The framework's own, as they were first: a process may make several servers, one after another."""
    from nicegui import core

    return dict(core.sio.handlers["/"])


def seal(sessions: Sessions) -> None:
    """Puts a check before each handler of the framework's sockets."""
    from nicegui import app, core, ui
    from nicegui.client import Client
    from socketio import exceptions

    sio = core.sio
    handlers = _handlers()
    said_by = RateLimit(_RATE, _BURST, concurrency=1)

    def whose(page: object) -> Session | None:
        client = Client.instances.get(page) if isinstance(page, str) else None
        found: Session | None = None if client is None else client.request.scope["state"][SESSION]
        return found

    def opens(environ: dict[str, Any], said: Mapping[str, Any]) -> bool:
        mine = sessions.known(cookie_of(environ["asgi.scope"]))
        names = (said.get(each) or "" for each in _NAMES)
        plain = all(isinstance(each, str) and _NAME.fullmatch(each) for each in names)
        return plain and mine is not None and mine is whose(said.get("client_id"))

    async def connect(sid: str, environ: dict[str, Any], auth: Any = None) -> None:
        query = {name: values[0] for name, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
        if not opens(environ, query):
            raise exceptions.ConnectionRefusedError(
                "Implicit handshake failed"
            )  # at these words, the framework's script loads the page anew
        limit_history(Client.instances[query["client_id"]])
        await handlers["connect"](sid, environ, auth)

    async def handshake(sid: str, data: Any) -> bool:
        if not isinstance(data, dict) or not opens(sio.get_environ(sid), data):
            return False
        limit_history(Client.instances[data["client_id"]])
        return bool(await handlers["handshake"](sid, data))

    def checked(name: str) -> Callable[[str, Any], None]:
        is_event = name == "event"

        def said(sid: str, message: Any) -> None:
            page = str(message.get("client_id")) if isinstance(message, dict) else ""
            session = whose(page)
            if session is None or page not in sio.rooms(sid):  # which it is in since its handshake
                return
            client, line = Client.instances[page], sio.manager.eio_sid_from_sid(sid, "/")
            too_much = is_event and (is_too_long(client, message) or is_unread(sio.eio.sockets.get(line)))
            if too_much or said_by.exhausted(session.token.id):
                sio.start_background_task(_cut, sio, line)
                return
            said_by.spend(session.token.id)
            if session.over:
                if is_event:
                    with client:
                        ui.navigate.to(OVER)
            elif not is_event or is_heard(client, message):
                handlers[name](sid, message)

        return said

    def forget(client: Client) -> None:
        """What the framework keeps of a browser's tab for a month; nothing is ever put there."""
        app.storage._tabs.pop(client.tab_id or "", None)  # noqa: SLF001

    sio.on("connect", handler=connect)
    sio.on("handshake", handler=handshake)
    for each in _SAID:
        sio.on(each, handler=checked(each))
    app.on_delete(forget)
    _narrow(sio, sessions.service.settings.body)
    core.app.config.socket_io_js_transports = ["websocket"]


def _narrow(sio: AsyncServer, most: int) -> None:
    """One way in, and none of another origin's: the door sees sockets only. On it there are texts, up to a size.

    Something binary ends the line: the framework would keep it until all that was announced with it has come.
    """
    from socketio import packet

    binary = {str(packet.BINARY_EVENT), str(packet.BINARY_ACK)}

    async def come_in(line: str, data: object) -> None:
        socket = sio.eio.sockets.get(line)
        if socket is None or socket.closed:
            return
        if isinstance(data, str) and data[:1] not in binary:
            await sio._handle_eio_message(line, data)  # noqa: SLF001
        else:
            await _cut(sio, line)

    sio.eio.on("message", come_in)
    sio.eio.transports = ["websocket"]
    sio.eio.cors_allowed_origins = []
    sio.eio.max_http_buffer_size = most


async def _cut(sio: AsyncServer, line: str) -> None:
    """Ends a line at once, whether or not anybody reads at its end; an honest browser opens another."""
    socket = sio.eio.sockets.get(line)
    if socket is not None:
        await socket.close(wait=False)
        await socket.queue.put(None)  # at which its writer ends
