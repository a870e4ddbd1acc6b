"""What all pages share: the head, the way between pages, themes, and what is shown when something goes wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import Request
from fastapi.responses import RedirectResponse
from nicegui import ui

from dalenius.app.console.sessions import COOKIE, Session, Sessions
from dalenius.errors import AuthMissingError, DaleniusError
from dalenius.ledger.tokens import Role

if TYPE_CHECKING:
    from starlette.responses import Response

T = TypeVar("T")
Build = Callable[[Session], Awaitable[None]]

# Path, name, icon, who sees it.
PAGES: tuple[tuple[str, str, str, tuple[Role, ...]], ...] = (
    ("/", "Ask", "query_stats", (Role.ANALYST,)),
    ("/budget", "Budget", "savings", tuple(Role)),
    ("/protect", "Protect", "shield", (Role.OWNER,)),
    ("/ledger", "Ledger", "receipt_long", (Role.OWNER, Role.AUDITOR)),
    ("/report", "Report", "description", (Role.OWNER, Role.AUDITOR)),
    ("/about", "About this data", "info", tuple(Role)),
)
HOME = {Role.ANALYST: "/", Role.OWNER: "/protect", Role.AUDITOR: "/ledger"}
_STYLE = """
:root { --d-muted: #5b6470; --d-line: rgba(0,0,0,.12); }
body.body--dark { --d-muted: #a9b2bd; --d-line: rgba(255,255,255,.18); }
.d-muted { color: var(--d-muted); }
.d-line { border: 1px solid var(--d-line); border-radius: 8px; }
.d-page { max-width: 1240px; margin: 0 auto; width: 100%; }
.d-number { font-variant-numeric: tabular-nums; }
:focus-visible { outline: 3px solid #2f7fd1 !important; outline-offset: 2px; }
.cm-editor { font-size: 14px; }
@media print { .d-noprint, header { display: none !important; } }
"""


def page(
    path: str, title: str, sessions: Sessions, *, wide: bool = False
) -> Callable[[Build], Callable[..., Awaitable[Response | None]]]:
    """A page for who is signed in with a role that may see it; everybody else is led to where they may be."""

    def decorated(build: Build) -> Callable[..., Awaitable[Response | None]]:
        @ui.page(path, title=f"{title} · dalenius", dark=None, response_timeout=10)
        async def shown(request: Request) -> Response | None:
            cookie = request.cookies.get(COOKIE)
            session = await sessions.service.run(lambda: sessions.find(cookie))
            if session is None:
                return RedirectResponse(f"/sign-in?to={path}", 303)
            roles = next(each[3] for each in PAGES if each[0] == path)
            if session.token.role not in roles:
                return RedirectResponse(HOME[session.token.role], 303)
            with framed(session, path, title, wide=wide):
                await build(session)
            return None

        return shown

    return decorated


@contextmanager
def framed(session: Session | None, path: str, title: str, *, wide: bool = False) -> Iterator[None]:
    """Head and content of a page."""
    dressed()
    main = ui.column().classes("d-page q-pa-md gap-4")
    if wide:
        main.style("max-width: 1480px")
    with ui.header(elevated=False).classes("items-center q-px-md q-py-xs gap-2").props("role=banner"):
        ui.label("dalenius").classes("text-h6 text-weight-medium").props('aria-label="dalenius, the privacy curator"')
        if session is not None:
            with (
                ui.row().classes("items-center gap-1 no-wrap overflow-auto").props('role=navigation aria-label="Pages"')
            ):
                for where, name, icon, roles in PAGES:
                    if session.token.role in roles:
                        link = ui.button(name, icon=icon, on_click=lambda where=where: ui.navigate.to(where))
                        link.props("flat dense no-caps color=white" + (" aria-current=page" if where == path else ""))
                        if where == path:
                            link.classes("text-weight-bold").style("border-bottom: 2px solid white; border-radius: 0")
            ui.space()
            who = session.token.analyst or session.token.role.value
            ui.label(who).classes("gt-xs").props('aria-label="signed in as"')
            with ui.element("form").props("method=post action=/sign-out"):
                ui.button("Sign out", icon="logout").props("flat dense no-caps color=white type=submit")
    with main:
        ui.label(title).classes("text-h5").props("role=heading aria-level=1")
        yield


def dressed() -> None:
    """Colours and styles of every page."""
    ui.colors(primary="#24557f", secondary="#3f6f4e", accent="#7a4f8f", negative="#b3261e", warning="#8a5a00")
    ui.add_css(_STYLE)


async def attempt(session: Session, work: Callable[[], T], place: Any = None) -> T | None:
    """Does something in a thread for who is signed in; shows what went wrong in ``place``, or as a note."""

    def checked() -> T:
        session.check()
        return work()

    try:
        return await session.service.run(checked)
    except AuthMissingError:
        ui.navigate.to("/sign-in?say=over")
    except DaleniusError as error:
        if place is None:
            ui.notify(f"{error.message} {error.fix}", type="negative", multi_line=True, timeout=8000)
        else:
            place.clear()
            with place:
                trouble(error)
    return None


def trouble(error: DaleniusError) -> None:
    """An error for people: what happened, why, what to do, what it cost."""
    with ui.column().classes("w-full q-pa-md d-line gap-1").props("role=alert"):
        with ui.row().classes("items-center gap-2"):
            ui.icon("block" if error.exit_code in {3, 4} else "error_outline", color="negative", size="sm")
            ui.label(error.message).classes("text-subtitle1 text-weight-medium")
        for text in (error.why, error.fix):
            if text:
                ui.label(text).classes("d-muted").style("white-space: pre-wrap")
        if error.at is not None:
            ui.label(f"At line {error.at.line}, column {error.at.column}.").classes("d-muted")
        ui.label(error.cost).classes("d-muted")


def empty(text: str, icon: str = "inbox") -> None:
    """What stands where there is nothing yet."""
    with ui.column().classes("w-full items-center q-pa-lg d-line"):
        ui.icon(icon, size="lg").classes("d-muted")
        ui.label(text).classes("d-muted text-center")
