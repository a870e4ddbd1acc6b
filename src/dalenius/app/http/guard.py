"""The door: who is it, how much at once, how large, how slow. Nothing behind it runs without a good token.

A plain ASGI layer around the whole application, so that no route can be added that forgets to ask. What it refuses, it
refuses before a route, the ledger's charges or the data are touched.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from dalenius._fields import check_once
from dalenius.app.http.limits import RateLimit, TooManyError
from dalenius.app.http.monitoring import tell
from dalenius.app.http.responses import MediaError, SlowError, TooLargeError, problem_response, token_ended, unexpected
from dalenius.errors import NOTHING, UNKNOWN, AuthMissingError, DaleniusError
from dalenius.ledger.actions import acting, token_author

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from dalenius.app.http.service import Service
    from dalenius.ledger.tokens import Token

OPEN = frozenset({"/healthz", "/readyz"})  # what needs no token
# The web page: it signs in by a cookie, and has a door of its own (`console.door`).
CONSOLE = frozenset(
    {
        "/",
        "/workload",
        "/synthesize",
        "/train",
        "/synthetic",
        "/publish",
        "/sign-in",
        "/sign-out",
        "/budget",
        "/protect",
        "/ledger",
        "/report",
        "/lab",
        "/about",
    }
)
FORM = 2**11  # bytes of a form of the web page, which holds a token and nothing else; more is not even read
UPLOAD = "/protect/upload"  # the owner's files: passed on as they come, never held as a whole
FILES = "/v1/files/"  # the same, with a token
CONSOLE_FILES = ("/_nicegui/", "/_nicegui_ws/")
# Its pages need inline code of their own server; nothing else may be loaded, and nobody may frame them.
_POLICY = (
    b"default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    b"img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; "
    b"frame-ancestors 'none'; base-uri 'self'; form-action 'self'"
)
# By its origin, a page shows that a form or a socket is its own.
_PAGE = ((b"content-security-policy", _POLICY), (b"referrer-policy", b"same-origin"))
_ALONE = ((b"referrer-policy", b"no-referrer"),)
_FRESH = ((b"cache-control", b"no-store"),)
_SAFE = ((b"x-content-type-options", b"nosniff"),)
_SHORT = 4096  # bytes that are read at once
_GUESSES = RateLimit(rate=0.2, burst=20, concurrency=1)  # of bad tokens from one address


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, service: Service, console: ASGIApp | None = None) -> None:
        self._app, self._service = app, service
        self._console = app if console is None else console
        self._guesses = RateLimit(_GUESSES.rate, _GUESSES.burst, _GUESSES.concurrency)
        self._addresses = RateLimit(rate=100, burst=200, concurrency=64)  # of who has no token
        self.pages = RateLimit(rate=500, burst=2000, concurrency=512)  # one page is some fifty files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http":
            await _Passage(self, scope, receive, send).run()
        elif scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif self.is_console(scope["path"]):
            await self._console(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def is_console(self, path: str) -> bool:
        """Whether a path is of the web page, which asks for its token itself."""
        return self._service.settings.console and (path in CONSOLE or path == UPLOAD or path.startswith(CONSOLE_FILES))

    @property
    def service(self) -> Service:
        """What it guards."""
        return self._service

    @property
    def app(self) -> ASGIApp:
        """The API inside."""
        return self._app

    @property
    def console(self) -> ASGIApp:
        """The web page inside."""
        return self._console

    async def token(self, scope: Scope) -> Token:
        """Whose request it is; raises for anybody else's.

        Who guesses is soon told to wait. A good token is let in all the same: others may share the address.
        """
        address = (scope.get("client") or ("",))[0]
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, text = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
        if scheme.lower() != "bearer":
            raise _missing()
        try:
            return await self._service.holder(text)
        except AuthMissingError:
            if self._guesses.exhausted(address):
                raise _guessing() from None
            self._guesses.spend(address)
            raise

    @property
    def addresses(self) -> RateLimit:
        """The limits of who has no token."""
        return self._addresses


class _Passage:
    """One request on its way through."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send) -> None:
        self.guard, self.scope, self.receive, self._send = guard, scope, receive, send
        self.service = guard.service
        self.start = time.monotonic()
        self.id = secrets.token_hex(8)
        self.status, self.code, self.who = 0, "", ""
        self.begun = self.page = self.cut = self.streams = self.ended = False

    async def run(self) -> None:
        """The whole way; whatever happens, one response and one line in the log."""
        self.service.metrics.open.inc()
        try:
            await self.checked()
        except DaleniusError as error:
            await self.refuse(error)
        except Exception as error:  # noqa: BLE001 (nothing of it may leave)
            tell("bug", level=logging.ERROR, id=self.id, exception=type(error).__name__, at=place_of(error))
            if not self.begun:
                await self.refuse(unexpected(error))
        finally:
            self.service.metrics.open.dec()
            self.told()

    async def checked(self) -> None:
        """Everything that is checked, in order: who, how often, how large, how slow."""
        self.page = self.guard.is_console(self.scope["path"])
        if self.scope["path"] in OPEN or self.page:
            key = (self.scope.get("client") or ("",))[0]
            limits = self.guard.pages if self.page else self.guard.addresses
        else:
            token = await self.guard.token(self.scope)
            self.who = key = token.id
            self.scope.setdefault("state", {})["token"] = token
            limits = self.service.limits
        limits.admit(key)
        try:
            if self.page and self.scope["path"] == UPLOAD:
                receive = self.streamed(self.service.settings.upload)
            elif self.scope["method"] == "PUT" and self.scope["path"].startswith(FILES):
                self.check_plain()
                receive = self.streamed(self.service.settings.upload)
            else:
                body = await self.body()
                if not self.page:
                    self.check_media(body)
                    await self.check_once(body)
                receive = _given(body, self.receive)
            inside = self.guard.console if self.page else self.guard.app
            with acting(token_author(self.who)) if self.who else nullcontext():
                await inside(self.scope, receive, self.send)
        finally:
            limits.done(key)

    async def body(self) -> bytes:
        """The whole body, in time and not too large."""
        most = FORM if self.page else self.service.settings.body
        self.check_length(most)
        found = bytearray()
        try:
            async with asyncio.timeout(self.service.settings.receive):
                while True:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise _slow()
                    found += message.get("body", b"")
                    if len(found) > most:
                        raise _too_large(most)
                    if not message.get("more_body"):
                        return bytes(found)
        except TimeoutError:
            raise _slow() from None

    def check_length(self, most: int) -> None:
        """That what is announced is not too large."""
        lengths = [value for name, value in self.scope["headers"] if name == b"content-length"]
        # By its digits first: Python refuses to read a number of thousands of them.
        if any(not each.isdigit() or len(each) > _DIGITS or int(each) > most for each in lengths):
            raise _too_large(most)

    def streamed(self, most: int) -> Receive:
        """The body piece by piece, each in time, all of it not too large.

        Who may send it is asked by the route, before it takes the first piece.
        """
        self.check_length(most)
        size, whole = 0, False

        async def piece() -> Message:
            nonlocal size, whole
            if whole:
                return await self.receive()
            self.cut = True  # unless this piece is a good one
            try:
                async with asyncio.timeout(self.service.settings.receive):
                    message = await self.receive()
            except TimeoutError:
                raise _slow() from None
            if message["type"] == "http.disconnect":
                raise _slow()
            size += len(message.get("body", b""))
            if size > most:
                raise _too_large(most)
            self.cut, whole = False, not message.get("more_body")
            return message

        return piece

    def check_plain(self) -> None:
        """That a file comes as it is, of whatever kind."""
        if any(name == b"content-encoding" and value != b"identity" for name, value in self.scope["headers"]):
            raise MediaError(
                "The file is compressed on its way.",
                why="It is written as it comes, byte by byte.",
                fix="Send it without Content-Encoding; a .csv.gz file may be sent as it is.",
            )

    def check_media(self, body: bytes) -> None:
        """That a body is JSON as it stands, by its own word."""
        given = dict(self.scope["headers"])
        kind = given.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if body and (kind != b"application/json" or given.get(b"content-encoding", b"identity") != b"identity"):
            raise MediaError(
                "The request is not JSON.", why="Only application/json is read.", fix="Send it so, not compressed."
            )

    async def check_once(self, body: bytes) -> None:
        """That no key stands twice in an object: others on its way may have read the other one."""
        if len(body) > _SHORT:  # not on the event loop
            await self.service.run(lambda: check_once(body))
        elif body:
            check_once(body)

    async def send(self, message: Message) -> None:
        """What leaves, if whose it is still has a good token: one that ended meanwhile gets nothing more."""
        self.streams = self.streams or bool(message.get("more_body"))
        if not self.ended and self.looked_at(message) and not await self.service.is_good(self.who):
            self.ended = True
            if message["type"] == "http.response.start":
                error = token_ended(UNKNOWN if self.scope["method"] == "POST" else NOTHING)
                self.code = error.code
                await problem_response(error)(self.scope, self.receive, self.pass_on)
            else:
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        elif not self.ended:
            await self.pass_on(message)

    def looked_at(self, message: Message) -> bool:
        """Whether the token is looked at again: before a response begins, and before each piece of a stream."""
        if not self.who or self.scope["path"] == f"/v1/tokens/{self.who}":  # who ended the own token is told so
            return False
        if message["type"] == "http.response.start":
            return bool(message["status"] != AuthMissingError.status)
        return self.streams

    async def pass_on(self, message: Message) -> None:
        """A part of the response, with the headers that all responses have."""
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            files = self.scope["path"].startswith(CONSOLE_FILES)  # which may be kept
            more = (*_SAFE, *(() if files else _FRESH), *(_PAGE if self.page else _ALONE))
            message["headers"] = [*message.get("headers", ()), *more, (b"x-request-id", self.id.encode())]
            if self.cut:
                message["headers"].append((b"connection", b"close"))  # the rest of it is not wanted
            for name, value in message["headers"]:
                if name == b"x-dalenius-code":
                    self.code = value.decode()
            message["headers"] = [each for each in message["headers"] if each[0] != b"x-dalenius-code"]
        await self._send(message)

    async def refuse(self, error: DaleniusError) -> None:
        """A problem as the response."""
        if self.begun:
            return
        self.code = error.code
        response = problem_response(error, error.retry if isinstance(error, TooManyError) else None)
        if isinstance(error, TooLargeError | SlowError):
            response.headers["Connection"] = "close"  # the rest of it is not wanted
        await response(self.scope, self.receive, self.send)

    def told(self) -> None:
        """Log and metrics."""
        route = getattr(self.scope.get("route"), "path", "") or (
            self.scope["path"] if self.scope["path"] in OPEN else "-"
        )
        method = self.scope["method"] if self.scope["method"] in _METHODS else "OTHER"
        took = time.monotonic() - self.start
        metrics = self.service.metrics
        metrics.requests.labels(method, route, str(self.status)).inc()
        metrics.seconds.labels(route).observe(took)
        if self.code:
            metrics.refused.labels(self.code).inc()
        level = logging.WARNING if self.status in {401, 403, 429} or self.status >= 500 else logging.INFO
        more: dict[str, Any] = {"code": self.code} if self.code else {}
        tell(
            "request",
            level=level,
            id=self.id,
            method=method,
            route=route,
            status=self.status,
            token=self.who,
            ms=round(1000 * took),
            **more,
        )


_DIGITS = 20  # of a length in bytes
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


def _given(body: bytes, receive: Receive) -> Receive:
    """The body again, then whatever comes after it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def place_of(error: BaseException) -> str:
    """Where in our code, without any value."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module.startswith("dalenius"):
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _missing() -> AuthMissingError:
    return AuthMissingError(
        "This needs a token.",
        why="No 'Authorization: Bearer TOKEN' came with it, or more than one.",
        fix="Ask the owner for a token: 'dalenius token create'.",
    )


def _guessing() -> TooManyError:
    error = TooManyError(
        "Too many bad tokens.", why="They came from this address.", fix="Wait a minute, then use a good one."
    )
    error.retry = 60.0
    return error


def _too_large(most: int) -> TooLargeError:
    return TooLargeError("The request is too large.", why=f"At most {most:,} bytes.", fix="Send less.")


def _slow() -> SlowError:
    return SlowError("The request did not come in in time.", why="Its body is incomplete.", fix="Send it again.")
