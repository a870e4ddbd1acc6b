"""A synthetic table: some of its rows, each column by itself, and as many rows as wanted to take away."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import ui

from dalenius._numbers import count_of
from dalenius.app.console.charts import shares
from dalenius.app.console.frame import attempt, busy, card, heading, on_a_page
from dalenius.app.console.parts.worth import Worth
from dalenius.app.views.synthetic import facts_words, limit_words, promised
from dalenius.queries.release import shown
from dalenius.synthesis.describing import one_ways
from dalenius.synthesis.release import release_id
from dalenius.tables.condition_reading import LONGEST
from dalenius.tables.policy import NUMERIC

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.app.console.sessions import Session
    from dalenius.synthesis.release import SyntheticTable

ROUTE = "GET /v1/synthetic/{id}/rows"
SHOWN = 8  # rows of the table
MOST_ROWS = 200_000  # of one download; `Analyst.synthesize` and the command line draw more


def show_synthetic(session: Session, found: SyntheticTable) -> None:
    """The whole of it. What a page keeps is the number of the release, not the model."""
    with card().props('role=region aria-label="Synthetic rows"'):
        with ui.row().classes("w-full items-center gap-2"):
            heading(f"Synthetic rows of {shown(found.stored.table, 60)}", 2).classes(
                "text-subtitle1 text-weight-medium"
            )
            paid = "free: paid for before" if found.free else f"paid ε = {found.charge['epsilon']:g}"
            ui.label(paid).classes("d-tag d-number" + (" d-free" if found.free else ""))
        ui.label(
            f"{count_of(len(found.columns), 'column')}, about {count_of(found.rows, 'row')}, by {found.stored.method}."
        )
        _take(session, found)
        _chart(found)
        _rows(found)
        promise = f"{promised(found.guarantee)}: of all rows together, however many are drawn."
        for line in filter(None, (promise, limit_words(found), facts_words(found.facts))):
            ui.label(line).classes("d-muted text-caption")
        for note in filter(None, map(on_a_page, found.notes)):
            ui.label(shown(note, 2000)).classes("d-warn text-caption")
    Worth(session, found).build()


def _chart(found: SyntheticTable) -> None:
    """One column at a time; which, the reader says."""
    columns = {each.name: each for each in one_ways(found.stored)}
    names = {each: shown(each, 60) for each in found.columns}
    choice = ui.select(names, value=found.columns[0], label="Column").props("outlined dense options-dense")
    choice.style("min-width: 14rem").set_visibility(len(names) > 1)
    drawn = ui.echart({}, renderer="svg").classes("w-full").style("height: 260px")
    drawn.props["role"] = "img"

    def choose(name: str) -> None:
        chosen = columns[name]
        drawn.options.clear()
        drawn.options.update(shares(chosen.name, chosen.labels, chosen.shares))
        drawn.props["aria-label"] = f"Bar chart of the synthetic rows by {shown(name, 60)}"
        drawn.update()

    choose(found.columns[0])
    choice.on_value_change(lambda event: choose(event.value))


def _rows(found: SyntheticTable) -> None:
    """A few rows, as they would stand in the file."""
    heading("Some of the rows", 3).classes("text-weight-medium")
    rows_table(found.columns, found.to_arrow(SHOWN, seed=1))


def rows_table(names: Sequence[str], drawn: pa.Table) -> None:
    """Some rows."""
    columns = [
        {"name": f"c{at}", "label": shown(name, 40), "field": f"c{at}", "align": "left"}
        for at, name in enumerate(names)
    ]
    drawn = drawn.select(list(names))
    rows: list[dict[str, Any]] = [
        {"id": number} | {f"c{at}": shown("" if value is None else value, 40) for at, value in enumerate(row.values())}
        for number, row in enumerate(drawn.to_pylist())
    ]
    # Of many columns it scrolls by itself, also from the keyboard.
    wide = (
        ui.element("div").style("width: 100%; overflow-x: auto").props('tabindex=0 role=group aria-label="Some rows"')
    )
    with wide, ui.table(columns=columns, rows=rows, row_key="id").classes("d-number") as table:
        table.props("flat dense hide-bottom").style("width: max-content; min-width: 100%")


def example(found: SyntheticTable) -> str:
    """A condition on the first column, as it could be typed."""
    column = found.stored.domain.columns[found.stored.names.index(found.columns[0])]
    name = column.name if column.name.isidentifier() else f'"{column.name}"'
    if column.grid is not None:
        low = column.grid.span(0)[0]
        return f"{name} > {low}" if column.kind in NUMERIC else f"{name} > '{low}'"
    key = column.shown_keys[0]
    text = str(key).replace("'", "''")
    return f"{name} = {text}" if isinstance(key, int) else f"{name} = '{text}'"


def _take(session: Session, found: SyntheticTable) -> None:
    """Away with it: as many rows as wanted, as a file; all of them, or those like what is typed."""
    taking = _Taking(session, release_id(found), found.stored.table, found.columns)
    counted = ui.row().classes("w-full items-center gap-3")
    where = ui.input("Only rows where (optional)", placeholder=example(found)).props("outlined dense clearable")
    where.classes("w-full").props(f"maxlength={LONGEST}")
    with ui.row().classes("w-full items-center gap-3"):
        show = ui.button("Show such rows", icon="filter_alt").props("flat no-caps")
        words = "Drawn as the model has them given that. Downloads have only such rows, too."
        ui.label(words).classes("d-muted text-caption")
    place = ui.column().classes("w-full gap-1").props("role=status")
    with counted:
        most = min(MOST_ROWS, max(1, found.rows))
        count = ui.number("Rows", value=most, min=1, max=MOST_ROWS, step=1, precision=0).props("outlined dense")
        count.style("max-width: 10rem")
        for words, form in (("CSV", "csv"), ("Parquet", "parquet")):
            button = ui.button(words, icon="download").props(f'outline no-caps aria-label="Download {words}"')
            button.on_click(lambda form=form, button=button: taking.download(count.value, form, button, where.value))
        ui.label(f"Rows are free, {MOST_ROWS:,} at a time here.").classes("d-muted text-caption")

    async def look() -> None:
        """As many are taken from then on as there are, unless the reader says otherwise."""
        number = await taking.look(where.value, place)
        if number:
            count.set_value(min(MOST_ROWS, number))

    show.on_click(look)


@dataclass(frozen=True)
class _Taking:
    """Which rows are drawn: all that a page keeps of a synthetic table, so that a model takes no memory for it."""

    session: Session
    release: str
    table: str
    columns: tuple[str, ...]

    async def look(self, where: str | None, place: ui.column) -> int | None:
        """A few rows for which the condition holds, and how many there are by the model; None: it did not work."""
        wanted = (where or "").strip() or None

        def work() -> tuple[int, pa.Table]:
            found = self._found()
            return found.rows_where(wanted), found.to_arrow(SHOWN, seed=1, where=wanted)

        busy(place, "Drawing rows…")
        made = await attempt(self.session, ROUTE, work, place)
        if made is None:
            return None
        place.clear()
        number, drawn = made
        with place:
            ui.label(f"About {count_of(number, 'row')} of the table, by the model.").classes("text-weight-medium")
            rows_table(self.columns, drawn)
        return number

    async def download(self, rows: object, form: str, button: ui.button, where: str | None = None) -> None:
        """Draws rows from the model as it is stored: nothing is charged, whatever became of the table meanwhile."""
        wanted = int(rows) if isinstance(rows, int | float) and 1 <= rows <= MOST_ROWS else None
        if wanted is None:
            ui.notify(f"Give a number of rows from 1 to {MOST_ROWS:,}.", type="negative")
            return
        button.disable()  # one at a time
        try:
            only = (where or "").strip() or None
            content = await attempt(self.session, ROUTE, lambda: self._drawn(wanted, form, only))
            if content is not None:
                ui.download.content(content, f"{self.table}-synthetic.{form}")
        finally:
            button.enable()

    def _found(self) -> SyntheticTable:
        return replace(self.session.analyst.synthetic(self.release), columns=self.columns)

    def _drawn(self, rows: int, form: str, where: str | None) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"rows.{form}"
            self._found().write(file, rows, where=where)
            return file.read_bytes()
