"""Puts the console into a server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI

    from dalenius.app.http.service import Service


def install(app: FastAPI, service: Service) -> None:
    """Adds all pages, at `/`."""
    # Nothing is ever put there; if anything were, it would lie in the home.
    os.environ["NICEGUI_STORAGE_PATH"] = str(service.curator.home / "console")
    from nicegui import ui

    from dalenius.app.console.pages import INSTALL
    from dalenius.app.console.sessions import Sessions

    sessions = Sessions(service)
    for each in INSTALL:
        each(app, sessions)
    ui.run_with(app, title="dalenius", dark=None, language="en-US", show_welcome_message=False, binding_refresh_interval=None)
