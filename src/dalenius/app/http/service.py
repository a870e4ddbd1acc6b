"""What all routes share: the curator, who calls and may do what, the threads in which work is done, and the jobs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from weakref import WeakValueDictionary

from fastapi import Depends, Request

from dalenius.analyst import resuming, telling
from dalenius.app.http.jobs import Job, JobRequest, Jobs
from dalenius.app.http.limits import RateLimit, too_many
from dalenius.app.http.monitoring import Metrics
from dalenius.curator import Curator
from dalenius.errors import AuthDeniedError
from dalenius.ledger.questions import NeverChargedError
from dalenius.ledger.tokens import Role, Token, Tokens
from dalenius.measuring.engines.duckdb.confined import ElsewhereError, Room, on_behalf
from dalenius.measuring.pace import SAFETY, Times
from dalenius.releasing.pacing import Pacer, probe

if TYPE_CHECKING:
    from dalenius.analyst import Analyst
    from dalenius.app.http.settings import Settings
    from dalenius.releasing.kinds import Shown

T = TypeVar("T")
_HEAVY = (
    "dalenius.queries.rules",
    "dalenius.queries.answering",
    "dalenius.queries.preview",
    "dalenius.measuring.public",
)
_DOOR = 4  # threads that look at tokens, whatever the others are busy with
_QUICK = 16  # threads for what never waits
_PREVIEWS = 16  # threads for previews, most of which wait for a place: few plan at once (`confined.planning`)
_PUBLIC = 16  # threads for previews that wait for a process of their own (`queries.engines.confined`)
_ASKING = 128  # threads for questions, most of which wait for their time
_OTHERS, _PAUSE = 60.0, 0.2  # seconds that a job of another process may take until it is charged; between two looks
_MARK = "dalenius_roles"


class Service:
    """One server process on one home. Others may serve the same home: the ledger keeps them in step."""

    def __init__(self, home: Path, settings: Settings, *, speed: float | None = None) -> None:
        self.settings = settings
        self.curator = Curator(home)
        self.tokens = Tokens(self.curator.ledger)
        self.metrics = Metrics()
        self.limits = RateLimit(settings.rate, settings.burst, settings.concurrency)
        speed = probe() if speed is None else speed
        self._paced = Pacer(settings.slots, speed)
        # Both look at once, and a fixed time is SAFETY times what a question alone was measured to take.
        self._trusted = Pacer(max(2, SAFETY - settings.slots), speed, fixed=False)
        self._door = ThreadPoolExecutor(_DOOR, "dalenius-door")
        self._quick = ThreadPoolExecutor(_QUICK, "dalenius-quick")
        self._previews = ThreadPoolExecutor(_PREVIEWS, "dalenius-preview")
        self._previewing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._asking = ThreadPoolExecutor(_ASKING, "dalenius-ask")
        self._room = Room(settings.public_slots, settings.public_seconds, settings.public_memory)
        self._public = ThreadPoolExecutor(_PUBLIC, "dalenius-public")
        self._publics = 0
        self.jobs = Jobs(self.curator.home, settings.results, settings.results_token)
        self._resuming = threading.Lock()
        self.curator.engines  # noqa: B018 (made here, not by two threads at once)
        self.curator.registry.place  # noqa: B018
        for name in _HEAVY:  # else the first question waits for them
            import_module(name)

    async def run(self, work: Callable[[], T]) -> T:
        """Something that does not wait, in a thread: the event loop itself never touches a file."""
        # With its context, which knows in whose name it is done (`ledger.authors`).
        return await asyncio.get_running_loop().run_in_executor(self._quick, copy_context().run, work)

    async def preview(self, token: Token, work: Callable[[], T], gone: Callable[[], bool] = lambda: False) -> T:
        """A preview: free, so there may be many; one of a token at a time, so that none is at the cost of others.

        One that needs a process of its own is done anew in a thread for those, so that it keeps no other waiting.

        Args:
            token: Whose it is.
            work: The preview.
            gone: Whether nobody waits for it any more.
        """

        def within(elsewhere: bool) -> T:
            with on_behalf(self._room, token.analyst, gone=gone, elsewhere=elsewhere):
                return work()

        lock = self._previewing.setdefault(token.id, asyncio.Lock())
        loop = asyncio.get_running_loop()
        async with lock:
            try:
                return await loop.run_in_executor(self._previews, within, True)
            except ElsewhereError:
                pass
            if self._publics >= _PUBLIC:
                raise too_many("All threads for questions over public tables are busy.", self.settings.public_seconds)
            self._publics += 1  # on the event loop alone
            try:
                return await loop.run_in_executor(self._public, within, False)
            finally:
                self._publics -= 1

    async def holder(self, text: str) -> Token:
        """Whose token a text is; raises where it is none that is good now."""
        return await asyncio.get_running_loop().run_in_executor(self._door, self.tokens.check, text)

    async def is_good(self, id_: str) -> bool:
        """Whether a token is still good: asked again before anything leaves that it asked for."""
        return await asyncio.get_running_loop().run_in_executor(self._door, self.tokens.is_good, id_)

    def obtain(self, token: Token, wanted: JobRequest) -> Job:
        """Begins to obtain a release, in a thread of its own.

        A question counts as open until its answer leaves, also if nobody waits for it: else one token could take up
        every thread with jobs.
        """
        self.jobs.check_open(token, self.settings.concurrency)
        job = self.jobs.new(token, wanted)
        self._begin(job, token, lambda asker: _obtain(asker, wanted))
        return job

    def resume(self, token: Token, id_: str) -> Job | None:
        """A job of this analyst: one of this process, or one that another left.

        The latter's question is taken up where it was charged, within the same limits as any other; whoever polls is
        never charged. Where it was not charged, the job says so.
        """
        with self._resuming:  # of two who come at once, one begins, and neither sees a job that has not begun
            job = self.jobs.find(token, id_)
            if job is None:
                held = self.jobs.read(token, id_)
                if held is None:
                    return None
                self.jobs.check_open(token, self.settings.concurrency)
                wanted = held[0]
                job = self.jobs.new(token, wanted, id_)
                self._begin(job, token, lambda asker: self._taken_up(asker, token, id_, wanted))
                self.jobs.keep(job)
            return job

    def _taken_up(self, asker: Analyst, token: Token, id_: str, wanted: JobRequest) -> Shown:
        """The release that another process began; as long as that lives, it may still be charged there."""
        end = time.monotonic() + _OTHERS
        while True:
            held = self.jobs.read(token, id_)
            lives = held is not None and held[1]
            try:
                return _obtain(resuming(asker, public=lives), wanted)
            except NeverChargedError:
                if not lives or time.monotonic() > end:
                    raise
            time.sleep(_PAUSE)

    def _begin(self, job: Job, token: Token, answered: Callable[[Analyst], Shown]) -> None:
        pacer = self._trusted if token.trusted else self._paced

        def started(fixed: Times | None) -> None:
            self.metrics.looking.inc()
            job.started(fixed)

        def work() -> Shown:
            asker = self.curator.analyst(token.analyst, pacer=pacer.telling(started, token.analyst))
            asker = telling(asker, job.told)
            with on_behalf(self._room, token.analyst, gone=job.left.is_set):
                return answered(asker)

        # With its context: what the owner publishes is on record as done by that token.
        future: Future[Shown] = self._asking.submit(copy_context().run, work)
        job.follow(future)

    def close(self) -> None:
        """No new questions; what runs goes on to its end."""
        self._room.close()
        for each in (self._asking, self._quick, self._previews, self._public, self._door):
            each.shutdown(wait=False, cancel_futures=True)

    @property
    def busy(self) -> bool:
        """Whether a question is still being answered."""
        return self.jobs.busy


def _obtain(asker: Analyst, wanted: JobRequest) -> Shown:
    return asker.obtain(wanted.kind, wanted.request, idempotency_key=wanted.key)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and what serves it."""

    token: Token
    service: Service

    @property
    def analyst(self) -> Analyst:
        """The analyst whose token it is, for what never touches data."""
        return self.service.curator.analyst(self.token.analyst)


def allow(*roles: Role) -> Any:
    """A dependency: the caller, whose token must have one of these roles.

    A route that does not say so does not start (`application`).
    """

    async def caller(request: Request) -> Caller:
        found = Caller(request.scope["state"]["token"], request.app.state.service)
        if found.token.role not in roles:
            raise AuthDeniedError(
                "This token is not for this.",
                why=f"It is for role {' or '.join(roles)}; this one is for {found.token.role.value}.",
                fix="Use another token.",
            )
        return found

    setattr(caller, _MARK, roles)
    return Depends(caller)


def allowed(call: Callable[..., Awaitable[Any]] | None) -> tuple[Role, ...] | None:
    """The roles of a dependency that `allow` made."""
    return getattr(call, _MARK, None)


ByAnalyst = Annotated[Caller, allow(Role.ANALYST)]
ByAsker = Annotated[Caller, allow(Role.ANALYST, Role.OWNER)]  # who may have begun a job
ByOwner = Annotated[Caller, allow(Role.OWNER)]
ByAuditor = Annotated[Caller, allow(Role.OWNER, Role.AUDITOR)]  # who may see everything
ByAnyone = Annotated[Caller, allow(*Role)]
