"""About this data: for the people in it, in plain words, what is protected and how."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import FastAPI
from nicegui import ui

from dalenius.accounting.neighbors import Neighbors
from dalenius.app.console.frame import attempt, card, empty, heading, page, warn
from dalenius.app.console.sessions import Session, Sessions
from dalenius.app.report.elements import factor
from dalenius.app.views.tables import datasets_open_to
from dalenius.ledger.budgets import Budget
from dalenius.ledger.publications import warning
from dalenius.tables.registry import Version

_LEARN = (
    "Nobody who asks sees a row. Questions are answered with numbers over many people, and each number is moved a "
    "little at random before it leaves, so that it would look much the same if you were not in the data."
)
_WATCH = (
    "Every answer is written into a ledger before it leaves. An auditor can check it at any time, and sees if anything "
    "in it was changed, or taken away since the last look."
)
_NOT = (
    "What is true of many people like you (that smokers fall ill more often, say) can be learned, whether you are in "
    "the data or not. Those who run this server can read the data itself."
)
_MOST = (
    "All answers together{when} reveal at most ε = {epsilon:g} about any one {unit}: compared with a world in which "
    "you {other}, nobody's odds for or against anything about you differ by more than a factor of {factor}. When that "
    "is used up, no new question is answered."
)
_MORE = "The owner of the data can change this limit; every change, and its reason, stays on record."


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/about")
    async def about(session: Session) -> None:
        place = ui.column().classes("w-full")
        found = await attempt(session, "GET /v1/tables", lambda: _found(session), place)
        if found is None:
            return
        place.delete()
        if not found:
            empty("No table is protected yet.", "shield")
            return
        ui.label("For the people in the data: what is protected, and how.").classes("d-muted")
        with card():
            _part("shield", "What others can learn", _LEARN)
            _part("receipt_long", "Who watches", _WATCH)
            _part("info", "What is not promised", _NOT)
        for each in found:
            _dataset(each)


@dataclass(frozen=True)
class _Dataset:
    name: str
    budget: Budget
    tables: list[Version]
    published: str


def _found(session: Session) -> list[_Dataset]:
    curator = session.service.curator
    tables = curator.tables()
    return [
        _Dataset(
            name,
            curator.ledger.budget(name),
            [each for each in tables if each.dataset == name],
            warning(curator.ledger.published(name)),
        )
        for name in datasets_open_to(curator, session.token)
    ]


def _part(icon: str, title: str, words: str) -> None:
    with ui.row().classes("w-full no-wrap items-start gap-3"):
        ui.icon(icon, size="sm", color="primary").props("aria-hidden=true")
        with ui.column().classes("gap-0"):
            heading(title, 2).classes("text-weight-medium")
            ui.label(words)


def _dataset(found: _Dataset) -> None:
    budget, tables = found.budget, found.tables
    substitute = any(each.policy.neighbors is Neighbors.SUBSTITUTE for each in tables)
    delta = f"; δ = {budget.delta:g} on top" if budget.delta else ""
    said = _MOST.format(
        when=f" in one {budget.period}" if budget.period else ", for ever,",
        epsilon=budget.epsilon,
        unit=budget.unit,
        other="had had other data" if substitute else "had not been in the data",
        factor=f"{factor(budget.epsilon)} (e^ε{delta})",
    )
    with card():
        heading(found.name, 2).classes("text-h6").style("overflow-wrap: anywhere")
        names = ", ".join(each.table for each in tables) or "none now"
        ui.label(f"Tables: {names}. Protected is each {budget.unit}: all that these tables hold about it.")
        if found.published:
            warn(found.published)
        ui.label(said).classes("d-tip")
        if budget.period:
            ui.label(f"Over several {budget.period}s it adds up.").classes("d-muted")
        ui.label(_MORE).classes("d-muted")
        columns = sorted({name for each in tables for name in each.policy.columns})
        ui.label(f"What may be asked about: {', '.join(columns) or 'how many there are'}.").classes("d-muted")
