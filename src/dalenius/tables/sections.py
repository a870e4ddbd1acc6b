"""One table of a TOML file, read key by key; whatever nobody asked for is a mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dalenius.errors import InputError
from dalenius.tables.mistakes import invalid, join_names, nearest

BLANK = "FILL IN"  # how `policy draft` marks what only the owner can know
NAME_FIX = "Use letters, digits and _, not beginning with a digit; at most 63."
SOURCE_FIX = 'Write source = "visits.parquet", a glob, or a list of them.'
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
T = TypeVar("T")


class PolicySection:
    """A table of the file and its place in it."""

    def __init__(self, values: object, place: str, known: tuple[str, ...]) -> None:
        if not isinstance(values, Mapping):
            raise invalid(
                place,
                f"this must be a table, not {type_name(values)}.",
                why=f"It holds {join_names(known)}." if known else "Its entries have names of their own.",
                fix=f"Write it as [{place}].",
            )
        for key in values:
            if known and key not in known:
                meant = nearest(key, known)
                raise invalid(
                    self._at(place, key),
                    "there is no such key.",
                    why=f"Known here: {', '.join(known)}.",
                    fix=f"Did you mean {meant!r}?" if meant else "Remove it.",
                )
        self.values, self.place = values, place

    def __contains__(self, key: str) -> bool:
        return key in self.values

    @staticmethod
    def _at(place: str, key: str) -> str:
        return f"{place}.{key}" if place else key

    def at(self, key: str) -> str:
        """The dotted place of a key."""
        return self._at(self.place, key)

    def need(self, key: str, fix: str) -> Any:
        """A value that must be there."""
        if key not in self.values:
            raise invalid(self.at(key), "this is missing.", why="A policy cannot do without it.", fix=fix)
        return self.values[key]

    def string(self, key: str, default: str | None = None, *, fix: str) -> str:
        """A text."""
        value = self.values.get(key, default) if default is not None else self.need(key, fix)
        if not isinstance(value, str) or not value:
            what = "this is empty." if value == "" else f"this must be a text, not {type_name(value)}."
            raise invalid(self.at(key), what, why="It is written in quotes.", fix=fix)
        return value

    def one_of(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """One of a few words."""
        fix = f"Use {' or '.join(repr(each) for each in choices)}."
        value = self.string(key, default, fix=fix)
        if value not in choices:
            meant = nearest(value, choices)
            raise invalid(
                self.at(key),
                f"{value!r} is not one of its values.",
                why=f"Known: {', '.join(choices)}.",
                fix=f"Did you mean {meant!r}?" if meant else fix,
            )
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise invalid(
                self.at(key),
                f"this must be true or false, not {type_name(value)}.",
                why="It is written without quotes.",
                fix=f"Write {key} = {str(not default).lower()}, or leave it out.",
            )
        return value

    def column_names(self, key: str, *, why: str, fix: str) -> tuple[str, ...]:
        """A column, or a list of different ones."""
        value = self.need(key, fix)
        given = value if isinstance(value, list) else [value]
        if not given or not all(isinstance(each, str) and each for each in given):
            raise invalid(self.at(key), "this must be a column or a list of columns.", why=why, fix=fix)
        if len(set(given)) < len(given):
            raise invalid(self.at(key), "a column is there twice.", why="Once is enough.", fix="Remove one.")
        return tuple(given)

    def checked(self, key: str, check: Callable[[Any], T], default: object = None) -> T:
        """A value that another part of the program checks; its complaint is told with the place in the policy."""
        try:
            return check(self.values.get(key, default))
        except InputError as error:
            raise invalid(self.at(key), error.message, why=error.why, fix=error.fix) from None


def check_identifier(name: str, place: str) -> None:
    """Refuses a name that SQL would have to quote."""
    if not _NAME.fullmatch(name):
        raise invalid(place, f"{name!r} cannot be used.", why="It names a table in SQL and a file.", fix=NAME_FIX)


def check_printable(name: str, place: str, whose: str) -> None:
    """Refuses a name that nobody could read; ``whose`` it is, such as "a column"."""
    if not name or len(name) > 200 or not name.isprintable():
        raise invalid(place, f"{whose} has no usable name.", why="It is empty or unprintable.", fix="Rename it.")


def paths_of(value: Any, place: str, folder: Path) -> tuple[str, ...]:
    """Where data is: paths or globs, absolute from here on."""
    given = value if isinstance(value, list) else [value]
    if not given or not all(isinstance(each, str) and each for each in given):
        raise invalid(
            place, "this must be a path or a list of paths.", why="It says where the data is.", fix=SOURCE_FIX
        )
    if any("://" in each for each in given):
        raise invalid(place, "this is an address.", why="Only files are read, never the network.", fix=SOURCE_FIX)
    return tuple(str((folder / each).absolute()) for each in given)


def blanks(values: object, place: str = "") -> list[str]:
    """The places that a draft left for the owner to fill in."""
    if isinstance(values, str):
        return [place] if values.startswith(BLANK) else []
    if isinstance(values, Mapping):
        return [found for key, each in values.items() for found in blanks(each, f"{place}.{key}".lstrip("."))]
    if isinstance(values, list):
        return list(dict.fromkeys(found for each in values for found in blanks(each, place)))
    return []


def type_name(value: object) -> str:
    """A TOML value's type in words."""
    names = {
        "bool": "true or false",
        "int": "a whole number",
        "Decimal": "a number",
        "str": "a text",
        "list": "a list",
        "dict": "a table",
        "date": "a date",
        "datetime": "a datetime",
    }
    return names.get(type(value).__name__, type(value).__name__)
