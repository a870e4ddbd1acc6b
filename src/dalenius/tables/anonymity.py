"""The section [anonymity]: which columns name people, which could give them away, which are their secrets.

Here its form is checked, and paths become absolute; whether the columns are there, and whether a hierarchy has every
value, shows once rows are read (`dalenius.anonymity`). It never decides what a question means.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from dalenius.errors import PolicyInvalidError, SourceUnavailableError
from dalenius.tables.columns import exact_decimal
from dalenius.tables.mistakes import invalid
from dalenius.tables.sections import SOURCE_FIX, PolicySection, check_identifier, paths_of, type_name

ROLES = ("identifiers", "quasi", "sensitive")
KEYS = (*ROLES, "hierarchies", "weights")
SUPPRESS = "suppress"
_WIDTH, _PREFIX = ("width", "levels", "start", "factor"), ("prefix",)
_COLUMNS_FIX = 'Write quasi = ["age", "zip"].'
_HIERARCHY_FIX = (
    'Write zip = "zip.csv", age = { width = 5, levels = 4 }, code = { prefix = [4, 2] }, or sex = "suppress".'
)


def read_anonymity(values: object, folder: Path) -> dict[str, Any]:
    """The section, checked; files in it are relative to ``folder``."""
    section = PolicySection(values, "anonymity", KEYS)
    found: dict[str, Any] = {}
    seen: dict[str, str] = {}
    for role in ROLES:
        if role not in section:
            continue
        names = section.values[role]
        if names != []:
            names = list(section.column_names(role, why="It lists columns of the table.", fix=_COLUMNS_FIX))
        for name in names:
            if name in seen:
                raise invalid(
                    section.at(role),
                    f"{name!r} is among {seen[name]} too.",
                    why=_twice(role, seen[name]),
                    fix=f"Keep it in {role} or in {seen[name]}, not in both.",
                )
            seen[name] = role
        found[role] = names
    quasi = found.get("quasi", [])
    if "hierarchies" in section:
        written = PolicySection(section.values["hierarchies"], "anonymity.hierarchies", ())
        found["hierarchies"] = {
            name: _hierarchy(name, each, folder) for name, each in written.values.items() if _known(name, quasi, seen)
        }
    if "weights" in section:
        weights = PolicySection(section.values["weights"], "anonymity.weights", ())
        for name in weights.values:
            _known(name, quasi, seen, "weights")
        found["weights"] = {name: _weight(each, weights.at(name)) for name, each in weights.values.items()}
    return found


def plain(value: Any, place: str = "anonymity") -> Any:
    """A section that is on record already: kept as it is, whatever it says, as plain values."""
    if place == "anonymity" and not isinstance(value, Mapping):
        raise invalid(place, f"this must be a table, not {type_name(value)}.", why="", fix="Write it as [anonymity].")
    if isinstance(value, Mapping):
        return {key: plain(each, f"{place}.{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each, place) for each in value]
    if isinstance(value, Decimal):
        number = exact_decimal(value, place)
        return int(number) if number.denominator == 1 else number
    return value.isoformat() if isinstance(value, date | time) else value


def read_unprotected(file: Path) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """Name, sources and [anonymity] of a policy file, of which nothing else needs to be there."""
    try:
        text = file.read_text("utf-8-sig")
    except OSError:
        raise SourceUnavailableError(
            f"The policy {file.name} cannot be read.",
            why="It is missing, or this user has no access to it.",
            fix="Correct the path.",
        ) from None
    except UnicodeDecodeError:
        raise invalid("", f"{file.name} is not text.", why="TOML is UTF-8.", fix="Save it as UTF-8.") from None
    return read_unprotected_text(text, file.absolute().parent)


def read_unprotected_text(text: str, folder: Path) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """The same from a text; relative paths are relative to ``folder``.

    What else stands in it is not looked at: whoever protects the table will be told.
    """
    try:
        tree = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, InvalidOperation, RecursionError) as error:
        raise PolicyInvalidError(
            "This is not TOML.",
            why=str(error)
            if isinstance(error, tomllib.TOMLDecodeError)
            else "A number is too long, or it is too deep.",
            fix="Correct the place; texts stand in quotes, sections in [brackets].",
        ) from None
    top = PolicySection({"table": tree.get("table")} if "table" in tree else {}, "", ("table",))
    given = top.need("table", "Write a section [table] with name and source.")
    table = PolicySection(given, "table", ("name", "source", "unit", "neighbors", "dataset"))
    name = table.string("name", fix="Name the table.")
    check_identifier(name, "table.name")
    source = paths_of(table.need("source", SOURCE_FIX), table.at("source"), folder)
    if "anonymity" not in tree:
        raise invalid(
            "anonymity",
            "this is missing.",
            why="It says which columns name people, which could give them away, and which are secret.",
            fix='Write a section [anonymity] with quasi = ["age", "zip"], identifiers and sensitive.',
        )
    return name, source, read_anonymity(tree["anonymity"], folder)


def files_of(section: Mapping[str, Any]) -> list[str]:
    """The hierarchy files that a section names, as they are written."""
    written = section.get("hierarchies")
    given = written.values() if isinstance(written, Mapping) else ()
    return [each for each in given if isinstance(each, str) and each != SUPPRESS]


def _twice(role: str, other: str) -> str:
    if {role, other} == {"quasi", "sensitive"}:
        return (
            "A quasi-identifier is generalised until it tells people apart no more, and a sensitive value is published "
            "as it is: it cannot be both."
        )
    return "An identifier is taken out of every row, so nothing else can be done with it."


def _known(name: str, quasi: list[str], seen: Mapping[str, str], what: str = "hierarchies") -> bool:
    """Refuses what nothing would be done with: a misspelled column would be published ungeneralised otherwise."""
    if name in quasi or (what == "hierarchies" and seen.get(name) == "sensitive"):
        return True
    from dalenius.tables.mistakes import nearest

    meant = nearest(name, quasi)
    raise invalid(
        f"anonymity.{what}.{name}",
        "this is no quasi-identifier.",
        why=f"Known: {', '.join(quasi) or 'none'}.",
        fix=f"Did you mean {meant!r}?" if meant else "Name it in quasi, or remove it here.",
    )


def _hierarchy(name: str, value: Any, folder: Path) -> Any:
    place = f"anonymity.hierarchies.{name}"
    if value == SUPPRESS:
        return SUPPRESS
    if isinstance(value, str) and value:
        return paths_of(value, place, folder)[0]
    if not isinstance(value, Mapping):
        raise invalid(
            place, f"this cannot be {type_name(value)}.", why="It says how to generalise.", fix=_HIERARCHY_FIX
        )
    section = PolicySection(value, place, _PREFIX if "prefix" in value else _WIDTH)
    if "prefix" not in section:
        section.need("width", _HIERARCHY_FIX)
    return plain(section.values, place)


def _weight(value: Any, place: str) -> Any:
    weight = None if isinstance(value, bool) or not isinstance(value, int | Decimal) else plain(value, place)
    if weight is None or weight < 0:
        raise invalid(
            place, "this must be a number from 0 up.", why="Losses are weighed by it.", fix="Write age = 2, say."
        )
    return weight
