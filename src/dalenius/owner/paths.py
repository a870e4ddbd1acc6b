"""Paths from rows to units, at `protect`: their tables are there and agree with them, and their keys are unique.

Were a key not unique, a row would belong to two units: whether it is there would depend on either, and no clipping of
one of them bounds that. So a table whose path has such a key is not protected, and is closed once a new version of the
data has one. Nothing of it is told per question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dalenius.errors import NotAllowedError, PolicyInvalidError
from dalenius.measuring.engines.sources import repeats, schema
from dalenius.releasing.snapshot import through
from dalenius.tables.compatibility import comparable
from dalenius.tables.mistakes import invalid

if TYPE_CHECKING:
    from dalenius.tables.policy import Hop, Policy
    from dalenius.tables.registry import Version

SECONDS = 3600.0  # the owner waits
_PLACE = "table.unit.path"


def check_paths(versions: Mapping[str, Version], changed: set[str]) -> None:
    """Checks all paths that begin at, or go through, tables that change.

    Args:
        versions: All versions as they will be in force.
        changed: The names of those that change.
    """
    seen: set[tuple[str, str]] = set()
    for version in versions.values():
        policy, tables = version.policy, through(version.policy, versions)
        if not policy.path or not changed & {version.table, *(each.table for each in tables.values())}:
            continue
        _check_agreement(version, tables)
        _check_period(policy, versions)
        for hop in policy.path:
            table = tables[hop.table]
            if (table.table, hop.key) not in seen:
                seen.add((table.table, hop.key))
                _check_unique(version, table, hop)


def repeated_keys(version: Version, versions: Mapping[str, Version]) -> str | None:
    """Why a table must be closed: its path no longer fits, or a key of it is not unique. None: all is well."""
    if version.policy.path:
        try:
            _check_agreement(version, through(version.policy, versions))
        except PolicyInvalidError as error:
            return error.message
    for hop in version.policy.path:
        if repeats(through(version.policy, versions)[hop.table].fingerprint, hop.key):
            return f"Its path goes through {hop.table}.{hop.key}, which is not unique."
    return None


def _check_agreement(version: Version, tables: Mapping[str, Version]) -> None:
    """The tables are of one data set, and their own units are what the path says."""
    policy = version.policy
    types = dict(schema(version.fingerprint.paths, version.fingerprint.form))
    for at, hop in enumerate(policy.path):
        table = tables.get(hop.table)
        if table is None or table.dataset != policy.dataset:
            raise invalid(
                _PLACE,
                f"there is no table {hop.table!r} in data set {policy.dataset!r}.",
                why="A path goes through protected tables of the same data set.",
                fix="Protect that table first, or all of them at once.",
            )
        if (table.policy.path, table.policy.unit) != (policy.path[at + 1 :], policy.unit):
            raise invalid(
                _PLACE,
                f"table {table.table!r} has another unit than the path says.",
                why="Rows that a path ties together must belong to the same unit by either way.",
                fix="Let the path go on as that table's own unit does.",
            )
        following = dict(schema(table.fingerprint.paths, table.fingerprint.form))
        _check_types(hop, types, following)
        types = following


def _check_period(policy: Policy, versions: Mapping[str, Version]) -> None:
    """A unit is then a person in a period, and a row of one period would need the key in a row of another."""
    if any(
        each.dataset == policy.dataset and each.policy.budget and each.policy.budget.period
        for each in versions.values()
    ):
        raise invalid(
            _PLACE,
            f"the budget of data set {policy.dataset!r} is per period.",
            why="A row of one period could lead through a row of another, which is another unit's.",
            fix="Write the unit into this table itself, or give the data set a budget without periods.",
        )


def check_units(versions: Mapping[str, Version], changed: set[str]) -> None:
    """Refuses tables of one data set whose units are of different types.

    Joins compare units as they lie in the files. Between types that would be a conversion, which one row can make fail
    and which can make one unit of two.

    Args:
        versions: All versions as they will be in force.
        changed: The names of those that change.
    """
    held: dict[str, list[tuple[str, list[str]]]] = {}
    concerned = {each.dataset for each in versions.values() if each.table in changed}
    for version in versions.values():
        if version.dataset in concerned and not version.policy.path:  # a path ends in another table's unit
            types = dict(schema(version.fingerprint.paths, version.fingerprint.form))
            held.setdefault(version.dataset, []).append((version.table, [types[name] for name in version.policy.unit]))
    for dataset, tables in held.items():
        first, expected = tables[0]
        for table, types_ in tables[1:]:
            if not all(map(comparable, expected, types_)):
                raise invalid(
                    "table.unit",
                    f"the units of {first!r} and {table!r} in data set {dataset!r} are of different types.",
                    why="They are compared as they lie in the files, and a conversion could fail on somebody's row. "
                    "In CSV files all columns are text.",
                    fix="Write both columns in one type.",
                )


def _check_types(hop: Hop, types: Mapping[str, str], following: Mapping[str, str]) -> None:
    for name, held in ((hop.column, types), (hop.key, following)):
        if name not in held:
            raise invalid(
                _PLACE,
                f"there is no column {name!r} in the source.",
                why="Names are compared letter by letter.",
                fix="Correct the path.",
            )
    if not comparable(types[hop.column], following[hop.key]):
        raise invalid(
            _PLACE,
            f"{hop.column!r} and {hop.table}.{hop.key} are of different types.",
            why="They are compared as they lie in the files, and a conversion could fail on somebody's row.",
            fix="Write both columns in one type.",
        )


def _check_unique(version: Version, table: Version, hop: Hop) -> None:
    if repeats(table.fingerprint, hop.key):
        raise NotAllowedError(
            f"The path of {version.table!r} goes through {hop.table}.{hop.key}, which is not unique.",
            why="A row would belong to several units at once, and nobody could be promised anything about it.",
            fix="Remove the duplicates from the source, or choose a key that tells all rows apart.",
        )
