"""Who may ask and how much, who is suspended for now, and the tokens with which all of them come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from dalenius.app.http.responses import PROBLEMS, answer
from dalenius.app.http.schemas import AllotmentIn, NewTokenOut, ReasonIn, StandingOut, TokenIn, TokenOut
from dalenius.app.http.service import ByAuditor, ByOwner, Caller
from dalenius.app.views.history import list_standings, standing_shown
from dalenius.ledger.ledger import Ledger
from dalenius.ledger.suspensions import ANALYST, DATASET, Standing, Subject, resume, suspend
from dalenius.ledger.tokens import Role

router = APIRouter(prefix="/v1", tags=["analysts"])
tokens_router = APIRouter(prefix="/v1/tokens", tags=["tokens"])
_Change = Callable[[Ledger, Subject, str], Standing]


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
        standing = list_standings(ledger)
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


@router.post("/analysts/{analyst}/suspend", response_model=StandingOut, responses=PROBLEMS)
async def suspend_analyst(caller: ByOwner, analyst: str, body: ReasonIn) -> Response:
    """Refuses an analyst's new questions until it is lifted; what was paid for can still be asked again."""
    return await _change(caller, suspend, (ANALYST, analyst), body)


@router.post("/analysts/{analyst}/resume", response_model=StandingOut, responses=PROBLEMS)
async def resume_analyst(caller: ByOwner, analyst: str, body: ReasonIn) -> Response:
    """Lets an analyst go on; late answers are counted anew."""
    return await _change(caller, resume, (ANALYST, analyst), body)


@router.post("/datasets/{dataset}/suspend", response_model=StandingOut, responses=PROBLEMS)
async def suspend_dataset(caller: ByOwner, dataset: str, body: ReasonIn) -> Response:
    """Refuses new questions about a data set, of all analysts, until it is lifted."""
    return await _change(caller, suspend, (DATASET, dataset), body)


@router.post("/datasets/{dataset}/resume", response_model=StandingOut, responses=PROBLEMS)
async def resume_dataset(caller: ByOwner, dataset: str, body: ReasonIn) -> Response:
    """Lets questions about a data set go on; late answers are counted anew."""
    return await _change(caller, resume, (DATASET, dataset), body)


async def _change(caller: Caller, change: _Change, subject: Subject, body: ReasonIn) -> Response:
    def work() -> Response:
        return answer(standing_shown(subject, change(caller.service.curator.ledger, subject, body.reason)))

    return await caller.service.run(work)


@tokens_router.get("", response_model=dict[str, Any], responses=PROBLEMS)
async def tokens(caller: ByOwner) -> Response:
    """All tokens, without their secrets."""
    service = caller.service
    return await service.run(lambda: answer({"tokens": [each.to_dict() for each in service.tokens.all()]}))


@tokens_router.post("", status_code=201, response_model=NewTokenOut, responses=PROBLEMS)
async def create(caller: ByOwner, body: TokenIn) -> Response:
    """A new token. Its text is shown this once; only its hash is kept."""

    def work() -> Response:
        text, token = caller.service.tokens.create(
            Role(body.role), body.analyst, expires=timedelta(days=body.days), trusted=body.trusted, note=body.note
        )
        return answer({"token": text, **token.to_dict()}, 201)

    return await caller.service.run(work)


@tokens_router.delete("/{id}", response_model=TokenOut, responses=PROBLEMS)
async def revoke(caller: ByOwner, id: str) -> Response:  # noqa: A002
    """Revokes a token, at once and in every server process."""
    service = caller.service
    return await service.run(lambda: answer(service.tokens.revoke(id).to_dict()))
