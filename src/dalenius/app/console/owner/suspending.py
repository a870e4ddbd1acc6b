"""Who is suspended: analysts and data sets, with how many answers were late, and a button for either way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from dalenius.app.console.frame import attempt, card, empty, heading
from dalenius.app.suspended import listed
from dalenius.ledger.suspensions import ANALYST, DATASET, resume, suspend
from dalenius.queries.release import shown

if TYPE_CHECKING:
    from dalenius.app.console.sessions import Session
    from dalenius.ledger.suspensions import Standing

_ROUTES = {
    (ANALYST, False): "POST /v1/analysts/{analyst}/suspend",
    (ANALYST, True): "POST /v1/analysts/{analyst}/resume",
    (DATASET, False): "POST /v1/datasets/{dataset}/suspend",
    (DATASET, True): "POST /v1/datasets/{dataset}/resume",
}
_SUSPENDED = "New questions are refused. What was paid for can be asked again, and previews are free as before."
_RESUMED = "New questions are answered again, and late answers are counted anew."


class Suspensions:
    """The part of one open page."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.place = card().classes("gap-2")

    async def refresh(self) -> None:
        """Reads it anew."""
        ledger = self.session.service.curator.ledger
        found = await attempt(self.session, "GET /v1/analysts", lambda: listed(ledger), self.place)
        if found is None:
            return
        self.place.clear()
        with self.place:
            heading("Who may ask", 2).classes("text-subtitle1 text-weight-medium")
            if not any(found.values()):
                empty("There are no analysts.", "group")
            for kind, everybody in ((ANALYST, found["analysts"]), (DATASET, found["datasets"])):
                for each in everybody:
                    self._row(kind, each)

    def _row(self, kind: str, each: dict[str, Any]) -> None:
        name, suspended = str(each[kind]), each["state"] == "suspended"
        who = shown(name, 60) if kind == ANALYST else f"data set {shown(name, 60)}"
        words = [who, each["state"], f"{each['late']} late"]
        if each["since"]:
            words += [f"since {each['since'][:16].replace('T', ' ')} UTC", f"by {shown(each['by'] or 'unknown', 40)}"]
        words += [shown(each["reason"], 120)] if each["reason"] else []
        with ui.row().classes("w-full items-center gap-3"):
            ui.label(" · ".join(words)).classes("d-number" + (" text-warning" if suspended else ""))
            verb, icon = ("Resume", "play_arrow") if suspended else ("Suspend", "pause")
            button = ui.button(verb, icon=icon, on_click=lambda: self._change(kind, name, who, suspended))
            button.props("flat dense no-caps" + ("" if suspended else " color=negative"))
            button.props["aria-label"] = f"{verb} {who}"

    def _change(self, kind: str, name: str, who: str, suspended: bool) -> None:
        verb = "Resume" if suspended else "Suspend"
        ledger = self.session.service.curator.ledger

        def work() -> Standing:
            change = resume if suspended else suspend
            return change(ledger, (kind, name), reason.value or "")

        async def act() -> None:
            done = await attempt(self.session, _ROUTES[kind, suspended], work, place)
            if done is not None:
                dialog.close()
                await self.refresh()

        with ui.dialog() as dialog, ui.card().classes("w-full gap-3").style("max-width: 560px"):
            dialog.props["aria-label"] = f"{verb} {who}"
            ui.label(f"{verb} {who}?").classes("text-subtitle1")
            ui.label(_RESUMED if suspended else _SUSPENDED).classes("d-muted")
            reason = ui.input("Reason, for the history").props("outlined dense maxlength=500").classes("w-full")
            place = ui.column().classes("w-full")
            with ui.row().classes("gap-2"):
                ui.button(verb, on_click=act).props("unelevated no-caps" + ("" if suspended else " color=negative"))
                ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
        dialog.on("hide", dialog.delete)
        dialog.open()
