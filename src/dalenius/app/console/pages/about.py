"""About this data: for the people in it, in plain words, what is protected and how."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from nicegui import ui

from dalenius.app.console.frame import attempt, empty, page
from dalenius.app.console.sessions import Session, Sessions
from dalenius.ledger.tokens import Role

_NOISE = (
    "Nobody who asks sees a row. Questions are answered with numbers over many people, and each number is moved a "
    "little at random before it leaves, so that it would look much the same if you were not in the data."
)
_LIMIT = (
    "All answers together, for ever, reveal at most {epsilon} about any one {unit}. The smaller ε is, the less can be "
    "learned about you; below 1 is strong, a few is usual for statistics offices. When it is used up, no new "
    "question is answered."
)
_LEDGER = (
    "Every answer is written into a ledger before it leaves. The ledger cannot be changed without that showing, and an "
    "auditor can check it at any time."
)
_NOT = (
    "Not promised: what is true of many people like you (that smokers fall ill more often, say) can be learned, "
    "whether you are in the data or not. Who runs this server can read the data itself."
)
_WORDS = (_NOISE, _LIMIT, _LEDGER, _NOT)


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/about", "About this data", sessions)
    async def about(session: Session) -> None:
        found = await attempt(session, lambda: _found(session)) or []
        if not found:
            empty("No table is protected yet.", "shield")
        for each in found:
            _told(each)


def _found(session: Session) -> list[dict[str, Any]]:
    curator = session.service.curator
    ledger, analyst = curator.ledger, session.token.analyst
    found = []
    for dataset in ledger.datasets():
        if session.token.role is Role.ANALYST and analyst not in ledger.allotments(dataset):
            continue
        tables = [each for each in curator.tables() if each.dataset == dataset]
        found.append({"dataset": dataset, "budget": ledger.budget(dataset), "tables": tables})
    return found


def _told(found: dict[str, Any]) -> None:
    budget, tables = found["budget"], found["tables"]
    every = f" in each {budget.period}" if budget.period else ""
    with ui.column().classes("w-full d-line q-pa-md gap-2"):
        ui.label(found["dataset"]).classes("text-h6").props("role=heading aria-level=2")
        names = ", ".join(each.table for each in tables)
        ui.label(f"Tables: {names}. Protected is each {budget.unit}{every}: all that these tables hold about it.")
        delta = f" (δ = {budget.delta:g})" if budget.delta else ""
        for words in _WORDS:
            told = words.format(epsilon=f"ε = {budget.epsilon:g}{delta}", unit=f"{budget.unit}{every}")
            ui.label(told)
        columns = sorted({name for each in tables for name in each.policy.columns})
        ui.label(f"What may be asked about: {', '.join(columns)}.").classes("d-muted")
