"""A model: its coefficients with their margins, the model to take away, and a score on units held out."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import ui

from dalenius._numbers import count_of, to_digits
from dalenius.app.console import calls
from dalenius.app.console.charts import coefficients
from dalenius.app.console.frame import attempt, card, heading, on_a_page, over, trouble
from dalenius.app.console.parts.prices import STEPS, price_at, step_below
from dalenius.app.console.parts.progress import Progress
from dalenius.app.console.parts.slider import Slider
from dalenius.app.views.models import AT_MOST, alone_words, largest, margin_words, scored_words, trained_words
from dalenius.app.views.synthetic import promised
from dalenius.errors import AuthMissingError, DaleniusError
from dalenius.learning.release import Coefficient, release_id
from dalenius.queries.release import shown

if TYPE_CHECKING:
    from dalenius.app.console.sessions import Session
    from dalenius.learning.release import TrainedModel
    from dalenius.learning.score_release import ModelScore

SHOWN = 200  # coefficients of one score
_DRAWN = 24
_ROUTE = "GET /v1/models/{id}"
_FIRST = 0.1


def show_model(session: Session, found: TrainedModel) -> None:
    """The whole of it. What a page keeps is the number of the release."""
    task = found.stored.recipe.task
    with card().props('role=region aria-label="Model"'):
        with ui.row().classes("w-full items-center gap-2"):
            heading(f"A model of {shown(task.target.name, 60)}", 2).classes("text-subtitle1 text-weight-medium")
            paid = "free: paid for before" if found.free else f"paid ε = {found.charge['epsilon']:g}"
            ui.label(paid).classes("d-tag d-number" + (" d-free" if found.free else ""))
        ui.label(f"A {task.model} model of {shown(found.stored.table, 60)}, {trained_words(found)}.")
        _take(session, found)
        _coefficients(found)
        for line in (f"{promised(found.guarantee)}: of the model, and of all that is done with it.", AT_MOST):
            ui.label(line).classes("d-muted text-caption")
        if alone_words(found):
            words = f"{alone_words(found)}By privacy loss distributions, for comparison; it was not what was charged."
            ui.label(words).classes("d-muted text-caption")
        for note in found.notes:
            ui.label(shown(note, 2000)).classes("d-warn text-caption")
    if found.stored.held_out:
        _Scoring(session, found).build()


def _take(session: Session, found: TrainedModel) -> None:
    """The folder of the model, as one file."""
    name = f"{found.stored.recipe.task.target.name}-model.zip"
    button = ui.button("Download the model", icon="download").props("outline no-caps")

    async def download() -> None:
        button.disable()
        try:
            content = await attempt(session, _ROUTE, lambda: _packed(session, release_id(found)))
            if content is not None:
                ui.download.content(content, name)
        finally:
            button.enable()

    button.on_click(download)
    ui.label("Weights, and a card with guarantee and receipt: card.json, card.md, weights.json.").classes(
        "d-muted text-caption"
    )


def _packed(session: Session, release: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        files = session.analyst.model(release).save(place)
        into = io.BytesIO()
        with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as packed:
            for each in files:
                packed.write(each, each.name)
        return into.getvalue()


def _coefficients(found: TrainedModel) -> None:
    """Those of one score at a time; which, the reader says."""
    by_output = dict[str, list[Coefficient]]()
    for each in found.coefficients():
        by_output.setdefault(each.output, []).append(each)
    names = {each: shown(each, 60) for each in by_output}
    first = next(iter(names))
    choice = ui.select(names, value=first, label="Score of").props("outlined dense options-dense")
    choice.style("min-width: 14rem").set_visibility(len(names) > 1)
    drawn = ui.echart({}, renderer="svg").classes("w-full")
    drawn.props["role"] = "img"
    with (
        ui.element("div").style("width: 100%; max-height: 28rem; overflow: auto").props("tabindex=0 role=group") as box
    ):
        box.props["aria-label"] = "Coefficients"
        table = ui.table(columns=_COLUMNS, rows=[], row_key="feature").props("flat dense").classes("w-full")
    more = ui.label().classes("d-muted text-caption")

    def choose(output: str) -> None:
        some = largest(by_output[output], SHOWN)
        drawn.options.clear()
        drawn.options.update(coefficients([_bar(each) for each in some[:_DRAWN]]))
        drawn.style(f"height: {64 + 26 * min(len(some), _DRAWN)}px")
        drawn.props["aria-label"] = f"Bar chart of the coefficients for {shown(output, 60)}, with margins"
        drawn.update()
        table.rows = [_row(each) for each in some]
        table.update()
        left = len(by_output[output]) - len(some)
        more.set_text(f"{count_of(left, 'more coefficient')} in card.json." if left else "")

    choose(first)
    choice.on_value_change(lambda event: choose(event.value))


_COLUMNS: list[dict[str, Any]] = [
    {"name": "feature", "label": "feature", "field": "feature", "align": "left"},
    {"name": "value", "label": "coefficient", "field": "value", "align": "right"},
    {"name": "margin", "label": "margin", "field": "margin", "align": "right"},
]


def _row(each: Coefficient) -> dict[str, str]:
    return {"feature": shown(each.feature, 80), "value": to_digits(each.value, 4), "margin": margin_words(each)}


def _bar(each: Coefficient) -> tuple[str, float, float]:
    """In margins: numbers of different columns have units of their own."""
    scale = each.margin or 1.0
    return shown(each.feature, 40), each.value / scale, 1.0 if each.margin else 0.0


class _Scoring:
    """How well a model predicts units held out, for a price of its own."""

    def __init__(self, session: Session, found: TrainedModel) -> None:
        self.session, self.release = session, release_id(found)
        self.target = found.stored.recipe.task.target.name

    def build(self) -> None:
        with card().props('role=region aria-label="How well it predicts"'):
            heading("How well does it predict?", 2).classes("text-subtitle1 text-weight-medium")
            about = "The units that were held out are predicted and counted with noise, for a price of its own."
            ui.label(about).classes("d-muted")
            with ui.row().classes("w-full items-center gap-4"):
                with ui.column().classes("gap-2").style("flex: 1 1 200px"):
                    self.price = ui.label().classes("text-weight-medium d-number").props("aria-live=polite")
                    self.slider = Slider("Price of the score, epsilon", STEPS, step_below(_FIRST))
                    self.slider.on_value_change(self._priced)
                self.button = ui.button("Score", icon="fact_check", on_click=self.score)
                self.button.props("outline no-caps padding='10px 20px'")
            self.answer = ui.column().classes("w-full gap-2")
        self._priced()

    def _priced(self) -> None:
        self.price.set_text(f"Price: ε = {price_at(self.slider.value):g}")

    async def score(self) -> None:
        """Scores at the price that stands there; charged before anybody looks."""
        asked = {"release": self.release, "epsilon": price_at(self.slider.value)}
        self.button.set_enabled(False)
        self.answer.clear()
        with self.answer:
            progress = Progress("Counting the units held out…")
        try:
            found = await calls.score(self.session, asked, progress.waiting)
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
                self._show(found)
        finally:
            self.button.set_enabled(True)

    def _show(self, found: ModelScore) -> None:
        paid = "free: paid for before" if found.free else f"paid ε = {found.charge['epsilon']:g}"
        ui.label(paid).classes("d-tag d-number" + (" d-free" if found.free else "")).style("align-self: flex-start")
        ui.label(scored_words(found.scored, self.target)).classes("text-weight-medium d-number")
        ui.label("± is the 95% margin for the added noise.").classes("d-muted text-caption")
        for note in filter(None, map(on_a_page, found.notes)):
            ui.label(note).classes("d-warn text-caption")
