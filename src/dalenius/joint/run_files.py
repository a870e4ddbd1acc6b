"""What a party writes down of a run before anything of it leaves, so that it can say the same again, or nothing.

A file for each run, sealed with a key of the home (AES-256-GCM, bound to the run's id), replaced as a whole and on
disk before the next step. First the seed of all that the party draws for the run; before the first share leaves, also
what it brings: its numbers with its noise in them. Numbers without noise are never written.

A run can be taken up again for `WINDOW` seconds; then its file is removed, and nothing can be said of it any more.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError
from dalenius.joint.streams import fresh_seed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WINDOW = 24 * 3600.0
_FOLDER, _ENDING, _LOCK, _NONCE = "runs", ".run", ".lock", 12


@dataclass(frozen=True)
class RunRecord:
    """What one party keeps of one run.

    Attributes:
        run: Its id.
        terms: What is computed, with whom: as one hash.
        beginner: Who called.
        began: When, in seconds since 1970.
        seed: What this party's randomness comes from.
        inputs: What this party brings; None until all others have shown their charge.
    """

    run: bytes
    terms: str
    beginner: str
    began: float
    seed: bytes
    inputs: tuple[int, ...] | None = None

    @property
    def expired(self) -> bool:
        """Whether it is too old to be taken up."""
        return time.time() > self.began + WINDOW

    def to_json(self) -> dict[str, Any]:
        """Plain values; the numbers as texts, as they may be longer than a double holds."""
        inputs = None if self.inputs is None else [str(each) for each in self.inputs]
        return {**asdict(self), "run": self.run.hex(), "seed": self.seed.hex(), "inputs": inputs}

    @classmethod
    def of_json(cls, data: dict[str, Any]) -> RunRecord:
        """As `to_json` wrote it."""
        inputs = None if data["inputs"] is None else tuple(map(int, data["inputs"]))
        run, seed = bytes.fromhex(data["run"]), bytes.fromhex(data["seed"])
        return cls(run, data["terms"], data["beginner"], data["began"], seed, inputs)


class RunFiles:
    """The runs of one home.

    Args:
        folder: The party's folder.
        key: A secret of the home, 32 bytes, that nobody else has.
    """

    def __init__(self, folder: Path, key: bytes) -> None:
        self._folder = folder / _FOLDER
        self._key = key

    @contextmanager
    def hold(self, run: bytes) -> Iterator[None]:
        """Holds a run for this process, so that no other says the same at the same time.

        Raises:
            InputError: Another process holds it.
        """
        import fcntl

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = self._file(run).with_suffix(_LOCK)
        lock = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise InputError(
                "This run is going on here in another process.",
                why="Two that say the same would disturb each other.",
                fix="Wait until that one has ended.",
            ) from None
        try:
            yield
        finally:
            place.unlink(missing_ok=True)
            os.close(lock)

    def begin(self, run: bytes, terms: str, beginner: str) -> RunRecord:
        """A new run, on disk."""
        found = RunRecord(run, terms, beginner, time.time(), fresh_seed())
        self._write(found)
        return found

    def bring(self, record: RunRecord, inputs: tuple[int, ...]) -> RunRecord:
        """With what this party brings, on disk; once in the life of a run."""
        if record.inputs is not None:
            raise RuntimeError("What a party brings to a run is written down once.")
        found = replace(record, inputs=inputs)
        self._write(found)
        return found

    def find(self, run: bytes) -> RunRecord | None:
        """A run that can be taken up, or None: there is none, it is damaged, or its time is over."""
        file = self._file(run)
        try:
            data = file.read_bytes()
        except OSError:
            return None
        found = self._opened(run, data)
        if found is None or found.expired:
            self.forget(run)
            return None
        return found

    def unfinished(self, terms: str, beginner: str) -> Iterator[RunRecord]:
        """Runs of just that question, newest first."""
        found = [each for each in self._all() if (each.terms, each.beginner) == (terms, beginner)]
        yield from sorted(found, key=lambda each: -each.began)

    def forget(self, run: bytes) -> None:
        """Removes what is kept of a run: it can never be taken up again."""
        self._file(run).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Removes runs whose time is over."""
        for _ in self._all():
            pass

    def _all(self) -> Iterator[RunRecord]:
        for file in sorted(self._folder.glob(f"*{_ENDING}")):
            try:
                run = bytes.fromhex(file.stem)
            except ValueError:
                continue
            found = self.find(run)
            if found is not None:
                yield found

    def _file(self, run: bytes) -> Path:
        if len(run) != 16:
            raise InputError("This is no run's id.", why="It has sixteen bytes.", fix="Start a new run.")
        return self._folder / f"{run.hex()}{_ENDING}"

    def _write(self, record: RunRecord) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file, nonce = self._file(record.run), os.urandom(_NONCE)
        content = nonce + AESGCM(self._key).encrypt(nonce, json.dumps(record.to_json()).encode(), record.run)
        part = file.with_suffix(".part")
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _opened(self, run: bytes, data: bytes) -> RunRecord | None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            content = AESGCM(self._key).decrypt(data[:_NONCE], data[_NONCE:], run)
            found = RunRecord.of_json(json.loads(content))
        except (InvalidTag, ValueError, KeyError, TypeError):
            return None
        return found if found.run == run else None
