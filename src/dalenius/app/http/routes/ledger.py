"""The history, alarms and the report, for auditors and the owner."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import HTMLResponse, Response

from dalenius.app.http.responses import PROBLEMS, answer
from dalenius.app.http.service import ByAuditor
from dalenius.app.report import SERVED, document
from dalenius.app.report import report as gathered
from dalenius.app.views.history import alarms as all_alarms
from dalenius.ledger.chain import Entry
from dalenius.ledger.verification import verify

router = APIRouter(prefix="/v1", tags=["ledger"])
OR_HTML = {"description": "Successful Response", "content": {"text/html": {"schema": {"type": "string"}}}}
After = Annotated[int, Query(ge=0, le=2**53)]


@router.get("/ledger", response_model=dict[str, Any], responses=PROBLEMS)
async def ledger(
    caller: ByAuditor,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    kind: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Every charge and owner action, oldest first."""

    def work() -> Response:
        found = caller.service.curator.ledger
        entries = found.records((kind,), after) if kind else found.entries(after)
        rows = list(islice(entries, limit + 1))
        more = len(rows) > limit
        return answer(
            {"entries": [entry_shown(each) for each in rows[:limit]], "next": rows[limit - 1].number if more else None}
        )

    return await caller.service.run(work)


@router.get("/ledger/verify", response_model=dict[str, Any], responses=PROBLEMS)
async def verification(caller: ByAuditor, expect: Annotated[str, Query(max_length=64)] = "") -> Response:
    """Reads the whole history again; a problem `ledger.corrupt` names the first entry that does not hold."""

    def work() -> Response:
        done = verify(caller.service.curator.ledger, expect=expect or None)
        return answer(
            {
                "verified": True,
                "entries": done.entries,
                "head": done.head,
                "charges": done.charges,
                "releases": done.releases,
            }
        )

    return await caller.service.run(work)


@router.get("/alarms", response_model=dict[str, Any], responses=PROBLEMS)
async def alarms(caller: ByAuditor, after: After = 0) -> Response:
    """Questions that were not ready in time, or that the engine could not answer."""
    return await caller.service.run(lambda: answer({"alarms": all_alarms(caller.service.curator.ledger, after)}))


@router.get("/report", response_model=dict[str, Any], responses={**PROBLEMS, 200: OR_HTML})
async def report(
    caller: ByAuditor, form: Annotated[Literal["json", "html"], Query(alias="format")] = "json"
) -> Response:
    """Verifies the whole history and tells it. One that does not hold is told too, with `verification.holds` false."""

    def work() -> Response:
        found = gathered(caller.service.curator.ledger)
        if form == "json":
            return answer(found.to_dict())
        named = f'inline; filename="privacy-report-{found.made[:10]}.html"'
        return HTMLResponse(document(found), headers={"Content-Security-Policy": SERVED, "Content-Disposition": named})

    return await caller.service.run(work)


def entry_shown(entry: Entry) -> dict[str, Any]:
    """An entry, without what only the server needs."""
    data = dict(entry.data)
    if entry.kind == "token":
        data.pop("hash", None)
    return {"number": entry.number, "kind": entry.kind, "time": entry.time, "hash": entry.hash.hex(), "data": data}
