"""What has left and what it cost: budgets, an analyst's history, receipts, releases of every kind, and new ones."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from dalenius.app.http.responses import PROBLEMS, answer
from dalenius.app.http.routes.asking import LATER, obtain_release
from dalenius.app.http.schemas import ObtainIn, OverTimeOut, ReleasesOut, TokenOut
from dalenius.app.http.service import ByAnalyst, ByAnyone, Caller
from dalenius.app.views.balances import balances_json, visible_totals
from dalenius.app.views.burn_down import visible_lines
from dalenius.ledger.publications import warning
from dalenius.ledger.tokens import Role
from dalenius.releasing.kinds import kind_of
from dalenius.releasing.stored import read_release, releases_of

spending_router = APIRouter(prefix="/v1", tags=["spending"])
router = APIRouter(prefix="/v1", tags=["releases"])
_After = Annotated[int, Query(ge=0, le=2**53)]
_Most = Annotated[int, Query(ge=1, le=1000)]


@spending_router.get("/me", response_model=TokenOut, responses=PROBLEMS)
async def me(caller: ByAnyone) -> Response:
    """Whose token this is, and until when."""
    return answer(caller.token.to_dict())


@spending_router.get("/budget", response_model=dict[str, Any], responses=PROBLEMS)
async def budget(caller: ByAnyone) -> Response:
    """What is left: for an analyst, of the data sets that are open to it."""

    def work() -> Response:
        return answer({"datasets": balances_json(visible_totals(caller.service.curator.ledger, whose(caller)))})

    return await caller.service.run(work)


@spending_router.get("/budget/over-time", response_model=OverTimeOut, responses=PROBLEMS)
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
            for total, line in visible_lines(caller.service.curator.ledger, whose(caller))
            if line
        ]
        return answer({"lines": lines})

    return await caller.service.run(work)


@spending_router.get("/history", response_model=dict[str, Any], responses=PROBLEMS)
async def history(
    caller: ByAnalyst,
    after: _After = 0,
    limit: _Most = 1000,
) -> Response:
    """Every charge of this analyst, oldest first."""

    def work() -> Response:
        rows = [each for each in caller.analyst.history() if each["entry"] > after]
        return _answer_page("history", rows, limit)

    return await caller.service.run(work)


@spending_router.get("/receipts/{id}", response_model=dict[str, Any], responses=PROBLEMS)
async def receipt(caller: ByAnyone, id: str) -> Response:  # noqa: A002
    """A receipt again; an analyst's own only."""
    mine = whose(caller)
    return await caller.service.run(lambda: answer(caller.service.curator.ledger.receipt(id, mine).to_dict()))


@router.get("/releases", response_model=ReleasesOut, responses=PROBLEMS)
async def releases(
    caller: ByAnyone,
    after: _After = 0,
    limit: _Most = 1000,
) -> Response:
    """Everything that left, oldest first, with its kind; for an analyst, what it paid for itself."""
    mine = whose(caller)

    def work() -> Response:
        found = [
            each.to_dict()
            for each in releases_of(caller.service.curator.ledger)
            if each.entry > after and mine in {None, each.analyst}
        ]
        ledger = caller.service.curator.ledger
        datasets = sorted({each["dataset"] for each in found[:limit]})
        notes = [each for each in (warning(ledger.published(name)) for name in datasets) if each]
        return _answer_page("releases", found, limit, notes=notes)

    return await caller.service.run(work)


@router.get("/releases/{id}", response_model=dict[str, Any], responses=PROBLEMS)
async def release(caller: ByAnyone, id: str) -> Response:  # noqa: A002
    """A release again, with its receipt and what is stored of it; an analyst's own only. Costs nothing."""
    mine = whose(caller)
    return await caller.service.run(lambda: answer(read_release(caller.service.curator.ledger, id, mine)))


@router.post(
    "/releases/{kind}",
    response_model=dict[str, Any],
    responses=LATER,
)
async def obtain(caller: ByAnalyst, kind: str, body: ObtainIn, request: Request) -> Response:
    """A release of any kind: charged before the data is looked at; the same again is free."""
    kind_of(kind)  # an unknown one is refused here
    return await obtain_release(caller, kind, body.request, body.idempotency_key, request)


def whose(caller: Caller) -> str | None:
    """The analyst to whom alone it is shown; None: to somebody who sees all."""
    return caller.token.analyst if caller.token.role is Role.ANALYST else None


def _answer_page(name: str, rows: list[dict[str, Any]], limit: int, **beside: Any) -> Response:
    """The first of them, and after which entry the next ones come."""
    more = len(rows) > limit
    return answer({name: rows[:limit], **beside, "next": rows[limit - 1]["entry"] if more else None})
