"""What was spent and what is left: budgets, an analyst's history, receipts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from dalenius.app.balances import visible, written
from dalenius.app.burn_down import seen
from dalenius.app.http.answers import PROBLEMS, answer
from dalenius.app.http.roles import ByAnalyst, ByAnyone
from dalenius.app.http.schemas import OverTimeOut, TokenOut
from dalenius.app.http.service import Caller
from dalenius.ledger.tokens import Role

router = APIRouter(prefix="/v1", tags=["spending"])


@router.get("/me", response_model=TokenOut, responses=PROBLEMS)
async def me(caller: ByAnyone) -> Response:
    """Whose token this is, and until when."""
    return answer(caller.token.to_dict())


@router.get("/budget", response_model=dict[str, Any], responses=PROBLEMS)
async def budget(caller: ByAnyone) -> Response:
    """What is left: for an analyst, of the data sets that are open to it."""

    def work() -> Response:
        return answer({"datasets": written(visible(caller.service.curator.ledger, whose(caller)))})

    return await caller.service.run(work)


@router.get("/budget/over-time", response_model=OverTimeOut, responses=PROBLEMS)
async def over_time(caller: ByAnyone) -> Response:
    """What was left after each charge: of data sets, and of the analyst who asks. At most the six newest periods."""

    def work() -> Response:
        lines = [
            {
                "dataset": total.dataset,
                "period": total.balance.period or None,
                "analyst": total.analyst or None,
                "cap": total.balance.epsilon,
                "points": [[when.isoformat(), left] for when, left in line],
            }
            for total, line in seen(caller.service.curator.ledger, whose(caller))
            if line
        ]
        return answer({"lines": lines})

    return await caller.service.run(work)


@router.get("/history", response_model=dict[str, Any], responses=PROBLEMS)
async def history(
    caller: ByAnalyst,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    """Every charge of this analyst, oldest first."""

    def work() -> Response:
        rows = [each for each in caller.analyst.history() if each["entry"] > after]
        more = len(rows) > limit
        return answer({"history": rows[:limit], "next": rows[limit - 1]["entry"] if more else None})

    return await caller.service.run(work)


@router.get("/receipts/{id}", response_model=dict[str, Any], responses=PROBLEMS)
async def receipt(caller: ByAnyone, id: str) -> Response:  # noqa: A002
    """A receipt again; an analyst's own only."""
    mine = whose(caller)
    return await caller.service.run(lambda: answer(caller.service.curator.ledger.receipt(id, mine).to_dict()))


def whose(caller: Caller) -> str | None:
    """The analyst to whom alone it is shown; None: to somebody who sees all."""
    return caller.token.analyst if caller.token.role is Role.ANALYST else None
