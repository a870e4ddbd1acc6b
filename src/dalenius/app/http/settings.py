"""What a server is told: `[server]` in the home's config.toml, and options of the command line, which win."""

from __future__ import annotations

import ipaddress
import math
import re
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dalenius.errors import InputError, SourceUnavailableError
from dalenius.measuring.pace import SAFETY
from dalenius.tables.mistakes import nearest

FILE = "config.toml"
_ORIGIN = re.compile(r"https?://[a-z0-9.:\[\]-]+")  # as browsers write it
PORT = 8400
_WHOLE = frozenset(
    (
        "port",
        "burst",
        "concurrency",
        "body",
        "upload",
        "slots",
        "public_slots",
        "public_memory",
        "results",
        "results_token",
    )
)
_POSITIVE = (*sorted(_WHOLE - {"port"}), "rate", "receive", "wait", "public_seconds")
_LEAST = 2**26  # bytes with which an engine can do anything at all


@dataclass(frozen=True, slots=True)
class Settings:
    """How a server behaves.

    Attributes:
        host: Where it listens.
        port: The first port that is tried; 0 takes any.
        tls_cert: Certificate chain, PEM.
        tls_key: Its key.
        public_url: Where browsers reach it, where that is not where it listens: behind a proxy.
        data_dir: Policies that come over HTTP may name files below this folder only; None: none at all.
        rate: Requests a second that one token may send on average.
        burst: Requests that it may send at once before that counts.
        concurrency: Requests of one token that may be open at once.
        body: The largest request, in bytes.
        upload: The largest file that the owner may put into data_dir, in bytes.
        receive: Seconds in which a request must have come in as a whole; of a file, each piece.
        wait: Seconds after which a question that is not answered becomes a job (202).
        slots: Questions that look at data at once; of one analyst at most half of them.
        public_slots: Questions over public tables that run at once, each in a process of its own; the same.
        public_seconds: Seconds after which one of those is stopped; so long it waits for its turn, too.
        public_memory: Bytes that the engine of one may use; its process takes up to 300 MB more.
        results: Bytes of finished jobs' results that are kept, of all tokens.
        results_token: The same, of one token.
        grace: Seconds that open questions get when the server is stopped.
        console: Whether the web page is served, at `/`.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    tls_cert: Path | None = None
    tls_key: Path | None = None
    public_url: str | None = None
    data_dir: Path | None = None
    rate: float = 50.0
    burst: int = 100
    concurrency: int = 4
    body: int = 2**18
    upload: int = 2**28
    receive: float = 10.0
    wait: float = 10.0
    slots: int = 8
    public_slots: int = 2
    public_seconds: float = 30.0
    public_memory: int = 2**28
    results: int = 2**27
    results_token: int = 2**25
    grace: float = 30.0
    console: bool = True

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if not 0 < getattr(self, name) < math.inf:
                raise _wrong(name, "It must be above 0, and finite.")
        if not 0 <= self.grace < math.inf:
            raise _wrong("grace", "It must be at least 0, and finite.")
        if self.slots > SAFETY:
            raise _wrong("slots", f"More than {SAFETY} would make answers late because of one another.")
        if self.public_memory < _LEAST:
            raise _wrong("public_memory", f"An engine needs at least {_LEAST:,} bytes.")
        if not 0 <= self.port < 2**16:
            raise _wrong("port", "A port lies between 0 and 65535.")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise _wrong("tls_cert", "A certificate and its key go together.")

        if self.public_url is not None and not _ORIGIN.fullmatch(self.public_url):
            raise _wrong("public_url", "It is like https://curator.example.org: a scheme and a host, no path.")

    @property
    def encrypted(self) -> bool:
        """Whether browsers reach it by TLS, its own or a proxy's."""
        return self.tls or (self.public_url or "").startswith("https:")

    @property
    def tls(self) -> bool:
        """Whether it speaks TLS."""
        return self.tls_cert is not None

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def read_settings(home: Path, **given: Any) -> Settings:
    """The settings of a home; what is ``given`` and not None wins."""
    file = home / FILE
    section: dict[str, Any] = {}
    if file.exists():
        try:
            section = tomllib.loads(file.read_text(encoding="utf-8")).get("server", {})
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            raise SourceUnavailableError(
                f"{FILE} of the home cannot be read.", why="It must be TOML in UTF-8.", fix="Correct it."
            ) from None
    if not isinstance(section, dict):
        raise _wrong("server", "It is a section: [server].")
    known = {each.name: each for each in fields(Settings)}
    found: dict[str, Any] = {}
    for name, value in section.items():
        if name not in known:
            meant = nearest(name, known)
            raise InputError(
                f"{FILE} has an unknown key server.{name}.",
                why=f"Known: {', '.join(known)}.",
                fix=f"Did you mean {meant!r}?" if meant else "Remove it.",
            )
        found[name] = _read(name, value, home)
    return replace(Settings(), **found | {name: value for name, value in given.items() if value is not None})


def _read(name: str, value: Any, home: Path) -> Any:
    if name in {"tls_cert", "tls_key", "data_dir"}:
        if not isinstance(value, str) or not value:
            raise _wrong(name, "It is a path.")
        return (home / value).absolute()
    if name in {"host", "public_url"}:
        if not isinstance(value, str) or not value:
            raise _wrong(name, "It is an address.")
        return value
    if name == "console":
        if not isinstance(value, bool):
            raise _wrong(name, "It is true or false.")
        return value
    whole = name in _WHOLE
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise _wrong(name, "It is a whole number." if whole else "It is a number.")
    return value if whole else float(value)


def _wrong(name: str, why: str) -> InputError:
    return InputError(f"server.{name} cannot be used.", why=why, fix=f"Correct it in {FILE} or on the command line.")
