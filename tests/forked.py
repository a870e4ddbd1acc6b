"""Servers without their start: a process that has loaded what `dalenius serve` needs forks once for each of them.

What runs is the package, in a process of its own that is new but for its imports. Loading them takes about twenty times
as long as all else that a server does before it can be reached. Most of the rest is to find out how fast the machine
is: that is done once for all servers of a test process. Those of the demo, which are started plainly, do all of it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TextIO

# Only modules: no connection, no thread, no state of chance.
MODULES = (
    *("cryptography.hazmat.primitives.ciphers", "dp_accounting", "duckdb", "numpy", "pyarrow.csv", "pyarrow.parquet"),
    *("scipy.optimize", "scipy.signal", "scipy.special", "scipy.stats", "sqlglot.dialects.duckdb", "sqlglot.optimizer"),
    *("uvicorn.lifespan.on", "uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto"),
    *("dalenius.curator", "dalenius.analyst", "dalenius.app.cli", "dalenius.app.http", "dalenius.app.console"),
)
POSSIBLE = hasattr(os, "pidfd_open")  # else servers are started as ever
PROBED = "FORKED_PROBED"  # the variable that tells a child how fast the machine is


class Process:
    """A forked process, with as much of `subprocess.Popen` as tests use."""

    def __init__(self, connection: socket.socket, stdout: TextIO) -> None:
        self.stdout: TextIO | None = stdout
        self.returncode: int | None = None
        self._connection = connection
        self.pid = self._number()

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            with selectors.DefaultSelector() as ready:
                ready.register(self._connection, selectors.EVENT_READ)
                if not ready.select(timeout):
                    raise subprocess.TimeoutExpired("dalenius", timeout or 0.0)
            self.returncode = self._number()
            self._connection.close()
        return self.returncode

    def _number(self) -> int:
        """What is said next, up to the end of the line; 1 if nothing ever will be."""
        said = b""
        while not said.endswith(b"\n"):
            some = self._connection.recv(1)
            if not some:
                return 1
            said += some
        return int(said)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Parent:
    """The process that forks, one for this process; it ends when this one does."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="forked")
        self.address = str(Path(self.folder.name) / "a")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen()
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno())], stdin=subprocess.PIPE, pass_fds=[listener.fileno()]
            )
        self.owner = os.getpid()
        atexit.register(self.close)

    def close(self) -> None:
        if os.getpid() == self.owner and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait(60)
            self.folder.cleanup()


_parents: list[_Parent] = []


@cache
def _probed() -> float:
    from dalenius.measuring.engines.duckdb.opening import probe_seconds

    return probe_seconds()


def start(arguments: Sequence[str], errors: io.TextIOWrapper, environment: Mapping[str, str]) -> Process:
    """Python with these arguments (`-m MODULE …` or `FILE …`), its standard error in a file."""
    if not _parents or _parents[0].owner != os.getpid():
        _parents[:] = [_Parent()]
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_parents[0].address)
    reading, writing = os.pipe()
    variables = (f"{name}={value}" for name, value in {**environment, PROBED: str(_probed())}.items())
    message = "\0".join([str(Path.cwd()), str(len(arguments)), *arguments, *variables]).encode(errors="surrogateescape")
    with Path(os.devnull).open("rb") as nothing:
        descriptors = [nothing.fileno(), writing, errors.fileno()]
        socket.send_fds(connection, [len(message).to_bytes(8, "big")], descriptors)
    connection.sendall(message)
    os.close(writing)
    return Process(connection, os.fdopen(reading, encoding="utf-8"))


def fork_on_demand(listener: socket.socket) -> None:
    """Forks for each connection; says the child's number at once, and its exit code when it has ended."""
    for name in MODULES:
        package = importlib.import_module(name)
        for each in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{name}.") if "dalenius" in name else ():
            importlib.import_module(each.name)
    # No child looks through the modules for rubbish, which would take memory of its own for all of them.
    gc.collect()
    gc.freeze()
    running: dict[int, tuple[int, socket.socket]] = {}
    with selectors.DefaultSelector() as ready:
        ready.register(listener, selectors.EVENT_READ)
        ready.register(sys.stdin, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is listener:
                    client, _ = listener.accept()
                    number = os.fork()
                    if number == 0:
                        ready.close()
                        listener.close()
                        become(client)
                    client.sendall(b"%d\n" % number)
                    handle = os.pidfd_open(number)
                    running[handle] = number, client
                    ready.register(handle, selectors.EVENT_READ)
                elif isinstance(key.fileobj, int):
                    ready.unregister(key.fileobj)
                    number, client = running.pop(key.fileobj)
                    os.close(key.fileobj)
                    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
                    with contextlib.suppress(OSError):
                        client.sendall(b"%d\n" % code)
                    client.close()


def become(client: socket.socket) -> None:
    """Becomes the process that was asked for."""
    size, descriptors, _, _ = socket.recv_fds(client, 8, 3)
    with client.makefile("rb") as sent:
        parts = sent.read(int.from_bytes(size, "big")).decode(errors="surrogateescape").split("\0")
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    client.close()
    os.chdir(parts[0])
    count = int(parts[1])
    os.environ.clear()
    os.environ.update(part.partition("=")[::2] for part in parts[2 + count :])
    time.tzset()
    from dalenius.measuring.engines.duckdb import opening

    seconds = float(os.environ.pop(PROBED))
    opening.probe_seconds = lambda: seconds
    arguments = parts[2 : 2 + count]
    code = 1
    try:
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            runpy.run_path(arguments[0], run_name="__main__")
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 0 if exit_.code is None else 1
    except BaseException:  # noqa: BLE001 (as the interpreter would)
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    fork_on_demand(socket.socket(fileno=int(sys.argv[1])))
