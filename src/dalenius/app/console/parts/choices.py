"""One of a few choices, as a row of buttons."""

from __future__ import annotations

from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments


class Choices(ui.toggle):
    """A page names a choice by its place in the list. A place that is not in it changes nothing, and is no bug."""

    def _event_args_to_value(self, e: GenericEventArguments) -> Any:
        known = isinstance(e.args, int) and 0 <= e.args < len(self._values)
        return self._values[e.args] if known else self.value
