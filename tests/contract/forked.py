"""Commands without their start: a process that has loaded what `dalenius` needs forks once for each of them.

A shell calls `dalenius` on its path as ever, with its own folder, environment, pipes and exit code; what runs is the
package, in a process of its own that is new but for its imports. Loading them takes longer than most commands.

Many pages begin with the same demo. It runs once for each folder; then what it made there is put back, as a backup
would be (`tests.kept`).
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import os
import pkgutil
import selectors
import shutil
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

# What the commands load, each in its turn, and all of our own but what serves. Only modules: no connection, no thread,
# no state of chance.
MODULES = (
    *("cryptography.hazmat.primitives.ciphers", "duckdb", "numpy", "pyarrow.csv", "pyarrow.parquet"),
    *("cryptography.hazmat.primitives.asymmetric.ed25519", "cryptography.hazmat.primitives.serialization"),
    *("matplotlib.backends.backend_agg", "matplotlib.figure", "matplotlib.backends.backend_svg", "pydantic.fields"),
    *("rich.console", "rich.progress", "rich.table", "scipy.optimize", "scipy.signal", "scipy.special", "scipy.stats"),
    *("sqlglot.dialects.bigquery", "sqlglot.dialects.duckdb", "sqlglot.optimizer", "typer.testing"),
)
SERVING = ("dalenius.app.http", "dalenius.app.console")

# Runs for each call, so it loads next to nothing. A part of the message is never empty, as a folder's name never is.
CLIENT = """#!{python} -ISE
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
variables = (f"{{name}}={{value}}" for name, value in os.environ.items())
parts = [os.getcwd(), str(len(sys.argv) - 1), *sys.argv[1:], *variables]
message = "\\0".join(parts).encode(errors="surrogateescape")
socket.send_fds(server, [len(message).to_bytes(8, "big")], [0, 1, 2])
server.sendall(message)
sys.exit(int(server.recv(16) or b"1"))
"""


@contextlib.contextmanager
def forking(folder: Path) -> Iterator[Path]:
    """A folder for PATH whose `dalenius` is as good as the installed one."""
    address, programs = folder / "server", folder / "bin"
    programs.mkdir()
    client = programs / "dalenius"
    client.write_text(CLIENT.format(python=sys.executable, address=str(address)))
    client.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        # It ends when its standard input does, however this process may end.
        server = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno()), str(folder)],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
    try:
        yield programs
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(60)


def serve(listener: socket.socket, folder: Path) -> None:
    import dalenius

    ours = (each.name for each in pkgutil.walk_packages(dalenius.__path__, "dalenius."))
    for name in (*MODULES, *(each for each in ours if not each.startswith((*SERVING, "dalenius.__main__")))):
        importlib.import_module(name)
    # No child looks through the modules for rubbish, which would take memory of its own for all of them.
    gc.collect()
    gc.freeze()
    with selectors.DefaultSelector() as ready:
        ready.register(listener, selectors.EVENT_READ)
        ready.register(sys.stdin, selectors.EVENT_READ)
        while all(key.fileobj is listener for key, _ in ready.select()):
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                command(client, folder)
            client.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:  # those that have ended
                    pass


def command(client: socket.socket, folder: Path) -> None:
    """Becomes the process that the client would have been."""
    size, descriptors, _, _ = socket.recv_fds(client, 8, 3)
    with client.makefile("rb") as sent:
        parts = sent.read(int.from_bytes(size, "big")).decode(errors="surrogateescape").split("\0")
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(parts[0])
    count = int(parts[1])
    os.environ.clear()
    for part in parts[2 + count :]:
        name, _, value = part.partition("=")
        os.environ[name] = value
    sys.argv = ["dalenius", *parts[2 : 2 + count]]
    code = 1
    try:
        from dalenius.app.cli import main

        if sys.argv[1:] == ["demo", "--quiet"]:
            lay_demo(folder, main)
            sys.exit(0)
        main()
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 0 if exit_.code is None else 1
    except BaseException:  # noqa: BLE001 (as the interpreter would)
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    client.sendall(str(code).encode())
    os._exit(code)


def lay_demo(folder: Path, main: Callable[[], None]) -> None:
    """The demo's home in the working directory, and what it prints the first time."""
    place = Path.cwd()
    home, saved = place / ".dalenius-demo", folder / f"demo {hashlib.sha256(str(place).encode()).hexdigest()}"
    if saved.exists():
        if home.exists():
            shutil.rmtree(home)
        shutil.copytree(saved, home)
        return
    try:
        main()
    except SystemExit as exit_:
        if exit_.code:
            raise
    shutil.copytree(home, saved)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))
