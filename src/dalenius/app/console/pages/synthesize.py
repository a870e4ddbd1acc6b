"""Synthetic rows: which columns, at which price and how well; then the rows, as many as anybody wants."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from nicegui import ui

from dalenius._numbers import count_of, to_digits
from dalenius.app.console import calls
from dalenius.app.console.frame import attempt, card, empty, heading, on_a_page, over, page, trouble
from dalenius.app.console.parts.latest import Latest
from dalenius.app.console.parts.prices import STEPS, price_at, step_below
from dalenius.app.console.parts.progress import Progress
from dalenius.app.console.parts.slider import Slider
from dalenius.app.console.parts.synthetic import show_synthetic
from dalenius.app.console.sessions import Session, Sessions
from dalenius.app.http.limits import TooManyError
from dalenius.app.views.synthetic import expected_words, work_in_words
from dalenius.app.views.tables import open_to
from dalenius.errors import AuthMissingError, DaleniusError
from dalenius.queries.preview import KNOWN
from dalenius.queries.release import shown
from dalenius.synthesis.methods import AUTO, METHODS, method_of

if TYPE_CHECKING:
    from dalenius.synthesis.preview import SyntheticPreview

_FIRST = 0.5
_NO_TARGET = ""
_ABOUT = (
    "Made-up rows that are like a table's: nobody is in them, and anybody may have them. What is measured is paid for "
    "once; then as many rows as you like are free."
)
_MARGIN = "95% margin for the added noise, before all numbers are made to fit each other"
_ROUTE = "POST /v1/synthetic/preview"


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/synthesize", wide=True)
    async def synthesize(session: Session) -> None:
        place = ui.column().classes("w-full gap-4")
        found = await attempt(session, "GET /v1/tables", lambda: _names(session), place)
        if found is None:
            return
        place.delete()
        if not found:
            empty("No table is open to you yet. Ask the owner for an allotment.")
            return
        making = _Making(session, found)
        making.build()
        ui.timer(0, making.choose_table, once=True)  # however long a preview takes, the page is there


def _names(session: Session) -> list[str]:
    return [each.table for each in open_to(session.service.curator, session.token)]


class _Making:
    """One open page."""

    def __init__(self, session: Session, tables: list[str]) -> None:
        self.session, self.tables = session, tables
        self.boxes: dict[str, ui.checkbox] = {}  # of columns that can be modelled
        self.captions: dict[str, ui.label] = {}
        self.making = self.can_be_made = False
        self.previews = Latest(self._look, self._previewed)

    def build(self) -> None:
        with card():
            ui.label(_ABOUT).classes("d-muted")
            with ui.row().classes("w-full items-end gap-4"):
                self.table = self._select("Table", dict(zip(self.tables, self.tables, strict=True)), self.tables[0])
                self.table.on_value_change(self.choose_table)
                words = {AUTO: f"{AUTO}: the best ({method_of(AUTO).name})"}
                words |= {name: f"{name}: {each.words}" for name, each in METHODS.items()}
                self.method = self._select("Method", words, AUTO)
                self.method.on_value_change(self._method_chosen)
                self.target = self._select("Column to be predicted", {_NO_TARGET: "none"}, _NO_TARGET)
                self.target.on_value_change(self.previews.changed)
                self.limit = ui.number("Rows of one unit that count in full", min=1, step=1, precision=0)
                self.limit.props("outlined dense clearable").style("flex: 1 1 200px")
                self.limit.on_value_change(self.previews.changed)
            self.columns = ui.column().classes("w-full gap-2")
            with ui.row().classes("w-full items-center gap-4"):
                with ui.column().classes("gap-2").style("flex: 1 1 220px"):
                    self.price = ui.label().classes("text-weight-medium d-number").props("aria-live=polite")
                    self.slider = Slider("Price of all of it, epsilon", STEPS, step_below(_FIRST))
                    self.slider.on_value_change(self.preview)
                    with ui.row().classes("w-full justify-between d-muted text-caption"):
                        ui.label("costs less, less precise")
                        ui.label("costs more, more precise")
                self.button = ui.button("Make the rows", icon="dataset", on_click=self.make)
                self.button.props("unelevated no-caps padding='10px 20px'")
            self.expected = ui.column().classes("w-full gap-1").props("aria-live=polite")
        self.answer = ui.column().classes("w-full gap-3")
        self._enable()

    def _select(self, label: str, options: dict[str, str], value: str) -> ui.select:
        found = ui.select(options, value=value, label=label).props("outlined dense options-dense")
        return found.style("flex: 1 1 200px; min-width: 0")

    # --- what is asked for

    async def choose_table(self) -> None:
        """Another table: its columns are looked up, all of them are chosen, and what they cost is looked up."""
        self.boxes, self.captions = {}, {}
        self.target.set_options({_NO_TARGET: "none"}, value=_NO_TARGET)
        self.columns.clear()
        await self.preview()

    async def _method_chosen(self) -> None:
        """Only some methods can be told what will be predicted."""
        takes = method_of(self.method.value).takes_target
        self.target.set_enabled(takes)
        if not takes:
            self.target.set_value(_NO_TARGET)
        await self.preview()

    def _asked(self) -> dict[str, Any]:
        chosen = [name for name, box in self.boxes.items() if box.value]
        found: dict[str, Any] = {
            "table": self.table.value,
            "epsilon": price_at(self.slider.value),
            "method": self.method.value,
            "columns": [] if len(chosen) == len(self.boxes) else chosen,
            "target": self.target.value or None,
        }
        if self.limit.value is not None:
            found["rows_per_unit"] = int(self.limit.value)
        return found

    def _show_columns(self, found: SyntheticPreview) -> None:
        """All columns that can be modelled, each to be left out, and those that cannot."""
        with self.columns:
            heading("Columns", 2).classes("text-subtitle1 text-weight-medium")
            with ui.element("div").classes("d-grid").style("gap: .25rem 1rem"):
                for each in found.columns:
                    with ui.column().classes("gap-0"):
                        box = ui.checkbox(shown(each.name, 60), value=True).props("dense")
                        box.on_value_change(self.preview)
                        self.captions[each.name] = ui.label().classes("d-muted text-caption d-number")
                        self.boxes[each.name] = box
            for name, why in found.left_out.items():
                words = f"{shown(name, 60)} is left out. To have it, ask the owner to {why}."
                ui.label(words).classes("d-muted text-caption")
        names = [each.name for each in found.columns]
        self.target.set_options({_NO_TARGET: "none"} | {each: shown(each, 60) for each in names}, value=_NO_TARGET)

    # --- what it would be

    async def preview(self) -> None:
        """Price and expected noise of what stands there now."""
        self.price.set_text(f"Price: ε = {price_at(self.slider.value):g} for all of it")
        await self.previews.changed()

    async def _look(self) -> tuple[str, SyntheticPreview | DaleniusError | None] | None:
        asked = self._asked()
        if self.boxes and not any(box.value for box in self.boxes.values()):
            return asked["table"], None
        table = asked.pop("table")

        def work() -> SyntheticPreview:
            return self.session.analyst.preview_synthetic(table, **asked)

        try:
            return table, await calls.call(self.session, _ROUTE, work)
        except AuthMissingError:
            over()
        except TooManyError as error:
            await asyncio.sleep(error.retry)
            self.previews.look_again()
        except DaleniusError as error:
            return table, error
        return None

    def _previewed(self, looked: tuple[str, SyntheticPreview | DaleniusError | None]) -> None:
        _, found = looked
        self.can_be_made = found is not None and not isinstance(found, DaleniusError)
        self._enable()
        self.expected.clear()
        with self.expected:
            if found is None:
                ui.label("Choose at least one column.").classes("d-warn text-weight-medium")
            elif isinstance(found, DaleniusError):
                ui.label(found.message).classes("d-warn text-weight-medium")
                for words in (found.why, on_a_page(found.fix)):
                    ui.label(words).classes("d-muted text-caption")
            else:
                self._show_expected(found)

    def _show_expected(self, found: SyntheticPreview) -> None:
        if not self.boxes:
            self._show_columns(found)
        for each in found.columns:
            if each.name in self.captions:
                self.captions[each.name].set_text(
                    f"{count_of(each.values, 'value')}, each ± {to_digits(each.margin, 3)} rows"
                )
        for name, box in self.boxes.items():
            if not box.value:
                self.captions[name].set_text("left out")
        parts = [f"about {found.rows:,} rows"] if found.rows is not None else []
        parts += filter(None, [expected_words(found)])
        ui.label(f"Expected: {', '.join(parts) or 'as noisy as each column says'}").classes(
            "text-weight-medium d-number"
        )
        ui.label(f"{_MARGIN}; made by {found.method}: {found.words}.").classes("d-muted text-caption")
        ui.label(f"Work: {work_in_words(found, found.work)}, as far as public sizes tell.").classes(
            "d-muted text-caption"
        )
        if found.known:
            ui.label(f"{KNOWN.capitalize()}.").classes("text-weight-medium")
        elif not self.session.token.trusted:
            ready = f"Ready {math.ceil(found.seconds)} s after you ask (a fixed wait, so that timing reveals nothing)."
            ui.label(ready).classes("d-muted text-caption")
        for note in filter(None, map(on_a_page, found.notes)):
            ui.label(note).classes("d-warn text-caption")
        left = min(each["epsilon"] for each in found.remaining.values())
        if found.epsilon > left and not found.known:
            rest = f"ε ≤ {left:.3g} would pass" if left > 0 else "nothing is left"
            ui.label(f"More than is left: {rest}. What was paid for before stays free.").classes("d-warn")

    # --- the rows

    def _enable(self) -> None:
        self.button.set_enabled(self.can_be_made and not self.making)

    async def make(self) -> None:
        """Makes what stands there at the press, at the price that stands there."""
        if self.making:
            return
        self.making = True
        self._enable()
        self.answer.clear()
        with self.answer:
            progress = Progress("Making the rows…")
        try:
            found = await calls.synthesize(self.session, self._asked(), progress.waiting)
        except AuthMissingError:
            over()
            return
        except DaleniusError as error:
            self.answer.clear()
            with self.answer:
                trouble(error)
        else:
            self.answer.clear()
            with self.answer:
                show_synthetic(self.session, found)
        finally:
            self.making = False
            self._enable()
        await self.preview()  # less may be left now, and this is free
