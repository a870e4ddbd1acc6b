"""Questions that are being answered. Those that take long become jobs that can be polled, from any server process.

A job's state changes when its answer leaves, and not before (`pacing`). What is kept of one on disk is the request
alone, in the home's folder `jobs/`: a process that does not know a job asks its question again under the same
idempotency key, which finds the stored answer, waits for the process that works on it, or takes over from a dead one,
and is never charged twice.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.app.http.problems import problem, unexpected
from dalenius.errors import NOTHING, Charge, DaleniusError

if TYPE_CHECKING:
    from dalenius.ledger.tokens import Token
    from dalenius.pacing import Times
    from dalenius.queries.release import Release

FOLDER = "jobs"
KEPT = 3600.0  # seconds that a finished job stays
MOST = 256  # jobs of a token that are kept; the oldest go first
_DAY = 86400.0
_CLEANING = 60.0  # seconds between two looks for old files
_ID = 32  # hex digits


class Job:
    """One question on its way."""

    def __init__(self, id_: str, analyst: str, question: str, token: str = "") -> None:
        self.id, self.analyst, self.question, self.token = id_, analyst, question, token
        self.created = time.monotonic()
        self.leaves: datetime | None = None
        self.future: Future[Release] | None = None

    def started(self, fixed: Times | None) -> None:
        """It begins to look; its time is fixed now."""
        if fixed is not None:
            self.leaves = datetime.now(UTC) + timedelta(seconds=fixed.answer)

    def follow(self, future: Future[Release]) -> None:
        """What will be its end."""
        self.future = future

    @property
    def done(self) -> bool:
        """Whether its answer has left."""
        return self.future is not None and self.future.done()

    async def wait(self, seconds: float | None) -> bool:
        """Waits for its end, at most so long; whether it came."""
        if self.future is None:
            raise RuntimeError("A job is waited for before it began.")
        wrapped = asyncio.wrap_future(self.future)
        wrapped.add_done_callback(lambda each: each.cancelled() or each.exception())  # else asyncio complains
        done, _ = await asyncio.wait([wrapped], timeout=seconds)
        return bool(done)

    def result(self) -> Release:
        """Its release; raises what went wrong."""
        if self.future is None:
            raise RuntimeError("A job has not begun.")
        return self.future.result(timeout=0)

    @property
    def charge(self) -> Charge:
        """What it cost this time, at its end."""
        error = self.future.exception(timeout=0) if self.future is not None else None
        if error is not None:
            return getattr(error, "charge", NOTHING)
        paid = self.result().charge
        return Charge(paid["epsilon"] or 0.0, paid["delta"] or 0.0)

    def to_dict(self) -> dict[str, Any]:
        """As it is shown. Depends on the time and, at its end, on what left."""
        state, result, trouble = "running", None, None
        if self.done:
            try:
                result = {"question": self.question, **self.result().to_dict()}
                state = "done"
            except DaleniusError as error:
                state, trouble = "failed", problem(error)
            except Exception as error:  # noqa: BLE001 (its text may quote a row)
                state, trouble = "failed", problem(unexpected(error))
        left = None
        if self.leaves is not None and not self.done:
            left = max(0.0, round((self.leaves - datetime.now(UTC)).total_seconds(), 3))
        return {
            "id": self.id,
            "state": state,
            "leaves": None if self.leaves is None else self.leaves.isoformat(timespec="milliseconds"),
            "seconds_left": left,
            "result": result,
            "problem": trouble,
        }


class Jobs:
    """The jobs of one server process."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._jobs: dict[str, Job] = {}
        self._written: dict[str, deque[Job]] = {}  # by token, oldest first
        self._cleaned = -math.inf
        self._lock = threading.Lock()

    def new(self, token: Token, question: Mapping[str, Any], id_: str | None = None) -> Job:
        """A job that is about to begin."""
        job = Job(id_ or secrets.token_hex(_ID // 2), token.analyst, question["question"], token.id)
        with self._lock:
            now = time.monotonic()
            old = [each.id for each in self._jobs.values() if each.done and now - each.created > KEPT]
            for each in old:
                del self._jobs[each]
            return self._jobs.setdefault(job.id, job)

    def find(self, token: Token, id_: str) -> Job | None:
        """A job of this analyst, in this process."""
        job = self._jobs.get(id_)
        return job if job is not None and job.analyst == token.analyst else None

    def forget(self, job: Job) -> None:
        """A question that was answered at once is no job."""
        with self._lock:
            self._jobs.pop(job.id, None)

    def running(self, token: Token) -> int:
        """How many questions of a token are not at their end."""
        with self._lock:
            return sum(job.token == token.id and not job.done for job in self._jobs.values())

    @property
    def busy(self) -> bool:
        """Whether one is not at its end."""
        with self._lock:
            return any(not job.done for job in self._jobs.values())

    # --- on disk

    def write(self, job: Job, question: Mapping[str, Any]) -> None:
        """Keeps the request for other processes, and for after a crash."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._clean()
        self._make_room(job)
        limits = question.get("limits")
        plain = {**question, "limits": None if limits is None else _limits_to_json(limits)}
        content = json.dumps({"analyst": job.analyst, "request": plain}).encode()
        place = os.open(self._file(job.id), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(place, "wb") as file:
            file.write(content)
        if job.future is not None:
            job.future.add_done_callback(lambda ended: self._ended(job, ended))

    def read(self, token: Token, id_: str) -> dict[str, Any] | None:
        """The request of a job of this analyst that some process began."""
        if len(id_) != _ID or not set(id_) <= set("0123456789abcdef"):
            return None
        try:
            held = json.loads(self._file(id_).read_bytes())
        except (OSError, ValueError):
            return None
        if held["analyst"] != token.analyst:
            return None
        request: dict[str, Any] = held["request"]
        limits = request["limits"]
        return {**request, "limits": None if limits is None else limits_from_json(limits)}

    def _file(self, id_: str) -> Path:
        return self._folder / f"{id_}.json"

    def _ended(self, job: Job, ended: Future[Release]) -> None:
        """What was refused and cost nothing is not asked again by whoever polls it later: that could be charged."""
        error = None if ended.cancelled() else ended.exception()
        if error is not None and getattr(error, "charge", NOTHING) == NOTHING:
            self._remove(job)

    def _make_room(self, job: Job) -> None:
        """Else a token could fill memory and disk with jobs that cost it nothing."""
        with self._lock:
            written = self._written.setdefault(job.token, deque())
            written.append(job)
            old = []
            while len(written) > MOST and written[0].done:
                old.append(written.popleft())
                self._jobs.pop(old[-1].id, None)
        for each in old:
            self._remove(each)

    def _remove(self, job: Job) -> None:
        with suppress(OSError):
            self._file(job.id).unlink(missing_ok=True)

    def _clean(self) -> None:
        with self._lock:
            if time.monotonic() - self._cleaned < _CLEANING:
                return
            self._cleaned = time.monotonic()
        for file in self._folder.glob("*.json"):
            with suppress(OSError):
                if time.time() - file.stat().st_mtime > _DAY:
                    file.unlink()


def limits_from_json(data: Mapping[str, Any]) -> Any:
    """`Limits` from JSON; totals are numbers or decimal texts."""
    from dalenius.queries.plan import Limits

    totals = {name: Fraction(str(value)) for name, value in (data.get("totals") or {}).items()}
    return Limits(data.get("rows"), data.get("groups"), totals, data.get("units"), data.get("search"))


def _limits_to_json(limits: Any) -> dict[str, Any]:
    search = limits.search
    return {
        "rows": limits.rows,
        "groups": limits.groups,
        "totals": {name: str(value) for name, value in limits.totals.items()},
        "units": limits.units,
        "search": None if search is None else float(search),
    }
