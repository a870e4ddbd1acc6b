"""Synthetic rows, for the owner: which were made, and opening some as a public table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI
from nicegui import ui

from dalenius._numbers import count_of
from dalenius.app.console.frame import attempt, busy, card, dialog_named, empty, heading, page
from dalenius.app.console.sessions import Session, Sessions
from dalenius.app.http.opened import new_file
from dalenius.app.views import to_minute
from dalenius.app.views.synthetic import promised
from dalenius.queries.release import shown
from dalenius.releasing.stored import Stored, releases_of

if TYPE_CHECKING:
    from dalenius.owner.protect import Protected
    from dalenius.synthesis.release import SyntheticTable

_SHOWN = 100  # the newest
_MOST_ROWS = 1_000_000  # of one public table
_OPEN = "POST /v1/synthetic/{id}/open"
_ABOUT = (
    "Synthetic tables that analysts have paid for. Nobody is in them, and anybody may have them. Opened as a public "
    "table, everyone who may ask about the real table tries questions on one, exactly and for nothing."
)


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/synthetic", wide=True)
    async def synthetic(session: Session) -> None:
        place = ui.column().classes("w-full gap-4")
        found = await attempt(session, "GET /v1/releases", lambda: _made(session), place)
        if found is None:
            return
        with place:
            ui.label(_ABOUT).classes("d-muted")
            if not found:
                empty("No synthetic table was made yet.", "dataset")
            for each in found:
                _show(session, each)


def _made(session: Session) -> list[Stored]:
    ledger = session.service.curator.ledger
    return [each for each in releases_of(ledger) if each.kind == "synthetic"][: -_SHOWN - 1 : -1]


def _show(session: Session, made: Stored) -> None:
    with card().classes("gap-1"), ui.row().classes("w-full items-center gap-3"):
        heading(f"{shown(made.dataset, 60)}, ε = {made.charge['epsilon']:g}", 2).classes("text-subtitle1")
        ui.label(f"{made.id} · {to_minute(made.time)} UTC · paid by {shown(made.analyst, 60)}").classes("d-muted")
        ui.space()
        button = ui.button("Open…", icon="lock_open", on_click=lambda: _open(session, made)).props("outline no-caps")
        button.props["aria-label"] = f"Open {made.id}"


async def _open(session: Session, made: Stored) -> None:
    """Asks how questions are to call it."""
    found = await attempt(session, "GET /v1/releases/{id}", lambda: session.service.curator.synthetic(made.id))
    if found is None:
        return
    table = found.stored.table
    with (
        dialog_named(f"Open synthetic rows of {table}") as dialog,
        ui.card().classes("w-full gap-3").style("max-width: 640px"),
    ):
        heading(f"Open synthetic rows of {shown(table, 60)}", 2).classes("text-h6")
        columns = ", ".join(shown(each, 40) for each in found.columns)
        ui.label(f"{count_of(len(found.columns), 'column')}: {columns}").classes("d-muted")
        ui.label(f"Made by {found.stored.method}; {promised(found.guarantee)}.").classes("d-muted")
        name = ui.input("Name in questions", value=f"{table}_synthetic"[:63]).props("outlined dense maxlength=63")
        name.classes("w-full")
        rows = ui.number("Rows", value=min(_MOST_ROWS, max(1, found.rows)), min=1, max=_MOST_ROWS, precision=0)
        rows.props("outlined dense").classes("w-full")
        place = ui.column().classes("w-full gap-2")
        _Opening(session, found, name, rows, place).buttons(dialog)


class _Opening:
    """One open dialog. Of the synthetic table its number is kept, not the model."""

    def __init__(
        self, session: Session, found: SyntheticTable, name: ui.input, rows: ui.number, place: ui.column
    ) -> None:
        self.session, self.table, self.name, self.rows, self.place = session, found.stored.table, name, rows, place
        self.release = str((found.receipt or {}).get("id", ""))

    def buttons(self, dialog: ui.dialog) -> None:
        """Open, or not."""
        with ui.row().classes("gap-2"):
            self.button = ui.button("Open", icon="lock_open", on_click=self.act).props("unelevated no-caps")
            ui.button("Close", on_click=dialog.close).props("flat no-caps autofocus")

    async def act(self) -> None:
        """Writes the rows, and names them in the policy."""
        name, given = (self.name.value or "").strip(), self.rows.value
        rows = int(given) if isinstance(given, int | float) and 1 <= given <= _MOST_ROWS else None
        self.button.disable()
        busy(self.place, "Writing rows…")

        def work() -> Protected:
            service = self.session.service
            file = new_file(service.settings.data_dir, f"{name}-{self.release}")
            return service.curator.open_synthetic(self.release, name, file, rows=rows)

        done = await attempt(self.session, _OPEN, work, self.place)
        self.button.enable()
        if done is None:
            return
        self.place.clear()
        with self.place, ui.column().classes("w-full d-line q-pa-sm gap-1").props("role=status"):
            ui.label(f"Open: who may ask about {shown(self.table, 60)} asks about {name} too, exactly and free.")
            words = "It stands in the policy in force. Keep it there when you change that, or it is closed."
            ui.label(words).classes("d-muted text-caption")
