"""A policy from TOML. Every mistake is named with its place, its reason and what to do."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import Place, PolicyInvalidError, SourceUnavailableError
from dalenius.tables.columns import read_column
from dalenius.tables.mistakes import invalid
from dalenius.tables.policy import Column, Policy, PublicSpec
from dalenius.tables.protection import check_apart, read_analysts, read_budget, read_contribution, read_time, read_unit
from dalenius.tables.sections import (
    BLANK,
    NAME_FIX,
    SOURCE_FIX,
    PolicySection,
    blanks,
    check_identifier,
    check_printable,
    paths_of,
    type_name,
)
from dalenius.tables.values import exact_decimal

SECTIONS = ("table", "budget", "analysts", "columns", "contribution", "time", "anonymity", "public")
_PUBLIC_FIX = 'Write regions = "regions.csv", or nation = { source = "nation.parquet", key = "n_nationkey" }.'
_KEY_FIX = 'Write key = "code", or a list of columns that are unique together.'


def read_file(file: Path) -> Policy:
    """The policy in a file; relative paths in it are relative to the file."""
    try:
        content = file.read_bytes()
    except OSError:
        raise SourceUnavailableError(
            f"The policy {file.name} cannot be read.",
            why="It is missing, or this user has no access to it.",
            fix=f"Correct the path, or make one with 'dalenius policy draft SOURCE -o {file.name}'.",
        ) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise invalid("", f"{file.name} is not text.", why="TOML is UTF-8.", fix="Save it as UTF-8.") from None
    return read_text(text, file.absolute().parent)


def read_text(text: str, folder: Path | None = None) -> Policy:
    """The policy in a text; relative paths in it are relative to ``folder`` (the working directory by default)."""
    try:
        tree = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(str(error)) from None
    except (ValueError, InvalidOperation, RecursionError):
        raise _not_toml("a number is too long, or tables lie too deep") from None
    return read_tree(tree, folder or Path.cwd())


def read_tree(tree: Mapping[str, Any], folder: Path) -> Policy:
    """The policy in parsed TOML."""
    top = PolicySection(tree, "", SECTIONS)
    empty = blanks(tree)
    if empty:
        raise invalid(
            "",
            f"{len(empty)} place{'s are' if len(empty) > 1 else ' is'} still to be filled in: {', '.join(empty)}.",
            why=f"The draft marks with {BLANK!r} what only the owner knows; nothing is read from the data.",
            fix="Replace each by what can be true of anyone, not by what is true of this data.",
        )
    table = PolicySection(
        top.need("table", "Write a section [table] with name, source and unit."),
        "table",
        ("name", "source", "unit", "neighbors", "dataset"),
    )
    name = _identifier(table, "name", None)
    unit, path = read_unit(table, name)
    columns = _columns(top, folder)
    check_apart(unit, path, columns)
    budget = read_budget(top, columns)
    if budget is None and "dataset" not in table:
        raise invalid(
            "budget",
            "this is missing.",
            why="Only a table that joins a data set may leave it to another one.",
            fix="Write a section [budget] with epsilon and delta, or name the data set in table.dataset.",
        )
    return Policy(
        name=name,
        source=paths_of(table.need("source", SOURCE_FIX), table.at("source"), folder),
        unit=unit,
        path=path,
        neighbors=Neighbors(table.one_of("neighbors", tuple(each.value for each in Neighbors), "add-remove")),
        dataset=_identifier(table, "dataset", name),
        budget=budget,
        analysts=read_analysts(top, budget),
        columns=columns,
        contribution=read_contribution(top, columns),
        time=read_time(top),
        anonymity=_opaque(tree.get("anonymity", {}), "anonymity"),
        public=_public(top, name, folder),
        key_files=_key_files(top, folder),
    )


def _identifier(section: PolicySection, key: str, default: str | None) -> str:
    name = section.string(key, default, fix=NAME_FIX)
    check_identifier(name, section.at(key))
    return name


def _columns(top: PolicySection, folder: Path) -> dict[str, Column]:
    section = PolicySection(top.values.get("columns", {}), "columns", ())
    seen: dict[str, str] = {}
    for name in section.values:
        check_printable(name, "columns", "a column")
        if name.lower() in seen:
            raise invalid(
                section.at(name),
                f"{seen[name.lower()]!r} is there too.",
                why="SQL cannot tell them apart.",
                fix="Keep one.",
            )
        seen[name.lower()] = name
    return {name: read_column(name, values, folder) for name, values in section.values.items()}


def _public(top: PolicySection, table: str, folder: Path) -> dict[str, PublicSpec]:
    """The public tables of a policy about ``table``; relative paths are relative to ``folder``."""
    if "public" not in top:
        return {}
    section = PolicySection(top.values["public"], "public", ("tables",))
    tables = PolicySection(section.need("tables", f"Write tables = {{ … }}. {_PUBLIC_FIX}"), "public.tables", ())
    seen = {table.lower(): table}
    for name in tables.values:
        check_identifier(name, tables.at(name))
        if name.lower() in seen:
            raise invalid(
                tables.at(name),
                f"there is a table {seen[name.lower()]!r}.",
                why="SQL cannot tell them apart.",
                fix="Rename it.",
            )
        seen[name.lower()] = name
    return {name: _public_table(name, value, tables.at(name), folder) for name, value in tables.values.items()}


def _public_table(name: str, value: Any, place: str, folder: Path) -> PublicSpec:
    if not isinstance(value, Mapping):
        return PublicSpec(name, paths_of(value, place, folder))
    section = PolicySection(value, place, ("source", "key"))
    source = paths_of(section.need("source", _PUBLIC_FIX), section.at("source"), folder)
    key = section.column_names("key", why="It says what tells rows apart.", fix=_KEY_FIX) if "key" in section else ()
    return PublicSpec(name, source, key)


def _key_files(top: PolicySection, folder: Path) -> dict[str, str]:
    """The code lists that were read, by column."""
    columns = top.values.get("columns", {})
    given = {name: values.get("keys") for name, values in columns.items()}
    return {name: str((folder / keys["file"]).absolute()) for name, keys in given.items() if isinstance(keys, Mapping)}


def _opaque(value: Any, place: str) -> Any:
    """What another part will read: kept, as plain values."""
    if place == "anonymity" and not isinstance(value, Mapping):
        raise invalid(place, f"this must be a table, not {type_name(value)}.", why="", fix="Write it as [anonymity].")
    if isinstance(value, Mapping):
        return {key: _opaque(each, f"{place}.{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [_opaque(each, place) for each in value]
    if isinstance(value, Decimal):
        number = exact_decimal(value, place)
        return int(number) if number.denominator == 1 else number
    return value.isoformat() if isinstance(value, date | time) else value


def _not_toml(words: str) -> PolicyInvalidError:
    # tomllib ends its message with "(at line 3, column 5)"
    found = re.search(r"\(at line (\d+), column (\d+)\)", words)
    return PolicyInvalidError(
        "This is not TOML.",
        why=words,
        fix="Correct the place; texts stand in quotes, sections in [brackets].",
        at=Place(int(found[1]), int(found[2])) if found else None,
    )
