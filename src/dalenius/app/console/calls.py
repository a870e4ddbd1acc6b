"""What a page does for somebody: one call at a time, each of which the API does too, under the same rules.

A page never reaches the ledger or the data by itself. Each call names the API's route that does the same, is open to
the roles that the route is open to, counts against the same limits, and leaves the same line in the log.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fastapi.routing import APIRoute

from dalenius.app.console.lab import RUNS
from dalenius.app.http.files import take_in
from dalenius.app.http.jobs import JobRequest
from dalenius.app.http.monitoring import tell
from dalenius.app.http.routes import ROUTERS
from dalenius.app.http.service import allowed
from dalenius.errors import AuthDeniedError, DaleniusError, NotAllowedError
from dalenius.ledger.actions import acting, token_author
from dalenius.ledger.requests import QUESTION
from dalenius.queries.ask import Ask

if TYPE_CHECKING:
    from dalenius.anonymity.publishing import Published
    from dalenius.app.console.sessions import Session
    from dalenius.learning.release import TrainedModel
    from dalenius.learning.score_release import ModelScore
    from dalenius.ledger.tokens import Role, Token
    from dalenius.queries.release import Release
    from dalenius.queries.workloads.release import WorkloadRelease
    from dalenius.synthesis.comparison_release import Comparison
    from dalenius.synthesis.release import SyntheticTable

T = TypeVar("T")
LAB = "the attack lab"  # which the API has not: `dalenius attack` is on everybody's own machine
# What takes a while and is free: one of a session at a time.
_PREVIEWS = frozenset(
    (
        "POST /v1/preview",
        "POST /v1/workloads/preview",
        "POST /v1/synthetic/preview",
        "POST /v1/synthetic/compare/preview",
        "GET /v1/synthetic/{id}",
        "GET /v1/synthetic/{id}/report",
        "GET /v1/synthetic/{id}/rows",
        "POST /v1/models/preview",
        "GET /v1/models/{id}",
    )
)
REVOKE = "DELETE /v1/tokens/{id}"
Waiting = Callable[[float | None], None]  # is told every second how many seconds are left, once that is known
Stepped = Callable[[int, int], None]  # likewise how many steps are done, of how many


async def call(session: Session, route: str, work: Callable[[], T]) -> T:
    """Does what the API does at ``route``, in a thread.

    Args:
        session: For whom.
        route: As in "GET /v1/tables".
        work: What is done; its result goes to the page.
    """

    async def done(token: Token) -> T:
        if route in _PREVIEWS:
            return await session.service.preview(token, work)
        return await session.service.run(work)

    return await _pass(session, route, done)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a question is asked for: a price, or an accuracy such as "2%", with the most to pay for it."""

    epsilon: float | None
    error: str | None

    def __str__(self) -> str:
        return f"Price: ε = {self.epsilon:g}" if self.error is None else f"Accuracy: ± {self.error}"


async def ask(session: Session, sql: str, wish: Wish, waiting: Waiting) -> Release:
    """Asks. Charged before the data is looked at; the answer comes when its time has come."""
    asked = Ask(sql, wish.epsilon, wish.error).to_json()
    return cast("Release", await _obtain(session, "POST /v1/ask", QUESTION, asked, waiting))


async def ask_many(session: Session, sql: str, epsilon: float, waiting: Waiting) -> WorkloadRelease:
    """Asks many questions at one price, in the same way."""
    asked = {"questions": sql, "epsilon": epsilon}
    return cast("WorkloadRelease", await _obtain(session, "POST /v1/workloads", "workload", asked, waiting))


async def synthesize(session: Session, asked: Mapping[str, Any], waiting: Waiting) -> SyntheticTable:
    """Makes a synthetic table, in the same way."""
    return cast("SyntheticTable", await _obtain(session, "POST /v1/synthetic", "synthetic", asked, waiting))


async def compare(session: Session, asked: Mapping[str, Any], waiting: Waiting) -> Comparison:
    """Compares a synthetic table with the real one, in the same way."""
    return cast("Comparison", await _obtain(session, "POST /v1/synthetic/compare", "comparison", asked, waiting))


