"""m-invariance of a series of releases (Xiao and Tao 2007): checked from who was where, which only the owner knows.

1. Every class of every release has at least m rows, and all its sensitive values differ (m-uniqueness).
2. Somebody who is in several releases is in classes that show the same set of sensitive values: the signature.

One release alone can only be checked for the first; a table without the series is m-invariant in the way that a table
is one release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dalenius.anonymity.classes import classes
from dalenius.anonymity.table import Table

Text = str | None


@dataclass(frozen=True, slots=True)
class Release:
    """One of a series.

    Attributes:
        table: As published, with the number of the class in some column.
        placed: In which class each person is.
    """

    table: Table
    placed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """What a series reaches.

    Attributes:
        asked: m.
        reached: Different values in the smallest class; 0 where some class shows a value twice.
        repeated: Classes that show a value twice.
        changed: People whose signature is not the same in all releases that they are in.
        missing: People who are said to be in a class that a release does not have.
        people: Seen in some release.
        releases: How many there were.
    """

    asked: int
    reached: int
    repeated: int
    changed: int
    missing: int
    people: int
    releases: int

    @property
    def met(self) -> bool:
        """Whether the series is m-invariant."""
        return self.reached >= self.asked and not self.changed and not self.missing

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        counts = {name: getattr(self, name) for name in ("repeated", "changed", "missing", "people", "releases")}
        return {"model": "m-invariance", "asked": self.asked, "reached": self.reached, "met": self.met, **counts}


def check_series(releases: Sequence[Release], m: int, *, group: str, sensitive: str) -> SeriesResult:
    """Whether a series is m-invariant.

    Args:
        releases: In any order.
        m: What is asked.
        group: The column with the number of the class.
        sensitive: The sensitive column.
    """
    seen: dict[str, set[frozenset[Text]]] = {}
    reached, repeated, missing = m if not releases else 10**9, 0, 0
    for release in releases:
        shown = signatures(release.table, group, sensitive)
        for values, size in shown.values():
            repeated += len(values) < size
            reached = min(reached, len(values) if len(values) == size else 0)
        for person, place in release.placed.items():
            found = shown.get(place)
            if found is None:
                missing += 1
            else:
                seen.setdefault(person, set()).add(found[0])
    changed = sum(len(each) > 1 for each in seen.values())
    return SeriesResult(m, reached, repeated, changed, missing, len(seen), len(releases))


def signatures(table: Table, group: str, sensitive: str) -> dict[Text, tuple[frozenset[Text], int]]:
    """The set of sensitive values that each class shows, and its rows.

    >>> table = Table.of({"class": ["1", "1", "2"], "ill": ["flu", "cold", "flu"]})
    >>> {name: (sorted(each), size) for name, (each, size) in signatures(table, "class", "ill").items()}
    {'1': (['cold', 'flu'], 2), '2': (['flu'], 1)}
    """
    found = classes(table, [group])
    counts = found.counts(table[sensitive])
    values, names = table[sensitive].values, table[group]
    return {
        names.values[names.codes[row]]: (
            frozenset(values[code] for code in counts.value[counts.start[at] : counts.start[at + 1]]),
            int(found.sizes[at]),
        )
        for at, row in enumerate(found.first)
    }
