"""Ledger: every charge and owner action, with filters, verification and export."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from nicegui import ui

from dalenius.app.console.frame import attempt, page
from dalenius.app.console.sessions import Session, Sessions
from dalenius.ledger.chain import Entry
from dalenius.ledger.verification import verify
from dalenius.queries.release import shown

_MOST = 2000  # entries on the page; the export has all
_KINDS = ("all", "charge", "answer", "failure", "grant", "policy", "budget", "allotment", "token", "refresh", "note")


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/ledger", "Ledger", sessions, wide=True)
    async def ledger(session: Session) -> None:
        place = ui.column().classes("w-full")
        with ui.row().classes("w-full items-center gap-3"):
            ui.button("Verify", icon="verified", on_click=lambda: _verify(session, place)).props("unelevated no-caps")
            ui.button("Export", icon="download", on_click=lambda: _export(session)).props("outline no-caps")
            ui.space()
            kind = ui.select(list(_KINDS), value="all", label="Kind").props("outlined dense").classes("min-w-[9rem]")
            words = ui.input("Find").props("outlined dense clearable")
        rows = await attempt(session, lambda: [_row(each) for each in session.service.curator.ledger.entries()]) or []
        table = ui.table(columns=_COLUMNS, rows=rows[::-1][:_MOST], row_key="number", pagination=25)
        table.classes("w-full d-number").props("flat dense wrap-cells")
        if len(rows) > _MOST:
            ui.label(f"The newest {_MOST:,} of {len(rows):,} entries; the export has all.").classes(
                "d-muted text-caption"
            )

        def filtered() -> None:
            wanted = (words.value or "").lower()
            table.rows = [
                each
                for each in rows[::-1]
                if kind.value in {"all", each["kind"]} and wanted in f"{each['what']} {each['who']}".lower()
            ][:_MOST]

        kind.on_value_change(filtered)
        words.on_value_change(filtered)


async def _verify(session: Session, place: ui.column) -> None:
    place.clear()
    with place, ui.row().classes("items-center gap-2").props("role=status"):
        ui.spinner()
        ui.label("Reading the whole history…")
    done = await attempt(session, lambda: verify(session.service.curator.ledger), place)
    if done is None:
        return
    place.clear()
    with place, ui.column().classes("w-full d-line q-pa-md gap-1").props("role=status"):
        with ui.row().classes("items-center gap-2"):
            ui.icon("verified", color="secondary", size="sm")
            ui.label(f"The history holds: {done.entries:,} entries, {done.charges:,} charges.").classes(
                "text-subtitle1"
            )
        ui.label(f"Head: {done.head}").classes("d-muted").style("word-break: break-all; font-family: monospace")
        ui.label("Write the head down: later it proves that nothing of this was taken away.").classes("d-muted")


async def _export(session: Session) -> None:
    def work() -> bytes:
        entries = [
            {"number": each.number, "kind": each.kind, "time": each.time, "hash": each.hash.hex(), "data": _data(each)}
            for each in session.service.curator.ledger.entries()
        ]
        return json.dumps(entries, indent=1).encode()

    content = await attempt(session, work)
    if content is not None:
        ui.download(content, "ledger.json")


def _data(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in entry.data.items() if not (entry.kind == "token" and name == "hash")}


def _row(entry: Entry) -> dict[str, Any]:
    data = entry.data
    return {
        "number": entry.number,
        "time": entry.time[:19].replace("T", " "),
        "kind": entry.kind,
        "who": shown(data.get("analyst", ""), 40) if data.get("analyst") else "",
        "what": _what(entry.kind, data),
    }


def _what(kind: str, data: dict[str, Any]) -> str:
    match kind:
        case "charge":
            words = f"{data['dataset']}: ε = {data['epsilon']:g}"
            return shown(words + (f", δ = {data['delta']:.3g}" if data["delta"] else ""), 120)
        case "answer" | "failure" | "grant":
            return f"to charge {data['charge']}"
        case "policy" | "refresh" | "closed" | "limits":
            return shown(f"table {data.get('table', '')} {data.get('reason', '') or data.get('why', '')}", 120)
        case "budget":
            return shown(f"{data['dataset']}: ε = {data['budget']['epsilon']:g} {data.get('reason', '')}", 120)
        case "allotment":
            return shown(f"{data['dataset']}: ε = {data['epsilon']:g}", 120)
        case "token":
            return shown(f"{data['action']} {data['id']} {data.get('role', '')}", 120)
        case "note":
            return shown(" ".join(f"{name} {value}" for name, value in data.items()), 120)
    return ""


_COLUMNS: list[dict[str, Any]] = [
    {"name": "number", "label": "Entry", "field": "number", "align": "right", "sortable": True},
    {"name": "time", "label": "Time (UTC)", "field": "time", "align": "left"},
    {"name": "kind", "label": "Kind", "field": "kind", "align": "left", "sortable": True},
    {"name": "who", "label": "Analyst", "field": "who", "align": "left", "sortable": True},
    {"name": "what", "label": "What", "field": "what", "align": "left"},
]
