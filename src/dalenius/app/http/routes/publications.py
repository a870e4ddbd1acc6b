"""Rows without a guarantee, for the owner: what they would be like, publishing them, and the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from dalenius.app.http.files import check_inside
from dalenius.app.http.responses import PROBLEMS, NotFoundError, answer
from dalenius.app.http.routes.asking import LATER, obtain_release
from dalenius.app.http.schemas import PublicationsOut, PublishIn
from dalenius.app.http.service import ByAuditor, ByOwner, Caller
from dalenius.errors import NotAllowedError, SourceUnavailableError
from dalenius.ledger import publications as recorded

router = APIRouter(prefix="/v1/publications", tags=["publications"])
KIND = recorded.KIND
_BYTES: dict[int | str, dict[str, Any]] = {
    **PROBLEMS,
    200: {
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        "description": "The rows, as CSV or Parquet.",
    },
}
_PIECE = 1 << 20
_SECONDS = 60.0


@router.post("", response_model=dict[str, Any], responses=LATER)
async def publish(caller: ByOwner, body: PublishIn, request: Request) -> Response:
    """Makes rows alike until the models hold. With `yes` they are published, which is put on record before they leave.

    With `dry_run` it tells what they would be like, and with `curve` also for other k. Files that are no protected
    table come with a `policy`; of them nothing is on record.
    """
    given = body.model_dump(exclude={"idempotency_key", "policy"}, exclude_none=True)
    given |= _time(body)
    given |= await caller.service.run(lambda: _files(caller, body))
    return await obtain_release(caller, KIND, given, body.idempotency_key, request)


@router.get("", response_model=PublicationsOut, responses=PROBLEMS)
async def publications(caller: ByAuditor) -> Response:
    """Every publication on record, oldest first."""

    def work() -> Response:
        return answer({"publications": list(_recorded(caller))})

    return await caller.service.run(work)


@router.get("/{name}", response_class=StreamingResponse, responses=_BYTES)
async def file(caller: ByOwner, name: str) -> Response:
    """The published rows again, by the name that publishing them gave."""

    def work() -> Path:
        from dalenius.anonymity.publishing import stored_file

        try:
            return stored_file(caller.service.curator.home, name)
        except SourceUnavailableError as error:
            raise NotFoundError(error.message, why=error.why, fix=error.fix) from None

    found = await caller.service.run(work)

    def pieces() -> Iterator[bytes]:
        with found.open("rb") as source:
            while piece := source.read(_PIECE):
                yield piece

    headers = {"Content-Disposition": f'attachment; filename="{found.name}"'}
    return StreamingResponse(pieces(), headers=headers, media_type="application/octet-stream")


def _time(body: PublishIn) -> dict[str, Any]:
    """How long it may search: a server's worker is never held for as long as an optimum takes.

    A curve makes the table once for each k, so its k share the time.
    """
    optimal = (body.method or "optimal") == "optimal"
    whole = _SECONDS if body.time is None and optimal else body.time
    return {} if body.m is not None or whole is None else {"time": whole / (1 + len(body.curve or ()))}


def _recorded(caller: Caller) -> Iterator[dict[str, Any]]:
    for entry in caller.service.curator.ledger.records((KIND,)):
        found = recorded.read_entry(entry)
        if found is not None:
            beside = {name: entry.data.get(name) for name in ("words", "facts", "reason", "by")}
            yield {**found.to_dict(), **beside}


def _files(caller: Caller, body: PublishIn) -> dict[str, Any]:
    """What a request names by path, made absolute; nothing outside the data folder."""
    root = caller.service.settings.data_dir
    named = {name: getattr(body, name) for name in ("population", "previous") if getattr(body, name) is not None}
    if not named and body.policy is None:
        return {}
    if root is None:
        raise NotAllowedError(
            "This server takes no files.", why="It was given no data_dir.", fix="Start it with --data-dir."
        )
    root = root.resolve()
    for path in named.values():
        check_inside(path, root)
    found: dict[str, Any] = {name: str(root / path) for name, path in named.items()}
    if body.policy is not None:
        from dalenius.anonymity.publishing import plain
        from dalenius.app.http.files import paths_in
        from dalenius.tables.anonymity import read_unprotected_text

        for path in paths_in(body.policy):  # before anything is opened
            check_inside(path, root)
        name, source, section = read_unprotected_text(body.policy, root)
        for path in source:
            check_inside(path, root)
        found |= {"table": name, "source": list(source), "section": plain(section)}
    return found
