"""Workloads: many questions at one price."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dalenius.app.http.responses import PROBLEMS, answer
from dalenius.app.http.routes.asking import LATER, obtain_release, preview_while_there
from dalenius.app.http.schemas import AskWorkloadIn, WorkloadIn
from dalenius.app.http.service import ByAnalyst

router = APIRouter(prefix="/v1", tags=["workloads"])
KIND = "workload"


@router.post("/workloads", response_model=dict[str, Any], responses=LATER)
async def ask(caller: ByAnalyst, body: AskWorkloadIn, request: Request) -> Response:
    """Asks many questions at one price: charged once, before the data is looked at; the same again is free."""
    given = body.model_dump(exclude={"idempotency_key"})
    return await obtain_release(caller, KIND, given, body.idempotency_key, request)


@router.post("/workloads/preview", response_model=dict[str, Any], responses=PROBLEMS)
async def preview(caller: ByAnalyst, body: WorkloadIn, request: Request) -> Response:
    """The expected error of every answer, also where each is asked alone, for nothing. Never touches the data."""

    def work() -> Response:
        found = caller.analyst.preview_many(
            body.questions,
            epsilon=body.epsilon,
            weights=body.weights or (),
            confidence=body.confidence,
            delta=body.delta,
        )
        return answer(found.to_dict())

    return await preview_while_there(caller, request, work)
