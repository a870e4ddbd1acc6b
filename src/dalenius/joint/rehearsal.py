"""Several parties on one machine, each a process with a home of its own: for demonstrations, benchmarks and tests.

One person who runs all parties sees all that any of them sees: a rehearsal shows how it goes and protects nothing.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from dalenius.errors import PartyGoneError
from dalenius.joint.config import Party

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

READY = "waits for calls"
"""What `dalenius party` prints once it listens."""


def lay(folder: Path, names: Sequence[str]) -> list[Party]:
    """A home in `folder` for each name, with free ports on the loopback and everybody's cards."""
    ports = _free_ports(len(names))
    parties = [Party.create(folder / name, name, f"127.0.0.1:{port}") for name, port in zip(names, ports, strict=True)]
    return [introduce(each, parties) for each in parties]


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens at, and that systems do not give to those who call."""
    found: list[int] = []
    while len(found) < count:
        port = 20_000 + secrets.randbelow(12_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):  # which is let go at once
            found.append(port)
    return found


def introduce(party: Party, others: Sequence[Party]) -> Party:
    """Gives a party the cards of all others."""
    for other in others:
        if other.card.name != party.card.name:
            party = party.add(other.card)
    return party


@contextmanager
def waiting(parties: Sequence[Party]) -> Iterator[list[subprocess.Popen[str]]]:
    """Each of these parties as a process `dalenius party`, until the block ends."""
    started: list[subprocess.Popen[str]] = []
    try:
        for each in parties:
            started.append(_start(each))  # noqa: PERF401 - those before one that fails are ended, too
        for process, each in zip(started, parties, strict=True):
            assert process.stdout is not None  # noqa: S101
            if READY not in process.stdout.readline():
                raise PartyGoneError(
                    each.card.name, why="Its process did not start.", fix="Run 'dalenius party' there."
                )
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _start(party: Party) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dalenius", "--home", str(party.folder.parent), "party"]
    return subprocess.Popen(  # noqa: S603 - our own program
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "COLUMNS": "200"}
    )
