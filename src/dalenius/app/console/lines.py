"""The line between a page and the server: each page answers to the browser that opened it, and to nobody else.

The framework knows a page by a number that its browser sends along. Here the number alone opens nothing: the socket
must be of the same session, and once that has ended, the next thing that is done on the page leads away from it. What
is said on it is limited: in kind, in size, in number, and in what the framework would keep of it.

*By the browser*: only events that something of ours listens to, none longer than it needs to be. The framework has
listeners of its own, of which some keep or repeat all that they are told: `selection` of every table, and on the page
itself those of a router that we have no use for.

*To the page*: the framework counts messages, not bytes, and forgets old ones when the next is sent. Here what is kept
for a browser that was away, and what waits to be read, both have a size.
"""

from __future__ import annotations

import math
import re
import sys
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from dalenius.app.console import OVER
from dalenius.app.console.door import SESSION
from dalenius.app.console.parts.editor import Editor
from dalenius.app.console.sessions import cookie_of
from dalenius.app.http.limits import RateLimit

if TYPE_CHECKING:
    from nicegui import Client
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


MESSAGES = 100  # that are kept; a browser says every three seconds what it has heard
# --- what was said to a page

_KEPT = 2**19  # bytes of one page
_WAITING, _UNREAD = 300, 2**22  # messages and bytes that may wait on one line while more is asked for


class History(deque[Any]):
    """The newest messages, up to so many bytes.

    One that is larger by itself is not kept: whose line broke before it was heard loads the page anew.
    """

    def __init__(self, most: int = _KEPT) -> None:
        super().__init__()
        self._most = most
        self._sizes: deque[int] = deque()

    def append(self, entry: Any) -> None:
        """Keeps one more, and forgets the oldest."""
        super().append(entry)
        self._sizes.append(size(entry, self._most))
        while sum(self._sizes) > self._most:
            self.popleft()

    def popleft(self) -> Any:
        """The oldest, which is forgotten."""
        self._sizes.popleft()
        return super().popleft()

    def pop(self) -> Any:  # type: ignore[override]  # a deque's has no place either
        """The newest, which is forgotten."""
        self._sizes.pop()
        return super().pop()

    def clear(self) -> None:
        """Forgets all."""
        self._sizes.clear()
        super().clear()


def limit_history(page: Client) -> None:
    """Gives a page a history that has a size; to be called before its first line is opened."""
    if not isinstance(page.outbox.message_history, History):
        page.outbox.message_history = History()


def is_unread(line: Any) -> bool:
    """Whether so much waits on a line (the framework's socket, if there still is one) that it should be read first."""
    if line is None:
        return False
    waiting = line.queue._queue  # noqa: SLF001
    return len(waiting) > _WAITING or sum(size(each.data, _UNREAD) for each in waiting if each) > _UNREAD


def size(value: object, most: int) -> int:
    """Bytes that it takes in memory, about; what is beyond ``most`` is not counted to its end.

    >>> size(["a" * 1000, {"b": b"c" * 1000}], 10_000) > 2000
    True
    """
    total, left = 0, [value]
    while left and total <= most:
        each = left.pop()
        total += sys.getsizeof(each)
        if isinstance(each, dict):
            left += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple):
            left += each
    return total


# --- what a page may be told by its browser

LONGEST = 4000  # characters that a field takes; with quotes, which are written as two, no more than an event may say
_HEARD = frozenset(
    (
        *("click", "hide", "blur", "keybinding", "popupShow", "popupHide"),
        *("update:modelValue", "update:value", "update:pagination"),
        *("added", "uploaded", "failed", "rejected"),
    )
)
_PAGE = 0  # the number of the page itself among its elements
# Characters of a value that the framework keeps, such as a slider's; and of anything else, or of a text in a field.
_SAID_KEPT, _SAID_ONCE = 2**11, 2**13
_CHANGED = 2**30  # more than a line takes at once: an editor looks for itself


def is_heard(page: Client, event: Mapping[str, Any]) -> bool:
    """Whether something of ours listens to it; what a page says of an element that is gone by now is for nobody."""
    return _most(page, event) is not None


def is_too_long(page: Client, event: Mapping[str, Any]) -> bool:
    """Whether it says more than whatever it is for has any use for."""
    most = _most(page, event)
    return most is not None and _length(event.get("args")) > most


def _most(page: Client, event: Mapping[str, Any]) -> int | None:
    """Characters that an event may say; None where nothing of ours listens."""
    number, name = event.get("id"), event.get("listener_id")
    element = page.elements.get(number) if isinstance(number, int) and number != _PAGE else None
    known = {} if element is None else element._event_listeners  # noqa: SLF001
    listener = known.get(name) if isinstance(name, str) else None
    if listener is None or listener.type not in _HEARD:
        return None
    if isinstance(element, Editor) and listener.type == f"update:{Editor.VALUE_PROP}":
        return _CHANGED
    is_kept = listener.type.startswith("update:") and not _is_text(event.get("args"))
    return _SAID_KEPT if is_kept else _SAID_ONCE


def _length(args: object) -> float:
    """Characters that an event says; without end if it is none that a page would send.

    >>> _length(['{"value": 3}', None]), _length([{}]), _length(None)
    (16, inf, 0)
    """
    said = [] if args is None else args
    if not isinstance(said, list) or not all(each is None or isinstance(each, str) for each in said):
        return math.inf
    return sum(len("null" if each is None else each) for each in said)


def _is_text(args: object) -> bool:
    """Whether it is one text, and nothing that takes many times as much memory as it is long."""
    return isinstance(args, list) and len(args) == 1 and str(args[0]).startswith('"')
