"""Analysts: who may ask and how much, the tokens they ask with, and who is suspended."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from nicegui import ui

from dalenius.app.console.frame import attempt, card, dialog_named, empty, heading, trouble
from dalenius.app.views import to_minute
from dalenius.app.views.history import list_standings
from dalenius.errors import InputError
from dalenius.ledger.suspensions import ANALYST, DATASET, resume, suspend
from dalenius.ledger.tokens import LONGEST_LIFE, USUAL_LIFE, Role, Token
from dalenius.queries.release import shown

if TYPE_CHECKING:
    from dalenius.app.console.sessions import Session
    from dalenius.ledger.suspensions import Standing

_ALLOT = "PUT /v1/datasets/{dataset}/analysts/{analyst}"
_ENDED = 50  # tokens that are no longer good, on the page
_TRUSTED = (
    "Trusted: answers leave as soon as they are ready. How long they take can tell about rows, so this is for people "
    "who may see the data anyway. Everybody else waits for a time that is fixed before the data is read."
)

_ROUTES = {
    (ANALYST, False): "POST /v1/analysts/{analyst}/suspend",
    (ANALYST, True): "POST /v1/analysts/{analyst}/resume",
    (DATASET, False): "POST /v1/datasets/{dataset}/suspend",
    (DATASET, True): "POST /v1/datasets/{dataset}/resume",
}
_SUSPENDED = "New questions are refused. What was paid for can be asked again, and previews are free as before."
_RESUMED = "New questions are answered again, and late answers are counted anew."


@dataclass(frozen=True)
class _Found:
    datasets: list[str]
    allotments: list[tuple[str, str, float]]
    tokens: list[Token]


class Analysts:
    """The part of one open page."""

    def __init__(self, session: Session, changed: Callable[[], Awaitable[None]]) -> None:
        self.session, self.changed = session, changed
        self.allotted: set[tuple[str, str]] = set()
        self.inviting = False
        with card():
            heading("Invite an analyst", 2).classes("text-subtitle1 text-weight-medium")
            with ui.row().classes("w-full items-start gap-3"):
                self.name = ui.input("Analyst's name").props("outlined dense maxlength=200 autocomplete=off")
                self.dataset = ui.select([], label="Data set").props("outlined dense").style("min-width: 12rem")
                self.epsilon = ui.number("Allotment, ε", min=0, step=0.1).props("outlined dense")
                self.days = ui.number("Days", value=USUAL_LIFE.days, min=1, max=LONGEST_LIFE.days, precision=0).props(
                    "outlined dense"
                )
            ui.label(
                "The allotment is what this analyst may spend of the data set's budget; it replaces one that is there, "
                "and what was spent stays spent. Empty: as it is, only a new token."
            ).classes("d-muted text-caption")
            self.trusted = ui.checkbox("Trusted")
            ui.label(_TRUSTED).classes("d-muted text-caption")
            ui.button("Invite", icon="person_add", on_click=self._invite).props("unelevated no-caps")
            self.trouble = ui.column().classes("w-full")
        self.place = card().classes("gap-2")

    async def refresh(self) -> None:
        """Reads it anew."""
        service = self.session.service

        def work() -> _Found:
            ledger = service.curator.ledger
            datasets = list(ledger.datasets())
            allotted = [(each, *pair) for each in datasets for pair in ledger.allotments(each).items()]
            return _Found(datasets, allotted, service.tokens.all())

        found = await attempt(self.session, "GET /v1/tokens", work, self.place)
        if found is None:
            return
        self.allotted = {(dataset, analyst) for dataset, analyst, _ in found.allotments}
        chosen = self.dataset.value if self.dataset.value in found.datasets else next(iter(found.datasets), None)
        self.dataset.set_options(found.datasets, value=chosen)
        self.place.clear()
        with self.place:
            _title("Allotments")
            if not found.allotments:
                empty("Nobody may ask yet.", "group")
            for dataset, analyst, epsilon in found.allotments:
                ui.label(f"{shown(analyst, 60)} · {dataset} · ε = {epsilon:g}").classes("d-number")
            _title("Tokens")
            good = [each for each in found.tokens if each.state == "active"]
            for token in good:
                self._token(token)
            ended = [each for each in found.tokens if each.state != "active"][::-1]
            if ended:
                with ui.expansion(f"{len(ended)} that have ended").classes("w-full"):
                    for token in ended[:_ENDED]:
                        ui.label(f"{_whose(token)} · {token.id} · {token.state}").classes("d-muted d-number")

    def _token(self, token: Token) -> None:
        mine = token.id == self.session.token.id
        with ui.row().classes("w-full items-center gap-3"):
            words = [_whose(token), token.id, f"until {to_minute(token.expires)} UTC"]
            words += ["trusted"] if token.trusted else []
            words += [shown(token.note, 80)] if token.note else []
            words += ["the one you are signed in with"] if mine else []
            ui.label(" · ".join(words)).classes("d-number")
            button = ui.button("Revoke", icon="block", on_click=lambda: self._revoke(token))
            button.props("flat dense no-caps color=negative")
            button.props["aria-label"] = f"Revoke {token.id}"

    def _revoke(self, token: Token) -> None:
        async def act() -> None:
            dialog.close()
            await attempt(self.session, "DELETE /v1/tokens/{id}", lambda: self.session.service.tokens.revoke(token.id))
            await self.refresh()

        with dialog_named("Revoke a token") as dialog, ui.card():
            ui.label(f"Revoke the token {token.id} of {_whose(token)}?").classes("text-subtitle1")
            ui.label("It ends at once and for good, on every server of this home.").classes("d-muted")
            with ui.row().classes("gap-2"):
                ui.button("Revoke it", on_click=act).props("unelevated no-caps color=negative")
                ui.button("Cancel", on_click=dialog.close).props("flat no-caps autofocus")

    async def _invite(self) -> None:
        if self.inviting:
            return
        self.inviting = True
        self.trouble.clear()
        try:
            made = await self._invited()
        finally:
            self.inviting = False
        if made is not None:
            self.name.set_value("")
            self.epsilon.set_value(None)
            self.trusted.set_value(value=False)
            _once(*made, self.session.service.settings.public_url)
            await self.refresh()
            await self.changed()

    async def _invited(self) -> tuple[str, Token] | None:
        service = self.session.service
        name, dataset = (self.name.value or "").strip(), self.dataset.value
        epsilon, days, trusted = self.epsilon.value, self.days.value, bool(self.trusted.value)
        wrong = _wrong(dataset, days, needed=epsilon is None and (dataset, name) not in self.allotted)
        if wrong is not None:  # before the allotment is on record
            with self.trouble:
                trouble(wrong)
            return None

        def allot() -> bool:
            service.curator.ledger.set_allotment(dataset, name, epsilon)
            return True

        def create() -> tuple[str, Token]:
            return service.tokens.create(Role.ANALYST, name, expires=timedelta(days=int(days)), trusted=trusted)

        if epsilon is not None and not await attempt(self.session, _ALLOT, allot, self.trouble):
            return None
        return await attempt(self.session, "POST /v1/tokens", create, self.trouble)


class Suspensions:
    """The part of one open page."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.place = card().classes("gap-2")

    async def refresh(self) -> None:
        """Reads it anew."""
        ledger = self.session.service.curator.ledger
        found = await attempt(self.session, "GET /v1/analysts", lambda: list_standings(ledger), self.place)
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
            words += [f"since {to_minute(each['since'])} UTC", f"by {shown(each['by'] or 'unknown', 40)}"]
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

        with (
            dialog_named(f"{verb} {who}") as dialog,
            ui.card().classes("w-full gap-3").style("max-width: 560px"),
        ):
            ui.label(f"{verb} {who}?").classes("text-subtitle1")
            ui.label(_RESUMED if suspended else _SUSPENDED).classes("d-muted")
            reason = ui.input("Reason, for the history").props("outlined dense maxlength=500").classes("w-full")
            place = ui.column().classes("w-full")
            with ui.row().classes("gap-2"):
                ui.button(verb, on_click=act).props("unelevated no-caps" + ("" if suspended else " color=negative"))
                ui.button("Cancel", on_click=dialog.close).props("flat no-caps")


