"""Whether the server lives and is ready; metrics; the description of everything."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dalenius.app.http.answers import PROBLEMS, answer
from dalenius.app.http.description import described
from dalenius.app.http.metrics import MEDIA
from dalenius.app.http.roles import ByAnyone, ByAuditor

router = APIRouter(tags=["server"])
_OPEN: dict[int | str, dict[str, Any]] = {status: PROBLEMS[status] for status in (400, 405, 408, 413, 429, 500, 503)}


@router.get("/healthz", response_model=dict[str, str], responses=_OPEN)
async def healthz() -> Response:
    """The process is there."""
    return answer({"status": "ok"})


@router.get("/readyz", response_model=dict[str, str], responses=_OPEN)
async def readyz(request: Request) -> Response:
    """The ledger can be read: questions can be answered."""
    service = request.app.state.service

    def work() -> Response:
        service.curator.ledger.head  # noqa: B018 (raises where it cannot be used)
        return answer({"status": "ok"})

    return await service.run(work)  # type: ignore[no-any-return]


@router.get(
    "/metrics",
    responses={**PROBLEMS, 200: {"content": {"text/plain": {}}, "description": "Prometheus' text format."}},
    response_class=Response,
)
async def metrics(caller: ByAuditor) -> Response:
    """Counts for the owner's monitoring, with an auditor's token; nothing per row."""
    return Response(caller.service.metrics.text(), media_type=MEDIA)


@router.get("/v1/openapi.json", response_model=dict[str, Any], responses=PROBLEMS)
async def openapi(caller: ByAnyone, request: Request) -> Response:  # noqa: ARG001
    """This description."""
    return answer(described(request.app))
