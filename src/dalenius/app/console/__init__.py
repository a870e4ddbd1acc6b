"""The console: a web page for owners, analysts and auditors, in the same server. Needs the extra `serve`.

Everything it does is also in the HTTP API; pages call the same service, in threads, under the same time rules. Text
from data or policies is only ever shown as text.

`PAGES` says where which page is, and who sees it. `install` puts all together: sign in, pages, and the door around
both.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dalenius.app.http.monitoring import tell
from dalenius.ledger.tokens import Role

if TYPE_CHECKING:
    from fastapi import FastAPI, Request
    from starlette.responses import Response

    from dalenius.app.console.door import Door
    from dalenius.app.http.service import Service

SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
OVER = f"{SIGN_IN}?say=over"  # where the page of a session that has ended leads


class PageInfo(NamedTuple):
    """One page."""

    name: str
    icon: str
    roles: tuple[Role, ...]


PAGES = {
    "/": PageInfo("Ask", "query_stats", (Role.ANALYST,)),
    "/workload": PageInfo("Many questions", "playlist_add_check", (Role.ANALYST,)),
    "/synthesize": PageInfo("Synthetic rows", "dataset", (Role.ANALYST,)),
    "/train": PageInfo("Models", "model_training", (Role.ANALYST,)),
    "/protect": PageInfo("Protect", "shield", (Role.OWNER,)),
    "/synthetic": PageInfo("Synthetic rows", "dataset", (Role.OWNER,)),
    "/publish": PageInfo("Publish rows", "table_rows", (Role.OWNER,)),
    "/budget": PageInfo("Budget", "savings", tuple(Role)),
    "/ledger": PageInfo("Ledger", "receipt_long", (Role.OWNER, Role.AUDITOR)),
    "/report": PageInfo("Report", "description", (Role.OWNER, Role.AUDITOR)),
    "/lab": PageInfo("Attack lab", "science", tuple(Role)),
    "/about": PageInfo("About this data", "info", tuple(Role)),
}
HOME = {Role.ANALYST: "/", Role.OWNER: "/protect", Role.AUDITOR: "/ledger"}


_AWAY = 30.0  # seconds without a connection after which a page, and what was typed into it, is forgotten
# Files are packed on the event loop, at each request: 25 ms for all of a page, where 9 takes 70 for 5% less.
_PACKED = 4


def install(app: FastAPI, service: Service) -> Door:
    """Adds all pages, at `/`; what is returned guards them."""
    # Nothing is ever put there; if anything were, it would lie in the home.
    os.environ["NICEGUI_STORAGE_PATH"] = str(service.curator.home / "console")
    os.environ.pop("NICEGUI_REDIS_URL", None)  # which would take it elsewhere
    from nicegui import app as pages
    from nicegui import ui
    from starlette.middleware.gzip import GZipMiddleware

    from dalenius.app.console.door import Door
    from dalenius.app.console.lines import MESSAGES, seal
    from dalenius.app.console.pages import INSTALL
    from dalenius.app.console.sessions import Sessions, install_sign_in
    from dalenius.app.console.style import MARK

    sessions = Sessions(service)
    install_sign_in(app, sessions)
    for each in INSTALL:
        each(app, sessions)
    pages.add_exception_handler(404, _not_here)  # the framework's own keeps a page of it in memory
    pages.on_exception(_bug)
    pages.on_page_exception(_broken)
    for name in ("nicegui", "socketio", "socketio.server", "engineio", "engineio.server"):
        below = logging.getLogger(name)  # whose messages may quote what an exception says
        below.handlers[:], below.propagate = [logging.NullHandler()], False
    ui.run_with(
        app,
        title="dalenius",
        favicon=MARK,
        dark=None,
        language="en-US",
        show_welcome_message=False,
        binding_refresh_interval=None,
        reconnect_timeout=_AWAY,
        message_history_length=MESSAGES,
        tailwind=False,  # see console/style.py
        gzip_middleware_factory=partial(GZipMiddleware, compresslevel=_PACKED),
    )
    seal(sessions)
    return Door(app, sessions)


def _bug(error: Exception) -> None:
    """One line in the log, without what the exception says."""
    from dalenius.app.http.guard import place_of

    tell("bug", level=logging.ERROR, exception=type(error).__name__, at=place_of(error))


async def _not_here(_request: Request, _error: Exception) -> Response:
    """A file that the framework does not have."""
    from dalenius.app.http.responses import no_such_path, problem_response

    return problem_response(no_such_path())


def _broken() -> None:
    """What stands where a page could not be built."""
    from nicegui import ui

    from dalenius.app.console.frame import empty
    from dalenius.app.console.style import STYLE

    ui.add_css(STYLE)
    empty(
        "Something went wrong here; it is in the server's log. Nothing was charged. Reload the page.", "error_outline"
    )
