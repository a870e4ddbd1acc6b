"""Random lookup: every value gets a number drawn for it, and a table keeps which.

Nothing of the value is in its pseudonym: it is 128 bits of the system's chance. All that is secret is in the table, a
file of mode 0600; once that is deleted, nobody can tell a pseudonym's value or make it again, not even the owner. The
same file makes the same pseudonyms in a later table.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from pathlib import Path

from dalenius.anonymity.private_files import read_private, write_private
from dalenius.errors import InputError

_FORMAT = "dalenius-pseudonym-table-1"
_BYTES = 16


class Lookup:
    """The pseudonyms given so far, by column.

    Attributes:
        fresh: Whether some were drawn since it was read: then it has to be saved.
    """

    def __init__(self, given: dict[str, dict[str, str]] | None = None) -> None:
        self._given = given or {}
        self._taken = {each for column in self._given.values() for each in column.values()}
        self.fresh = False

    @classmethod
    def read(cls, file: Path) -> Lookup:
        """What a file keeps; an empty one where there is no such file."""
        if not file.exists():
            return cls()
        try:
            data = json.loads(read_private(file))
        except ValueError:
            data = None
        if not isinstance(data, dict) or data.get("format") != _FORMAT or not _is_given(data.get("given")):
            raise InputError(
                f"{file.name} is no table of pseudonyms.",
                why="It keeps which value has which pseudonym, as dalenius wrote it.",
                fix="Name the file of the first run, or one that is not there yet.",
            )
        return cls(data["given"])

    def pseudonyms(self, column: str, values: Iterable[str]) -> dict[str, str]:
        """The pseudonym of each value; drawn where there is none."""
        given = self._given.setdefault(column, {})
        for each in values:
            if each not in given:
                given[each] = self._draw()
                self.fresh = True
        return given

    def _draw(self) -> str:
        while (drawn := secrets.token_hex(_BYTES)) in self._taken:
            pass
        self._taken.add(drawn)
        return drawn

    def save(self, file: Path) -> None:
        """Keeps it, whole or not at all."""
        write_private(file, json.dumps({"format": _FORMAT, "given": self._given}), replace=True)


def _is_given(data: object) -> bool:
    return isinstance(data, dict) and all(
        isinstance(column, dict) and all(isinstance(each, str) for each in column.values()) for column in data.values()
    )
