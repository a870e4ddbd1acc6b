"""The tables that are protected: what they are, new data, and what changed over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nicegui import ui

from dalenius.app.console.frame import attempt, busy, card, dialog_named, empty, heading
from dalenius.app.views import as_sentence, to_second
from dalenius.app.views.tables import search_words
from dalenius.ledger.actions import ENOUGH
from dalenius.queries.release import shown
from dalenius.tables.difference import Change, difference

if TYPE_CHECKING:
    from dalenius.app.console.sessions import Session
    from dalenius.owner.refresh import Refreshed
    from dalenius.tables.registry import Version

_REFRESH = "POST /v1/tables/{table}/refresh"
_STATES = {
    "changed": "The files changed: they become the next data version. Stored answers stay with the version before.",
    "moved": "The same files lie elsewhere: the data version stays.",
    "unchanged": "The files are those of before.",
}
_NEW_PEOPLE = (
    "Only if nobody in the new files was in the data set before: then its budget starts afresh. If anybody was, the "
    "promise to that person would be broken. Needs a reason, which stays in the ledger."
)


def changes(found: Iterable[Change]) -> None:
    """Differences between two policies, one line each."""
    listed = list(found)
    if not listed:
        return
    with ui.column().classes("w-full gap-0").props("role=list"):
        for each in listed:
            with ui.column().classes("gap-0").props("role=listitem"):
                ui.label(str(each)).style("font-family: monospace; overflow-wrap: anywhere")
                if each.note:
                    ui.label(each.note).classes("d-muted text-caption")


class Tables:
    """The list, on one open page."""

    def __init__(self, session: Session, change: Callable[[Version], None]) -> None:
        self.session, self._change = session, change
        self.place = ui.column().classes("w-full gap-3")

    async def refresh(self) -> None:
        """Reads it anew."""
        curator = self.session.service.curator

        def work() -> list[tuple[Version, str | None]]:
            return [(each, curator.registry.closed(each.table)) for each in curator.tables()]

        found = await attempt(self.session, "GET /v1/tables", work, self.place)
        if found is None:
            return
        self.place.clear()
        with self.place:
            if not found:
                empty("No table is protected yet. Choose 'Protect a table'.", "shield")
            for version, closed in found:
                self._table(version, closed)

    def _table(self, version: Version, closed: str | None) -> None:
        name = version.table
        columns = ", ".join(version.policy.columns)
        with card().classes("gap-1"):
            with ui.row().classes("w-full items-center gap-3"):
                heading(name, 2).classes("text-subtitle1 text-weight-medium")
                if closed:
                    ui.badge("closed").props("color=negative")
                ui.space()
                for words, icon, action in (
                    ("Refresh", "refresh", lambda: self._refreshing(name)),
                    ("History", "history", lambda: self._history(name)),
                    ("Change", "edit", lambda: self._change(version)),
                ):
                    button = ui.button(words, icon=icon, on_click=action).props("outline dense no-caps")
                    button.props["aria-label"] = f"{words} {shown(name, 60)}"
            if closed:
                ui.label(f"Nobody can ask: {closed}").classes("text-negative")
            unit = version.policy.whose if version.policy.path else ", ".join(version.policy.unit)
            for what, said in (
                ("Data set", version.dataset),
                ("Unit", unit),
                ("Columns", shown(columns, 300) if columns else "none: rows can only be counted"),
                ("Policy version", version.version[:12]),
                ("Data version", str(version.data_version)),
            ):
                with ui.row().classes("gap-2 no-wrap items-baseline"):
                    ui.label(what).classes("d-muted text-caption").style("min-width: 7rem")
                    ui.label(said).style("overflow-wrap: anywhere")

    async def _history(self, name: str) -> None:
        found = await attempt(self.session, "GET /v1/policies/{table}", lambda: _versions(self.session, name))
        if found is None:
            return
        with dialog_named(f"History of {name}") as dialog, ui.card().classes("w-full").style("max-width: 800px"):
            ui.label(f"History of {name}").classes("text-h6").props("role=heading aria-level=2")
            for version, changed in reversed(found):
                with ui.column().classes("w-full d-line q-pa-sm gap-1"):
                    when = to_second(version.time)
                    ui.label(f"{when} UTC · version {version.version[:12]} · data {version.data_version}").classes(
                        "d-number"
                    )
                    if version.by:
                        ui.label(f"By {shown(version.by, 60)}").classes("d-muted")
                    if version.reason:
                        ui.label(f"Reason: {version.reason}")
                    changes(changed)
            ui.button("Close", on_click=dialog.close).props("flat no-caps autofocus")

    def _refreshing(self, name: str) -> None:
        with dialog_named(f"Refresh {name}") as dialog, ui.card().classes("w-full gap-3").style("max-width: 640px"):
            ui.label(f"Refresh {name}").classes("text-h6").props("role=heading aria-level=2")
            ui.label("The files behind this table changed: as they are now, they become its data.").classes("d-muted")
            people = ui.checkbox("These are new people")
            ui.label(_NEW_PEOPLE).classes("d-muted text-caption")
            reason = ui.input("Reason").props("outlined dense maxlength=500").classes("w-full")
            place = ui.column().classes("w-full gap-2")

            def work(dry_run: bool) -> Callable[[], Refreshed]:
                wish: dict[str, Any] = {"new_people": bool(people.value), "reason": (reason.value or "").strip()}
                curator = self.session.service.curator
                return lambda: curator.refresh(name, yes=not dry_run, dry_run=dry_run, **wish)

            async def look() -> None:
                confirm.disable()
                busy(place, "Looking at the files…")
                done = await attempt(self.session, _REFRESH, work(dry_run=True), place)
                if done is None:
                    return
                place.clear()
                with place:
                    _would(done)
                if "reason" not in done.needs and (done.state != "unchanged" or done.reopened):
                    confirm.enable()

            async def act() -> None:
                confirm.disable()
                busy(place, "Refreshing…")
                done = await attempt(self.session, _REFRESH, work(dry_run=False), place)
                if done is not None:
                    dialog.close()
                    ui.notify(f"{done.version.table} is at data version {done.version.data_version}.", type="positive")
                    await self.refresh()

            with ui.row().classes("gap-2"):
                ui.button("Look first", icon="search", on_click=look).props("unelevated no-caps")
                confirm = ui.button("Refresh now", icon="refresh", on_click=act).props("outline no-caps")
                ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            confirm.disable()
            for each in (people, reason):  # what was looked at is no longer what would be done
                each.on_value_change(confirm.disable)


def _would(done: Refreshed) -> None:
    with ui.column().classes("w-full d-line q-pa-sm gap-1").props("role=status"):
        ui.label(_STATES[done.state])
        counts = ", ".join(f"{count} {what}" for what, count in done.files.items() if count)
        if counts:
            ui.label(f"Files: {counts}.").classes("d-muted")
        if done.reopened:
            ui.label("The table was closed, and is opened again.")
        elif done.state == "unchanged":
            ui.label("There is nothing to do.").classes("d-muted")
        if done.new_people:
            ui.label("The budget starts afresh.").classes("text-warning")
        if "reason" in done.needs:
            ui.label(f"{ENOUGH} Give one, and look again.").classes("text-warning")
        for name, why in done.closed.items():
            ui.label(f"Closed to everyone: {name}. {why}").classes("text-warning")
        if done.search is not None:
            ui.label(as_sentence(search_words(done.search, done=False))).classes("d-muted")


def _versions(session: Session, name: str) -> list[tuple[Version, tuple[Change, ...]]]:
    versions = session.service.curator.history(name)
    changed = [(), *(difference(one.policy, other.policy) for one, other in pairwise(versions))]
    return list(zip(versions, changed, strict=True))
