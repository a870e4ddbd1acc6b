"""What may be asked about."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from dalenius.app.http.answers import PROBLEMS, answer
from dalenius.app.http.roles import ByAnyone
from dalenius.app.summaries import open_to, summary_of
from dalenius.errors import UnknownTableError

router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.get("", response_model=dict[str, Any], responses=PROBLEMS)
async def tables(caller: ByAnyone) -> Response:
    """The tables that this token may ask about, or see."""

    def work() -> Response:
        curator = caller.service.curator
        return answer({"tables": [summary_of(curator, each) for each in open_to(curator, caller.token)]})

    return await caller.service.run(work)


@router.get("/{table}", response_model=dict[str, Any], responses=PROBLEMS)
async def table(caller: ByAnyone, table: str) -> Response:
    """One of them."""

    def work() -> Response:
        curator = caller.service.curator
        for each in open_to(curator, caller.token):
            if each.table.lower() == table.lower():
                return answer({"tables": [summary_of(curator, each)]})
        raise UnknownTableError(
            "There is no such table.", why="None of that name is open to this token.", fix="See /v1/tables."
        )

    return await caller.service.run(work)
