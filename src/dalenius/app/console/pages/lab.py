"""Attack lab: what breaks naive systems, and fails against ours, live on made-up people."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from nicegui import ui

from dalenius.app.console.calls import attack
from dalenius.app.console.charts import curves
from dalenius.app.console.frame import busy, card, heading, over, page, trouble
from dalenius.app.console.sessions import Session, Sessions
from dalenius.audit.attacks import MADE_UP_NAMES, NAMES, any_named
from dalenius.audit.attacks.attack import Rate, counted, priced
from dalenius.audit.attacks.published.attack import TableAttack
from dalenius.errors import AuthMissingError, DaleniusError

OURS = "dalenius"
_ABOUT = {
    "plain": "exact answers, none about few people",
    "noisy": "fresh noise for every question",
    "sticky": "noise that sticks to the question",
    OURS: "a curator like this one, with ε = 1 in all",
}
_WHAT = (
    "Attackers that break systems as they are built every day, and try to break ours. The people are made up, and the "
    "curator is one for the occasion: nothing here touches a table of this server, or a budget."
)


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/lab", wide=True)
    async def lab(session: Session) -> None:
        _Lab(session)


class _Lab:
    """One open page."""

    def __init__(self, session: Session) -> None:
        self.session = session
        ui.label(_WHAT).classes("d-muted")
        with card():
            with ui.row().classes("w-full items-center gap-3"):
                names = {name: name.replace("-", " ").capitalize() for name in (*NAMES, *MADE_UP_NAMES)}
                self.choice = ui.select(names, value=NAMES[0], label="Attack", on_change=self._tell)
                self.choice.props("outlined dense").style("min-width: 14rem")
                self.button = ui.button("Run", icon="play_arrow", on_click=self._run).props("no-caps unelevated")
            self.words = ui.label()
            self.teaches = ui.label().classes("d-tip")
        self.place = ui.column().classes("w-full gap-4").props("aria-live=polite")
        self._tell()

    def _tell(self) -> None:
        chosen = any_named(str(self.choice.value))
        self.words.text, self.teaches.text = chosen.title, chosen.teaches

    async def _run(self) -> None:
        name = str(self.choice.value)
        self.button.disable()
        busy(self.place, "The attack runs; that takes some seconds…")
        try:
            found = await attack(self.session, name)
        except AuthMissingError:
            over()
        except DaleniusError as error:
            self.place.clear()
            with self.place:
                trouble(error)
        else:
            self.place.clear()
            with self.place:
                _show(name, found)
        finally:
            self.button.enable()


def _show(name: str, found: list[dict[str, Any]]) -> None:
    attack = any_named(name)
    about, stopping = (attack.about, attack.stopped_by) if isinstance(attack, TableAttack) else (_ABOUT, (OURS,))
    for title, ours in (("Unprotected", False), ("Protected", True)):
        heading(title, 2).classes("text-h6")
        with ui.element("div").classes("d-grid"):
            for each in found:
                if (each["target"] in stopping) is ours:
                    _finding(each, about[each["target"]])
    drawn = [each for each in found if each["drawing"] is not None]
    if not drawn:
        asks = (
            "has one number to show: there is no" if isinstance(attack, TableAttack) else "asks too few questions for a"
        )
        ui.label(f"This attack {asks} chart.").classes("d-muted")
        return
    with card():
        title = str(drawn[-1]["drawing"]["title"])
        heading(title, 2).classes("text-subtitle1 text-weight-medium")
        chart = ui.echart(curves(drawn), renderer="svg").classes("w-full").style("height: 320px")
        chart.props["role"], chart.props["aria-label"] = "img", f"{title}, by target, for the attack {name}"


def _finding(found: dict[str, Any], about: str) -> None:
    price = "nothing is charged" if found["price"] is None else f"ε = {priced(found['price'])} charged"
    with card().classes("gap-1"):
        with ui.row().classes("w-full items-center justify-between gap-2"):
            heading(str(found["target"]), 3).classes("text-weight-medium")
            with ui.row().classes("items-center gap-1 no-wrap"):
                ui.icon("lock_open" if found["broke"] else "lock", size="xs").props("aria-hidden=true")
                ui.label("fell" if found["broke"] else "held").classes("d-bad" if found["broke"] else "d-good")
        ui.label(about).classes("d-muted text-caption")
        ui.label(str(found["learned"]))
        took = f"{counted(found['questions'], 'question')}, {price}"
        if (rate := found["rate"]) is not None:
            took = str(Rate(rate["hits"], rate["of"], rate["what"]))
        ui.label(took).classes("d-muted d-number")
        if found["ended"]:
            ui.label(f"Ended: {found['ended']}").classes("d-muted")
