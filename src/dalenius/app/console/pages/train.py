"""Models: what to predict from what, at which price and how well; then the coefficients, and the model to take away."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from nicegui import ui

from dalenius.app.console import calls
from dalenius.app.console.frame import attempt, card, empty, heading, on_a_page, over, page, trouble
from dalenius.app.console.parts.latest import Latest
from dalenius.app.console.parts.model import show_model
from dalenius.app.console.parts.prices import STEPS, price_at, step_below
from dalenius.app.console.parts.progress import Progress
from dalenius.app.console.parts.slider import Slider
from dalenius.app.console.sessions import Session, Sessions
from dalenius.app.http.limits import TooManyError
from dalenius.app.views.models import loss_words, recipe_words
from dalenius.app.views.tables import open_to
from dalenius.errors import AuthMissingError, DaleniusError
from dalenius.learning.models import MODELS
from dalenius.learning.targets import possible_targets
from dalenius.queries.preview import KNOWN
from dalenius.queries.release import shown

if TYPE_CHECKING:
    from dalenius.learning.preview import ModelPreview
    from dalenius.tables.registry import Version

_FIRST = 1.0
_ABOUT = (
    "A model that predicts one column from others. Training is paid for once, before the rows are read; what is "
    "predicted with the model is free, and anybody may have it."
)
_WORDS = {
    "logistic": "logistic: classes, with their chances",
    "svm": "svm: classes, by the widest margin",
    "linear": "linear: a number",
    "poisson": "poisson: a count",
}
_HELD = {0.0: "nobody", 0.1: "10% of the units", 0.2: "20% of the units"}
_ROUTE = "POST /v1/models/preview"


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/train", wide=True)
    async def train(session: Session) -> None:
        place = ui.column().classes("w-full gap-4")
        found = await attempt(session, "GET /v1/tables", lambda: _tables(session), place)
        if found is None:
            return
        place.delete()
        if not found:
            empty("No table is open to you yet. Ask the owner for an allotment.")
            return
        training = _Training(session, found)
        training.build()
        ui.timer(0, training.choose_table, once=True)  # however long a preview takes, the page is there


def _tables(session: Session) -> dict[str, Version]:
    return {each.table: each for each in open_to(session.service.curator, session.token)}


class _Training:
    """One open page."""

    def __init__(self, session: Session, tables: dict[str, Version]) -> None:
        self.session, self.tables = session, tables
        self.boxes: dict[str, ui.checkbox] = {}  # of columns that can be features
        self.described = ("", "")  # the table and the target that they are for
        self.working = self.can_be_trained = False
        self.steps = 0
        self.previews: Latest[ModelPreview | DaleniusError | str] = Latest(self._look, self._previewed)

    def build(self) -> None:
        with card():
            ui.label(_ABOUT).classes("d-muted")
            with ui.row().classes("w-full items-end gap-4"):
                names = list(self.tables)
                self.table = self._select("Table", dict(zip(names, names, strict=True)), names[0])
                self.table.on_value_change(self.choose_table)
                self.model = self._select("Model", {name: _WORDS.get(name, name) for name in MODELS}, "logistic")
                self.model.on_value_change(self.choose_table)
                self.target = self._select("Column to predict", {}, None)
                self.target.on_value_change(self.choose_target)
                self.held = self._select("Held out, to be scored", _HELD, 0.0)
                self.held.on_value_change(self.preview)
            self.columns = ui.column().classes("w-full gap-2")
            with ui.row().classes("w-full items-center gap-4"):
                with ui.column().classes("gap-2").style("flex: 1 1 220px"):
                    self.price = ui.label().classes("text-weight-medium d-number").props("aria-live=polite")
                    self.slider = Slider("Price of all of it, epsilon", STEPS, step_below(_FIRST))
                    self.slider.on_value_change(self.preview)
                    with ui.row().classes("w-full justify-between d-muted text-caption"):
                        ui.label("costs less, less precise")
                        ui.label("costs more, more precise")
                self.button = ui.button("Train the model", icon="model_training", on_click=self.train)
                self.button.props("unelevated no-caps padding='10px 20px'")
            self.expected = ui.column().classes("w-full gap-1").props("aria-live=polite")
        self.answer = ui.column().classes("w-full gap-3")
        self._enable()

    def _select(self, label: str, options: dict[Any, str], value: Any) -> ui.select:
        found = ui.select(options, value=value, label=label).props("outlined dense options-dense")
        return found.style("flex: 1 1 180px; min-width: 0")

    # --- what is asked for

    async def choose_table(self) -> None:
        """Another table, or another model: which columns it can predict follows from the policy."""
        policy = self.tables[self.table.value].policy
        names = possible_targets(policy.columns, self.model.value, frozenset(policy.unit))
        kept = self.target.value if self.target.value in names else (names[0] if names else None)
        self.target.set_options({each: shown(each, 60) for each in names}, value=kept)
        await self.choose_target()

    async def choose_target(self) -> None:
        """Another column to predict: all others that can be are features."""
        if self.described != (self.table.value, self.target.value):
            self.boxes = {}
            self.columns.clear()
        await self.preview()

    def _asked(self) -> dict[str, Any]:
        chosen = [name for name, box in self.boxes.items() if box.value]
        return {
            "table": self.table.value,
            "target": self.target.value,
            "epsilon": price_at(self.slider.value),
            "model": self.model.value,
            "features": [] if len(chosen) == len(self.boxes) else chosen,
            "held_out": self.held.value,
        }

    def _show_columns(self, found: ModelPreview) -> None:
        """All columns that can be features, each to be left out, and those that cannot."""
        self.described = (self.table.value, self.target.value)
        with self.columns:
            heading("Predict from", 2).classes("text-subtitle1 text-weight-medium")
            with ui.element("div").classes("d-grid").style("gap: .25rem 1rem"):
                for each in found.features:
                    box = ui.checkbox(shown(each, 60), value=True).props("dense")
                    box.on_value_change(self.preview)
                    self.boxes[each] = box
            for name, why in found.left_out.items():
                words = f"{shown(name, 60)} is left out. To have it, ask the owner to {why}."
                ui.label(words).classes("d-muted text-caption")

    # --- what it would be

    async def preview(self) -> None:
        """Price and expected noise of what stands there now."""
        self.price.set_text(f"Price: ε = {price_at(self.slider.value):g} for all of it")
        await self.previews.changed()

    async def _look(self) -> ModelPreview | DaleniusError | str | None:
        asked = self._asked()
        if asked["target"] is None:
            return "This table has no column that such a model can predict. Choose another model."
        if self.boxes and not any(box.value for box in self.boxes.values()):
            return "Choose at least one column to predict from."
        table, target = asked.pop("table"), asked.pop("target")

        def work() -> ModelPreview:
            return self.session.analyst.preview_model(table, target, **asked)

        try:
            return await calls.call(self.session, _ROUTE, work)
        except AuthMissingError:
            over()
        except TooManyError as error:
            await asyncio.sleep(error.retry)
            self.previews.look_again()
        except DaleniusError as error:
            return error
        return None

    def _previewed(self, found: ModelPreview | DaleniusError | str) -> None:
        self.can_be_trained = not isinstance(found, DaleniusError | str)
        self._enable()
        self.expected.clear()
        with self.expected:
            if isinstance(found, str):
                ui.label(found).classes("d-warn text-weight-medium")
            elif isinstance(found, DaleniusError):
                ui.label(found.message).classes("d-warn text-weight-medium")
                for words in (found.why, on_a_page(found.fix)):
                    ui.label(words).classes("d-muted text-caption")
            else:
                self._show_expected(found)

    def _show_expected(self, found: ModelPreview) -> None:
        if not self.boxes:
            self._show_columns(found)
        self.steps = found.steps
        ui.label(f"Expected: {loss_words(found)}").classes("text-weight-medium d-number")
        for line in recipe_words(found):
            ui.label(line).classes("d-muted text-caption d-number")
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

    # --- the model

    def _enable(self) -> None:
        self.button.set_enabled(self.can_be_trained and not self.working)

    async def train(self) -> None:
        """Trains what stands there at the press, at the price that stands there."""
        if self.working:
            return
        self.working = True
        self._enable()
        self.answer.clear()
        with self.answer:
            progress = Progress("Training…", self.steps)
        try:
            found = await calls.train(self.session, self._asked(), progress.waiting, progress.stepped)
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
                show_model(self.session, found)
        finally:
            self.working = False
            self._enable()
        await self.preview()  # less may be left now, and this is free
