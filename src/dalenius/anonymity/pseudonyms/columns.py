"""Pseudonyms for the columns of a table: which way, and what it leaves undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dalenius.anonymity.pseudonyms.hashing import keyed_hash
from dalenius.anonymity.pseudonyms.keys import key_in
from dalenius.anonymity.pseudonyms.lookup import Lookup
from dalenius.anonymity.pseudonyms.tokens import check_fit, token
from dalenius.anonymity.table import Column, Table
from dalenius.errors import InputError

METHODS: Mapping[str, str] = {
    "keyed": "HMAC-SHA256 with a key: the same value gets the same pseudonym, with the key file also in later tables.",
    "lookup": "Drawn by chance and kept in a table: nothing of the value is in its pseudonym.",
    "tokens": "FF1 with a key: keeps digits, letters and length, and can be turned back with the key.",
}
NOT_DONE = (
    "Only the named columns were changed: birth date, postcode and sex find most people again in another table.",
    "Equal values have equal pseudonyms: how often each occurs, and with what, is still there to be matched.",
    "Whoever has the key file can find everybody: by law (GDPR, recital 26) such rows are still personal data.",
    "Missing values stay missing, and so show who has none.",
)
_TOKENS_TOO = "A token shows the length of the value, and every character that is no letter and no digit."


@dataclass(frozen=True, slots=True)
class Pseudonymized:
    """A table with pseudonyms.

    Attributes:
        table: With the named columns as text, all else as it was.
        method: One of `METHODS`.
        distinct: How many values each column had, missing ones apart.
        not_done: What this does not do, a sentence each.
    """

    table: Table
    method: str
    distinct: Mapping[str, int]
    not_done: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For `--json`; without the rows."""
        return {
            "rows": self.table.rows,
            "method": self.method,
            "distinct": dict(self.distinct),
            "not_done": list(self.not_done),
        }


def pseudonymize(table: Table, columns: Sequence[str], *, method: str = "keyed", secret: Path) -> Pseudonymized:
    """The table with the values of some columns replaced.

    Args:
        table: The rows.
        columns: Whose values are replaced. A missing value stays missing.
        method: One of `METHODS`.
        secret: The key file of `keyed` and `tokens`, the table of `lookup`. Made where there is none, with mode 0600.

    Raises:
        InputError: There is no such method, no column was named, or a value is not fit for a token.
        UnknownColumnError: The table has no such column.
    """
    _check(columns, method)
    values = {name: [each for each in table[name].values if each is not None] for name in columns}
    made = _made(method, secret, values)
    replaced = {name: _replaced(table[name], made[name]) for name in columns}
    not_done = (*NOT_DONE, _TOKENS_TOO) if method == "tokens" else NOT_DONE
    return Pseudonymized(table.replace(replaced), method, {name: len(each) for name, each in values.items()}, not_done)


def _replaced(column: Column, made: Mapping[str, str]) -> Column:
    return Column.of(None if each is None else made[each] for each in column.cells())


def _made(method: str, secret: Path, values: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    if method == "lookup":
        lookup = Lookup.read(secret)
        found = {name: dict(lookup.pseudonyms(name, each)) for name, each in values.items()}
        if lookup.fresh:
            lookup.save(secret)  # before anything is published that could not be made again
        return found
    way: Callable[[bytes, str, str], str] = keyed_hash if method == "keyed" else token
    if method == "tokens":  # found wrong before a key is made
        for name, each in values.items():
            for value in each:
                check_fit(name, value)
    key = key_in(secret)
    return {name: {value: way(key, name, value) for value in each} for name, each in values.items()}


def _check(columns: Sequence[str], method: str) -> None:
    if method not in METHODS:
        near = get_close_matches(method, METHODS, n=1)
        raise InputError(
            f"There is no way '{method}' to make pseudonyms.",
            why=f"There are: {', '.join(METHODS)}.",
            fix=f"Did you mean '{near[0]}'?" if near else "Name one of them.",
        )
    if not columns:
        raise InputError(
            "No column was named to be replaced.",
            why="Pseudonyms replace the values of columns that say who somebody is.",
            fix='Name one, or write them as identifiers = ["name"] under [anonymity] in the policy.',
        )
