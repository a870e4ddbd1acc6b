"""JSON that came from outside, read field by field: what is not of the promised form is refused, never guessed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

from dalenius.errors import InputError

T = TypeVar("T")


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand once each, for `json.loads(…, object_pairs_hook=once)`.

    Of two ε nobody knows which was meant, and two programs that read the same text may take different ones.

    >>> once([("a", 1), ("a", 2)])
    Traceback (most recent call last):
    dalenius.errors.InputError: A key stands twice in one object. Only one can be meant. Remove the other. ...
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InputError("A key stands twice in one object.", why="Only one can be meant.", fix="Remove the other.")
    return found


def check_once(text: bytes) -> None:
    """Refuses JSON in which a key stands twice in one object; what is no JSON at all is for others to refuse."""
    with suppress(ValueError, RecursionError):
        json.loads(text, object_pairs_hook=once)


class Fields:
    """An object of JSON and what it should be, such as "release".

    >>> Fields({"name": "visits", "rows": 3}, "table").text("name")
    'visits'
    >>> Fields({"name": 7}, "table").text("name")
    Traceback (most recent call last):
    dalenius.errors.InputError: This is not a table. Its 'name' is not what it should be. ...
    """

    def __init__(self, data: object, what: str) -> None:
        self._what = what
        if not isinstance(data, Mapping) or not all(isinstance(key, str) for key in data):
            raise self.wrong("")
        self.data: Mapping[str, Any] = data

    def __contains__(self, name: str) -> bool:
        return self.data.get(name) is not None

    def any(self, name: str) -> Any:
        """Whatever is there; None where nothing is."""
        return self.data.get(name)

    def text(self, name: str) -> str:
        """A text."""
        return self._of(name, str)

    def flag(self, name: str) -> bool:
        """True or false."""
        return self._of(name, bool)

    def whole(self, name: str) -> int:
        """A whole number that is not negative."""
        value = self._of(name, int)
        if value < 0:
            raise self.wrong(name)
        return value

    def number(self, name: str) -> float:
        """A finite number."""
        return self.number_of(self.data.get(name), name)

    def numbers(self, name: str) -> tuple[float | None, ...]:
        """Numbers, some of which may be missing."""
        return tuple(None if each is None else self.number_of(each, name) for each in self.items(name))

    def items(self, name: str) -> list[Any]:
        """A list of anything."""
        return self._of(name, list)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self.each(name, str))

    def each(self, name: str, kind: type) -> list[Any]:
        """A list of one kind."""
        found = self.items(name)
        if any(type(value) is not kind for value in found):
            raise self.wrong(name)
        return found

    def mapping(self, name: str) -> dict[str, Any]:
        """An object."""
        return self._of(name, dict)

    def fields(self, name: str) -> Fields:
        """An object, to be read field by field."""
        return Fields(self.mapping(name), self._what)

    def wrong(self, name: str) -> InputError:
        """The error that says so; never with a value in it."""
        return InputError(
            f"This is not a {self._what}.",
            why=f"Its {name!r} is not what it should be." if name else "It is not an object with names.",
            fix="Give it as `to_dict` wrote it.",
        )

    def number_of(self, value: object, name: str) -> float:
        """The value as a number."""
        # a whole number stays one: counts print as counts
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.wrong(name)
        return value

    def _of(self, name: str, kind: type[T]) -> T:
        value = self.data.get(name)
        if type(value) is not kind:  # not isinstance: True is no number
            raise self.wrong(name)
        return value
