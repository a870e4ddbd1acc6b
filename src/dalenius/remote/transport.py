"""Requests to a server: one warm connection a thread, bounded answers, no redirects, TLS that is checked."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from dalenius._fields import once
from dalenius._version import __version__
from dalenius.errors import InputError, SourceUnavailableError

LONGEST = 64 * 1024 * 1024  # bytes of an answer
_PIECE = 64 * 1024
_TOKEN = re.compile(r"[\x21-\x7e]{1,1000}")
_STALE = (http.client.RemoteDisconnected, ConnectionResetError, ConnectionAbortedError, BrokenPipeError)


class LostError(Exception):
    """No answer came, or only a part of one. Whether the request did anything is not known.

    Attributes:
        sent: Whether the server may have seen it.
    """

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.why, self.sent = why, sent


@dataclass(frozen=True)
class Reply:
    """What came back: `data` is None where the body is not JSON.

    Attributes:
        repeated: The request was sent twice, and the first time the server may have seen it too.
    """

    status: int
    data: Any
    retry_after: float | None
    repeated: bool = False


class Transport:
    """The way to one server. Safe to use from several threads; the token shows in no error and in no repr."""

    def __init__(self, url: str, token: object, *, ca: Path | str | None = None, insecure: bool = False) -> None:
        parts = _checked_url(url, insecure=insecure)
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise InputError(
                "The token cannot be used.",
                why="A token is one line of letters, digits and signs, without spaces.",
                fix="Give it as the owner handed it out.",
            )
        self.address = f"{parts.scheme}://{parts.netloc}"
        self._host, self._port, self._prefix = str(parts.hostname), parts.port, parts.path.rstrip("/")
        self._context = _trusted(ca) if parts.scheme == "https" else None
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "User-Agent": f"dalenius/{__version__}",
        }
        self._own = threading.local()
        self._lines: weakref.WeakSet[_Line] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"Transport({self.address!r})"

    def close(self) -> None:
        """Closes the connections of all threads; the next request opens a new one."""
        for line in list(self._lines):
            line.close()

    def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, seconds: float, longest: int = LONGEST
    ) -> Reply:
        """One request, within so many seconds; once more where a connection kept from before turns out to be closed.

        Raises:
            LostError: There is no whole answer.
            SourceUnavailableError: There is one, but none that a server of ours gives; or it cannot be trusted.
        """
        deadline = time.monotonic() + seconds
        line = self._line()
        warm = line.warm
        try:
            return self._once(line, method, path, body, deadline, longest)
        except _STALE as error:
            line.close()
            if not warm:
                raise LostError(_reason(error), sent=True) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(line, error) from None
        except BaseException:
            line.close()  # half of an answer may still be in it
            raise
        try:
            return replace(self._once(line, method, path, body, deadline, longest), repeated=True)
        except (OSError, http.client.HTTPException) as error:
            lost = self._lost(line, error)
            if isinstance(lost, LostError):
                lost.sent = True  # the first time
            raise lost from None
        except BaseException:
            line.close()
            raise

    def _once(
        self,
        line: _Line,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        deadline: float,
        longest: int,
    ) -> Reply:
        connection = line.open(_left(deadline))
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = self._headers if content is None else {**self._headers, "Content-Type": "application/json"}
        connection.request(method, self._prefix + path, content, headers)
        response = connection.getresponse()
        read = self._body(response, line, deadline, longest)
        if response.will_close:
            line.close()
        if 300 <= response.status < 400:
            raise SourceUnavailableError(
                f"{self.address} sends requests elsewhere (HTTP {response.status}).",
                why="Redirects are not followed: the token is for this address alone.",
                fix="Give the address at which the server itself answers.",
            )
        return Reply(response.status, _parsed(read), _retry_after(response.headers.get("Retry-After")))

    def _body(self, response: http.client.HTTPResponse, line: _Line, deadline: float, longest: int) -> bytes:
        # by pieces, so that neither its size nor its slowness is up to the other side
        announced, pieces, size = response.length, [], 0
        while piece := response.read1(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > longest:
                raise SourceUnavailableError(
                    f"The answer of {self.address} is too long.",
                    why=f"It has more than {longest >> 20} MB.",
                    fix="Ask for fewer groups, or check the address.",
                )
            line.limit(_left(deadline))
        response.close()  # the connection stays; the library would take it for busy
        if announced is not None and size < announced:
            raise http.client.IncompleteRead(b"", announced - size)
        return b"".join(pieces)

    def _lost(self, line: _Line, error: Exception) -> LostError | SourceUnavailableError:
        sent = line.warm
        line.close()
        if isinstance(error, ssl.SSLCertVerificationError):
            return SourceUnavailableError(
                f"The certificate of {self.address} is not trusted.",
                why=f"{error.verify_message or 'It does not verify'}.",
                fix="Give the file of the authority that issued it (ca=FILE), or check the address.",
            )
        return LostError(_reason(error), sent=sent)

    def _line(self) -> _Line:
        line: _Line | None = getattr(self._own, "line", None)
        if line is None or line.process != os.getpid():  # a forked child must not speak on its parent's connection
            line = self._own.line = _Line(self._host, self._port, self._context)
            self._lines.add(line)
        return line


class _Line:
    """The connection of one thread; closed when the thread ends."""

    def __init__(self, host: str, port: int | None, context: ssl.SSLContext | None) -> None:
        self._connection: http.client.HTTPConnection
        if context is None:
            self._connection = http.client.HTTPConnection(host, port)
        else:
            self._connection = http.client.HTTPSConnection(host, port, context=context)
        self.process = os.getpid()

    @property
    def warm(self) -> bool:
        """Whether it is open: what is written may reach the server."""
        return self._connection.sock is not None

    def open(self, seconds: float) -> http.client.HTTPConnection:
        """The open connection, whose every step may take so long."""
        self._connection.timeout = seconds
        if self._connection.sock is None:
            self._connection.connect()  # without Nagle's delay, as the library has it
        self.limit(seconds)
        return self._connection

    def limit(self, seconds: float) -> None:
        """How long the next step may take."""
        if self._connection.sock is not None:
            self._connection.sock.settimeout(seconds)

    def close(self) -> None:
        """Closes it; `open` opens it again."""
        self._connection.close()

    def __del__(self) -> None:
        self._connection.close()


def _checked_url(url: object, *, insecure: bool) -> SplitResult:
    fix = "Write for example https://curator.example.org, or http://127.0.0.1:8400 on the same machine."
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        port = parts.port if parts is not None else None
    except ValueError:
        parts, port = None, None
    if (
        parts is None
        or parts.scheme not in {"http", "https"}
        or not parts.hostname
        or port == 0
        or not re.fullmatch(r"[\x21-\x7e]+", str(url))
    ):
        raise InputError("The server's address cannot be read.", why="It begins with https:// and a host.", fix=fix)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InputError(
            "The server's address holds more than an address.",
            why="Names, passwords and parameters have no place in it; who asks is told by the token.",
            fix=fix,
        )
    if parts.scheme == "http" and not insecure and not _loopback(parts.hostname):
        raise InputError(
            f"{parts.hostname} would be spoken to without TLS.",
            why="Everybody on the way could read the token and the answers.",
            fix="Use https://; or insecure=True where something else protects the way.",
        )
    return parts


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _trusted(ca: Path | str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ValueError):
        raise SourceUnavailableError(
            "The file of trusted authorities cannot be read.",
            why="It must hold certificates in PEM form.",
            fix="Name the file that came with the server's certificate.",
        ) from None


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _parsed(body: bytes) -> Any:
    def refuse(_: str) -> None:
        raise ValueError("JSON has no NaN and no infinity.")

    try:
        return json.loads(body, parse_constant=refuse, object_pairs_hook=once)
    except (ValueError, RecursionError, InputError):
        return None


def _retry_after(text: str | None) -> float | None:
    """Whole seconds; the other form, a date, is nothing that our servers send."""
    return float(text) if text is not None and re.fullmatch(r"[0-9]{1,9}", text.strip()) else None


def _reason(error: Exception) -> str:
    """In words, without anything that was sent."""
    if isinstance(error, TimeoutError):
        return "It did not answer in time"
    if isinstance(error, socket.gaierror):
        return "Its name is not known"
    if isinstance(error, http.client.IncompleteRead):
        return "Its answer broke off"
    if isinstance(error, http.client.RemoteDisconnected):
        return "It closed the connection without an answer"
    if isinstance(error, http.client.HTTPException):
        return "It does not speak HTTP"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
