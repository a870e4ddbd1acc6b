"""How a question was understood: below its price, folded until somebody wants to see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nicegui import ui

from dalenius.queries.release import shown

if TYPE_CHECKING:
    from dalenius.queries.explaining import Explanation

TITLE = "How this was understood"
_LINE = 600  # characters


def show_explanation(explanation: Explanation, *, opened: bool, on_change: Callable[[bool], None]) -> None:
    """Titles with their lines; names in them are text from outside, shown as they are.

    Args:
        explanation: What is shown.
        opened: Whether it is unfolded at first.
        on_change: Is told when it is folded or unfolded.
    """
    with ui.expansion(TITLE, icon="help_outline", value=opened).classes("w-full").props("dense") as folded:
        folded.on_value_change(lambda event: on_change(bool(event.value)))
        with ui.element("dl").classes("d-understood"):
            for title, lines in explanation.sections():
                with ui.element("dt").classes("text-weight-medium"):
                    ui.label(title)
                with ui.element("dd"):
                    for line in lines:
                        ui.label(shown(line, _LINE)).classes("text-caption")
