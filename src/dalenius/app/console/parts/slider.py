"""A slider that stays where its reader put it."""

from __future__ import annotations

from nicegui.elements.mixins.value_element import ValueElement
from nicegui.events import GenericEventArguments


class Slider(ValueElement[int]):
    """Places from 0 to ``last``, moved by mouse or keys.

    The framework's own slider sends each place back to the browser that named it. Whoever moves on meanwhile is pulled
    back by that, and every key pressed until then is lost; with a busy server that is most of them. Here the browser's
    place is the one that counts, and the server sends one only when it chooses it itself. Each move is told at once, in
    order: the framework's own holds some back for 50 ms, so that Ask could arrive before the price it was pressed for.
    """

    LOOPBACK = False

    def __init__(self, name: str, last: int, value: int) -> None:
        self.last = last
        super().__init__(tag="q-slider", value=value)
        self._props["min"], self._props["max"], self._props["step"] = 0, last, 1
        self._props["aria-label"], self._props["color"] = name, "primary"

    def _event_args_to_value(self, e: GenericEventArguments) -> int:
        """A place that is not on it changes nothing, and is no bug."""
        if not isinstance(e.args, int) or not 0 <= e.args <= self.last:
            e.args = self.value  # the framework keeps it
        return e.args
