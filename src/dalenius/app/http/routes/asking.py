"""Questions: ask, preview, and jobs for what takes long."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from dalenius.app.http.jobs import Job, JobRequest
from dalenius.app.http.responses import PROBLEMS, answer, no_such_path, token_ended
from dalenius.app.http.schemas import AskIn, ExplainIn, ExplanationOut, JobOut, PreviewIn, PreviewOut, ReleaseOut
from dalenius.app.http.service import ByAnalyst, ByAsker, Caller
from dalenius.ledger.requests import QUESTION
from dalenius.queries.ask import Ask, limits_of_json

router = APIRouter(prefix="/v1", tags=["questions"])
LATER: dict[int | str, dict[str, Any]] = {
    **PROBLEMS,
    202: {"model": JobOut, "description": "It takes long; poll the job, or follow its events."},
}
_EVERY = 1.0  # seconds between two events of a stream


@router.post(
    "/ask",
    response_model=ReleaseOut,
    responses=LATER,
)
async def ask(caller: ByAnalyst, body: AskIn, request: Request) -> Response:
    """Asks: charged before the data is looked at; the same question again is free."""
    return await obtain_release(caller, QUESTION, _read(body).to_json(), body.idempotency_key, request)


async def obtain_release(
    caller: Caller, kind: str, given: Mapping[str, Any], key: str | None, request: Request
) -> Response:
    """A release of any kind: the release itself if it comes soon, else a job."""
    service = caller.service
    later = "respond-async" in request.headers.get("prefer", "").lower()
    # A job must be found again by whoever takes it up, also if it failed.
    wanted = JobRequest(kind, given, key or secrets.token_urlsafe(16))
    job = service.obtain(caller.token, wanted)
    try:
        if await _wait(job, request, 0 if later else service.settings.wait):
            service.jobs.forget(job)
            await _check_good(caller, job)
            return await service.run(lambda: answer({**job.echo, **job.result().to_dict()}))
        await service.run(lambda: service.jobs.write(job, wanted))
    except BaseException:
        service.jobs.forget(job)
        raise
    response = answer(job.to_json(), 202)
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return response


async def _check_good(caller: Caller, job: Job) -> None:
    """An answer is not delivered once its token has ended; it stays charged, and stored."""
    if not await caller.service.is_good(caller.token.id):
        raise token_ended(job.charge)


@router.post("/preview", response_model=PreviewOut, responses=PROBLEMS)
async def preview(caller: ByAnalyst, body: PreviewIn, request: Request) -> Response:
    """Price and expected error, for nothing. Never touches the data."""

    def work() -> Response:
        ask = _read(body)
        found = caller.analyst.preview(
            ask.question,
            epsilon=ask.epsilon,
            error=ask.error,
            confidence=ask.confidence,
            delta=ask.delta,
            limits=ask.limits,
            fresh=ask.fresh,
        )
        plan = found.described() if body.plan else {}
        return answer({"question": body.sql, **found.to_dict(), **plan})

    return await preview_while_there(caller, request, work)


@router.post("/explain", response_model=ExplanationOut, responses=PROBLEMS)
async def explain(caller: ByAnalyst, body: ExplainIn, request: Request) -> Response:
    """What a question was understood to mean, for nothing. Never touches the data."""

    def work() -> Response:
        limits = None if body.limits is None else limits_of_json(body.limits.model_dump())
        found = caller.analyst.explain(body.sql, epsilon=body.epsilon, delta=body.delta, limits=limits)
        return answer({"question": body.sql, **found.to_dict()})

    return await preview_while_there(caller, request, work)


async def preview_while_there(caller: Caller, request: Request, work: Callable[[], Response]) -> Response:
    """What is planned for nothing, as long as the client is there."""
    gone = threading.Event()
    async with _watching(request, gone.set):
        return await caller.service.preview(caller.token, work, gone.is_set)


@router.get("/jobs/{id}", response_model=JobOut, responses=PROBLEMS)
async def job(caller: ByAsker, id: str) -> Response:  # noqa: A002 (its name in the path)
    """A job of this analyst, or of the owner, from whichever server process it began in."""
    found = await _job(caller, id)
    return await caller.service.run(lambda: answer(found.to_json()))


@router.get(
    "/jobs/{id}/events",
    response_class=StreamingResponse,
    responses={**PROBLEMS, 200: {"content": {"text/event-stream": {}}, "description": "Server-sent events: `status`."}},
)
async def events(caller: ByAsker, id: str) -> Response:  # noqa: A002
    """The same as a stream: an event every second, and a last one when its time has come."""
    found = await _job(caller, id)

    async def stream() -> AsyncIterator[bytes]:
        while not await found.wait(_EVERY):
            yield _event(found)  # the guard looks at the token before each of them
        yield _event(found)

    return StreamingResponse(stream(), media_type="text/event-stream")


async def _job(caller: Caller, id_: str) -> Job:
    found = await caller.service.run(lambda: caller.service.resume(caller.token, id_))
    if found is None:
        raise no_such_path()
    return found


def _event(found: Job) -> bytes:
    return b"event: status\ndata: " + found.to_json() + b"\n\n"


async def _wait(job: Job, request: Request, seconds: float) -> bool:
    """Waits for a job's end, at most so long; whether it came. Who goes away is not waited for."""
    async with _watching(request, job.left.set):
        return await job.wait(seconds)


@asynccontextmanager
async def _watching(request: Request, left: Callable[[], None]) -> AsyncIterator[None]:
    """Tells when the client is gone. What it asked for nothing is then stopped; what is charged goes on to its end."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        left()

    watching = asyncio.ensure_future(watch())
    try:
        yield
    finally:
        watching.cancel()


def _read(body: AskIn | PreviewIn) -> Ask:
    limits = None if body.limits is None else limits_of_json(body.limits.model_dump())
    return Ask(body.sql, body.epsilon, body.error, body.confidence, body.delta, limits, body.fresh)
