"""kill −9 at any moment: what was acknowledged is there, totals are the sum, no question has two answers."""

import hashlib
import multiprocessing
import os
import random
import secrets
import signal
import time
from pathlib import Path

import pytest

from dalenius.accounting.events import Zcdp
from dalenius.ledger import Budget, Ledger, Request, verify

pytestmark = pytest.mark.integration


def asking(key: str) -> Request:
    return Request("students", "ana", key, 0.01, Zcdp(1e-9))


def worker(home: Path, log: Path, first: int) -> None:
    """Asks one question after another, and writes down each charge and each release it was given."""
    ledger = Ledger.open(home)
    with log.open("ab", buffering=0) as out:

        def work(claim) -> bytes:
            out.write(f"charge {claim.number}\n".encode())  # one write: a kill leaves all of it or nothing
            return secrets.token_bytes(200)

        for number in range(first, first + 1_000_000):
            answered = ledger.ask(asking(f"question {number}"), work)
            out.write(f"answer {number} {hashlib.sha256(answered.content).hexdigest()}\n".encode())


def test_no_acknowledged_charge_or_release_is_lost_by_kill_9(tmp_path, rounds):
    chance = random.Random(4)
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("students", Budget(1000.0, 1e-6))
    ledger.set_allotment("students", "ana", 1000.0)
    ledger.database.close()
    log = tmp_path / "acknowledged"
    log.touch()
    context = multiprocessing.get_context("fork")
    releases: dict[int, str] = {}
    charged: set[int] = set()
    for _ in range(rounds(300)):
        following = max(releases, default=-1) + 1
        lines_before = log.read_bytes().count(b"\n")
        process = context.Process(target=worker, args=(ledger.home, log, following))
        process.start()
        # Mostly until it has begun, however busy the machine is; sometimes while it opens the ledger.
        deadline = time.monotonic() + (30 if chance.random() < 0.7 else chance.uniform(0, 0.3))
        while log.read_bytes().count(b"\n") == lines_before and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.03))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        for line in log.read_text().splitlines()[lines_before:]:
            word, *rest = line.split()
            if word == "charge":
                charged.add(int(rest[0]))
            else:
                assert releases.setdefault(int(rest[0]), rest[1]) == rest[1]
        opened = Ledger.open(ledger.home)
        found = verify(opened)  # the chain, and totals against the sum of all charges
        numbers = {entry.number for entry in opened.entries() if entry.kind == "charge"}
        assert charged <= numbers
        assert found.charges == len(numbers) == opened.balance("students").charges
        assert found.releases >= len(releases)
        # The newest acknowledged release comes again, for nothing, and the interrupted question is finished once.
        if releases:
            newest = max(releases)
            again = opened.ask(asking(f"question {newest}"), lambda claim: pytest.fail("looked again"))
            assert hashlib.sha256(again.content).hexdigest() == releases[newest]
        opened.database.close()
    opened = Ledger.open(ledger.home)
    for number, digest in releases.items():
        again = opened.ask(asking(f"question {number}"), lambda claim: pytest.fail("looked again"))
        assert again.free and hashlib.sha256(again.content).hexdigest() == digest
    charges = opened.balance("students").charges
    assert charges <= max(releases) + 2  # each question was charged once, however often its asker was killed
    verify(opened)
