"""Every route says who may use it, or the server does not start."""

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.responses import Response

from dalenius.app.http import application as module
from dalenius.app.http.application import _check_roles
from dalenius.app.http.guard import OPEN
from dalenius.app.http.routes import ROUTERS
from dalenius.app.http.service import ByAnyone, allowed


def roles_of(route):
    return [allowed(each.call) for each in route.dependant.dependencies if allowed(each.call)]


def test_every_route_has_roles_once():
    routes = [route for router in ROUTERS for route in router.routes]
    assert len(routes) >= 25
    for route in routes:
        assert isinstance(route, APIRoute)
        assert len(roles_of(route)) == (0 if route.path in OPEN else 1), route.path
        assert route.path in OPEN or route.path.startswith("/v1/") or route.path == "/metrics"


def router_with(path, endpoint, **more):
    router = APIRouter()
    router.add_api_route(path, endpoint, **more)
    return router


async def nobody_asked() -> Response:
    """A route that forgot to ask."""
    return Response()


async def asks(caller: ByAnyone) -> Response:
    """A route that asks."""
    return Response()


def test_a_route_without_roles_does_not_start(monkeypatch):
    bad = router_with("/v1/forgotten", nobody_asked)
    with pytest.raises(RuntimeError, match="/v1/forgotten does not say who may use it"):
        _check_roles(bad)
    monkeypatch.setattr(module, "ROUTERS", (*ROUTERS, bad))
    with pytest.raises(RuntimeError, match="forgotten"):
        module.application(None)  # type: ignore[arg-type]


def test_an_open_route_asks_nobody():
    with pytest.raises(RuntimeError):
        _check_roles(router_with("/healthz", asks))
    _check_roles(router_with("/healthz", nobody_asked))
    _check_roles(router_with("/v1/fine", asks))


def test_mounts_and_sockets_are_not_routes_of_ours():
    router = APIRouter()

    @router.websocket("/v1/socket")
    async def socket(websocket) -> None:
        """Would go round the guard."""

    with pytest.raises(TypeError):
        _check_roles(router)
