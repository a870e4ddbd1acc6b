"""Report: the whole home for an outside reader, to read, print or keep."""

from __future__ import annotations

from fastapi import FastAPI
from nicegui import ui

from dalenius.app.console.frame import attempt, page
from dalenius.app.console.sessions import Session, Sessions
from dalenius.app.report import STYLE, Report, body, document
from dalenius.app.report import report as gathered


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/report")
    async def report(session: Session) -> None:
        ui.add_css(STYLE)
        place = ui.column().classes("w-full gap-4")
        with place, ui.row().classes("items-center gap-2").props("role=status"):
            ui.spinner()
            ui.label("Reading the whole history…")
        ui.timer(0, lambda: _show(session, place), once=True)  # the page need not wait for a long one


async def _show(session: Session, place: ui.column) -> None:
    def work() -> tuple[Report, str]:
        found = gathered(session.service.curator.ledger)
        return found, body(found, inside=True)

    made = await attempt(session, "GET /v1/report", work, place)
    if made is None:
        return
    found, written = made
    place.clear()
    with place:
        with ui.row().classes("w-full items-center gap-3 d-noprint"):
            ui.button("Download", icon="download", on_click=lambda: _download(session, found)).props(
                "unelevated no-caps"
            )
            ui.button("Print", icon="print", on_click=lambda: ui.run_javascript("window.print()")).props(
                "outline no-caps"
            )
        # Not sanitized, which would take the drawings out: the report escapes every text.
        ui.html(written, sanitize=False).classes("w-full")


async def _download(session: Session, found: Report) -> None:
    content = await attempt(session, "GET /v1/report", lambda: document(found).encode())
    if content is not None:
        ui.download.content(content, f"privacy-report-{found.made[:10]}.html", "text/html")
