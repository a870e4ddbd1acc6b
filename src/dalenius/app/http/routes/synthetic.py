"""Synthetic tables: a model of a table's rows, from which anybody may draw some."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse, Response

from dalenius.app.http.opened import FOLDER, new_file
from dalenius.app.http.responses import PROBLEMS, answer
from dalenius.app.http.routes.asking import LATER, obtain_release, preview_while_there
from dalenius.app.http.routes.ledger import OR_HTML
from dalenius.app.http.schemas import AskSyntheticIn, CompareIn, ComparisonIn, OpenSyntheticIn, SyntheticIn
from dalenius.app.http.service import ByAnalyst, ByOwner
from dalenius.app.report import SERVED
from dalenius.app.report.synthetic import report_of
from dalenius.app.report.synthetic_html import document
from dalenius.synthesis.release import content_of

router = APIRouter(prefix="/v1", tags=["synthetic"])
LONGEST_WHERE = 2000  # letters: it stands in the address
MOST_ROWS = 200_000  # of one answer; whoever has the model draws as many as they like
AS_FILE: dict[str, Any] = {
    "description": "the rows",
    "content": {
        each: {"schema": {"type": "string", "format": "binary"}} for each in ("text/csv", "application/octet-stream")
    },
}
KIND = "synthetic"
COMPARISON = "comparison"


@router.post("/synthetic", response_model=dict[str, Any], responses=LATER)
async def synthesize(caller: ByAnalyst, body: AskSyntheticIn, request: Request) -> Response:
    """Makes a model of a table: charged once, before the data is looked at; the same again is free, and so are rows."""
    given = body.model_dump(exclude={"idempotency_key"})
    return await obtain_release(caller, KIND, given, body.idempotency_key, request)


@router.post("/synthetic/preview", response_model=dict[str, Any], responses=PROBLEMS)
async def preview(caller: ByAnalyst, body: SyntheticIn, request: Request) -> Response:
    """What would be modelled and how noisy single columns would be, for nothing. Never touches the data."""

    def work() -> Response:
        found = caller.analyst.preview_synthetic(
            body.table,
            epsilon=body.epsilon,
            method=body.method,
            columns=body.columns or (),
            target=body.target,
            rows_per_unit=body.rows_per_unit,
            time=body.time,
        )
        return answer(found.to_dict())

    return await preview_while_there(caller, request, work)


@router.post("/synthetic/compare", response_model=dict[str, Any], responses=LATER)
async def compare(caller: ByAnalyst, body: CompareIn, request: Request) -> Response:
    """Compares a synthetic table of this analyst with the real one: charged before the data is looked at."""
    given = body.model_dump(exclude={"idempotency_key"})
    return await obtain_release(caller, COMPARISON, given, body.idempotency_key, request)


@router.post("/synthetic/compare/preview", response_model=dict[str, Any], responses=PROBLEMS)
async def preview_comparison(caller: ByAnalyst, body: ComparisonIn, request: Request) -> Response:
    """The expected margins of a comparison, for nothing. Never touches the data."""

    def work() -> Response:
        found = caller.analyst.preview_comparison(body.release, epsilon=body.epsilon, predict=body.predict)
        return answer(found.to_dict())

    return await preview_while_there(caller, request, work)


@router.get("/synthetic/{id}", response_model=dict[str, Any], responses=PROBLEMS)
async def synthetic(caller: ByAnalyst, id: str, request: Request) -> Response:  # noqa: A002 (its name in the path)
    """A synthetic table that this analyst has paid for, with its model. Costs nothing."""
    return await preview_while_there(caller, request, lambda: answer(caller.analyst.synthetic(id).to_dict()))


@router.get("/synthetic/{id}/rows", response_class=Response, responses={**PROBLEMS, 200: AS_FILE})
async def rows(
    caller: ByAnalyst,
    id: str,  # noqa: A002
    request: Request,
    rows: Annotated[int | None, Query(ge=0, le=MOST_ROWS)] = None,
    where: Annotated[str | None, Query(max_length=LONGEST_WHERE)] = None,
    seed: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None,
    form: Annotated[Literal["csv", "parquet"], Query(alias="format")] = "csv",
) -> Response:
    """Rows of a synthetic table that this analyst has paid for: all, or those for which a condition holds. Free."""

    def work() -> Response:
        found = caller.analyst.synthetic(id)
        drawn = found.to_arrow(
            min(MOST_ROWS, found.rows_where(where)) if rows is None else rows, seed=seed, where=where
        )
        named = f'attachment; filename="synthetic.{form}"'
        kind = "text/csv; charset=utf-8" if form == "csv" else "application/octet-stream"
        return Response(content_of(drawn, form), media_type=kind, headers={"Content-Disposition": named})

    return await preview_while_there(caller, request, work)


@router.get("/synthetic/{id}/comparisons", response_model=dict[str, Any], responses=PROBLEMS)
async def comparisons(caller: ByAnalyst, id: str, request: Request) -> Response:  # noqa: A002
    """What this analyst has paid for of comparisons of a synthetic table, newest first. Costs nothing."""

    def work() -> Response:
        return answer({"comparisons": [each.to_dict() for each in caller.analyst.comparisons(id)]})

    return await preview_while_there(caller, request, work)


@router.get("/synthetic/{id}/report", response_model=dict[str, Any], responses={**PROBLEMS, 200: OR_HTML})
async def report(
    caller: ByAnalyst,
    id: str,  # noqa: A002
    request: Request,
    form: Annotated[Literal["json", "html"], Query(alias="format")] = "json",
) -> Response:
    """What a synthetic table is worth, with the newest comparison of it: from what was paid for. Costs nothing."""

    def work() -> Response:
        found = report_of(caller.analyst, id)
        if form == "json":
            return answer(found.to_dict())
        named = 'inline; filename="synthetic-report.html"'
        return HTMLResponse(document(found), headers={"Content-Security-Policy": SERVED, "Content-Disposition": named})

    return await preview_while_there(caller, request, work)


@router.post("/synthetic/{id}/open", response_model=dict[str, Any], responses=PROBLEMS)
async def open_rows(caller: ByOwner, id: str, body: OpenSyntheticIn) -> Response:  # noqa: A002
    """Opens rows of a synthetic table as a public table beside the real one. They are kept below the data folder."""

    def work() -> Response:
        service = caller.service
        file = new_file(service.settings.data_dir, f"{body.name}-{id}")
        done = service.curator.open_synthetic(id, body.name, file, rows=body.rows)
        return answer({"name": body.name, "file": f"{FOLDER}/{file.name}", "table": done.to_dict()})

    return await caller.service.run(work)
