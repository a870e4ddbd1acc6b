"""Ask: the question, its price and expected error as they are typed, and the answer as table and chart."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from nicegui import ui

from dalenius.app.console import calls
from dalenius.app.console.calls import Wish
from dalenius.app.console.frame import attempt, busy, card, empty, heading, on_a_page, over, page, trouble
from dalenius.app.console.parts.answer import show_answer
from dalenius.app.console.parts.choices import Choices
from dalenius.app.console.parts.editor import examples, sql_editor
from dalenius.app.console.parts.latest import Latest
from dalenius.app.console.parts.prices import LEAST, STEPS, price_at, step_below
from dalenius.app.console.parts.slider import Slider
from dalenius.app.console.parts.understood import show_explanation
from dalenius.app.console.sessions import PastQuestion, Session, Sessions
from dalenius.app.http.limits import TooManyError
from dalenius.app.http.responses import unexpected
from dalenius.app.views import to_minute
from dalenius.app.views.answers import expected_error
from dalenius.app.views.tables import open_to, summary_of
from dalenius.errors import AuthMissingError, DaleniusError
from dalenius.queries.preview import KNOWN, Preview
from dalenius.queries.release import shown

if TYPE_CHECKING:
    from dalenius.queries.release import Release

_FIRST = 0.2
_COARSEST, _FINER, _FIRST_ACCURACY = 50.0, 500.0, 52  # of the slider of accuracy: from 50% to 0.1%; at first 2%
_BY_PRICE, _BY_ACCURACY = "price", "accuracy"
_EARLIER = 20  # charges in the list
_SHOWN = 8  # questions of this session in the list


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/", wide=True)
    async def ask(session: Session) -> None:
        place = ui.column().classes("w-full gap-4")
        found = await attempt(session, "GET /v1/tables", lambda: _tables(session), place)
        if found is None:
            return
        place.delete()
        if not found:
            empty("No table is open to you yet. Ask the owner for an allotment.")
            return
        asking = _Asking(session, found)
        asking.build()
        ui.timer(0, asking.begin, once=True)  # however long a preview takes, the page is there


def _tables(session: Session) -> list[dict[str, Any]]:
    curator = session.service.curator
    return [summary_of(curator, each) for each in open_to(curator, session.token)]


def accuracy_at(step: object) -> str:
    """The accuracy at a place of its slider, in per cent; to the right it is finer, and costs more.

    >>> accuracy_at(0), accuracy_at(52), accuracy_at(100), accuracy_at("NaN")
    ('50%', '2%', '0.1%', '50%')
    """
    step = step if isinstance(step, int | float) and 0 <= step <= STEPS else 0
    value: float = _COARSEST / _FINER ** (step / STEPS)
    return f"{round(value, 1 - math.floor(math.log10(value))):g}%"


class _Asking:
    """One open page."""

    def __init__(self, session: Session, tables: list[dict[str, Any]]) -> None:
        self.session, self.tables = session, tables
        self.asking = self.can_be_asked = False
        self.told: tuple[str, Wish, float] | None = None  # question, wish and the price that stands there for them
        self.understood = False  # whether it is shown how the question was understood
        self.previews = Latest(self._look, self._previewed)

    @property
    def wish(self) -> Wish:
        """What is to be paid, or how exact it is to be."""
        if self.mode.value == _BY_ACCURACY:
            return Wish(None, accuracy_at(self.finer.value))
        return Wish(price_at(self.slider.value), None)

    def build(self) -> None:
        with ui.row().classes("w-full items-start gap-4"):
            with ui.column().classes("gap-4").style("flex: 3 1 560px; min-width: 0"):
                self._question()
                self.answer = ui.column().classes("w-full gap-3")
                self.past = card()
            with ui.column().classes("gap-3").style("flex: 1 1 300px; max-width: 100%; min-width: 0"):
                heading("Tables", 2).classes("text-subtitle1 text-weight-medium")
                for table in self.tables:
                    self._table(table)

    async def begin(self) -> None:
        """What is looked up once the page is shown."""
        await self.preview()
        await self._history()

    def _question(self) -> None:
        several = len(self.tables) > 1
        with card():
            with ui.row().classes("w-full items-center gap-2"):
                ui.label("Try").classes("d-muted")
                for table in self.tables[:3]:
                    for each in examples(table)[: 2 if several else 4]:
                        self._example(f"{each.words} ({table['name']})" if several else each.words, each.sql)
            self.editor = sql_editor(examples(self.tables[0])[0].sql, self.tables, self.ask)
            self.editor.on_value_change(self.preview)
            with ui.row().classes("w-full items-center gap-4"):
                with ui.column().classes("gap-2").style("flex: 1 1 220px"):  # room for the frame of what has the focus
                    self._switch()
                    self.price = ui.label().classes("text-weight-medium d-number").props("aria-live=polite")
                    self.slider = Slider("Price, epsilon", STEPS, step_below(_FIRST))
                    self.slider.on_value_change(self.preview)
                    self.finer = Slider("Accuracy, per cent", STEPS, _FIRST_ACCURACY)
                    self.finer.on_value_change(self.preview)
                    self.finer.set_visibility(False)
                    with ui.row().classes("w-full justify-between d-muted text-caption"):
                        ui.label("costs less, less precise")
                        ui.label("costs more, more precise")
                with ui.column().classes("items-center gap-1"):
                    self.button = ui.button("Ask", icon="send", on_click=self.ask)
                    self.button.props("unelevated no-caps padding='10px 20px'")
                    ui.label("or Ctrl+Enter").classes("d-muted text-caption gt-xs")
            self.expected = ui.column().classes("w-full gap-1").props("aria-live=polite")

    def _switch(self) -> None:
        """Price ↔ accuracy: what is chosen, and what follows from it."""
        with ui.row().classes("items-center gap-2"):
            ui.label("Choose the").classes("d-muted")
            self.mode = Choices({_BY_PRICE: "Price", _BY_ACCURACY: "Accuracy"}, value=_BY_PRICE)
        self.mode.props('dense unelevated no-caps padding="2px 12px" aria-label="Choose the price or the accuracy"')
        self.mode.classes("d-line")
        self.mode.on_value_change(self._switched)

    async def _switched(self) -> None:
        accuracy = self.mode.value == _BY_ACCURACY
        self.slider.set_visibility(not accuracy)
        self.finer.set_visibility(accuracy)
        await self.preview()

    def _take_price(self, step: int) -> None:
        """Goes back to a price."""
        self.mode.set_value(_BY_PRICE)
        self.slider.set_value(step)

    def _example(self, words: str, sql: str) -> None:
        button = ui.button(shown(words, 60), on_click=lambda: self.editor.set_value(sql))
        button.props("outline dense no-caps color=primary padding='2px 10px'")

    def _table(self, table: dict[str, Any]) -> None:
        with ui.expansion(table["name"], icon="table_chart", value=len(self.tables) < 4).classes("w-full d-card"):
            whose = table["path"] or ", ".join(table["unit"])
            ui.label(f"Protects each {whose}").classes("d-muted text-caption")
            if table["closed"]:
                ui.label(f"Closed: {table['closed']}").classes("d-warn")
            for name, spec in table["columns"].items():
                with ui.row().classes("w-full items-baseline").style("column-gap: .5rem; row-gap: 0"):
                    ui.label(name).classes("text-weight-medium").style("overflow-wrap: anywhere")
                    ui.label(_about(spec)).classes("d-muted text-caption").style("overflow-wrap: anywhere")
            for name in table["public"] or {}:
                ui.label(f"Public table beside it: {name}").classes("d-muted text-caption")

    # --- live price

    async def preview(self) -> None:
        """Price and expected error of what stands there now; what is changed meanwhile is looked at next, and last."""
        self.price.set_text(str(self.wish))
        await self.previews.changed()

    async def _look(self) -> tuple[str, Wish, Preview | DaleniusError] | None:
        sql, wish = self.editor.value, self.wish

        def work() -> Preview:
            return self.session.analyst.preview(sql, epsilon=wish.epsilon, error=wish.error)

        try:
            return sql, wish, await calls.call(self.session, "POST /v1/preview", work)
        except AuthMissingError:
            over()
        except TooManyError as error:
            await asyncio.sleep(error.retry)
            self.previews.look_again()
        except DaleniusError as error:
            return sql, wish, error
        return None

    def _previewed(self, looked: tuple[str, Wish, Preview | DaleniusError]) -> None:
        sql, wish, found = looked
        self.told = None
        self.can_be_asked = not isinstance(found, DaleniusError)
        self._enable()
        self.expected.clear()
        with self.expected:
            if isinstance(found, DaleniusError):
                ui.label(found.message).classes("d-warn text-weight-medium")
                for words in (found.why, on_a_page(found.fix)):
                    ui.label(words).classes("d-muted text-caption")
                if wish.error is None:
                    self._instead()
                else:  # other questions may have no accuracy either; each has a price
                    button = ui.button("Choose the price instead", on_click=lambda: self.mode.set_value(_BY_PRICE))
                    button.props("outline dense no-caps color=primary padding='2px 10px'")
            elif found.public:
                ui.label("Public tables only: exact, and free.").classes("text-weight-medium")
            else:
                self._expected(found, wish)
                self.told = (sql, wish, found.choices[0].epsilon)
            if isinstance(found, Preview) and found.explanation is not None:
                show_explanation(found.explanation, opened=self.understood, on_change=self._opened)

    def _expected(self, found: Preview, wish: Wish) -> None:
        (choice,) = found.choices
        if wish.error is not None:
            self.price.set_text(f"{wish} for ε = {choice.epsilon:.4g}")
        told = [(shown(name, 30), expected_error(choice, place)) for place, name in enumerate(found.columns)]
        parts = [f"{name} {said}" for name, said in told if said]
        ui.label(f"Expected: {', '.join(parts) or 'no error is known before'}").classes("text-weight-medium d-number")
        about = f"{found.confidence:.0%} margin for the added noise"
        about += ", and in all with what the limits cut off" if found.tells_totals else ""
        ui.label(f"{found.size('row')}; {about}").classes("d-muted text-caption")
        if choice.known:
            ui.label(f"{KNOWN.capitalize()}.").classes("text-weight-medium")
        for note in filter(None, map(on_a_page, found.notes)):
            ui.label(note).classes("d-muted text-caption")
        left = {name: each["epsilon"] for name, each in found.remaining.items()}
        if choice.epsilon > min(left.values()) and not choice.known:
            self._too_dear(left)

    def _opened(self, opened: bool) -> None:
        """Stays as it is while more is typed."""
        self.understood = opened

    def _too_dear(self, left: dict[str, float]) -> None:
        """Not refused here: who asked the same before gets the stored answer, for nothing."""
        whose = "your allotment" if left["analyst"] <= left["dataset"] else "the data set's budget"
        most = min(left.values())
        rest = f"ε ≤ {most:.3g} would pass" if most > 0 else "nothing is left"
        ui.label(f"More than is left of {whose}: {rest}. What was paid for before stays free.").classes("d-warn")

    def _instead(self) -> None:
        """Questions that would work."""
        with ui.row().classes("items-center gap-2"):
            ui.label("This would work:").classes("d-muted text-caption")
            meant = next((each for each in self.tables if each["name"] in self.editor.value), self.tables[0])
            for each in examples(meant)[:2]:
                self._example(each.words, each.sql)

    # --- the answer

    async def ask(self) -> None:
        """Asks; the page stays usable meanwhile, and the answer comes when its time has come.

        What stands there at the press is asked, at the price that stands there, whatever the last preview was of: who
        types and asks at once means what was typed, and who moves the slider after the press is not charged another
        price. A press always shows: what was there before makes room, and a question that cannot be answered says why.
        For an accuracy no more is paid than the price that stood there, or, where none did yet, than anybody pays who
        names none.
        """
        if self.asking:
            return
        self.asking = True
        self._enable()
        busy(self.answer, "Asking…")
        sql, wish = self.editor.value, self.wish
        paid_for = wish if wish.error is None else replace(wish, epsilon=self._price_told(sql, wish))

        def waiting(seconds: float | None) -> None:
            if seconds:
                busy(self.answer, f"Ready in {math.ceil(seconds)} s (a fixed wait, so that timing reveals nothing).")

        try:
            release = await calls.ask(self.session, sql, paid_for, waiting)
        except AuthMissingError:
            over()
            return
        except DaleniusError as error:
            self._refused(error, wish)
        except Exception as error:
            self._refused(unexpected(error), wish)  # which says what is not known: whether it was charged
            raise
        else:
            self._answered(release, sql, wish)
        finally:
            self.asking = False
            self._enable()
        await self._history()
        await self.preview()  # less may be left now

    def _price_told(self, sql: str, wish: Wish) -> float | None:
        """The price that stands there for just that; None: another one does, or none."""
        return self.told[2] if self.told is not None and self.told[:2] == (sql, wish) else None

    def _enable(self) -> None:
        self.button.set_enabled(self.can_be_asked and not self.asking)

    def _answered(self, release: Release, sql: str, wish: Wish) -> None:
        self.answer.clear()
        with self.answer:
            show_answer(self.session, release)
        paid = 0.0 if release.free or release.public else float(release.charge["epsilon"])
        asked_at = float(release.guarantee.get("epsilon", 0.0)) if wish.epsilon is None else wish.epsilon
        self.session.asked.append(PastQuestion(sql, asked_at, paid))

    def _refused(self, error: DaleniusError, wish: Wish) -> None:
        self.answer.clear()
        with self.answer:
            trouble(error)
            if error.fits is not None and error.fits.epsilon >= LEAST:
                step = step_below(error.fits.epsilon)
                ui.button(
                    f"Take ε = {price_at(step):g}, which would pass", on_click=lambda: self._take_price(step)
                ).props("outline no-caps")
            elif error.status in {400, 422} and wish.error is None:  # else the question is good, and its price is not
                self._instead()

    # --- what was asked before

    async def _history(self) -> None:
        rows = await attempt(self.session, "GET /v1/history", self.session.analyst.history)
        if rows is None:
            return
        self.past.clear()
        asked = list(self.session.asked)[::-1][:_SHOWN]
        with self.past:
            heading("Your questions", 2).classes("text-subtitle1 text-weight-medium")
            if not asked and not rows:
                ui.label("None yet.").classes("d-muted")
            for each in asked:
                self._asked(each)
            if rows:
                with ui.expansion(f"All your charges: {len(rows):,}", icon="history").classes("w-full"):
                    for row in rows[: -_EARLIER - 1 : -1]:
                        when = to_minute(row["time"])
                        ui.label(f"{when} · {row['dataset']} · paid ε = {row['charge']['epsilon']:g}").classes(
                            "d-muted text-caption d-number"
                        )
                    ui.label("Question text is not stored. What was measured is kept, encrypted.").classes(
                        "d-muted text-caption"
                    )
            ui.label("Asking the same again, at the same price or less, is free until the data changes.").classes(
                "d-muted text-caption"
            )

    def _put_back(self, asked: PastQuestion) -> None:
        self.editor.set_value(asked.sql)
        self._take_price(step_below(asked.epsilon))

    def _asked(self, asked: PastQuestion) -> None:
        with ui.row().classes("w-full items-center gap-2 no-wrap"):
            ui.label(f"paid ε = {asked.paid:g}" if asked.paid else "free").classes(
                "d-tag d-number" + ("" if asked.paid else " d-free")
            ).style("flex: none")
            sql = " ".join(asked.sql.split())
            ui.label(shown(sql, 300)).classes("d-code ellipsis").style("flex: 1 1 auto; min-width: 0")
            again = ui.button(icon="edit", on_click=lambda: self._put_back(asked)).props("flat dense round")
            again.props["aria-label"] = f"Put back: {shown(sql, 60)}"
            again.tooltip("Put it back into the editor")


def _about(spec: dict[str, Any]) -> str:
    parts = [str(spec.get("type", ""))]
    if spec.get("bounds"):
        parts.append(f"{spec['bounds'][0]} to {spec['bounds'][1]}")
    if spec.get("keys"):
        parts.append(", ".join(shown(each, 40) for each in spec["keys"]))
    return shown(" · ".join(parts), 200)
