"""How far something is that leaves at a fixed time: by the clock alone, so that it tells nothing of the data.

Of a training also by steps: as it is, for those whom the owner trusts; else by the clock as well.
"""

from __future__ import annotations

import math

from nicegui import ui


class Progress:
    """A line of words and a bar below it, which is empty until a time is known.

    Args:
        words: What is done.
        steps: In how many steps; 0: in none.
    """

    def __init__(self, words: str, steps: int = 0) -> None:
        self._most, self._steps = 0.0, steps
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
        share = 1 - seconds / self._most
        self._bar.set_value(round(share, 3))
        by_clock = f" By the clock, step {round(share * self._steps):,} of {self._steps:,}." if self._steps else ""
        ready = f"Ready in {math.ceil(seconds)} s (a fixed wait, so that timing reveals nothing)."
        self._words.set_text(ready + by_clock)

    def stepped(self, done: int, steps: int) -> None:
        """So many steps are done."""
        self._bar.set_value(round(done / max(1, steps), 3))
        self._words.set_text(f"Step {done:,} of {steps:,}.")
