"""Errors as RFC 9457 problems: the same members as `--json` has, beside `type`, `title` and `status`."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

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
