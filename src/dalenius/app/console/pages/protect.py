"""Protect: the owner's page. Tables and their policies, new files, analysts and tokens, alarms."""

from __future__ import annotations

from urllib.parse import unquote

from fastapi import FastAPI, Request
from nicegui import ui
from starlette.responses import Response

from dalenius.app.console.calls import put
from dalenius.app.console.frame import attempt, card, empty, page
from dalenius.app.console.parts.analysts import Analysts, Suspensions
from dalenius.app.console.parts.form import Protecting
from dalenius.app.console.parts.tables import Tables
from dalenius.app.console.sessions import COOKIE, Session, Sessions
from dalenius.app.http.guard import UPLOAD
from dalenius.app.http.responses import answer
from dalenius.app.views import to_second
from dalenius.app.views.history import alarms
from dalenius.errors import AuthMissingError
from dalenius.queries.release import shown
from dalenius.tables.registry import Version

_MOST = 50  # alarms on the page
_WHAT = {
    "late": "The answer was not ready in time. It left as a refusal at the cap, and was charged.",
    "suspended": "Too many answers were late. New questions are refused until you lift it, under 'Analysts'.",
    "failed": "The engine could not answer. The question was charged.",
    "index failed": "The contribution index could not be read. The question was charged. Protect the table again.",
    "source changed": "The files are not what was protected. The question was charged. Put them back, or refresh.",
}
_ADVICE = (
    "One now and then: the machine is short of memory, disk or processors. Many: raise answer and cap in [time] of the "
    "policy ('Change' on the table), or run fewer questions at once. All from one analyst: somebody may be probing "
    "what makes a question slow; talk to them, or revoke the token."
)


def install(app: FastAPI, sessions: Sessions) -> None:
    """Adds the page, and where its files go."""

    @page("/protect", wide=True)
    async def protect(session: Session) -> None:
        with ui.tabs().props("no-caps align=left inline-label").classes("w-full") as tabs:
            mine = ui.tab("Tables", icon="table_chart")
            new = ui.tab("Protect a table", icon="add_moderator")
            people = ui.tab("Analysts", icon="group")
            late = ui.tab("Alarms", icon="notifications")

        def change(version: Version) -> None:
            form.load(version)
            tabs.set_value(new)

        async def again() -> None:
            await tables.refresh()
            await analysts.refresh()
            await suspensions.refresh()

        async def invited() -> None:
            await suspensions.refresh()

        with ui.tab_panels(tabs, value=mine, animated=False, keep_alive=True).classes("w-full bg-transparent"):
            with ui.tab_panel(mine).style("padding: 1rem 0 0"):
                tables = Tables(session, change)
            with ui.tab_panel(new).style("padding: 1rem 0 0"):
                form = Protecting(session, again)
            with ui.tab_panel(people).style("padding: 1rem 0 0"):
                analysts = Analysts(session, invited)
                suspensions = Suspensions(session)
            with ui.tab_panel(late).style("padding: 1rem 0 0"):
                await _show_alarms(session, late)

        async def begin() -> None:
            await again()
            await form.refresh()

        ui.timer(0, begin, once=True)

    @app.post(UPLOAD, include_in_schema=False)
    async def upload(request: Request) -> Response:
        cookie = request.cookies.get(COOKIE)
        session = await sessions.service.run(lambda: sessions.find(cookie))
        if session is None:
            raise AuthMissingError("You are no longer signed in.", why="The session has ended.", fix="Sign in again.")
        name = unquote(request.headers.get("x-file-name", ""))
        return answer({"name": await put(session, name, request.stream())}, 201)


async def _show_alarms(session: Session, tab: ui.tab) -> None:
    """Questions that were late or could not be answered, with what to do; how many there are stands on the tab."""
    place, ledger = ui.column().classes("w-full gap-2"), session.service.curator.ledger
    found = await attempt(session, "GET /v1/alarms", lambda: alarms(ledger)[::-1], place)
    if found is None:
        return
    with place:
        if not found:
            empty("No alarms: every question was answered in time.", "notifications_none")
            return
        tab.props["label"] = f"Alarms ({len(found)})"
        ui.label(_ADVICE)
        for each in found[:_MOST]:
            with card().classes("gap-0"):
                when = to_second(str(each["time"]))
                who = f" · {shown(each['analyst'], 60)}" if each["analyst"] else ""
                ui.label(f"{when} UTC · {each.get('dataset', '')} · charge {each.get('charge', '')}{who}").classes(
                    "d-number"
                )
                ui.label(_WHAT.get(str(each["alarm"]), shown(each["alarm"], 80))).classes("d-muted")
        if len(found) > _MOST:
            ui.label(f"{len(found) - _MOST:,} more are in the ledger.").classes("d-muted text-caption")
