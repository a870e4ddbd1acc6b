"""The section [public] of a policy: tables without secrets, for joins and for questions that cost nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.errors import SourceChangedError
from dalenius.tables.fingerprint import unchanged
from dalenius.tables.homes import check_outside
from dalenius.tables.mistakes import invalid
from dalenius.tables.policy import PublicSpec
from dalenius.tables.sections import Section, check_name, paths_of

if TYPE_CHECKING:
    from dalenius.tables.registry import Version

_FIX = 'Write regions = "regions.csv", or nation = { source = "nation.parquet", key = "n_nationkey" }.'
_KEY_FIX = 'Write key = "code", or a list of columns that are unique together.'


def read_public(top: Section, table: str, folder: Path) -> dict[str, PublicSpec]:
    """The public tables of a policy about ``table``; relative paths are relative to ``folder``."""
    if "public" not in top:
        return {}
    section = Section(top.values["public"], "public", ("tables",))
    tables = Section(section.need("tables", f"Write tables = {{ … }}. {_FIX}"), "public.tables", ())
    seen = {table.lower(): table}
    for name in tables.values:
        check_name(name, tables.at(name))
        if name.lower() in seen:
            raise invalid(
                tables.at(name),
                f"there is a table {seen[name.lower()]!r}.",
                why="SQL cannot tell them apart.",
                fix="Rename it.",
            )
        seen[name.lower()] = name
    return {name: _spec(name, value, tables.at(name), folder) for name, value in tables.values.items()}


def check_public_unchanged(version: Version, names: Iterable[str]) -> None:
    """Refuses public tables of a version whose files are no longer those that were recorded with it.

    Costs one `stat` per file as long as nothing changed.
    """
    for name in names:
        check_outside(version.public[name].paths)  # however it once came to be declared
        if not unchanged(version.public[name], version.policy.public[name].source):
            raise SourceChangedError(
                f"The public table {name!r} changed since it was declared.",
                why="Files were added, removed or rewritten; stored answers belong to them as they were.",
                fix="Put the files back, or run 'dalenius protect' again with the policies that name it.",
            )


def _spec(name: str, value: Any, place: str, folder: Path) -> PublicSpec:
    if not isinstance(value, Mapping):
        return PublicSpec(name, paths_of(value, place, folder))
    section = Section(value, place, ("source", "key"))
    return PublicSpec(name, paths_of(section.need("source", _FIX), section.at("source"), folder), _key(section))


def _key(section: Section) -> tuple[str, ...]:
    if "key" not in section:
        return ()
    value, place = section.values["key"], section.at("key")
    given = value if isinstance(value, list) else [value]
    if not given or not all(isinstance(each, str) and each for each in given):
        raise invalid(
            place, "this must be a column or a list of columns.", why="It says what tells rows apart.", fix=_KEY_FIX
        )
    if len(set(given)) < len(given):
        raise invalid(place, "a column is there twice.", why="Once is enough.", fix="Remove one.")
    return tuple(given)
