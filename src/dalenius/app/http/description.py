"""The OpenAPI description: FastAPI's, with what it cannot know because the guard does it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from dalenius.app.http.guard import OPEN

_HEADER = {"schema": {"type": "string"}}
_HEADERS = {"401": {"WWW-Authenticate": _HEADER}, "429": {"Retry-After": _HEADER | {"description": "Seconds."}}}


def described(app: FastAPI) -> dict[str, Any]:
    """Every route, with the token it needs and the headers of refusals. Made once."""
    if app.openapi_schema is None:
        found = app.openapi()
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in found["paths"].items():
            for operation in methods.values():
                operation["security"] = [] if path in OPEN else [{"token": []}]
                for status, headers in _HEADERS.items():
                    if status in operation["responses"]:
                        operation["responses"][status]["headers"] = headers
    return app.openapi_schema or {}
