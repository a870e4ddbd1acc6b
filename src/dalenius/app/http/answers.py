"""JSON out, and the problems that a route may answer with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from dalenius.app.http.problems import MEDIA
from dalenius.app.http.schemas import ProblemOut

_WORDS = {
    400: "The request, or the SQL in it, cannot be read.",
    401: "No good token.",
    402: "It does not fit into what is left.",
    403: "The token is not for this.",
    404: "There is no such path, table, column, file, receipt or job, or it is not for this token.",
    405: "The path is there, but not for this method.",
    408: "The request did not come in in time.",
    409: "The data changed.",
    413: "The request is too large.",
    415: "The request is not JSON, or is compressed.",
    422: "Refused for its shape, or by policy.",
    429: "Too many requests.",
    500: "A bug of ours, or a ledger that does not verify.",
    503: "Something outside is down, or the engine could not answer; `charge` says what that cost.",
}
# Not as a `model`, which FastAPI would describe as application/json beside it. JobOut has it among the components.
_PROBLEM = {MEDIA: {"schema": {"$ref": f"#/components/schemas/{ProblemOut.__name__}"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": words, "content": _PROBLEM} for status, words in _WORDS.items()
}


_AT_ONCE = 1000  # members of a list; encoding one as a whole would keep every other thread waiting


def answer(data: Any, status: int = 200) -> Response:
    """An object as JSON, or JSON as it is."""
    return Response(data if isinstance(data, bytes) else encoded(data), status, media_type="application/json")


def encoded(data: Any) -> bytes:
    """An object as JSON: no NaN, no infinity."""
    return "".join(_encoded(data)).encode()


def _encoded(data: Any) -> Iterator[str]:
    """In pieces; what they join to is what encoding it as a whole gives.

    >>> "".join(_encoded({"a": [1, 2], "b": {"c": None}})), "".join(_encoded({})), "".join(_encoded([1.5, "é"]))
    ('{"a": [1, 2], "b": {"c": null}}', '{}', '[1.5, "é"]')
    """
    if isinstance(data, dict) and all(isinstance(name, str) for name in data):
        yield "{"
        for place, (name, value) in enumerate(data.items()):
            yield f"{', ' if place else ''}{_text(name)}: "
            yield from _encoded(value)
        yield "}"
    elif isinstance(data, list | tuple) and len(data) > _AT_ONCE:
        for at in range(0, len(data), _AT_ONCE):
            yield "[" if at == 0 else ", "
            yield _text(data[at : at + _AT_ONCE])[1:-1]
        yield "]"
    else:
        yield _text(data)


def _text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False)
