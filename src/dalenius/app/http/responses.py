"""What leaves: JSON, and errors as problems.

A problem is RFC 9457's: the same members as `--json` has, beside `type`, `title` and `status`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from dalenius.app.http.schemas import ProblemOut
from dalenius.errors import (
    NOTHING,
    AuthMissingError,
    Charge,
    DaleniusError,
    InputError,
    InternalError,
    LedgerUnavailableError,
    RateLimitedError,
    SourceUnavailableError,
    sentence,
)

MEDIA = "application/problem+json"
RETRY = 2  # seconds
_AT_ONCE = 1000  # members of a list; encoding one as a whole would keep every other thread waiting
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


class NotFoundError(InputError):
    """There is no such path, job or other thing."""

    status = 404


class MethodError(InputError):
    """The path is there, but not for this method."""

    status = 405


class SlowError(InputError):
    """The request did not come in in time."""

    status = 408


class TooLargeError(InputError):
    """The request is too large."""

    status = 413


class MediaError(InputError):
    """The request is not JSON, or is compressed."""

    status = 415


class UnreadableError(InputError):
    """A file is there, and is no table."""

    status = 422


def problem(error: DaleniusError) -> dict[str, Any]:
    """The body."""
    told: dict[str, Any] = error.to_dict()["error"]
    detail = " ".join(sentence(part) for part in (error.why, error.fix, error.cost) if part)
    return {
        "type": f"urn:dalenius:{error.code}",
        "title": error.message,
        "status": error.status,
        "detail": detail,
    } | told


def problem_response(error: DaleniusError, retry: float | None = None) -> Response:
    """The whole response."""
    headers = {}
    if isinstance(error, AuthMissingError):
        headers["WWW-Authenticate"] = 'Bearer realm="dalenius"'
    if isinstance(error, RateLimitedError | LedgerUnavailableError | SourceUnavailableError):
        headers["Retry-After"] = str(max(1, round(retry if retry is not None else RETRY)))
    body = json.dumps(problem(error), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return Response(body, error.status, headers, MEDIA)


def unexpected(error: Exception) -> InternalError:
    """A bug of ours; only the kind of the exception is told, because its text may quote a row."""
    return InternalError(
        "The server stopped on something unexpected.",
        why=f"This is a bug of ours ({type(error).__name__}). Its details are held back because they could show data.",
        fix="Ask again; if it stays, tell the owner the time at which it happened.",
        charge=getattr(error, "charge", NOTHING),  # which the ledger notes where it had charged
    )


def token_ended(charge: Charge) -> AuthMissingError:
    """For an answer whose token ended before it could leave."""
    return AuthMissingError(
        "The token has ended.",
        why="It was revoked, or its time has passed, before this could leave. It is not delivered.",
        fix="Ask the owner for a new token. What was answered is stored, and can be asked again for nothing.",
        charge=charge,
    )


def no_such_path() -> NotFoundError:
    """For paths and things that are not there, or not for this token."""
    return NotFoundError(
        "There is nothing here.", why="No such path, or not for this token.", fix="See /v1/openapi.json for all paths."
    )


def answer(data: Any, status: int = 200) -> Response:
    """An object as JSON, or JSON as it is."""
    return Response(data if isinstance(data, bytes) else encode(data), status, media_type="application/json")


def encode(data: Any) -> bytes:
    """An object as JSON: no NaN, no infinity."""
    return "".join(_pieces(data)).encode()


def _pieces(data: Any) -> Iterator[str]:
    """In pieces; what they join to is what encoding it as a whole gives.

    >>> "".join(_pieces({"a": [1, 2], "b": {"c": None}})), "".join(_pieces({})), "".join(_pieces([1.5, "é"]))
    ('{"a": [1, 2], "b": {"c": null}}', '{}', '[1.5, "é"]')
    """
    if isinstance(data, dict) and all(isinstance(name, str) for name in data):
        yield "{"
        for place, (name, value) in enumerate(data.items()):
            yield f"{', ' if place else ''}{_text(name)}: "
            yield from _pieces(value)
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
