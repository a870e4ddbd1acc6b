"""The report, for auditors and the owner: its facts, or the document itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import HTMLResponse, Response

from dalenius.app.http.answers import PROBLEMS, answer
from dalenius.app.http.roles import ByAuditor
from dalenius.app.report import POLICY, document
from dalenius.app.report import report as gathered

router = APIRouter(prefix="/v1", tags=["ledger"])
# The document's own policy, and what a policy inside of a document cannot say.
_POLICY = f"{POLICY}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
_EITHER = {"description": "Successful Response", "content": {"text/html": {"schema": {"type": "string"}}}}


@router.get("/report", response_model=dict[str, Any], responses={**PROBLEMS, 200: _EITHER})
async def report(
    caller: ByAuditor, form: Annotated[Literal["json", "html"], Query(alias="format")] = "json"
) -> Response:
    """Verifies the whole history and tells it. One that does not hold is told too, with `verification.holds` false."""

    def work() -> Response:
        found = gathered(caller.service.curator.ledger)
        if form == "json":
            return answer(found.to_dict())
        named = f'inline; filename="privacy-report-{found.made[:10]}.html"'
        return HTMLResponse(document(found), headers={"Content-Security-Policy": _POLICY, "Content-Disposition": named})

    return await caller.service.run(work)
