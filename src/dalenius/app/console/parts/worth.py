"""What synthetic rows are worth: the report, and a comparison with the real rows, which has a price of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from dalenius.app.console import calls
from dalenius.app.console.frame import attempt, busy, card, heading, on_a_page, over, trouble
from dalenius.app.console.parts.prices import STEPS, price_at, step_below
from dalenius.app.console.parts.progress import Progress
from dalenius.app.console.parts.slider import Slider
from dalenius.app.report import STYLE
from dalenius.app.report.synthetic import report_of
from dalenius.app.report.synthetic_html import SEVERAL, document, inside
from dalenius.app.views.synthetic import prediction_words
from dalenius.errors import AuthMissingError, DaleniusError
from dalenius.queries.release import shown
from dalenius.synthesis.release import release_id

if TYPE_CHECKING:
    from dalenius.app.console.sessions import Session
    from dalenius.app.report.synthetic import SyntheticReport
    from dalenius.synthesis.comparison_release import Comparison
    from dalenius.synthesis.release import SyntheticTable

_ROUTE = "GET /v1/synthetic/{id}/report"
_FIRST = 0.1
_NOTHING = ""
_ABOUT = (
    "The report shows each column and how well the model fits what was measured, for nothing. How far the rows are "
    "from the real ones can only be told by looking at those: as noisy counts, for a price of their own."
)
_WAYS = {1: "one column", 2: "two columns", 3: "three columns"}


class Worth:
    """One part of a page."""

    def __init__(self, session: Session, found: SyntheticTable) -> None:
        self.session, self.release, self.columns = session, release_id(found), found.columns

    def build(self) -> None:
        """Two ways to know more."""
        with card().props('role=region aria-label="What the rows are worth"'):
            heading("What are the rows worth?", 2).classes("text-subtitle1 text-weight-medium")
            ui.label(_ABOUT).classes("d-muted")
            with ui.row().classes("w-full items-center gap-4"):
                names = {_NOTHING: "none"} | {each: shown(each, 60) for each in self.columns}
                self.predict = ui.select(names, value=_NOTHING, label="Column that a classifier is to predict")
                self.predict.props("outlined dense options-dense").style("flex: 1 1 200px; min-width: 0")
                with ui.column().classes("gap-2").style("flex: 1 1 200px"):
                    self.price = ui.label().classes("text-weight-medium d-number").props("aria-live=polite")
                    self.slider = Slider("Price of the comparison, epsilon", STEPS, step_below(_FIRST))
                    self.slider.on_value_change(self._priced)
                self.button = ui.button("Compare", icon="compare_arrows", on_click=self.compare)
                self.button.props("outline no-caps padding='10px 20px'")
                self.look = ui.button("Show the report", icon="description", on_click=self.show)
                self.look.props("outline no-caps padding='10px 20px'")
            self.answer = ui.column().classes("w-full gap-2")
            self.place = ui.column().classes("w-full gap-3")
        self._priced()

    def _priced(self) -> None:
        self.price.set_text(f"Price: ε = {price_at(self.slider.value):g}")

    def _enable(self, *, working: bool) -> None:
        for each in (self.button, self.look):
            each.set_enabled(not working)

    async def compare(self) -> None:
        """Compares at the price that stands there; charged before anybody looks."""
        asked: dict[str, Any] = {"release": self.release, "epsilon": price_at(self.slider.value)}
        asked["predict"] = self.predict.value or None
        self._enable(working=True)
        self.answer.clear()
        with self.answer:
            progress = Progress("Comparing with the real rows…")
        try:
            found = await calls.compare(self.session, asked, progress.waiting)
        except AuthMissingError:
            over()
            return
        except DaleniusError as error:
            self.answer.clear()
            with self.answer:
                trouble(error)
        else:
            self.place.clear()
            self.answer.clear()
            with self.answer:
                _show_comparison(found)
        finally:
            self._enable(working=False)

    async def show(self) -> None:
        """The report as it is now, with the newest comparison."""
        self._enable(working=True)
        busy(self.place, "Drawing rows…")

        def work() -> tuple[SyntheticReport, str]:
            found = report_of(self.session.analyst, self.release)
            return found, inside(found)

        made = await attempt(self.session, _ROUTE, work, self.place)
        self._enable(working=False)
        if made is None:
            return
        found, written = made
        content, name = document(found).encode(), f"{found.table}-synthetic-report.html"
        ui.add_css(STYLE + SEVERAL)
        self.place.clear()
        with self.place:
            button = ui.button("Download the report", icon="download")
            button.on_click(lambda: ui.download.content(content, name, "text/html")).props("flat no-caps")
            # Not sanitized, which would take the drawings out: the report escapes every text.
            ui.html(written, sanitize=False).classes("w-full")


def _show_comparison(found: Comparison) -> None:
    """The errors in a few lines; all of them are in the report."""
    paid = "free: paid for before" if found.free else f"paid ε = {found.charge['epsilon']:g}"
    ui.label(paid).classes("d-tag d-number" + (" d-free" if found.free else "")).style("align-self: flex-start")
    for way in found.ways:
        words = f"Error of tables of {_WAYS[way.columns]}: {max(0.0, way.error):.3f} ± {way.margin:.3f}"
        ui.label(words).classes("text-weight-medium d-number")
    if found.prediction is not None:
        for line in prediction_words(found.prediction):
            ui.label(line).classes("d-number")
    about = "An error is the L1 distance of shares, from 0 to 2; ± is the 95% margin for the added noise."
    ui.label(about).classes("d-muted text-caption")
    for note in filter(None, map(on_a_page, found.notes)):
        ui.label(note).classes("d-warn text-caption")
