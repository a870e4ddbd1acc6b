"""Tables: what may be asked about; and for the owner, protect, policies and what changed in them, refresh."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from dalenius.app.http.files import policy_from
from dalenius.app.http.responses import PROBLEMS, NotFoundError, answer
from dalenius.app.http.schemas import ProtectIn, RefreshIn
from dalenius.app.http.service import ByAnyone, ByAuditor, ByOwner
from dalenius.app.views.tables import open_to, summary_of
from dalenius.errors import UnknownTableError
from dalenius.tables.difference import difference
from dalenius.tables.registry import Version

router = APIRouter(prefix="/v1/tables", tags=["tables"])
policies_router = APIRouter(prefix="/v1", tags=["policies"])


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


@policies_router.post("/protect", response_model=dict[str, Any], responses=PROBLEMS)
async def protect(caller: ByOwner, body: ProtectIn) -> Response:
    """Puts policies in force: all of them, or none. Files lie below the server's data_dir."""

    def work() -> Response:
        service = caller.service
        found = [policy_from(text, service.settings.data_dir) for text in body.policies]
        done = service.curator.protect(*found, yes=body.yes, dry_run=body.dry_run, reason=body.reason)
        return answer({"tables": [each.to_dict() for each in done]})

    return await caller.service.run(work)


@policies_router.get("/policies/{table}", response_model=dict[str, Any], responses=PROBLEMS)
async def policy(caller: ByAuditor, table: str) -> Response:
    """The policy in force, and every version before it."""

    def work() -> Response:
        versions = caller.service.curator.history(table)
        last = versions[-1]
        return answer(
            {
                "table": last.table,
                "version": last.version,
                "policy": last.text,
                "versions": [
                    {
                        "version": each.version,
                        "data_version": each.data_version,
                        "entry": each.entry,
                        "time": each.time,
                        "reason": each.reason,
                        "by": each.by,
                    }
                    for each in versions
                ],
            }
        )

    return await caller.service.run(work)


@policies_router.get("/policies/{table}/difference", response_model=dict[str, Any], responses=PROBLEMS)
async def changes(
    caller: ByAuditor,
    table: str,
    from_: Annotated[str, Query(alias="from", max_length=64)] = "",
    to: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """What changed between two versions; by default, between the last two."""

    def work() -> Response:
        versions = caller.service.curator.history(table)
        after = _version(versions, to) if to else versions[-1]
        before = _version(versions, from_) if from_ else versions[max(0, versions.index(after) - 1)]
        found = difference(before.policy, after.policy)
        told = [each.to_dict() for each in found]
        return answer({"table": after.table, "from": before.version, "to": after.version, "difference": told})

    return await caller.service.run(work)


@policies_router.post("/tables/{table}/refresh", response_model=dict[str, Any], responses=PROBLEMS)
async def refresh(caller: ByOwner, table: str, body: RefreshIn) -> Response:
    """The files behind a table's name changed: as they are now, they become its next data version."""

    def work() -> Response:
        return answer(caller.service.curator.refresh(table, **body.model_dump()).to_dict())

    return await caller.service.run(work)


def _version(versions: list[Version], wanted: str) -> Version:
    for each in reversed(versions):
        if each.version == wanted or each.version.startswith(wanted):
            return each
    raise NotFoundError("There is no such version.", why="The table never had it.", fix="See /v1/policies/TABLE.")