def _wrong(dataset: str | None, days: float | None, *, needed: bool) -> InputError | None:
    if not dataset:
        return InputError("Which data set?", why="There is none, or none is chosen.", fix="Protect a table first.")
    if not days or not 1 <= days <= LONGEST_LIFE.days:
        return InputError(
            "A token cannot live that long.", why=f"It is 1 to {LONGEST_LIFE.days} days.", fix="Correct the days."
        )
    if needed:
        return InputError(
            "How much may they spend?", why="This analyst has no allotment in this data set yet.", fix="Give an ε."
        )
    return None


def _once(text: str, token: Token, address: str | None) -> None:
    """Shows a token, this once; nothing of it stays on the page."""
    server = address or str(ui.context.client.request.base_url).rstrip("/")
    lines = f"export DALENIUS_SERVER={shlex.quote(server)}\nexport DALENIUS_TOKEN={shlex.quote(text)}"
    with (
        dialog_named("A new token", persistent=True) as dialog,
        ui.card().classes("w-full gap-3").style("max-width: 720px"),
    ):
        ui.label(f"A token for {_whose(token)}").classes("text-h6").props("role=heading aria-level=2")
        ui.label("It is shown this once: only its hash is kept. Send it by a way that nobody else reads.")
        field = ui.input("Token", value=text).props("outlined readonly").classes("w-full")
        field.props('input-style="font-family: monospace"')
        ui.label("To use it:").classes("d-muted")
        ui.label(lines).classes("w-full d-line q-pa-sm").style(
            "font-family: monospace; white-space: pre-wrap; overflow-wrap: anywhere"
        )
        with ui.row().classes("gap-2"):
            ui.button("Copy the token", icon="content_copy", on_click=lambda: _copy(text)).props("unelevated no-caps")
            ui.button("Copy the lines", icon="terminal", on_click=lambda: _copy(lines)).props("outline no-caps")
            ui.button("Done", on_click=dialog.close).props("flat no-caps")


def _copy(text: str) -> None:
    ui.clipboard.write(text)
    ui.notify("Copied.")


def _whose(token: Token) -> str:
    return shown(token.analyst, 60) if token.analyst else f"the {token.role.value}"


def _title(words: str) -> None:
    ui.label(words).classes("text-subtitle1 text-weight-medium q-mt-sm").props("role=heading aria-level=2")
