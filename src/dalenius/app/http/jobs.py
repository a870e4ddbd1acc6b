"""Questions that are being answered. Those that take long become jobs that can be polled, from any server process.

A job's state changes when its answer leaves, and not before (`pacing`). What is kept of one on disk is the request
alone, in the home's folder `jobs/`: a process that does not know a job takes its question up again under the same
idempotency key, which finds the stored answer, waits for the process that works on it, or takes over from a dead one.
Whoever polls is never charged: of a question that no process had charged, the job says that it must be asked again.
Results are kept within limits of bytes (`limits`).
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
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.app.http.limits import KeptResults, too_many
from dalenius.app.http.responses import encode, problem, unexpected
from dalenius.errors import NOTHING, Charge, DaleniusError, RateLimitedError
from dalenius.ledger.questions import is_dead, new_holder
from dalenius.ledger.requests import QUESTION
from dalenius.releasing.kinds import kind_of

if TYPE_CHECKING:
    from dalenius.ledger.tokens import Token
    from dalenius.measuring.pace import Times
    from dalenius.releasing.kinds import Shown

FOLDER = "jobs"
KEPT = 3600.0  # seconds that a finished job stays
MOST = 256  # jobs of a token that are kept; the oldest go first
BYTES, BYTES_EACH = 2**27, 2**25  # of results that are kept, of all tokens and of one
_DAY = 86400.0
_CLEANING = 60.0  # seconds between two looks for old files
_ID = 32  # hex digits


@dataclass(frozen=True)
class JobRequest:
    """What a job is to obtain: a release of some kind, under a key that charges it once."""

    kind: str
    request: Mapping[str, Any]
    key: str

    @property
    def echo(self) -> dict[str, Any]:
        """What is told beside the release."""
        return kind_of(self.kind).echo(self.request)

    @classmethod
    def of_json(cls, held: Mapping[str, Any]) -> JobRequest:
        """As it lies on disk. Early releases of dalenius knew questions alone, and kept the key among their parts."""
        request = dict(held["request"])
        if "kind" in held:
            return cls(held["kind"], request, held["key"])
        return cls(QUESTION, request, request.pop("idempotency_key"))


class Job:
    """One release on its way."""

    def __init__(self, id_: str, analyst: str, echo: Mapping[str, Any], token: str = "") -> None:
        self.id, self.analyst, self.echo, self.token = id_, analyst, dict(echo), token
        self.created = time.monotonic()
        self.leaves: datetime | None = None
        self.steps: tuple[int, int] | None = None  # done, of how many: told to those alone whom the owner trusts
        self.future: Future[Shown] | None = None
        self.left = threading.Event()  # nobody waits for it: what is free is stopped, what is charged goes on
        self._end: tuple[bytes | None, dict[str, Any] | None, Charge] | None = None  # result or problem, and its cost

    def started(self, fixed: Times | None) -> None:
        """It begins to look; its time is fixed now."""
        if fixed is not None:
            self.leaves = datetime.now(UTC) + timedelta(seconds=fixed.answer)

    def told(self, done: int, steps: int) -> None:
        """So many steps of it are done. Never called where its answer leaves at a fixed time."""
        self.steps = done, steps

    def follow(self, future: Future[Shown]) -> None:
        """What will be its end."""
        self.future = future

    @property
    def done(self) -> bool:
        """Whether its answer has left."""
        return self._end is not None or (self.future is not None and self.future.done())

    async def wait(self, seconds: float | None) -> bool:
        """Waits for its end, at most so long; whether it came."""
        future = self.future  # before `_end`: `settle` sets them in the other order
        if self._end is not None:
            return True
        if future is None:
            raise RuntimeError("A job is waited for before it began.")
        wrapped = asyncio.wrap_future(future)
        wrapped.add_done_callback(lambda each: each.cancelled() or each.exception())  # else asyncio complains
        done, _ = await asyncio.wait([wrapped], timeout=seconds)
        return bool(done)

    def result(self) -> Shown:
        """Its release; raises what went wrong."""
        future = self.future
        if future is None:
            raise RuntimeError("A job has not begun, or is at its end.")
        return future.result(timeout=0)

    @property
    def charge(self) -> Charge:
        """What it cost this time, at its end."""
        return self._ended()[2]

    def settle(self) -> int:
        """Keeps what will be sent, and nothing else of it; how many bytes that are."""
        end = self._end = self._ended()
        self.future = None
        return len(end[0] or b"") + len(encode(self.echo))

    def let_go(self) -> None:
        """Its result is kept no longer; what it cost is still known."""
        if self._end is not None and self._end[0] is not None:
            self._end = (None, problem(_not_kept(self._end[2])), self._end[2])
        self.echo = {}

    def to_json(self) -> bytes:
        """As it is shown. Depends on the time and, at its end, on what left."""
        done = self.done
        result, trouble, _ = self._ended() if done else (None, None, NOTHING)
        left = None
        if self.leaves is not None and not done:
            left = max(0.0, round((self.leaves - datetime.now(UTC)).total_seconds(), 3))
        shown: dict[str, Any] = {
            "id": self.id,
            "state": "done" if result is not None else "failed" if trouble is not None else "running",
            "leaves": None if self.leaves is None else self.leaves.isoformat(timespec="milliseconds"),
            "seconds_left": left,
            "steps": None if self.steps is None or done else list(self.steps),
            "result": None,
            "problem": trouble,
        }
        if result is None:
            return encode(shown)
        parts = (b"%s: %s" % (encode(key), result if key == "result" else encode(shown[key])) for key in shown)
        return b"{%s}" % b", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """The same, as an object."""
        shown: dict[str, Any] = json.loads(self.to_json())
        return shown

    def _ended(self) -> tuple[bytes | None, dict[str, Any] | None, Charge]:
        future = self.future
        if self._end is not None or future is None:
            return self._end or (None, None, NOTHING)
        try:
            release = future.result(timeout=0).to_dict()
            paid = release.get("charge") or {}
            cost = Charge(paid.get("epsilon") or 0.0, paid.get("delta") or 0.0)  # a publication has no price
            return encode({**self.echo, **release}), None, cost
        except DaleniusError as error:
            return None, problem(error), error.charge
        except Exception as error:  # noqa: BLE001 (its text may quote a row)
            return None, problem(unexpected(error)), getattr(error, "charge", NOTHING)


class Jobs:
    """The jobs of one server process.

    Args:
        home: Where their requests are written.
        most: Bytes of results that are kept.
        each: The same for one token.
    """

    def __init__(self, home: Path, most: int = BYTES, each: int = BYTES_EACH) -> None:
        self._folder = home / FOLDER
        self._holder = new_holder()
        self._jobs: dict[str, Job] = {}
        self._written: dict[str, deque[Job]] = {}  # by token, oldest first
        self.kept = KeptResults(most, each)
        self._cleaned = -math.inf
        self._lock = threading.Lock()

    def new(self, token: Token, wanted: JobRequest, id_: str | None = None) -> Job:
        """A job that is about to begin."""
        job = Job(id_ or secrets.token_hex(_ID // 2), token.analyst, wanted.echo, token.id)
        with self._lock:
            now = time.monotonic()
            old = [each for each in self._jobs.values() if each.done and now - each.created > KEPT]
            for each in old:
                del self._jobs[each.id]
            found = self._jobs.setdefault(job.id, job)
        for each in old:
            self.kept.remove(each)
        return found

    def find(self, token: Token, id_: str) -> Job | None:
        """A job of this analyst, in this process."""
        job = self._jobs.get(id_)
        return job if job is not None and job.analyst == token.analyst else None

    def forget(self, job: Job) -> None:
        """A question that was answered at once, or that nobody waits for, is no job; it counts until its end."""
        job.left.set()
        if job.future is not None:
            job.future.add_done_callback(lambda _: self._forgotten(job))

    def _forgotten(self, job: Job) -> None:
        with self._lock:
            self._jobs.pop(job.id, None)

    def running(self, token: Token) -> int:
        """How many questions of a token are not at their end."""
        with self._lock:
            return sum(job.token == token.id and not job.done for job in self._jobs.values())

    def check_open(self, token: Token, most: int) -> None:
        """Refuses one more than so many of a token."""
        if self.running(token) >= most:
            raise too_many(f"{most} questions of this token are open.", 1.0)

    @property
    def busy(self) -> bool:
        """Whether one is not at its end."""
        with self._lock:
            return any(not job.done for job in self._jobs.values())

    # --- on disk

    def write(self, job: Job, wanted: JobRequest) -> None:
        """Keeps the request for other processes, and for after a crash."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._clean()
        self._make_room(job)
        held = {"analyst": job.analyst, "holder": self._holder, **asdict(wanted)}
        content = json.dumps(held).encode()
        place = os.open(self._file(job.id), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(place, "wb") as file:
            file.write(content)
        self.keep(job)

    def keep(self, job: Job) -> None:
        """What it says at its end is kept for who polls it."""
        if job.future is not None:
            job.future.add_done_callback(lambda ended: self._ended(job, ended))

    def read(self, token: Token, id_: str) -> tuple[JobRequest, bool] | None:
        """What is wanted of a job of this analyst that some process began, and whether another one that lives did."""
        if len(id_) != _ID or not set(id_) <= set("0123456789abcdef"):
            return None
        try:
            held = json.loads(self._file(id_).read_bytes())
        except (OSError, ValueError):
            return None
        if held["analyst"] != token.analyst:
            return None
        holder = held.get("holder", "")
        return JobRequest.of_json(held), holder != self._holder and not is_dead(holder)

    def _file(self, id_: str) -> Path:
        return self._folder / f"{id_}.json"

    def _ended(self, job: Job, ended: Future[Shown]) -> None:
        """What was refused and cost nothing is not taken up again by whoever polls it later."""
        if ended.cancelled():
            return  # by a stop
        error = ended.exception()
        if error is not None and getattr(error, "charge", NOTHING) == NOTHING:
            self._remove(job)
        self.kept.add(job, job.settle())

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
            self.kept.remove(each)

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


def _not_kept(charge: Charge) -> RateLimitedError:
    return RateLimitedError(
        "The result of this job is no longer kept.",
        why="Results are kept up to a limit of bytes for each token and for all, and newer ones took its place.",
        fix="Ask again: what was paid for is free. Fetch each result before the next questions.",
        charge=charge,
    )
