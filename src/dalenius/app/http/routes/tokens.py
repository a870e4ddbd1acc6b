"""Tokens: made, listed and revoked by the owner."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from dalenius.app.http.answers import PROBLEMS, answer
from dalenius.app.http.roles import ByOwner
from dalenius.app.http.schemas import NewTokenOut, TokenIn, TokenOut
from dalenius.ledger.tokens import Role

router = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@router.get("", response_model=dict[str, Any], responses=PROBLEMS)
async def tokens(caller: ByOwner) -> Response:
    """All tokens, without their secrets."""
    service = caller.service
    return await service.run(lambda: answer({"tokens": [each.to_dict() for each in service.tokens.all()]}))


@router.post("", status_code=201, response_model=NewTokenOut, responses=PROBLEMS)
async def create(caller: ByOwner, body: TokenIn) -> Response:
    """A new token. Its text is shown this once; only its hash is kept."""

    def work() -> Response:
        text, token = caller.service.tokens.create(
            Role(body.role), body.analyst, expires=timedelta(days=body.days), trusted=body.trusted, note=body.note
        )
        return answer({"token": text, **token.to_dict()}, 201)

    return await caller.service.run(work)


@router.delete("/{id}", response_model=TokenOut, responses=PROBLEMS)
async def revoke(caller: ByOwner, id: str) -> Response:  # noqa: A002
    """Revokes a token, at once and in every server process."""
    service = caller.service
    return await service.run(lambda: answer(service.tokens.revoke(id).to_dict()))
