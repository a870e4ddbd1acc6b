"""Protect: the owner's page. Tables and their policies, new files, analysts and tokens, alarms."""

from __future__ import annotations

from urllib.parse import unquote

from fastapi import FastAPI, Request
from nicegui import ui
from starlette.responses import Response

from dalenius.app.console.calls import put
from dalenius.app.console.frame import page
from dalenius.app.console.owner.alarms import alarms
from dalenius.app.console.owner.form import Protecting
from dalenius.app.console.owner.inviting import Analysts
from dalenius.app.console.owner.suspending import Suspensions
from dalenius.app.console.owner.tables import Tables
from dalenius.app.console.sessions import COOKIE, Session, Sessions
from dalenius.app.http.answers import answer
from dalenius.app.http.guard import UPLOAD
from dalenius.errors import AuthMissingError
from dalenius.tables.registry import Version


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
                await alarms(session, late)

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