async def train(session: Session, asked: Mapping[str, Any], waiting: Waiting, stepped: Stepped) -> TrainedModel:
    """Trains a model, in the same way. ``stepped`` is told how many steps are done, of how many, where it may be."""
    return cast("TrainedModel", await _obtain(session, "POST /v1/models", "model", asked, waiting, stepped))


async def score(session: Session, asked: Mapping[str, Any], waiting: Waiting) -> ModelScore:
    """Scores a model on units held out, in the same way."""
    return cast("ModelScore", await _obtain(session, "POST /v1/models/score", "score", asked, waiting))


async def publish(session: Session, asked: Mapping[str, Any]) -> Published:
    """Publishes rows, or tells what they would be like: the owner's, in the same way."""
    found = await _obtain(session, "POST /v1/publications", "publication", asked, lambda _: None)
    return cast("Published", found)


async def _obtain(
    session: Session,
    route: str,
    kind: str,
    asked: Mapping[str, Any],
    waiting: Waiting,
    stepped: Stepped = lambda done, steps: None,  # noqa: ARG005
) -> Any:
    wanted = JobRequest(kind, asked, secrets.token_urlsafe(16))

    async def done(token: Token) -> Any:
        service = session.service
        job = service.obtain(token, wanted)
        try:
            pause = 0.2  # until it is known how long: then once a second is enough
            while not await job.wait(pause):
                told = job.to_dict()
                waiting(told["seconds_left"])
                if told["steps"] is not None:
                    stepped(*told["steps"])
                pause = 0.2 if told["seconds_left"] is None else 1.0
        finally:
            service.jobs.forget(job)  # which counts as open until its end
        await service.run(session.check)  # who signed out meanwhile is not shown it
        return await service.run(job.result)

    return await _pass(session, route, done)


async def attack(session: Session, name: str) -> list[dict[str, Any]]:
    """Runs an attack of the lab on made-up people; open to all who are signed in."""

    async def done(token: Token) -> list[dict[str, Any]]:
        return await RUNS.run(name, token.id)

    return await _pass(session, LAB, done)


async def put(session: Session, given: str, pieces: AsyncIterable[bytes]) -> str:
    """Takes a file into the data folder, as it comes; its name there."""

    async def done(_: Token) -> str:
        service = session.service
        if service.settings.data_dir is None:
            raise NotAllowedError(
                "This server takes no files.", why="It was given no data_dir.", fix="Start it with --data-dir."
            )
        return await take_in(pieces, given, service.settings.data_dir, service.run)

    return await _pass(session, "PUT /v1/files/{name:path}", done)


async def _pass(session: Session, route: str, done: Callable[[Token], Awaitable[T]]) -> T:
    """The way of every call: who, which role, how often; and one line in the log, whatever happens."""
    service, key = session.service, session.token.id
    start, status, code = time.monotonic(), 200, ""
    try:
        token = await service.run(session.check)
        _check_role(token, route)
        service.limits.admit(key)
        try:
            with acting(token_author(token.id)):
                found = await done(token)
        finally:
            service.limits.done(key)
        if route != REVOKE:  # which may have ended the own one
            await service.run(session.check)  # who signed out meanwhile, or whose token has ended, is not shown it
    except DaleniusError as error:
        status, code = error.status, error.code
        service.metrics.refused.labels(code).inc()
        raise
    except Exception:
        status = 500
        raise
    else:
        return found
    finally:
        took = time.monotonic() - start
        service.metrics.requests.labels("PAGE", route, str(status)).inc()
        more: dict[str, Any] = {"code": code} if code else {}
        tell("call", route=route, status=status, token=key, ms=round(1000 * took), **more)


def _check_role(token: Token, route: str) -> None:
    if route != LAB and token.role not in roles()[route]:
        raise AuthDeniedError("This is not for you.", why=f"Your role is {token.role.value}.", fix="Ask the owner.")


@cache
def roles() -> dict[str, tuple[Role, ...]]:
    """Every route of the API, with the roles it is open to."""
    found: dict[str, tuple[Role, ...]] = {}
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute):
                open_to = [allowed(each.call) for each in route.dependant.dependencies]
                for method in route.methods or ():
                    found[f"{method} {route.path}"] = next((each for each in open_to if each), ())
    return found
