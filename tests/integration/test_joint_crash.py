"""kill −9 of a party at any moment of a joint question: one charge, one set of bytes, one answer, or none for good."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.together import Hospital, charges, hospitals

from dalenius.app.joint_seat import Seat
from dalenius.ledger import Ledger
from dalenius.queries.jointly.planning import JointAsk

pytestmark = pytest.mark.integration

NAMES = ("clinic", "lab", "registry")


def command(hospital: Hospital, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dalenius", "--home", str(hospital.home), "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )


class Waiting:
    """`dalenius party` of a hospital, started anew when it was killed."""

    def __init__(self, hospital: Hospital) -> None:
        self.hospital = hospital
        self.start()

    def start(self) -> None:
        self.process = command(self.hospital, "party", "--patience", "3")
        assert self.process.stdout is not None
        assert "address" in json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> None:
        self.process.terminate()
        self.process.communicate()


@contextmanager
def waiting(others: list[Hospital]) -> Iterator[list[Waiting]]:
    started: list[Waiting] = []
    try:
        started.extend(Waiting(each) for each in others)
        yield started
    finally:
        for each in started:
            each.end()


def asking(first: Hospital, question: str) -> subprocess.Popen[str]:
    return command(first, "joint", "ask", question, "--with", "lab,registry", "--epsilon", "0.2", "--patience", "3")


def brought(hospital: Hospital, question: str) -> dict[bytes, tuple[int, ...]]:
    """What is written down of the runs of a question, by run."""
    seat = Seat.of(hospital.party, JointAsk(question, 0.2, hospital.party.card.name, NAMES, 1))
    found = seat.files.unfinished(seat.mark, "clinic")
    return {each.run: each.inputs for each in found if each.inputs is not None}


def answers(hospital: Hospital, key: str) -> list[bytes]:
    """What a ledger says was opened for a question."""
    ledger = hospital.curator.ledger
    found = [each for each in hospital.curator.releases() if each.question == key]
    return [ledger.content(ledger.receipt(each.id))[1] for each in found]


def test_kill_9_at_any_moment_leaves_one_charge_and_one_answer(tmp_path: Path, rounds):
    chance = random.Random(26)
    three = hospitals(tmp_path, people=40)
    broken = between = 0
    with waiting(three[1:]) as parties:
        for number in range(rounds(100)):
            question = f"SELECT region, COUNT(*) AS n, SUM(cost) AS s FROM visits WHERE cost > {number} GROUP BY region"
            before = [len(charges(each)) for each in three]
            victim = chance.randrange(3)
            notes = three[victim].home / "joint" / "runs"
            known = len(list(notes.glob("*.run")))
            asker = asking(three[0], question)
            # Mostly once the run has begun there, however busy the machine is; sometimes at any time before.
            deadline = time.monotonic() + (30 if chance.random() < 0.8 else chance.uniform(0, 2))
            while len(list(notes.glob("*.run"))) == known and asker.poll() is None and time.monotonic() < deadline:
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.3))
            ended = asker.poll()
            if victim == 0:
                asker.kill()
            else:
                parties[victim - 1].kill()
            open_ = Ledger.open(three[victim].home)
            ended_there = {each.data["charge"] for each in open_.entries() if each.kind == "answer"}
            numbers = [each.number for each in open_.entries() if each.kind == "charge"][before[victim] :]
            between += any(each not in ended_there for each in numbers)
            written = [brought(each, question) for each in three]
            if victim:
                parties[victim - 1].start()
            out, _ = asker.communicate(timeout=60)
            tries = 0
            while asker.returncode != 0:
                tries += 1
                assert tries < 6, out
                asker = asking(three[0], question)
                out, _ = asker.communicate(timeout=60)
            broken += ended is None
            # Whatever broke off went on: every ledger has paid once, and for the same run.
            release = json.loads(out)
            paid = [charges(each)[count:] for each, count in zip(three, before, strict=True)]
            assert [len(each) for each in paid] == [1, 1, 1], (number, victim, tries)
            assert {each[0]["key"].split()[-1] for each in paid} == {paid[0][0]["key"].split()[-1]}
            # what was written down before the kill is what counts after it
            after = [brought(each, question) for each in three]
            for was, now in zip(written, after, strict=True):
                assert was.items() <= now.items()
            opened = [answers(each, paid[0][0]["question"]) for each in three]
            stored = {each for found in opened for each in found}
            assert len(opened[0]) == 1 and len(stored) == 1
            values = [int(v) for each in json.loads(opened[0][0])["measures"] for v in each["values"]]
            (run,) = after[0]
            assert values == [sum(each) for each in zip(*(found[run] for found in after), strict=True)]
            assert release["charge"]["epsilon"] in {0.2, 0}
    # or the kills came too late to show anything: before the end, and between a charge and its answer
    assert broken >= rounds(100) // 2 and between >= rounds(100) // 8, (broken, between)
    print(f"{broken} broken off, {between} between charge and answer")
