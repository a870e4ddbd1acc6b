"""Ask: the question, its price and expected error as they are typed, and the answer as table and chart."""

from __future__ import annotations

import io
import json
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from nicegui import ui

from dalenius.app.console.charts import chart
from dalenius.app.console.frame import attempt, empty, page, trouble
from dalenius.app.console.sessions import Session, Sessions
from dalenius.app.summaries import summary
from dalenius.errors import AuthMissingError, DaleniusError
from dalenius.queries.release import shown, with_error

if TYPE_CHECKING:
    from dalenius.queries.preview import Preview
    from dalenius.queries.release import Release

SHOWN = 200  # rows of the table
_LEAST, _STEPS = 0.01, 100
_NUMBERS = {"integer", "number"}
_DRESS = """
document.querySelectorAll('.cm-content').forEach(each => each.setAttribute('aria-label', 'Question in SQL'));
return document.body.classList.contains('body--dark');
"""
_MEANING = (
    "The number was made noisy on purpose, so that no single person shows in it. The range says how far the noise is "
    "likely to have moved it: in {share} of answers, the number without noise lies inside. It says nothing about "
    "people who are missing from the data."
)


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/", "Ask", sessions, wide=True)
    async def ask(session: Session) -> None:
        found = await attempt(session, lambda: _tables(session)) or []
        if not found:
            empty("No table is open to you yet. Ask the owner for an allotment.")
            return
        await _Asking(session, found).build()


def _tables(session: Session) -> list[dict[str, Any]]:
    curator = session.service.curator
    open_ = {name for name in curator.ledger.datasets() if session.token.analyst in curator.ledger.allotments(name)}
    registry = curator.registry
    return [
        summary(each, registry.limits(each), registry.closed(each.table))
        for each in curator.tables()
        if each.dataset in open_
    ]


def examples(table: dict[str, Any]) -> list[tuple[str, str]]:
    """Questions that a table can answer, made from its policy."""
    name, columns = _quoted(table["name"]), table["columns"]
    keyed = [each for each, spec in columns.items() if spec.get("keys")]
    numbers = [each for each, spec in columns.items() if spec.get("type") in _NUMBERS and spec.get("bounds")]
    found = [("How many rows?", "COUNT(*) AS n", "")]
    if keyed:
        found.append((f"Rows by {keyed[0]}", "COUNT(*) AS n", keyed[0]))
    if numbers:
        found.append((f"Average {numbers[0]}", f"AVG({_quoted(numbers[0])}) AS average", ""))
    if keyed and numbers:
        found.append((f"Average {numbers[0]} by {keyed[0]}", f"AVG({_quoted(numbers[0])}) AS average", keyed[0]))
    return [(words, _written(name, measure, key)) for words, measure, key in found]


def _written(name: str, measure: str, key: str) -> str:
    if not key:
        return f"SELECT {measure} FROM {name}"  # noqa: S608 (goes through the same rules as any question)
    return f"SELECT {_quoted(key)}, {measure} FROM {name} GROUP BY {_quoted(key)}"  # noqa: S608


def _quoted(name: str) -> str:
    plain = name.isidentifier() and name.isascii()
    return name if plain else '"' + name.replace('"', '""') + '"'


def price_at(step: float) -> float:
    """The ε at a place of the slider, which is even in its logarithm; two digits."""
    value: float = _LEAST * 500.0 ** (step / _STEPS)
    digits = 1 - math.floor(math.log10(value))
    return round(value, digits)


