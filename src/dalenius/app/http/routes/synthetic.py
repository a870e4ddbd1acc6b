"""Synthetic tables: a model of a table's rows, from which anybody may draw some."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dalenius.app.http.responses import PROBLEMS, answer
from dalenius.app.http.routes.asking import LATER, obtain_release, preview_while_there
from dalenius.app.http.schemas import AskSyntheticIn, SyntheticIn
from dalenius.app.http.service import ByAnalyst

router = APIRouter(prefix="/v1", tags=["synthetic"])
KIND = "synthetic"


@router.post("/synthetic", response_model=dict[str, Any], responses=LATER)
async def synthesize(caller: ByAnalyst, body: AskSyntheticIn, request: Request) -> Response:
    """Makes a model of a table: charged once, before the data is looked at; the same again is free, and so are rows."""
    given = body.model_dump(exclude={"idempotency_key"})
    return await obtain_release(caller, KIND, given, body.idempotency_key, request)


@router.post("/synthetic/preview", response_model=dict[str, Any], responses=PROBLEMS)
async def preview(caller: ByAnalyst, body: SyntheticIn, request: Request) -> Response:
    """What would be modelled and how noisy single columns would be, for nothing. Never touches the data."""

    def work() -> Response:
        found = caller.analyst.preview_synthetic(
            body.table,
            epsilon=body.epsilon,
            method=body.method,
            columns=body.columns or (),
            target=body.target,
            rows_per_unit=body.rows_per_unit,
            time=body.time,
        )
        return answer(found.to_dict())

    return await preview_while_there(caller, request, work)
