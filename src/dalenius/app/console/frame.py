"""What all pages share: the head, the way between pages, and what is shown when something goes wrong."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from fastapi import Request
from nicegui import ui

from dalenius.app.console import OVER, PAGES, SIGN_OUT
from dalenius.app.console.calls import call
from dalenius.app.console.door import SESSION
from dalenius.app.console.sessions import Session
from dalenius.app.console.style import STYLE
from dalenius.errors import AuthMissingError, DaleniusError

T = TypeVar("T")
Build = Callable[[Session], Awaitable[None]]
# A server that was started anew knows nobody, and lets no socket in: instead of trying for ever, to the sign in.
_LOST = """window.socket.on("connect_error", () => fetch("/_nicegui/").then(
  (found) => { if (found.status === 401) window.location.reload(); }, () => {}));"""
_TERMINAL = re.compile(r"'dalenius |--[a-z]")
_LOOK = 20.0  # seconds between two looks whether the session is over


def page(path: str, *, wide: bool = False) -> Callable[[Build], None]:
    """A page for who is signed in; the door has led everybody else away."""

    def decorated(build: Build) -> None:
        title = PAGES[path].name

        @ui.page(path, title=f"{title} · dalenius", dark=None, response_timeout=10)
        async def shown(request: Request) -> None:
            session: Session = request.scope["state"][SESSION]
            with _framed(session, path, title, wide=wide):
                await build(session)
            ui.run_javascript(_LOST)
            ui.timer(_LOOK, lambda: _leave_in_time(session))

    return decorated


async def _leave_in_time(session: Session) -> None:
    """Leads away from a page whose session has ended, also by its token."""
    if not await session.service.run(session.look):
        over()


@contextmanager
def _framed(session: Session, path: str, title: str, *, wide: bool) -> Iterator[None]:
    """Head and content of a page."""
    ui.colors(primary="#1f5a8a", secondary="#2f6b40", accent="#7a4f8f", negative="#b3261e", warning="#845400")
    ui.add_css(STYLE)
    main = ui.column().classes("d-page q-pa-md gap-4" + (" d-wide" if wide else ""))
    with (
        ui.header(elevated=False).style("padding: 0 1rem").props("role=banner"),
        ui.element("div").classes("d-head"),
    ):
        ui.label("dalenius").classes("text-h6 text-weight-medium")
        with ui.element("nav").classes("d-nav").props('aria-label="Pages"'):
            for where, place in PAGES.items():
                if session.token.role in place.roles:
                    with ui.element("a").props(f"href={where}" + (" aria-current=page" if where == path else "")):
                        ui.icon(place.icon, size="20px").props("aria-hidden=true")
                        ui.label(place.name)
        with ui.element("div").classes("d-who"):
            ui.label(session.token.analyst or session.token.role.value).classes("d-muted gt-xs")
            with ui.element("form").props(f"method=post action={SIGN_OUT}"):
                ui.button("Sign out", icon="logout").props("flat dense no-caps color=primary type=submit")
    with main:
        heading(title, 1).classes("text-h5")
        yield


def heading(words: str, level: int) -> ui.label:
    """A heading, for people and for screen readers."""
    return ui.label(words).props(f"role=heading aria-level={level}")


def card() -> ui.column:
    """A part of a page."""
    return ui.column().classes("w-full d-card q-pa-md gap-3")


@contextmanager
def dialog_named(name: str, *, persistent: bool = False) -> Iterator[ui.dialog]:
    """A dialog that opens when the block ends, and is gone when it is closed."""
    with ui.dialog().props("persistent" if persistent else "") as dialog:
        dialog.props["aria-label"] = name
        yield dialog
    dialog.on("hide", dialog.delete)
    dialog.open()


def later(build: Callable[[], Awaitable[None]], place: ui.element) -> None:
    """Fills ``place`` once the page is shown: what may take long never keeps a page from appearing."""
    busy(place, "Reading…")

    async def filled() -> None:
        place.clear()
        with place:
            await build()

    ui.timer(0, filled, once=True)


async def attempt(session: Session, route: str, work: Callable[[], T], place: ui.element | None = None) -> T | None:
    """Does what the API does at ``route``; shows what went wrong in ``place``, or as a note."""
    try:
        return await call(session, route, work)
    except AuthMissingError:
        over()
    except DaleniusError as error:
        if place is None:
            ui.notify(f"{error.message} {on_a_page(error.fix)}", type="negative", multi_line=True, timeout=8000)
        else:
            place.clear()
            with place:
                trouble(error)
    return None


def over() -> None:
    """The session has ended: to the page where it begins."""
    ui.navigate.to(OVER)


def trouble(error: DaleniusError) -> None:
    """An error for people: what happened, why, what to do, what it cost."""
    with ui.column().classes("w-full q-pa-md d-card gap-1").props("role=alert"):
        with ui.row().classes("items-center gap-2 no-wrap"):
            ui.icon("block" if error.exit_code in {3, 4} else "error_outline", color="negative", size="sm")
            ui.label(error.message).classes("text-subtitle1 text-weight-medium")
        for text in (error.why, on_a_page(error.fix)):
            if text:
                ui.label(text).classes("d-muted").style("white-space: pre-wrap")
        if error.at is not None:
            ui.label(f"At line {error.at.line}, column {error.at.column}.").classes("d-muted")
        ui.label(error.cost).classes("d-muted")


def on_a_page(words: str) -> str:
    """What is said to people, without the sentences that are for who sits at a terminal.

    >>> on_a_page("Ask with --epsilon 0.1 or less. Ask for a count.")
    'Ask for a count.'
    """
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", words)
    return " ".join(each for each in sentences if not _TERMINAL.search(each))


def warn(words: str) -> None:
    """What nobody may overlook: a promise that holds no more."""
    with ui.row().classes("w-full no-wrap items-start gap-2").props("role=alert"):
        ui.icon("warning", color="warning", size="sm").props("aria-hidden=true")
        ui.label(words).classes("d-warn text-weight-medium")


def empty(text: str, icon: str = "inbox") -> None:
    """What stands where there is nothing yet."""
    with ui.column().classes("w-full items-center q-pa-lg d-card"):
        ui.icon(icon, size="lg").classes("d-muted").props("aria-hidden=true")
        ui.label(text).classes("d-muted text-center")


def busy(place: ui.element, words: str) -> None:
    """Something takes a while."""
    place.clear()
    with place, ui.row().classes("items-center gap-2").props("role=status"):
        ui.spinner(size="sm")
        ui.label(words)