class _Asking:
    """One open page."""

    def __init__(self, session: Session, tables: list[dict[str, Any]]) -> None:
        self.session, self.tables = session, tables
        self.epsilon = 0.2
        self.release: Release | None = None
        self.turn = 0

    async def build(self) -> None:
        with ui.row().classes("w-full items-start gap-4"):
            with ui.column().classes("col-12 col-md gap-3").style("flex: 1 1 560px; min-width: 0"):
                self._question()
                self.answer = ui.column().classes("w-full gap-3")
                self.past = ui.column().classes("w-full gap-1")
            with ui.column().classes("col-12 col-md-auto gap-2").style("flex: 0 1 320px; min-width: 260px"):
                self._side()
        await self.preview()
        await self._history()
        ui.timer(0, self._dress, once=True)

    async def _dress(self) -> None:
        """What only the browser knows or can do: its theme, and the editor's name for screen readers."""
        dark = await ui.run_javascript(_DRESS, timeout=5)
        self.editor.set_theme("vscodeDark" if dark else "vscodeLight")

    def _question(self) -> None:
        with ui.column().classes("w-full d-line q-pa-sm gap-2"):
            ui.label("Question (SQL)").props("id=question-label").classes("text-subtitle2")
            self.editor = ui.codemirror(
                examples(self.tables[0])[0][1], language="SQL", theme="vscodeLight", line_wrapping=True
            )
            self.editor.classes("w-full").style("min-height: 6rem; max-height: 40vh").props(
                'aria-labelledby="question-label"'
            )
            self.editor.on_value_change(self.preview)
            with ui.row().classes("w-full items-center gap-4"):
                with ui.column().classes("gap-0").style("flex: 1 1 220px"):
                    self.price = ui.label().classes("text-subtitle2 d-number").props("aria-live=polite")
                    start = _STEPS * math.log(self.epsilon / _LEAST) / math.log(500)
                    self.slider = ui.slider(min=0, max=_STEPS, step=1, value=round(start))
                    self.slider.props('aria-label="Price, epsilon" color=primary')
                    self.slider.on("update:model-value", self.preview, throttle=0.1)
                self.button = ui.button("Ask", icon="send", on_click=self.ask)
                self.button.props("unelevated no-caps size=md")
            self.expected = ui.column().classes("w-full gap-0").props("aria-live=polite")

    def _side(self) -> None:
        for table in self.tables:
            with ui.expansion(table["name"], icon="table_chart", value=len(self.tables) < 4).classes("w-full d-line"):
                whose = table["path"] or ", ".join(table["unit"])
                ui.label(f"Protected: each {whose}").classes("d-muted text-caption")
                if table["closed"]:
                    ui.label(f"Closed: {table['closed']}").classes("text-warning")
                for name, spec in table["columns"].items():
                    with ui.row().classes("w-full no-wrap items-baseline gap-2"):
                        ui.label(name).classes("text-weight-medium")
                        ui.label(_about(spec)).classes("d-muted text-caption ellipsis").tooltip(_about(spec, 2000))
                ui.label("Try").classes("text-caption q-mt-sm")
                for words, sql in examples(table):
                    example = ui.button(words, on_click=lambda sql=sql: self.editor.set_value(sql))
                    example.props("flat dense no-caps align=left size=sm").classes("w-full")

    # --- live price

    async def preview(self) -> None:
        """Price and expected error of what stands in the editor now."""
        self.turn += 1
        turn = self.turn
        self.epsilon = price_at(float(self.slider.value))
        self.price.set_text(f"Price: ε = {self.epsilon:g}")
        sql, epsilon = self.editor.value, self.epsilon

        def work() -> Preview | DaleniusError:
            self.session.check()
            try:
                return self.session.analyst.preview(sql, epsilon=epsilon)
            except AuthMissingError:
                raise
            except DaleniusError as error:
                return error

        try:
            found = await self.session.service.run(work)
        except AuthMissingError:
            ui.navigate.to("/sign-in?say=over")
            return
        if turn != self.turn:  # something was typed meanwhile
            return
        self.expected.clear()
        with self.expected:
            if isinstance(found, DaleniusError):
                self.button.disable()
                ui.label(found.message).classes("text-warning")
                ui.label(found.fix).classes("d-muted text-caption")
            else:
                self._previewed(found)

    def _previewed(self, found: Preview) -> None:
        if found.public:
            self.button.enable()
            ui.label("Public tables only: exact, and free.").classes("d-muted")
            return
        most = min(each["epsilon"] for each in found.remaining.values())
        (choice,) = found.choices
        parts = []
        for name, error, per_rows in zip(found.columns, choice.noise_error, choice.noise_error_per_rows, strict=True):
            if error is not None:
                parts.append(f"{shown(name, 30)} ± {with_error(float(error), float(error))[1]}")
            elif per_rows is not None:
                told = with_error(float(per_rows), float(per_rows))[1]
                parts.append(f"{shown(name, 30)} ± {told} in a group of {found.rows:,} rows")
        ui.label(", ".join(parts) or "Keys only").classes("d-number")
        ui.label(f"{found.size('row')}; {found.confidence:.0%} of the time, from the noise alone").classes(
            "d-muted text-caption"
        )
        for note in found.notes:
            ui.label(note).classes("d-muted text-caption")
        if choice.epsilon > most:
            self.button.disable()
            left = (
                f"ε ≤ {most:.3g} would pass." if most > 0 else "Nothing is left; asking again what you asked is free."
            )
            ui.label(f"More than is left: {left}").classes("text-warning")
        else:
            self.button.enable()

    # --- the answer

    async def ask(self) -> None:
        """Asks; the page stays usable meanwhile, and the answer comes when its time has come."""
        self.button.disable()
        self.answer.clear()
        with self.answer, ui.row().classes("items-center gap-2").props("role=status"):
            ui.spinner(size="sm")
            waiting = ui.label("Asking…")
        question = {
            "question": self.editor.value,
            "epsilon": self.epsilon,
            "error": None,
            "confidence": 0.95,
            "delta": None,
            "limits": None,
        }
        try:
            token = await self.session.service.run(self.session.check)
            job = self.session.service.ask(token, question)
            while not await job.wait(1.0):
                left = job.to_dict()["seconds_left"]
                waiting.set_text("Asking…" if left is None else f"The answer leaves in {math.ceil(left)} s")
            self.session.service.jobs.forget(job)
            self.release = await self.session.service.run(job.result)
        except AuthMissingError:
            ui.navigate.to("/sign-in?say=over")
            return
        except DaleniusError as error:
            self.answer.clear()
            with self.answer:
                trouble(error)
                self._instead()
            self.button.enable()
            return
        self.answer.clear()
        with self.answer:
            self._released(self.release)
        self.button.enable()
        await self._history()

    def _instead(self) -> None:
        """Questions that would work."""
        ui.label("A question that works:").classes("d-muted text-caption")
        with ui.row().classes("gap-2"):
            for words, sql in examples(self.tables[0])[:3]:
                ui.button(words, on_click=lambda sql=sql: self.editor.set_value(sql)).props(
                    "outline dense no-caps size=sm"
                )

    def _released(self, release: Release) -> None:
        with ui.column().classes("w-full d-line q-pa-md gap-3").props('role=region aria-label="Answer"'):
            with ui.row().classes("w-full items-center gap-2"):
                ui.badge("free: asked before" if release.free else f"paid ε = {release.charge['epsilon']:g}").props(
                    "color=secondary" if release.free else "color=primary"
                )
                ui.space()
                self._take(release)
            drawn = chart(release)
            if drawn is not None:
                ui.echart(drawn).classes("w-full").style("height: 300px").props(
                    'role=img aria-label="Bar chart of the answer with error bars; the table below has its numbers"'
                )
            _table(release)
            with ui.expansion("± What does this mean?", icon="help_outline").classes("w-full"):
                ui.label(_MEANING.format(share=f"{release.confidence:.0%}")).classes("d-muted")
                ui.label(release.summary).classes("d-muted")
            for note in release.notes:
                ui.label(note).classes("d-muted text-caption")

    def _take(self, release: Release) -> None:
        """Away with it: code that asks the same, and files."""
        python, curl = _python(release), _curl(release)
        for words, icon, text in (("Python", "code", python), ("curl", "terminal", curl)):

            def copy(text: str = text, words: str = words) -> None:
                ui.clipboard.write(text)
                ui.notify(f"Copied as {words}.")

            ui.button(f"Copy as {words}", icon=icon, on_click=copy).props("flat dense no-caps size=sm")
        ui.button("CSV", icon="download", on_click=lambda: ui.download(_file(release, "csv"), "answer.csv")).props(
            'flat dense no-caps size=sm aria-label="Download CSV"'
        )
        ui.button(
            "Parquet", icon="download", on_click=lambda: ui.download(_file(release, "parquet"), "answer.parquet")
        ).props('flat dense no-caps size=sm aria-label="Download Parquet"')

    async def _history(self) -> None:
        rows = await attempt(self.session, self.session.analyst.history) or []
        self.past.clear()
        with self.past:
            ui.label("Your questions so far").classes("text-subtitle2")
            if not rows:
                ui.label("None yet. Asking the same again is free.").classes("d-muted text-caption")
                return
            for row in reversed(rows[-8:]):
                when = row["time"][:16].replace("T", " ")
                ui.label(
                    f"{when} · {row['dataset']} · ε = {row['charge']['epsilon']:g} · entry {row['entry']}"
                ).classes("d-muted text-caption d-number")
            ui.label("Asking any of them again, in whatever words, is free.").classes("d-muted text-caption")


