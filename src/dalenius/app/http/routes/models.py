"""Models: trained on a table, and scored on units that were held out."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dalenius.app.http.responses import PROBLEMS, answer
from dalenius.app.http.routes.asking import LATER, obtain_release, preview_while_there
from dalenius.app.http.schemas import AskScoreIn, ModelIn, ScoreIn, TrainIn
from dalenius.app.http.service import ByAnalyst

router = APIRouter(prefix="/v1", tags=["models"])
KIND = "model"
SCORE = "score"


@router.post("/models", response_model=dict[str, Any], responses=LATER)
async def train(caller: ByAnalyst, body: TrainIn, request: Request) -> Response:
    """Trains a model: charged once, before the data is looked at; the same again is free, and gives the same weights.

    A training that broke off goes on where it was when it is asked for again, under the same charge.
    """
    given = body.model_dump(exclude={"idempotency_key"})
    return await obtain_release(caller, KIND, given, body.idempotency_key, request)


@router.post("/models/preview", response_model=dict[str, Any], responses=PROBLEMS)
async def preview(caller: ByAnalyst, body: ModelIn, request: Request) -> Response:
    """Steps, noise and expected loss of accuracy of a model, for nothing. Never touches the data."""

    def work() -> Response:
        asked = body.model_dump(exclude={"table", "target", "features"})
        found = caller.analyst.preview_model(body.table, body.target, features=body.features or (), **asked)
        return answer(found.to_dict())

    return await preview_while_there(caller, request, work)


@router.post("/models/score", response_model=dict[str, Any], responses=LATER)
async def score(caller: ByAnalyst, body: AskScoreIn, request: Request) -> Response:
    """Counts how well a model of this analyst predicts the units held out: charged before the data is looked at."""
    given = body.model_dump(exclude={"idempotency_key"})
    return await obtain_release(caller, SCORE, given, body.idempotency_key, request)


@router.post("/models/score/preview", response_model=dict[str, Any], responses=PROBLEMS)
async def preview_score(caller: ByAnalyst, body: ScoreIn, request: Request) -> Response:
    """The expected margin of a score, for nothing. Never touches the data."""

    def work() -> Response:
        return answer(caller.analyst.preview_score(body.release, epsilon=body.epsilon).to_dict())

    return await preview_while_there(caller, request, work)


@router.get("/models/{id}", response_model=dict[str, Any], responses=PROBLEMS)
async def model(caller: ByAnalyst, id: str, request: Request) -> Response:  # noqa: A002 (its name in the path)
    """A model that this analyst has paid for, with its weights. Costs nothing."""
    return await preview_while_there(caller, request, lambda: answer(caller.analyst.model(id).to_dict()))
