"""How far something is that leaves at a fixed time: by the clock alone, so that it tells nothing of the data."""

from __future__ import annotations

import math

from nicegui import ui


class Progress:
    """A line of words and a bar below it, which is empty until a time is known."""

    def __init__(self, words: str) -> None:
        self._most = 0.0
        with ui.column().classes("w-full gap-2 d-card q-pa-md").props("role=status"):
            with ui.row().classes("items-center gap-2"):
                ui.spinner(size="sm")
                self._words = ui.label(words)
            self._bar = ui.linear_progress(0.0, show_value=False, size="8px").props("rounded instant-feedback")
            self._bar.props["aria-label"] = words

    def waiting(self, seconds: float | None) -> None:
        """So many seconds are left; None: nobody knows."""
        if not seconds:
            return
        self._most = max(self._most, seconds)
        self._bar.set_value(round(1 - seconds / self._most, 3))
        self._words.set_text(f"Ready in {math.ceil(seconds)} s (a fixed wait, so that timing reveals nothing).")
