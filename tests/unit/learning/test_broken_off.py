"""A training that is killed goes on where it was: charged once, one model, and nothing kept that must not be."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.learning.taught import curator_of, some_people
from tests.unit.learning.test_model_kind import ONE, charges

from dalenius.curator import Curator
from dalenius.learning.training import KEPT
from dalenius.ledger.verification import verify
from dalenius.releasing.keeping import FOLDER, Kept, drop_ended

STEPS = 200
EVERY = STEPS // KEPT
# Trains in a process of its own, which ends at a step as a machine does that loses power.
KILLED = """
import os, signal, sys
from dalenius.curator import Curator
home, at, features, epsilon = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","), float(sys.argv[4])
def progress(done, steps):
    if done == at:
        os.kill(os.getpid(), signal.SIGKILL)
Curator(home).analyst("ana").train(
    "people", "income", epsilon=epsilon, features=features, steps=STEPS, rows_per_unit=1, progress=progress
)
""".replace("STEPS", str(STEPS))


def killed_at(curator: Curator, step: int, features: str, epsilon: float = 1.0) -> None:
    """Trains in another process until that step, and kills it there."""
    curator.engines.close()
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(curator.home), str(step), features, str(epsilon)],
        check=False,
        capture_output=True,
        timeout=120,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


def readable(raw: bytes) -> bool:
    """Whether somebody without the home's key can read it."""
    try:
        json.loads(raw)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("counted", [False, True])
def test_a_training_killed_at_any_step_is_charged_once_and_gives_one_model(
    tmp_path: Path, rounds: Callable[[int], int], counted: bool
):
    contribution = "[contribution]\nrows = 1" if counted else ""
    curator = curator_of(tmp_path, some_people(300), contribution=contribution)
    chance = random.Random(7)
    for round_ in range(max(2, rounds(30) // 2)):
        features, step = ("age,region", "age,spent")[round_ % 2], chance.choice([0, 1, STEPS, *range(STEPS)])
        epsilon = 1.0 + round_ / 100  # each a request of its own
        before, seen = len(charges(curator)), []
        killed_at(curator, step, features, epsilon)
        assert len(charges(curator)) == before + 1
        ana = curator.analyst("ana")
        found = ana.train(
            "people",
            "income",
            epsilon=epsilon,
            features=features.split(","),
            steps=STEPS,
            progress=lambda done, _: seen.append(done),  # noqa: B023 (called at once)
            **ONE,
        )
        kept = min(step, STEPS - 1) // EVERY * EVERY
        assert seen == [kept, *range(kept + 1, STEPS + 1)]
        assert len(charges(curator)) == before + 1 and not found.free
        again = ana.train("people", "income", epsilon=epsilon, features=features.split(","), steps=STEPS, **ONE)
        assert again.free and again.stored.content() == found.stored.content()
        assert not list((curator.home / FOLDER).iterdir())
    verify(curator.ledger)  # raises where something does not hold


def test_what_is_kept_is_sealed_and_holds_iterate_and_step_alone(tmp_path: Path):
    curator = curator_of(tmp_path, some_people(300), contribution="[contribution]\nrows = 1")
    killed_at(curator, 100, "age,region")
    (file,) = (curator.home / FOLDER).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    raw = file.read_bytes()
    assert b"weights" not in raw
    assert not readable(raw)
    (charge,) = curator.ledger.records(("charge",))
    key = charge.data["key"].removeprefix("model ")
    held = Kept(curator.ledger, charge.number, key).read()
    assert set(held) == {"at", "count"} and set(held["at"]) == {"step", "weights", "average", "velocity", "centre"}
    assert held["at"]["step"] == 100 and isinstance(held["count"], int)
    for name in ("weights", "average", "velocity"):  # one number for each column: age, its absence, two regions, 1
        assert [len(row) for row in held["at"][name]] == [5]
    # Of another charge, or of another question, it does not open.
    assert Kept(curator.ledger, charge.number, "other").read() is None
    file.rename(file.with_name(str(charge.number + 1)))
    assert Kept(curator.ledger, charge.number + 1, key).read() is None


def test_a_checkpoint_that_was_changed_is_not_used(tmp_path: Path):
    curator = curator_of(tmp_path, some_people(300))
    killed_at(curator, 100, "age,region")
    (file,) = (curator.home / FOLDER).iterdir()
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    seen = list[int]()
    curator.analyst("ana").train(
        "people",
        "income",
        epsilon=1.0,
        features=["age", "region"],
        steps=STEPS,
        progress=lambda done, _: seen.append(done),
        **ONE,
    )
    assert seen[0] == 0 and len(charges(curator)) == 1


def test_a_training_that_is_stopped_by_hand_goes_on_too(tmp_path: Path):
    curator = curator_of(tmp_path, some_people(300))
    asked: dict[str, Any] = {"epsilon": 1.0, "features": ["age"], "steps": STEPS, **ONE}

    def stop(done: int, _: int) -> None:
        if done == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        curator.analyst("ana").train("people", "income", progress=stop, **asked)
    seen = list[int]()
    found = curator.analyst("ana").train("people", "income", progress=lambda done, _: seen.append(done), **asked)
    assert seen[0] == 50 // EVERY * EVERY and not found.free and len(charges(curator)) == 1


def test_what_was_being_written_when_a_process_ended_is_removed_with_the_rest(tmp_path: Path):
    curator = curator_of(tmp_path, some_people(300))
    killed_at(curator, 100, "age,region")
    (file,) = (curator.home / FOLDER).iterdir()
    half, other = file.with_name(f".{file.name}.0123456789ab"), file.with_name("mine.txt")
    for each in (half, other):
        each.write_bytes(file.read_bytes()[:100])
    drop_ended(curator.ledger)
    assert half.exists()  # the charge can still be taken up, and somebody may be writing
    curator.analyst("ana").train("people", "income", epsilon=1.0, features=["age", "region"], steps=STEPS, **ONE)
    assert list((curator.home / FOLDER).iterdir()) == [other]
