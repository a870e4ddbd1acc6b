"""Sign in with a token, and out again. Plain pages without any script: nothing is run before it is known for whom."""

from __future__ import annotations

from html import escape
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.responses import Response

from dalenius.app.console.map import HOME, PAGES, SIGN_IN, SIGN_OUT
from dalenius.app.console.sessions import COOKIE, LIFE, Sessions
from dalenius.app.console.style import ICON, SIGN_IN_STYLE
from dalenius.app.http.limits import Limits
from dalenius.errors import AuthMissingError

_WORDS = {
    "over": "Your session has ended. Sign in again.",
    "wrong": "This is not a token that is valid now. Ask the owner for one.",
    "many": "Too many tries from this address. Wait a minute.",
    "out": "You are signed out.",
}
# Beside the guard's: of two policies both hold.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sign in · dalenius</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<link rel="icon" href="{icon}"><style>{style}</style></head>
<body><main>
<p class="name"><img src="{icon}" alt="" width="28" height="28"> dalenius</p>
<h1>Sign in</h1>
<p>Ask about sensitive tables without seeing anybody in them. Paste the token that the owner of the data gave you.</p>
{said}
<form method="post" action="{action}">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="off" autofocus required maxlength="200"
 placeholder="dalenius_…">
<button type="submit">Sign in</button>
</form>
<p class="more">A token is shown once, when it is made: in the console's page Protect, or by
<code>dalenius token create</code>. It is not kept in this browser; closing it, or {hours:.0f} hours, ends your
session.</p>
</main></body></html>
"""


def install(app: FastAPI, sessions: Sessions) -> None:
    """Adds the page, and where its forms lead."""
    tries = Limits(rate=0.2, burst=20, concurrency=64)

    @app.get(SIGN_IN, include_in_schema=False)
    async def sign_in(
        to: Annotated[str, Query(max_length=100)] = "", say: Annotated[str, Query(max_length=10)] = ""
    ) -> Response:
        return _page(to, say)

    @app.post(SIGN_IN, include_in_schema=False)
    async def enter(request: Request, to: Annotated[str, Query(max_length=100)] = "") -> Response:
        address = request.client.host if request.client else ""
        text = _token(await request.body())
        try:
            token = await sessions.service.holder(text)
        except AuthMissingError:  # a good token is let in all the same: others may share the address
            if tries.exhausted(address):
                return _page(to, "many", 429)
            tries.spend(address)
            return _page(to, "wrong", 401)
        sessions.end(request.cookies.get(COOKIE))
        cookie = sessions.begin(token)
        where = to if to in PAGES and token.role in PAGES[to].roles else HOME[token.role]
        response = RedirectResponse(where, 303)
        # Without an age: gone with the browser, if not before.
        response.set_cookie(
            COOKIE, cookie, httponly=True, samesite="strict", secure=sessions.service.settings.encrypted
        )
        return response

    @app.post(SIGN_OUT, include_in_schema=False)
    async def leave(request: Request) -> Response:
        sessions.end(request.cookies.get(COOKIE))
        response = RedirectResponse(f"{SIGN_IN}?say=out", 303)
        response.delete_cookie(COOKIE)
        return response


def _token(form: bytes) -> str:
    """The token of a form, which is short: the guard lets nothing longer through (`guard.FORM`)."""
    try:
        return parse_qs(form.decode("latin-1"), max_num_fields=10).get("token", [""])[0].strip()
    except ValueError:  # more fields than the form has
        return ""


def _page(to: str, say: str, status: int = 200) -> Response:
    """The form; what is put into it is known beforehand."""
    words = _WORDS.get(say, "")
    said = f'<p role="{"status" if say == "out" else "alert"}">{escape(words)}</p>' if words else ""
    action = f"{SIGN_IN}?to={to}" if to in PAGES else SIGN_IN
    filled = _PAGE.format(icon=escape(ICON), style=SIGN_IN_STYLE, said=said, action=escape(action), hours=LIFE / 3600)
    return HTMLResponse(filled, status, headers={"Content-Security-Policy": _POLICY})
