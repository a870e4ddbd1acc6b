"""Who may ask, and how much."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from dalenius.app.http.answers import PROBLEMS, answer
from dalenius.app.http.roles import ByAuditor, ByOwner
from dalenius.app.http.schemas import AllotmentIn
from dalenius.app.suspended import listed

router = APIRouter(prefix="/v1", tags=["analysts"])


@router.get("/analysts", response_model=dict[str, Any], responses=PROBLEMS)
async def analysts(caller: ByAuditor) -> Response:
    """Every allotment, and who is suspended."""

    def work() -> Response:
        ledger = caller.service.curator.ledger
        found = [
            {"analyst": analyst, "dataset": dataset, "epsilon": epsilon}
            for dataset in ledger.datasets()
            for analyst, epsilon in ledger.allotments(dataset).items()
        ]
        standing = listed(ledger)
        return answer({"analysts": found, "standings": standing["analysts"], "datasets": standing["datasets"]})

    return await caller.service.run(work)


@router.put("/datasets/{dataset}/analysts/{analyst}", response_model=dict[str, Any], responses=PROBLEMS)
async def allot(caller: ByOwner, dataset: str, analyst: str, body: AllotmentIn) -> Response:
    """What an analyst may spend of a data set's budget; what was spent stays spent."""

    def work() -> Response:
        ledger = caller.service.curator.ledger
        ledger.set_allotment(dataset, analyst, body.epsilon)
        return answer(ledger.balance(dataset, analyst).to_dict())

    return await caller.service.run(work)


@router.delete("/datasets/{dataset}/analysts/{analyst}", status_code=204, responses=PROBLEMS)
async def end(caller: ByOwner, dataset: str, analyst: str) -> Response:
    """Takes an allotment back."""

    def work() -> Response:
        ledger = caller.service.curator.ledger
        ledger.budget(dataset)  # which says so where there is no such data set
        ledger.end_allotment(dataset, analyst)
        return Response(status_code=204)

    return await caller.service.run(work)
