"""Ledger: every charge and owner action, with filters, verification and export."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from fastapi import FastAPI
from nicegui import ui

from dalenius.app.console.frame import attempt, busy, card, page
from dalenius.app.console.sessions import Session, Sessions
from dalenius.app.http.routes.ledger import entry_shown
from dalenius.app.views import to_second
from dalenius.app.views.history import details
from dalenius.ledger.chain import Entry
from dalenius.ledger.verification import verify
from dalenius.queries.release import shown

_MOST = 1000  # entries on the page
_FILED = 100_000  # entries in the file
_KINDS = (
    "all",
    *("charge", "answer", "failure", "grant", "budget", "allotment", "period", "policy", "limits", "refresh", "closed"),
    *("epoch", "publication", "token", "suspension", "note"),
)


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/ledger", wide=True)
    async def ledger(session: Session) -> None:
        _Entries(session).build()


class _Entries:
    """One open page."""

    def __init__(self, session: Session) -> None:
        self.session, self.ledger = session, session.service.curator.ledger
        self.rows: list[dict[str, Any]] = []

    def build(self) -> None:
        with card(), ui.row().classes("w-full items-center gap-3"):
            ui.button("Verify", icon="verified", on_click=self._verify).props("unelevated no-caps")
            self.head = ui.input("Head you wrote down (if you did)").props("outlined dense clearable maxlength=64")
            self.head.style("flex: 1 1 16rem; max-width: 36rem")
            ui.space()
            ui.button("Export", icon="download", on_click=self._export).props("outline no-caps")
        self.place = ui.column().classes("w-full")
        with card():
            with ui.row().classes("w-full items-center gap-3"):
                self.kind = ui.select(list(_KINDS), value="all", label="Kind", on_change=self._load)
                self.kind.props("outlined dense").style("min-width: 9rem")
                self.words = ui.input("Find", on_change=self._show).props(
                    "outlined dense clearable debounce=200 maxlength=200"
                )
            self.table = ui.table(columns=_COLUMNS, rows=[], row_key="number", pagination=25)
            self.table.classes("w-full d-number").props('flat dense wrap-cells :grid="Quasar.Screen.lt.sm"')
            self.more = ui.label().classes("d-muted text-caption")
        ui.timer(0, self._load, once=True)

    async def _load(self) -> None:
        """The newest entries of the chosen kind."""
        kind = self.kind.value

        def work() -> tuple[list[dict[str, Any]], int]:
            if kind == "all":
                count = self.ledger.head.count
                return [_row(each) for each in self.ledger.entries(max(0, count - _MOST))], count
            newest: deque[Entry] = deque(maxlen=_MOST)
            count = 0
            for each in self.ledger.records((kind,), 0):
                newest.append(each)
                count += 1
            return [_row(each) for each in newest], count

        found = await attempt(self.session, "GET /v1/ledger", work, self.place)
        if found is not None:
            rows, count = found
            self.rows = rows[::-1]
            cut = count > len(rows)
            self.more.set_text(f"The newest {len(rows):,} of {count:,}; the export has more." if cut else "")
            self._show()

    def _show(self) -> None:
        wanted = (self.words.value or "").lower()
        self.table.rows = [each for each in self.rows if wanted in f"{each['what']} {each['who']}".lower()]

    async def _verify(self) -> None:
        busy(self.place, "Reading the whole history…")
        expect = (self.head.value or "").strip() or None
        done = await attempt(
            self.session, "GET /v1/ledger/verify", lambda: verify(self.ledger, expect=expect), self.place
        )
        if done is None:
            return
        self.place.clear()
        with self.place, card().classes("gap-1").props("role=status"):
            with ui.row().classes("items-center gap-2"):
                ui.icon("verified", color="secondary", size="sm").props("aria-hidden=true")
                ui.label(f"The history holds: {done.entries:,} entries, {done.charges:,} charges.").classes(
                    "text-subtitle1"
                )
            if expect:
                ui.label("The head you wrote down is part of it: nothing up to there was taken away.")
            ui.label(f"Head: {done.head}").classes("d-code").style("overflow-wrap: anywhere")
            ui.label("Write the head down: later it proves that nothing of this was taken away.").classes("d-muted")

    async def _export(self) -> None:
        def work() -> bytes:
            after = max(0, self.ledger.head.count - _FILED)
            return json.dumps([entry_shown(each) for each in self.ledger.entries(after)], indent=1).encode()

        content = await attempt(self.session, "GET /v1/ledger", work)
        if content is not None:
            ui.download.content(content, "ledger.json", "application/json")


def _row(entry: Entry) -> dict[str, Any]:
    data = entry.data
    return {
        "number": entry.number,
        "time": to_second(entry.time),
        "kind": entry.kind,
        "who": shown(data.get("analyst", ""), 40) if data.get("analyst") else "",
        "what": shown(details(entry), 200),
    }


_COLUMNS: list[dict[str, Any]] = [
    {"name": "number", "label": "Entry", "field": "number", "align": "right", "sortable": True},
    {"name": "time", "label": "Time (UTC)", "field": "time", "align": "left", "classes": "d-nowrap"},
    {"name": "kind", "label": "Kind", "field": "kind", "align": "left", "sortable": True},
    {"name": "who", "label": "Analyst", "field": "who", "align": "left", "sortable": True},
    {"name": "what", "label": "What", "field": "what", "align": "left"},
]
