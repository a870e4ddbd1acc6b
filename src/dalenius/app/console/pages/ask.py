"""Ask: the question, its price and expected error as they are typed, and the answer as table and chart."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from nicegui import ui

from dalenius.app.console import calls
from dalenius.app.console.frame import attempt, busy, card, empty, heading, on_a_page, over, page, trouble
from dalenius.app.console.parts.answer import show_answer
from dalenius.app.console.parts.editor import examples, sql_editor
from dalenius.app.console.sessions import PastQuestion, Session, Sessions
from dalenius.app.http.limits import TooManyError
from dalenius.app.http.responses import unexpected
from dalenius.app.views import to_minute
from dalenius.app.views.tables import open_to, summary_of
from dalenius.errors import AuthMissingError, DaleniusError
from dalenius.queries.release import shown, with_error

if TYPE_CHECKING:
    from dalenius.queries.preview import Preview
    from dalenius.queries.release import Release

_LEAST, _SPAN, _STEPS = 0.01, 500.0, 100  # of the slider: from 0.01 to 5, even in the logarithm
_FIRST = 0.2
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


def price_at(step: object) -> float:
    """The ε at a place of the slider; two digits. What a browser says beside its places is the lowest.

    >>> price_at(0), price_at(48), price_at(100), price_at("NaN")
    (0.01, 0.2, 5.0, 0.01)
    """
    step = step if isinstance(step, int | float) and 0 <= step <= _STEPS else 0
    value: float = _LEAST * _SPAN ** (step / _STEPS)
    return round(value, 1 - math.floor(math.log10(value)))


def step_below(epsilon: float) -> int:
    """The highest place of the slider that costs no more than this; the lowest there is, if none does."""
    return max((step for step in range(_STEPS + 1) if price_at(step) <= epsilon), default=0)


class _Asking:
    """One open page."""

    def __init__(self, session: Session, tables: list[dict[str, Any]]) -> None:
        self.session, self.tables = session, tables
        self.looking = self.again = self.asking = self.can_be_asked = False
        self.looked = asyncio.Event()  # set while no preview is under way

    @property
    def epsilon(self) -> float:
        return price_at(self.slider.value)

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
        first = self.tables[0]
        with card():
            with ui.row().classes("w-full items-center gap-2"):
                ui.label("Try").classes("d-muted")
                for table in self.tables[:3]:
                    for each in examples(table)[: 2 if len(self.tables) > 1 else 4]:
                        self._example(each.words if table is first else f"{each.words} ({table['name']})", each.sql)
            self.editor = sql_editor(examples(first)[0].sql, self.tables, self.ask)
            self.editor.on_value_change(self.preview)
            with ui.row().classes("w-full items-center gap-4"):
                with ui.column().classes("gap-0").style("flex: 1 1 220px"):
                    self.price = ui.label().classes("text-weight-medium d-number").props("aria-live=polite")
                    self.slider = ui.slider(min=0, max=_STEPS, step=1, value=step_below(_FIRST))
                    self.slider.props('aria-label="Price, epsilon" color=primary')
                    self.slider.on_value_change(self.preview)
                    with ui.row().classes("w-full justify-between d-muted text-caption"):
                        ui.label("cheaper, noisier")
                        ui.label("dearer, more exact")
                with ui.column().classes("items-center gap-1"):
                    self.button = ui.button("Ask", icon="send", on_click=self.ask)
                    self.button.props("unelevated no-caps padding='10px 20px'")
                    ui.label("or Ctrl+Enter").classes("d-muted text-caption gt-xs")
            self.expected = ui.column().classes("w-full gap-1").props("aria-live=polite")

    def _example(self, words: str, sql: str) -> None:
        button = ui.button(shown(words, 60), on_click=lambda: self.editor.set_value(sql))
        button.props("outline dense no-caps color=primary padding='2px 10px'")

    def _table(self, table: dict[str, Any]) -> None:
        with ui.expansion(table["name"], icon="table_chart", value=len(self.tables) < 4).classes("w-full d-card"):
            whose = table["path"] or ", ".join(table["unit"])
            ui.label(f"Protected: each {whose}").classes("d-muted text-caption")
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
        """Price and expected error of what stands there now; what is typed meanwhile is looked at next, and last."""
        self.price.set_text(f"Price: ε = {self.epsilon:g}")
        self.again = True
        if self.looking:
            return
        self.looking = True
        self.looked.clear()
        try:
            while self.again:
                self.again = False
                found = await self._look(self.editor.value, self.epsilon)
                if found is not None and not self.again:
                    self._previewed(found)
        finally:
            self.looking = False
            self.looked.set()

    async def _look(self, sql: str, epsilon: float) -> Preview | DaleniusError | None:
        try:
            return await calls.call(
                self.session, "POST /v1/preview", lambda: self.session.analyst.preview(sql, epsilon=epsilon)
            )
        except AuthMissingError:
            over()
        except TooManyError as error:
            await asyncio.sleep(error.retry)
            self.again = True
        except DaleniusError as error:
            return error
        return None

    def _previewed(self, found: Preview | DaleniusError) -> None:
        self.can_be_asked = not isinstance(found, DaleniusError)
        self._enable()
        self.expected.clear()
        with self.expected:
            if isinstance(found, DaleniusError):
                ui.label(found.message).classes("d-warn text-weight-medium")
                for words in (found.why, on_a_page(found.fix)):
                    ui.label(words).classes("d-muted text-caption")
                self._instead()
            elif found.public:
                ui.label("Public tables only: exact, and free.").classes("text-weight-medium")
            else:
                self._expected(found)

    def _expected(self, found: Preview) -> None:
        (choice,) = found.choices
        parts = []
        for name, error, per_rows in zip(found.columns, choice.noise_error, choice.noise_error_per_rows, strict=True):
            if error is not None:
                parts.append(f"{shown(name, 30)} ± {with_error(float(error), float(error))[1]}")
            elif per_rows is not None:
                told = with_error(float(per_rows), float(per_rows))[1]
                parts.append(f"{shown(name, 30)} ± {told} in a group of {found.rows:,} rows")
        ui.label(f"Expected: {', '.join(parts) or 'keys only'}").classes("text-weight-medium d-number")
        ui.label(f"{found.size('row')}; {found.confidence:.0%} of the time, from the noise alone").classes(
            "d-muted text-caption"
        )
        for note in found.notes:
            ui.label(note).classes("d-muted text-caption")
        left = {name: each["epsilon"] for name, each in found.remaining.items()}
        if choice.epsilon > min(left.values()):
            self._too_dear(left)

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

        Whoever types and asks at once means what stands there now: the press waits until that was looked at, and is not
        judged by what stood there before.
        """
        if self.asking:
            return
        self.asking = True
        self._enable()
        await self.looked.wait()
        if not self.can_be_asked:
            self.asking = False
            self._enable()
            return
        sql, epsilon = self.editor.value, self.epsilon
        busy(self.answer, "Asking…")

        def waiting(seconds: float | None) -> None:
            if seconds:
                busy(self.answer, f"The answer leaves in {math.ceil(seconds)} s, whatever it is.")

        try:
            release = await calls.ask(self.session, sql, epsilon, waiting)
        except AuthMissingError:
            over()
            return
        except DaleniusError as error:
            self._refused(error)
        except Exception as error:
            self._refused(unexpected(error))  # which says what is not known: whether it was charged
            raise
        else:
            self._answered(release, sql, epsilon)
        finally:
            self.asking = False
            self._enable()
        await self._history()
        await self.preview()  # less may be left now

    def _enable(self) -> None:
        self.button.set_enabled(self.can_be_asked and not self.asking)

    def _answered(self, release: Release, sql: str, epsilon: float) -> None:
        self.answer.clear()
        with self.answer:
            show_answer(self.session, release)
        paid = 0.0 if release.free or release.public else float(release.charge["epsilon"])
        self.session.asked.append(PastQuestion(sql, epsilon, paid))

    def _refused(self, error: DaleniusError) -> None:
        self.answer.clear()
        with self.answer:
            trouble(error)
            if error.fits is not None and error.fits.epsilon >= _LEAST:
                step = step_below(error.fits.epsilon)
                ui.button(
                    f"Take ε = {price_at(step):g}, which would pass", on_click=lambda: self.slider.set_value(step)
                ).props("outline no-caps")
            elif error.status in {400, 422}:
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
                with ui.expansion(f"All that you were charged for: {len(rows):,}", icon="history").classes("w-full"):
                    for row in rows[: -_EARLIER - 1 : -1]:
                        when = to_minute(row["time"])
                        ui.label(f"{when} · {row['dataset']} · paid ε = {row['charge']['epsilon']:g}").classes(
                            "d-muted text-caption d-number"
                        )
                    ui.label("Their words are not kept, only their prices.").classes("d-muted text-caption")
            ui.label("The same again, for the same price or less, is free while the data stays.").classes(
                "d-muted text-caption"
            )

    def _put_back(self, asked: PastQuestion) -> None:
        self.editor.set_value(asked.sql)
        self.slider.set_value(step_below(asked.epsilon))

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
