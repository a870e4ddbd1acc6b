"""What a page may be told by its browser: events that something of ours listens to, none longer than it needs to be.

The framework has listeners of its own, of which some keep or repeat all that they are told: `selection` of every table,
and on the page itself those of a router that we have no use for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dalenius.app.console.parts.editor import Editor

if TYPE_CHECKING:
    from nicegui import Client

LONGEST = 4000  # characters that a field takes; with quotes, which are written as two, no more than an event may say
_HEARD = frozenset(
    (
        *("click", "hide", "blur", "keybinding", "popupShow", "popupHide"),
        *("update:modelValue", "update:value", "update:pagination"),
        *("added", "uploaded", "failed", "rejected"),
    )
)
_PAGE = 0  # the number of the page itself among its elements
# Characters of a value that the framework keeps, such as a slider's; and of anything else, or of a text in a field.
_KEPT, _SAID_ONCE = 2**11, 2**13
_CHANGED = 2**30  # more than a line takes at once: an editor looks for itself


def is_heard(page: Client, event: Mapping[str, Any]) -> bool:
    """Whether something of ours listens to it; what a page says of an element that is gone by now is for nobody."""
    return _most(page, event) is not None


def is_too_long(page: Client, event: Mapping[str, Any]) -> bool:
    """Whether it says more than whatever it is for has any use for."""
    most = _most(page, event)
    return most is not None and _length(event.get("args")) > most


def _most(page: Client, event: Mapping[str, Any]) -> int | None:
    """Characters that an event may say; None where nothing of ours listens."""
    number, name = event.get("id"), event.get("listener_id")
    element = page.elements.get(number) if isinstance(number, int) and number != _PAGE else None
    known = {} if element is None else element._event_listeners  # noqa: SLF001
    listener = known.get(name) if isinstance(name, str) else None
    if listener is None or listener.type not in _HEARD:
        return None
    if isinstance(element, Editor) and listener.type == f"update:{Editor.VALUE_PROP}":
        return _CHANGED
    is_kept = listener.type.startswith("update:") and not _is_text(event.get("args"))
    return _KEPT if is_kept else _SAID_ONCE


def _length(args: object) -> float:
    """Characters that an event says; without end if it is none that a page would send.

    >>> _length(['{"value": 3}', None]), _length([{}]), _length(None)
    (16, inf, 0)
    """
    said = [] if args is None else args
    if not isinstance(said, list) or not all(each is None or isinstance(each, str) for each in said):
        return math.inf
    return sum(len("null" if each is None else each) for each in said)


def _is_text(args: object) -> bool:
    """Whether it is one text, and nothing that takes many times as much memory as it is long."""
    return isinstance(args, list) and len(args) == 1 and str(args[0]).startswith('"')
