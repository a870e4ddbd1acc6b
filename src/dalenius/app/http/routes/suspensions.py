"""Who may not ask for now: the owner suspends analysts and data sets, and lets them go on."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter
from starlette.responses import Response

from dalenius.app.http.answers import PROBLEMS, answer
from dalenius.app.http.roles import ByOwner
from dalenius.app.http.schemas import ReasonIn, StandingOut
from dalenius.app.http.service import Caller
from dalenius.app.suspended import shown
from dalenius.ledger.ledger import Ledger
from dalenius.ledger.suspensions import ANALYST, DATASET, Standing, Subject, resume, suspend

router = APIRouter(prefix="/v1", tags=["analysts"])
_Change = Callable[[Ledger, Subject, str], Standing]


@router.post("/analysts/{analyst}/suspend", response_model=StandingOut, responses=PROBLEMS)
async def suspend_analyst(caller: ByOwner, analyst: str, body: ReasonIn) -> Response:
    """Refuses an analyst's new questions until it is lifted; what was paid for can still be asked again."""
    return await _changed(caller, suspend, (ANALYST, analyst), body)


@router.post("/analysts/{analyst}/resume", response_model=StandingOut, responses=PROBLEMS)
async def resume_analyst(caller: ByOwner, analyst: str, body: ReasonIn) -> Response:
    """Lets an analyst go on; late answers are counted anew."""
    return await _changed(caller, resume, (ANALYST, analyst), body)


@router.post("/datasets/{dataset}/suspend", response_model=StandingOut, responses=PROBLEMS)
async def suspend_dataset(caller: ByOwner, dataset: str, body: ReasonIn) -> Response:
    """Refuses new questions about a data set, of all analysts, until it is lifted."""
    return await _changed(caller, suspend, (DATASET, dataset), body)


@router.post("/datasets/{dataset}/resume", response_model=StandingOut, responses=PROBLEMS)
async def resume_dataset(caller: ByOwner, dataset: str, body: ReasonIn) -> Response:
    """Lets questions about a data set go on; late answers are counted anew."""
    return await _changed(caller, resume, (DATASET, dataset), body)


async def _changed(caller: Caller, change: _Change, subject: Subject, body: ReasonIn) -> Response:
    def work() -> Response:
        return answer(shown(subject, change(caller.service.curator.ledger, subject, body.reason)))

    return await caller.service.run(work)
