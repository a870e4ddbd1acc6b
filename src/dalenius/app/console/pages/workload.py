"""Many questions: pasted, with the error that each may be expected to have; then asked at one price."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from nicegui import ui

from dalenius.app.console import calls
from dalenius.app.console.frame import attempt, busy, card, empty, heading, over, page, trouble
from dalenius.app.console.parts.answer import show_answer
from dalenius.app.console.parts.editor import examples, sql_editor
from dalenius.app.console.parts.prices import STEPS, price_at, step_below
from dalenius.app.console.parts.slider import Slider
from dalenius.app.console.sessions import Session, Sessions
from dalenius.app.views.tables import open_to, summary_of
from dalenius.errors import AuthMissingError, DaleniusError
from dalenius.queries.preview import KNOWN
from dalenius.queries.release import shown, shown_error

if TYPE_CHECKING:
    from dalenius.queries.workloads.release import Expected, WorkloadPreview, WorkloadRelease

_FIRST = 0.5
_CHARTS = 40  # answers that are shown with all they have
_ABOUT = (
    "Questions about one data set, with a semicolon between them, are answered together at one price: from numbers "
    "that are measured once for all of them. That takes less noise than asking them one by one."
)


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/workload", wide=True)
    async def workload(session: Session) -> None:
        place = ui.column().classes("w-full gap-4")
        found = await attempt(session, "GET /v1/tables", lambda: _tables(session), place)
        if found is None:
            return
        place.delete()
        if not found:
            empty("No table is open to you yet. Ask the owner for an allotment.")
            return
        _Asking(session, found).build()


def _tables(session: Session) -> list[dict[str, Any]]:
    curator = session.service.curator
    return [summary_of(curator, each) for each in open_to(curator, session.token)]


class _Asking:
    """One open page."""

    def __init__(self, session: Session, tables: list[dict[str, Any]]) -> None:
        self.session, self.tables = session, tables
        self.working = False

    def build(self) -> None:
        with card():
            ui.label(_ABOUT).classes("d-muted")
            first = ";\n\n".join(each.sql for each in examples(self.tables[0])[:3])
            self.editor = sql_editor(first, self.tables, self.ask)
            with ui.row().classes("w-full items-center gap-4"):
                with ui.column().classes("gap-2").style("flex: 1 1 220px"):
                    self.price = ui.label().classes("text-weight-medium d-number").props("aria-live=polite")
                    self.slider = Slider("Price of all, epsilon", STEPS, step_below(_FIRST))
                    self.slider.on_value_change(self._priced)
                self.look = ui.button("Preview", icon="visibility", on_click=self.preview)
                self.look.props("outline no-caps padding='10px 20px'")
                self.button = ui.button("Ask all", icon="send", on_click=self.ask)
                self.button.props("unelevated no-caps padding='10px 20px'")
        self.expected = ui.column().classes("w-full gap-3").props("aria-live=polite")
        self.answers = ui.column().classes("w-full gap-3")
        self._priced()

    def _priced(self) -> None:
        self.price.set_text(f"Price: ε = {price_at(self.slider.value):g} for all")

    def _enable(self, *, working: bool) -> None:
        self.working = working
        for each in (self.look, self.button):
            each.set_enabled(not working)

    async def preview(self) -> None:
        """The expected error of every answer, for nothing."""
        if self.working:
            return
        self._enable(working=True)
        busy(self.expected, "Choosing what to measure…")
        sql, epsilon = self.editor.value, price_at(self.slider.value)

        def work() -> WorkloadPreview:
            return self.session.analyst.preview_many(sql or "", epsilon=epsilon)

        found = await attempt(self.session, "POST /v1/workloads/preview", work, self.expected)
        self._enable(working=False)
        if found is None:
            return
        self.expected.clear()
        with self.expected:
            _show_expected(found.expected, known=found.known)

    async def ask(self) -> None:
        """Asks what stands there, at the price that stands there."""
        if self.working:
            return
        self._enable(working=True)
        busy(self.answers, "Asking…")
        sql, epsilon = self.editor.value, price_at(self.slider.value)

        def waiting(seconds: float | None) -> None:
            if seconds:
                busy(self.answers, f"Ready in {math.ceil(seconds)} s (a fixed wait, so that timing reveals nothing).")

        try:
            found = await calls.ask_many(self.session, sql or "", epsilon, waiting)
        except AuthMissingError:
            over()
            return
        except DaleniusError as error:
            self.answers.clear()
            with self.answers:
                trouble(error)
            return
        finally:
            self._enable(working=False)
        self._show(found)

    def _show(self, found: WorkloadRelease) -> None:
        self.expected.clear()
        with self.expected:
            _show_expected(found.expected, known=False)
        self.answers.clear()
        with self.answers:
            for number, each in enumerate(found.releases[:_CHARTS], 1):
                words = " ".join(each.question.split())
                heading(f"{number}: {shown(words, 200)}", 2).classes("text-subtitle1 text-weight-medium")
                show_answer(self.session, each)
            if len(found.releases) > _CHARTS:
                ui.label(f"{len(found.releases) - _CHARTS:,} more: ask each alone, it is free now.").classes("d-muted")


def _show_expected(expected: Expected, *, known: bool) -> None:
    """The table of expected errors, and what is measured."""
    columns = [
        {"name": name, "label": label, "field": name, "align": align}
        for name, label, align in (
            ("question", "Question", "right"),
            ("column", "Column", "left"),
            ("together", "Together", "right"),
            ("alone", "One by one", "right"),
        )
    ]
    rows = []
    for number, each in enumerate(expected.questions, 1):
        for name, error, alone in zip(each.columns, each.noise_error, each.one_by_one, strict=True):
            if error is not None:
                rows.append(
                    {
                        "question": number,
                        "column": shown(name, 40),
                        "together": f"± {shown_error(error)}",
                        "alone": "–" if alone is None else f"± {shown_error(alone)}",
                    }
                )
    with card().props('role=region aria-label="Expected errors"'):
        heading("Expected errors", 2).classes("text-subtitle1 text-weight-medium")
        ui.table(columns=columns, rows=rows).classes("w-full").props("flat dense")
        if known:
            ui.label(f"{KNOWN.capitalize()}.").classes("text-weight-medium")
        ui.label(f"{expected.confidence:.0%} margin for the added noise").classes("d-muted text-caption")
        for line in (f"Measured: {expected.strategy}", *expected.lines()):
            ui.label(shown(line, 2000)).classes("d-muted text-caption")
