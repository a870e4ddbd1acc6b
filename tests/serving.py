"""A real server for tests: `dalenius serve` in a process of its own, on a free port of loopback, and a bare client.

The process is forked from one that has loaded the package already (`forked`), as those of the documentation's pages
are; the demo's tests start theirs plainly.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests import forked

from dalenius.ledger.ledger import Ledger
from dalenius.ledger.tokens import Role, Tokens

SECONDS = 180.0  # other work may share the machine
IDLE = 10.0


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Server:
    """A server process."""

    home: Path
    url: str
    process: subprocess.Popen[str] | forked.Process
    log_file: Path
    tokens: dict[str, str] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)

    @property
    def log(self) -> list[dict[str, Any]]:
        """What it has logged."""
        return [json.loads(line) for line in self.log_file.read_text().splitlines() if line.startswith("{")]

    def token(self, role: str, analyst: str = "", **more: Any) -> str:
        """A token of a role (of an analyst), made once."""
        key = f"{role} {analyst} {sorted(more.items())}"
        if key not in self.tokens:
            self.tokens[key] = Tokens(Ledger.open(self.home)).create(Role(role), analyst, **more)[0]
        return self.tokens[key]

    def client(self, token: str | None) -> Client:
        """A client of this server, which is closed with it."""
        self.clients.append(Client(self.url, token))
        return self.clients[-1]

    def analyst(self, name: str, *, trusted: bool = False) -> Client:
        """A client with an analyst's token."""
        return self.client(self.token("analyst", name, trusted=trusted))

    def owner(self) -> Client:
        return self.client(self.token("owner"))

    def auditor(self) -> Client:
        return self.client(self.token("auditor"))

    def kill(self) -> None:
        """As a power cut would end it."""
        self.process.kill()
        self.process.wait()
        self.close()

    def close(self) -> None:
        """What this process holds open of it."""
        for client in self.clients:
            client.close()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def stop(self) -> int:
        """As the owner would end it; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=SECONDS)


class Client:
    """One connection that is kept open; not for two threads at once."""

    def __init__(self, url: str, token: str | None) -> None:
        self.parts, self.token = urlsplit(url), token
        self._connection: http.client.HTTPConnection | None = None
        self._used = time.monotonic()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        seconds: float = SECONDS,
    ) -> Reply:
        """One request; bytes are sent as they are, everything else as JSON."""
        if time.monotonic() - self._used > IDLE:
            self.close()  # before the server does
        if self._connection is None:
            host, port = self.parts.hostname, self.parts.port
            self._connection = http.client.HTTPConnection(str(host), port, timeout=seconds)
        sent = dict(headers or {})
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            self._connection.request(method, path, body, sent)
            response = self._connection.getresponse()
            found = Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        except BaseException:
            self.close()
            raise
        self._used = time.monotonic()
        if response.will_close:
            self.close()
        return found

    def get(self, path: str, **more: Any) -> Reply:
        return self.request("GET", path, **more)

    def post(self, path: str, body: Any, **more: Any) -> Reply:
        return self.request("POST", path, body, **more)

    def ask(self, sql: str, **more: Any) -> Reply:
        return self.post("/v1/ask", {"sql": sql, **more})

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def start(
    home: Path,
    *options: str,
    config: str = "",
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = ("-m", "dalenius"),
) -> Server:
    """Starts a server on a home; returns when it can be reached.

    Args:
        home: The home.
        options: More of the command line.
        config: Lines of `[server]` in its config.toml, which is written anew.
        environment: More variables.
        program: What Python runs with the command line: by default the product as it is.
    """
    if config:
        (home / "config.toml").write_text(f"[server]\n{config}\n")
    log = home.parent / f"log {os.urandom(4).hex()}"
    with log.open("w") as errors:
        words = [*program, "serve", "--home", str(home), "--json", "--port", "0", *options]
        variables = {**os.environ, **(environment or {})}
        process: subprocess.Popen[str] | forked.Process
        if forked.POSSIBLE:
            process = forked.start(words, errors, variables)
        else:
            process = subprocess.Popen(
                [sys.executable, *words], stdout=subprocess.PIPE, stderr=errors, text=True, env=variables
            )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.wait()
        raise AssertionError(f"the server did not start: {log.read_text()}")
    return Server(home, json.loads(line)["url"], process, log)


@contextmanager
def serving(home: Path, *options: str, **more: Any) -> Iterator[Server]:
    """A server that is gone at the end, whatever happens."""
    server = start(home, *options, **more)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait()
        server.close()