def _about(spec: dict[str, Any], most: int = 60) -> str:
    parts = [str(spec.get("type", ""))]
    if spec.get("bounds"):
        parts.append(f"{spec['bounds'][0]} to {spec['bounds'][1]}")
    if spec.get("keys"):
        parts.append(", ".join(map(str, spec["keys"])))
    return shown(" · ".join(parts), most)


def _table(release: Release) -> None:
    columns = [
        {
            "name": f"c{place}",
            "label": shown(name, 40),
            "field": f"c{place}",
            "align": "left" if key else "right",
            "sortable": key,
        }
        for place, (name, key) in enumerate(zip(release.columns, release.keys, strict=True))
    ]
    rows = []
    for at, row in enumerate(release.rows[:SHOWN]):
        cells: dict[str, Any] = {"id": at}
        for place, key in enumerate(release.keys):
            if key:
                cells[f"c{place}"] = shown(row[place], 80)
            else:
                value, error = with_error(row[place], release.noise_error[at][place])
                cells[f"c{place}"] = f"{value} ± {error}" if error else value
        rows.append(cells)
    ui.table(columns=columns, rows=rows, row_key="id", pagination=10 if len(rows) > 10 else 0).classes(
        "w-full d-number"
    ).props("flat dense")
    if len(release.rows) > SHOWN:
        ui.label(f"{len(release.rows) - SHOWN:,} more rows are in the files.").classes("d-muted text-caption")


def _python(release: Release) -> str:
    return (
        "import os\n\nimport dalenius\n\n"
        'analyst = dalenius.connect(os.environ["DALENIUS_SERVER"], os.environ["DALENIUS_TOKEN"])\n'
        f"print(analyst.ask({release.question!r}, epsilon={release.guarantee.get('epsilon', 0.2)!r}))\n"
    )


def _curl(release: Release) -> str:
    body = json.dumps({"sql": release.question, "epsilon": release.guarantee.get("epsilon", 0.2)})
    quoted = "'" + body.replace("'", "'\\''") + "'"
    return (
        'curl -H "Authorization: Bearer $DALENIUS_TOKEN" -H "Content-Type: application/json" '
        f'-d {quoted} "$DALENIUS_SERVER/v1/ask"\n'
    )


def _file(release: Release, form: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"answer.{form}"
        release.write(file)
        return io.BytesIO(file.read_bytes()).getvalue()
