"""Runs the application on a socket: TLS, ports, slow and half-open connections, a stop that loses nothing."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from dalenius.app.http.application import application
from dalenius.app.http.limits import MOST_CONNECTIONS, Connections, connection_room
from dalenius.app.http.service import Service
from dalenius.errors import InputError, NotAllowedError, SourceUnavailableError

if TYPE_CHECKING:
    from dalenius.app.http.settings import Settings

_NEXT = 50  # ports that are tried when the first is taken
_IDLE = 15  # seconds that an idle connection is kept
_HEADERS = 64 * 1024  # bytes
_TRICKLE = 4096  # bytes
# Seconds after which a thread that computes lets others in. Python's own 5 ms make a page wait for as many of them as a
# request changes threads: a preview beside a question of many groups took 1,060 ms (p95), and takes 217 with this.
_SWITCH = 0.0005


def listen(settings: Settings) -> socket.socket:
    """A socket on the wanted port, or on the next free one."""
    last = settings.port + (_NEXT if settings.port else 0)
    for port in range(settings.port, min(last, 2**16 - 1) + 1):
        try:
            family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
            found = socket.socket(family, socket.SOCK_STREAM)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((settings.host, port))
            found.listen(512)
        except OSError as error:
            found.close()
            if error.errno != errno.EADDRINUSE:
                raise SourceUnavailableError(
                    f"The server cannot listen on {settings.host}.",
                    why=f"{error.strerror or type(error).__name__}.",
                    fix="Give another --host or --port.",
                ) from None
        else:
            return found
    raise SourceUnavailableError(
        f"No port from {settings.port} on is free.", why="Others listen there.", fix="Give another --port."
    )


def check_reach(settings: Settings, *, without_tls: bool) -> None:
    """Refuses to be reached from other machines in the clear, unless the owner says so."""
    if not settings.loopback and not settings.tls and not without_tls:
        raise NotAllowedError(
            f"{settings.host} can be reached from other machines, and there is no TLS.",
            why="Tokens and answers would go over the network in the clear.",
            fix="Give --tls-cert and --tls-key; or, behind a proxy that speaks TLS, --without-tls.",
        )


def address(settings: Settings, listening: socket.socket) -> str:
    """Where it is, as a URL."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls else 'http'}://{shown}:{port}"


def serve(home: Path, settings: Settings, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Serves until SIGINT or SIGTERM; open questions get `settings.grace` seconds, and stay charged after that."""
    sys.setswitchinterval(_SWITCH)
    service = Service(home, settings)
    server = _Server(_config(settings, service), ready)
    # What there is now stays to the end: looking through it again for garbage would stop every thread.
    gc.collect()
    gc.freeze()
    server.run([listening])
    if service.busy and threading.active_count() > 1:
        # Python would wait for threads that may look for another minute. What they were charged stays on disk.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _config(settings: Settings, service: Service) -> uvicorn.Config:
    kwargs: dict[str, Any] = {}
    if settings.tls:
        _check_certificate(settings)
        kwargs = {"ssl_certfile": str(settings.tls_cert), "ssl_keyfile": str(settings.tls_key)}
    return uvicorn.Config(
        application(service),
        http=impatient(settings.receive, connection_room()),
        ws="auto" if settings.console else "none",
        ws_max_size=settings.body,  # before it is in memory as a whole
        log_config=None,  # ours is `monitoring`; uvicorn's own would hold paths as they were sent
        access_log=False,
        proxy_headers=False,  # an address that the client chose is none
        server_header=False,
        limit_concurrency=2 * MOST_CONNECTIONS,  # of last resort: `limits.Connections` makes room long before
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=max(1, round(settings.grace)),
        h11_max_incomplete_event_size=_HEADERS,
        **kwargs,
    )


def _check_certificate(settings: Settings) -> None:
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(str(settings.tls_cert), str(settings.tls_key))
    except (OSError, ValueError):
        raise InputError(
            "The certificate or its key cannot be used.",
            why="They are missing, not PEM, or do not belong together.",
            fix="Give --tls-cert and --tls-key as PEM files.",
        ) from None


def impatient(seconds: float, most: int = MOST_CONNECTIONS) -> type[asyncio.Protocol]:
    """A protocol that closes connections whose request does not come in in time: half-open ones cost nothing.

    So is one whose answer is not taken in that time, or whose headers never end, and an idle one when there are more
    than ``most``.
    """
    connections = Connections(most)

    class Impatient(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
        """As uvicorn's own, with a clock."""

        _clock: asyncio.TimerHandle | None = None
        _full: asyncio.TimerHandle | None = None
        _heading, _size = False, 0
        _cycles: Sequence[Any] = ()  # requests that are not answered yet; uvicorn knows the last one only
        _address = ""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wind()
            self._address = self.client[0] if self.client else ""
            connections.add(self._address, self)

        def data_received(self, data: bytes) -> None:
            if self._clock is None and not self._answering():
                self._wind()
            super().data_received(data)
            if self._heading:  # only h11 has a limit of its own
                self._size += len(data)
                if self._size > _HEADERS and self.transport is not None:
                    self.transport.abort()
            if self._answering() or self._upgraded():
                self._stop()
            if self._upgraded():
                connections.remove(self._address, self)

        def on_message_begin(self) -> None:
            self._heading, self._size = True, 0
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._heading = False
            super().on_headers_complete()
            connections.used(self._address, self)
            self._cycles = [each for each in (*self._cycles, self.cycle) if each and not each.response_complete]

        def pause_writing(self) -> None:
            super().pause_writing()
            self._read()
            self._watch()

        def resume_writing(self) -> None:
            self._read()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            self._read()
            self._gone()
            connections.remove(self._address, self)
            super().connection_lost(exc)

        def is_idle(self) -> bool:
            return not self._answering()

        def close_now(self) -> None:
            if self.transport is not None:
                self.transport.abort()

        def _answering(self) -> bool:
            """Whether the headers of a request are complete, and its answer is not."""
            return self.cycle is not None and not self.cycle.response_complete

        def _upgraded(self) -> bool:
            """Whether a websocket has taken the connection over."""
            return self.transport is not None and self.transport.get_protocol() is not self

        def _wind(self) -> None:
            self._clock = asyncio.get_running_loop().call_later(seconds, self._late)

        def _stop(self) -> None:
            if self._clock is not None:
                self._clock.cancel()
                self._clock = None

        def _gone(self) -> None:
            """Nobody is there: what waits to be sent is not sent."""
            for each in self._cycles:
                each.disconnected = True

        def _watch(self) -> None:
            """Who takes less than `_TRICKLE` of an answer in the time of a request is not waited for."""
            before = self.transport.get_write_buffer_size()

            def look() -> None:
                if before - self.transport.get_write_buffer_size() < _TRICKLE:
                    self._gone()
                    self.transport.abort()
                else:
                    self._watch()

            self._full = asyncio.get_running_loop().call_later(seconds, look)

        def _read(self) -> None:
            if self._full is not None:
                self._full.cancel()
                self._full = None

        def _late(self) -> None:
            self._clock = None
            if not self._answering() and self.transport is not None and not self.transport.is_closing():
                self.transport.close()

    return Impatient


class _Server(uvicorn.Server):
    """Tells when it can be reached."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, but a stop that went well is no death by signal."""
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to listen."""
        await super().startup(sockets)
        if self.started:
            self._ready()
