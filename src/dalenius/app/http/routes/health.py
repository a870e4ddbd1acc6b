"""Whether the server lives and is ready; metrics; the description of everything."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response

from dalenius.app.http.guard import OPEN
from dalenius.app.http.monitoring import METRICS_MEDIA
from dalenius.app.http.responses import PROBLEMS, answer
from dalenius.app.http.service import ByAnyone, ByAuditor

router = APIRouter(tags=["server"])
_HEADER = {"schema": {"type": "string"}}
_HEADERS = {"401": {"WWW-Authenticate": _HEADER}, "429": {"Retry-After": _HEADER | {"description": "Seconds."}}}
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
    return Response(caller.service.metrics.text(), media_type=METRICS_MEDIA)


@router.get("/v1/openapi.json", response_model=dict[str, Any], responses=PROBLEMS)
async def openapi(caller: ByAnyone, request: Request) -> Response:  # noqa: ARG001
    """This description."""
    return answer(describe(request.app))


def describe(app: FastAPI) -> dict[str, Any]:
    """FastAPI's description, with what the guard adds: the tokens, and the headers of refusals. Made once."""
    if app.openapi_schema is None:
        found = app.openapi()
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in found["paths"].items():
            for operation in methods.values():
                operation["security"] = [] if path in OPEN else [{"token": []}]
                for status, headers in _HEADERS.items():
                    if status in operation["responses"]:
                        operation["responses"][status]["headers"] = headers
    return app.openapi_schema or {}
