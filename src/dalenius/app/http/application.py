"""The application: routes, errors as problems, and the guard around it all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dalenius._version import __version__
from dalenius.app.http.guard import OPEN, Guard
from dalenius.app.http.responses import MethodError, no_such_path, problem_response, unexpected
from dalenius.app.http.routes import ROUTERS
from dalenius.app.http.service import allowed
from dalenius.errors import DaleniusError, InputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from dalenius.app.http.service import Service

_WHAT = "Stands between sensitive tables and the people who ask about them. Every release is charged before it leaves."


def application(service: Service) -> Guard:
    """The whole application, guarded."""
    app = FastAPI(
        title="dalenius",
        version=__version__,
        description=_WHAT,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        openapi_url=None,  # there is one behind a token
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.service = service
    for router in ROUTERS:
        _check_roles(router)
        app.include_router(router)
    _tell_problems(app)
    # The web page is an application of its own: what it answers to unknown paths and methods is not the API's.
    console, door = _console(service) if service.settings.console else (None, None)
    app.state.console = console
    return Guard(app, service, door)


def _console(service: Service) -> tuple[FastAPI, ASGIApp]:
    from dalenius.app.console import install

    console = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    _tell_problems(console)
    return console, install(console, service)


def _tell_problems(app: FastAPI) -> None:
    """Whatever goes wrong in it leaves as a problem."""
    app.add_exception_handler(DaleniusError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _not_here)
    app.add_exception_handler(Exception, _bug)


def _check_roles(router: APIRouter) -> None:
    """Every route says who may use it, or the server does not start."""
    for route in router.routes:
        if not isinstance(route, APIRoute):
            raise TypeError(f"{route} is not one of our routes.")
        asks = any(allowed(each.call) for each in route.dependant.dependencies)
        if asks == (route.path in OPEN):
            raise RuntimeError(f"{route.path} does not say who may use it.")


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    console: FastAPI | None = app.state.console
    async with nullcontext() if console is None else console.router.lifespan_context(console):
        yield
    if console is not None:
        from dalenius.app.console.lab import RUNS

        RUNS.stop()
    service: Service = app.state.service
    end = time.monotonic() + service.settings.grace
    while service.busy and time.monotonic() < end:  # what stays open then is charged, and is recovered when asked again
        await asyncio.sleep(0.05)
    service.close()


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, DaleniusError)  # noqa: S101 (for the type)
    return _respond(error)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    first = error.errors()[0] if error.errors() else {}
    place = ".".join(str(each) for each in first.get("loc", ()) if each != "body")[:100]
    return _respond(
        InputError(
            f"The request cannot be read{f' at {place}' if place else ''}.",
            why=str(first.get("msg", "It is not what is expected here."))[:200],
            fix="See /v1/openapi.json for what is.",
        )
    )


async def _not_here(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    if error.status_code == 404:
        return _respond(no_such_path())
    if error.status_code == 405:
        told: DaleniusError = MethodError(
            "Not with this method.", why="The path is there for others.", fix="See /v1/openapi.json."
        )
        response = _respond(told)
        response.headers.update({name: value for name, value in (error.headers or {}).items() if name == "Allow"})
        return response
    return _respond(InputError("The request cannot be read.", why="It is not JSON.", fix="Send JSON."))


async def _bug(_: Request, error: Exception) -> Response:
    return _respond(unexpected(error))


def _respond(error: DaleniusError) -> Response:
    """A problem, and its code for the guard's log."""
    response = problem_response(error)
    response.headers["x-dalenius-code"] = error.code
    return response
