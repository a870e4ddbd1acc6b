"""The owner's files, below the server's data folder: which there are, their columns, and new ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dalenius.app.http.files import check_listed, check_safe, columns_of, list_files, take_in
from dalenius.app.http.responses import PROBLEMS, UnreadableError, answer
from dalenius.app.http.schemas import FileColumnsOut, FileListOut, FileOut
from dalenius.app.http.service import ByOwner, Caller
from dalenius.errors import NotAllowedError, SourceUnavailableError

router = APIRouter(prefix="/v1/files", tags=["files"])
_BYTES: dict[str, Any] = {  # not as a parameter, which FastAPI would read as a whole
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("", response_model=FileListOut, responses=PROBLEMS)
async def files(caller: ByOwner) -> Response:
    """Files below data_dir of which a table can be made; no links, nothing hidden."""
    root, home = _root(caller), caller.service.curator.home
    return await caller.service.run(lambda: answer({"files": list_files(root, home)}))


@router.get("/{name:path}", response_model=FileColumnsOut, responses=PROBLEMS)
async def columns(caller: ByOwner, name: str) -> Response:
    """The columns of one of them, to write a policy from. Never a value."""
    root, home = _root(caller), caller.service.curator.home

    def work() -> Response:
        check_listed(name, root, home)
        try:
            found = columns_of(name, root)
        except SourceUnavailableError as error:  # it will not be there later either
            raise UnreadableError(error.message, why=error.why, fix=error.fix) from None
        return answer({"name": name, "columns": [{"name": each, "type": kind} for each, kind in found]})

    return await caller.service.run(work)


@router.put("/{name:path}", status_code=201, response_model=FileOut, responses=PROBLEMS, openapi_extra=_BYTES)
async def put(caller: ByOwner, name: str, request: Request) -> Response:
    """A new file: its bytes as the body, of any media type. There as a whole or not at all; replaces none."""
    root = _root(caller)
    check_safe(name)
    return answer({"name": await take_in(request.stream(), name, root, caller.service.run)}, 201)


def _root(caller: Caller) -> Path:
    root = caller.service.settings.data_dir
    if root is None:
        raise NotAllowedError(
            "This server takes no files.", why="It was given no data_dir.", fix="Start it with --data-dir."
        )
    return root
