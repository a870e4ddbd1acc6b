"""What may be asked about."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from dalenius.app.http.answers import PROBLEMS, answer
from dalenius.app.http.roles import ByAnyone
from dalenius.app.http.service import Caller
from dalenius.app.summaries import summary
from dalenius.errors import UnknownTableError
from dalenius.ledger.tokens import Role
from dalenius.tables.registry import Version

router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.get("", response_model=dict[str, Any], responses=PROBLEMS)
async def tables(caller: ByAnyone) -> Response:
    """The tables that this token may ask about, or see."""

    def work() -> Response:
        return answer({"tables": [_summary(caller, each) for each in _open(caller)]})

    return await caller.service.run(work)


@router.get("/{table}", response_model=dict[str, Any], responses=PROBLEMS)
async def table(caller: ByAnyone, table: str) -> Response:
    """One of them."""

    def work() -> Response:
        for each in _open(caller):
            if each.table.lower() == table.lower():
                return answer({"tables": [_summary(caller, each)]})
        raise UnknownTableError(
            "There is no such table.", why="None of that name is open to this token.", fix="See /v1/tables."
        )

    return await caller.service.run(work)


def _open(caller: Caller) -> list[Version]:
    """An analyst sees tables of data sets in which there is an allotment; whether there are others, nobody is told."""
    curator, token = caller.service.curator, caller.token
    found = curator.tables()
    if token.role is not Role.ANALYST:
        return found
    datasets = {name for name in curator.ledger.datasets() if token.analyst in curator.ledger.allotments(name)}
    return [each for each in found if each.dataset in datasets]


def _summary(caller: Caller, version: Version) -> dict[str, Any]:
    registry = caller.service.curator.registry
    return summary(version, registry.limits(version), registry.closed(version.table))
