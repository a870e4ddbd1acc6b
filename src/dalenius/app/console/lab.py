"""The attack lab behind its page: an attack on made-up people, in a process of its own.

It touches no table, no budget and no ledger of this server: the process is told the attack's name and nothing else, has
a folder of its own, which is gone afterwards, and none of the server's variables. Nobody can starve the server with it:
one run of a token and few in all at a time, each with the least priority and an end. It ends with the server, however
that ends: the process has the other end of a pipe as its input, which is closed then.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from dalenius.app.http.limits import too_many
from dalenius.audit.attacks import any_named
from dalenius.audit.lab_process import FOLDER, LEASHED
from dalenius.errors import EngineFailedError, EngineTimeoutError

MOST = 2  # at once, in this process
SECONDS = 90.0  # of one
_KEPT = ("PATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "SYSTEMROOT")  # what Python itself needs


class Runs:
    """The runs of one server process. Used on the event loop alone."""

    def __init__(self) -> None:
        self._of: set[str] = set()
        self._threads = ThreadPoolExecutor(MOST, "dalenius-lab")

    async def run(self, name: str, token: str) -> list[dict[str, Any]]:
        """What an attack found, at every target that it is made for.

        Args:
            name: The attack.
            token: Whose run it is, by its id.
        """
        any_named(name)  # raises for what is none: it becomes an argument
        if token in self._of:
            raise too_many("An attack of yours is running already.", 10)
        if len(self._of) >= MOST:
            raise too_many("Others are using the lab.", 10)
        self._of.add(token)
        running = asyncio.get_running_loop().run_in_executor(self._threads, _run, name)
        running.add_done_callback(lambda _: self._of.discard(token))  # who goes away meanwhile does not make room
        return await asyncio.shield(running)

    def stop(self) -> None:
        """Ends what runs: a server that is told to end would wait for it."""
        for each in list(_LEASHES):
            each.close()


_LEASHES: set[BinaryIO] = set()


@contextmanager
def _leash() -> Iterator[int]:
    """What a process reads from, until this one closes its own end, or is gone."""
    near, far = os.pipe()  # no other process inherits the far end
    with os.fdopen(near, "rb") as read, os.fdopen(far, "wb") as held:
        _LEASHES.add(held)
        try:
            yield read.fileno()
        finally:
            _LEASHES.discard(held)


def _run(name: str) -> list[dict[str, Any]]:
    with TemporaryDirectory(prefix=FOLDER, ignore_cleanup_errors=True) as folder, _leash() as leash:
        kept = {each: os.environ[each] for each in _KEPT if each in os.environ}
        try:
            done = subprocess.run(  # noqa: S603 (the name is one of a list)
                [sys.executable, "-m", "dalenius.audit.lab_process", name, LEASHED],
                env={**kept, "PYTHONPATH": _python_path(), "TMPDIR": folder, "OPENBLAS_NUM_THREADS": "1"},
                cwd=folder,
                stdin=leash,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=SECONDS,
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise EngineTimeoutError(
                "The attack took too long.", why=f"It may take {SECONDS:.0f} s here.", fix="Try it again later."
            ) from None
        except (subprocess.CalledProcessError, OSError):
            raise EngineFailedError(
                "The attack could not be run.", why="Its process ended early.", fix="Try it again, or tell the owner."
            ) from None
    return list(json.loads(done.stdout)["findings"])


def _python_path() -> str:
    """As it is here: the process is in another folder."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(str(Path(each).absolute()) for each in given if each)


RUNS = Runs()
