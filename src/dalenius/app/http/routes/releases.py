"""What has left, of every kind; and new releases of any kind."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from dalenius.app.http.answers import PROBLEMS, answer
from dalenius.app.http.roles import ByAnalyst, ByAnyone
from dalenius.app.http.routes.asking import obtained
from dalenius.app.http.routes.spending import whose
from dalenius.app.http.schemas import JobOut, ObtainIn, ReleasesOut
from dalenius.releasing.kinds import kind_of
from dalenius.releasing.stored import read_release, releases_of

router = APIRouter(prefix="/v1", tags=["releases"])


@router.get("/releases", response_model=ReleasesOut, responses=PROBLEMS)
async def releases(
    caller: ByAnyone,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    """Everything that left, oldest first, with its kind; for an analyst, what it paid for itself."""
    mine = whose(caller)

    def work() -> Response:
        found = [
            each.to_dict()
            for each in releases_of(caller.service.curator.ledger)
            if each.entry > after and mine in {None, each.analyst}
        ]
        more = len(found) > limit
        return answer({"releases": found[:limit], "next": found[limit - 1]["entry"] if more else None})

    return await caller.service.run(work)


@router.get("/releases/{id}", response_model=dict[str, Any], responses=PROBLEMS)
async def release(caller: ByAnyone, id: str) -> Response:  # noqa: A002
    """A release again, with its receipt and what is stored of it; an analyst's own only. Costs nothing."""
    mine = whose(caller)
    return await caller.service.run(lambda: answer(read_release(caller.service.curator.ledger, id, mine)))


@router.post(
    "/releases/{kind}",
    response_model=dict[str, Any],
    responses={
        **PROBLEMS,
        202: {"model": JobOut, "description": "It takes long; poll the job, or follow its events."},
    },
)
async def obtain(caller: ByAnalyst, kind: str, body: ObtainIn, request: Request) -> Response:
    """A release of any kind: charged before the data is looked at; the same again is free."""
    kind_of(kind)  # an unknown one is refused here
    return await obtained(caller, kind, body.request, body.idempotency_key, request)
