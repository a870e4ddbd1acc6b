"""Sign in with a token, and out again. Plain forms: they work before any script has loaded."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import FastAPI, Query, Request
from fastapi.responses import RedirectResponse
from nicegui import ui
from starlette.responses import Response

from dalenius.app.console.frame import HOME, PAGES, framed
from dalenius.app.console.sessions import COOKIE, LIFE, Sessions
from dalenius.app.http.limits import Limits
from dalenius.errors import AuthMissingError

_WORDS = {
    "over": "Your session has ended. Sign in again.",
    "wrong": "This is not a token that is valid now. Ask the owner for one.",
    "many": "Too many tries from this address. Wait a minute.",
}


def install(app: FastAPI, sessions: Sessions) -> None:
    """Adds the page and its two forms' targets."""
    tries = Limits(rate=0.2, burst=20, concurrency=64)

    @ui.page("/sign-in", title="Sign in · dalenius", dark=None)
    def sign_in(to: Annotated[str, Query(max_length=100)] = "", say: Annotated[str, Query(max_length=10)] = "") -> None:
        with framed(None, "/sign-in", "Sign in"):
            ui.label("Paste the token that the owner of the data gave you.").classes("d-muted")
            if say in _WORDS:
                with ui.row().classes("items-center gap-2").props("role=alert"):
                    ui.icon("error_outline", color="negative")
                    ui.label(_WORDS[say])
            target = to if to in {each[0] for each in PAGES} else "/"
            with ui.element("form").props(f"method=post action=/sign-in?to={target}").classes("w-full max-w-md"):
                field = ui.input("Token", password=True, password_toggle_button=True)
                field.props("outlined name=token autocomplete=off autofocus").classes("w-full")
                ui.button("Sign in", icon="login").props("type=submit unelevated no-caps").classes("q-mt-md")

    @app.post("/sign-in", include_in_schema=False)
    async def enter(request: Request, to: Annotated[str, Query(max_length=100)] = "") -> Response:
        address = request.client.host if request.client else ""
        if tries.exhausted(address):
            return RedirectResponse("/sign-in?say=many", 303)
        text = parse_qs((await request.body()).decode("latin-1")).get("token", [""])[0].strip()
        try:
            token = await sessions.service.holder(text)
        except AuthMissingError:
            tries.spend(address)
            return RedirectResponse("/sign-in?say=wrong", 303)
        cookie = sessions.begin(token)
        where = next((each[0] for each in PAGES if each[0] == to and token.role in each[3]), HOME[token.role])
        response = RedirectResponse(where, 303)
        response.set_cookie(
            COOKIE, cookie, max_age=int(LIFE), httponly=True, samesite="strict", secure=sessions.service.settings.tls
        )
        return response

    @app.post("/sign-out", include_in_schema=False)
    async def leave(request: Request) -> Response:
        sessions.end(request.cookies.get(COOKIE))
        response = RedirectResponse("/sign-in", 303)
        response.delete_cookie(COOKIE)
        return response
