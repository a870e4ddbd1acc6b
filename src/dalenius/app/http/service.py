"""What all routes share: the curator, who has which token, the threads in which work is done, and the jobs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from dalenius.app.http.jobs import Job, Jobs
from dalenius.app.http.limits import Limits, limited
from dalenius.app.http.metrics import Metrics
from dalenius.curator import Curator
from dalenius.ledger.tokens import Role, Token, Tokens
from dalenius.pacing import SAFETY, Pacer, Times, probe

if TYPE_CHECKING:
    from dalenius.analyst import Analyst
    from dalenius.app.http.settings import Settings
    from dalenius.queries.release import Release

T = TypeVar("T")
_HEAVY = (
    "dalenius.queries.rules",
    "dalenius.queries.answering",
    "dalenius.queries.accuracy",
    "dalenius.queries.public",
)
_DOOR = 4  # threads that look at tokens, whatever the others are busy with
_QUICK = 16  # threads for what never waits
_PREVIEWS = 2  # threads for previews: free questions must not slow down those that have to leave in time
_ASKING = 128  # threads for questions, most of which wait for their time


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and what serves it."""

    token: Token
    service: Service

    @property
    def analyst(self) -> Analyst:
        """The analyst whose token it is, for what never touches data."""
        return self.service.curator.analyst(self.token.analyst)


class Service:
    """One server process on one home. Others may serve the same home: the ledger keeps them in step."""

    def __init__(self, home: Path, settings: Settings, *, speed: float | None = None) -> None:
        self.settings = settings
        self.curator = Curator(home)
        self.tokens = Tokens(self.curator.ledger)
        self.metrics = Metrics()
        self.limits = Limits(settings.rate, settings.burst, settings.concurrency)
        speed = probe() if speed is None else speed
        self._paced = Pacer(settings.slots, speed)
        # Both look at once, and a fixed time is SAFETY times what a question alone was measured to take.
        self._trusted = Pacer(max(2, SAFETY - settings.slots), speed, fixed=False)
        self._door = ThreadPoolExecutor(_DOOR, "dalenius-door")
        self._quick = ThreadPoolExecutor(_QUICK, "dalenius-quick")
        self._previews = ThreadPoolExecutor(_PREVIEWS, "dalenius-preview")
        self._previewing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._asking = ThreadPoolExecutor(_ASKING, "dalenius-ask")
        self.jobs = Jobs(self.curator.home)
        self._resuming = threading.Lock()
        self.curator.engines  # noqa: B018 (made here, not by two threads at once)
        self.curator.registry.place  # noqa: B018
        for name in _HEAVY:  # else the first question waits for them
            import_module(name)

    async def run(self, work: Callable[[], T]) -> T:
        """Something that does not wait, in a thread: the event loop itself never touches a file."""
        # With its context, which knows in whose name it is done (`ledger.authors`).
        return await asyncio.get_running_loop().run_in_executor(self._quick, copy_context().run, work)

    async def preview(self, token: Token, work: Callable[[], T]) -> T:
        """A preview: free, so there may be many; one of a token at a time, so that none is at the cost of others."""
        lock = self._previewing.setdefault(token.id, asyncio.Lock())
        async with lock:
            return await asyncio.get_running_loop().run_in_executor(self._previews, work)

    async def holder(self, text: str) -> Token:
        """Whose token a text is; raises where it is none that is good now."""
        return await asyncio.get_running_loop().run_in_executor(self._door, self.tokens.check, text)

    async def is_good(self, id_: str) -> bool:
        """Whether a token is still good: asked again before anything leaves that it asked for."""
        return await asyncio.get_running_loop().run_in_executor(self._door, self.tokens.is_good, id_)

    def ask(self, token: Token, question: dict[str, Any]) -> Job:
        """Begins to answer a question, in a thread of its own.

        A question counts as open until its answer leaves, also if nobody waits for it: else one token could take up
        every thread with jobs.
        """
        if self.jobs.running(token) >= self.settings.concurrency:
            raise limited(f"{self.settings.concurrency} questions of this token are open.", 1.0)
        job = self.jobs.new(token, question)
        self._begin(job, token, question)
        return job

    def resume(self, token: Token, id_: str) -> Job | None:
        """A job of this analyst: one of this process, or one that another left; its question is asked again, free."""
        with self._resuming:  # of two who come at once, one begins, and neither sees a job that has not begun
            job = self.jobs.find(token, id_)
            if job is None:
                question = self.jobs.read(token, id_)
                if question is None:
                    return None
                job = self.jobs.new(token, question, id_)
                self._begin(job, token, question)
            return job

    def _begin(self, job: Job, token: Token, question: dict[str, Any]) -> None:
        pacer = self._trusted if token.trusted else self._paced

        def started(fixed: Times | None) -> None:
            self.metrics.looking.inc()
            job.started(fixed)

        def work() -> Release:
            asker = self.curator.analyst(token.analyst, pacer=pacer.telling(started))
            return asker.ask(**question)

        future: Future[Release] = self._asking.submit(work)
        job.follow(future)

    def close(self) -> None:
        """No new questions; what runs goes on to its end."""
        for each in (self._asking, self._quick, self._previews, self._door):
            each.shutdown(wait=False, cancel_futures=True)

    @property
    def busy(self) -> bool:
        """Whether a question is still being answered."""
        return self.jobs.busy


__all__ = ["Caller", "Role", "Service"]
