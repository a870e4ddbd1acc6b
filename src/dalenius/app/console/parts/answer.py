"""An answer: chart with error bars, table, what ± means, and how to take it away."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import ui

from dalenius.app.console.charts import bars, drawable
from dalenius.app.console.frame import attempt, card, heading
from dalenius.app.console.parts.choices import Choices
from dalenius.queries.release import shown, with_error

if TYPE_CHECKING:
    from dalenius.app.console.sessions import Session
    from dalenius.queries.release import Release

SHOWN = 200  # rows of the table
_MEANING = (
    "The number was made noisy on purpose, so that no single person shows in it. The range says how far the noise is "
    "likely to have moved it: in {share} of answers, the number without noise lies inside. It says nothing about "
    "people who are missing from the data, nor about what was cut off of those who add very much."
)
_CUT_OFF = "Of {column}, about {share} was cut off of those who add very much, as far as noisy counts tell."


def show_answer(session: Session, release: Release) -> None:
    """The whole of it."""
    with card().props('role=region aria-label="Answer"'):
        with ui.row().classes("w-full items-center gap-2"):
            heading("Answer", 2).classes("text-subtitle1 text-weight-medium")
            ui.label(_paid(release)).classes("d-tag d-number" + (" d-free" if release.free else ""))
            ui.space()
            _take(session, release)
        _chart(release)
        _table(release)
        with ui.expansion("± What does this mean?", icon="help_outline").classes("w-full"):
            if not release.public:
                ui.label(_MEANING.format(share=f"{release.confidence:.0%}"))
            for name, share in zip(release.columns, release.clipping, strict=True):
                if share is not None:
                    ui.label(_CUT_OFF.format(column=shown(name, 40), share=f"{share:.1%}"))
            ui.label(release.summary).classes("d-muted")
        for note in release.notes:
            ui.label(note).classes("d-muted text-caption")


def _paid(release: Release) -> str:
    if release.public:
        return "public: exact and free"
    return release.why_free if release.free else f"paid ε = {release.charge['epsilon']:g}"


def _chart(release: Release) -> None:
    """Bars of one noisy column; of which, if there are several, the reader says."""
    places = drawable(release)
    if not places:
        return
    names = {place: shown(release.columns[place], 40) for place in places}

    def told(place: int) -> str:
        return f"Bar chart of {names[place]} with error bars; the table below has its numbers"

    drawn = ui.echart(bars(release, places[0]), renderer="svg").classes("w-full").style("height: 300px")
    drawn.props["role"], drawn.props["aria-label"] = "img", told(places[0])

    def choose(place: int) -> None:
        drawn.options.clear()
        drawn.options.update(bars(release, place))
        drawn.props["aria-label"] = told(place)
        drawn.update()

    if len(places) > 1:
        choice = Choices(names, value=places[0], on_change=lambda event: choose(event.value))
        choice.props('dense no-caps unelevated aria-label="Column in the chart"')
        choice.move(target_index=1)


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
                ends = release.in_all(at, place)
                cells[f"c{place}"] = (f"{value} ± {error}" if error else value) + (f" (in all {ends})" if ends else "")
        rows.append(cells)
    paged = len(rows) > 10
    table = ui.table(columns=columns, rows=rows, row_key="id", pagination=10 if paged else 0)
    table.classes("w-full d-number").props("flat dense" + ("" if paged else " hide-bottom"))
    if not rows:
        ui.label("The answer has no rows.").classes("d-muted")
    if len(release.rows) > SHOWN:
        ui.label(f"{len(release.rows) - SHOWN:,} more rows are in the files.").classes("d-muted text-caption")


def _take(session: Session, release: Release) -> None:
    """Away with it: code that asks the same, and files."""
    for words, icon, text in (("Python", "code", as_python(release)), ("curl", "terminal", as_curl(release))):
        button = ui.button(f"Copy as {words}", icon=icon, on_click=lambda text=text, words=words: _copy(text, words))
        button.props("flat dense no-caps")
    for words, form in (("CSV", "csv"), ("Parquet", "parquet")):
        button = ui.button(words, icon="download")
        button.on_click(lambda form=form, button=button: _download(session, release, form, button))
        button.props(f'flat dense no-caps aria-label="Download {words}"')


def _copy(text: str, words: str) -> None:
    ui.clipboard.write(text)
    ui.notify(f"Copied as {words}.")


async def _download(session: Session, release: Release, form: str, button: ui.button) -> None:
    """The answer once more, as a file: what asking again, for nothing, would give."""

    def work() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"answer.{form}"
            release.write(file)
            return file.read_bytes()

    button.disable()  # one at a time
    try:
        content = await attempt(session, "POST /v1/ask", work)
        if content is not None:
            ui.download.content(content, f"answer.{form}")
    finally:
        button.enable()


def as_python(release: Release) -> str:
    """A program that asks the same, over the API."""
    price = "" if release.public else f", epsilon={float(release.guarantee['epsilon'])!r}"
    return (
        "import os\n\nimport dalenius\n\n"
        'analyst = dalenius.connect(os.environ["DALENIUS_SERVER"], os.environ["DALENIUS_TOKEN"])\n'
        f"print(analyst.ask({release.question!r}{price}))\n"
    )


def as_curl(release: Release) -> str:
    """A command that asks the same, over the API."""
    price = {} if release.public else {"epsilon": release.guarantee["epsilon"]}
    quoted = "'" + json.dumps({"sql": release.question, **price}).replace("'", "'\\''") + "'"
    return (
        'curl -H "Authorization: Bearer $DALENIUS_TOKEN" -H "Content-Type: application/json" '
        f'-d {quoted} "$DALENIUS_SERVER/v1/ask"\n'
    )
