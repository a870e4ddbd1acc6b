"""A draft of a policy from SmartNoise's metadata: collection → schema → table → columns, in YAML.

Both say who is protected and between which bounds values lie, so most of it carries over. What has no counterpart
becomes a remark, and what SmartNoise does not ask for (a budget, analysts, times' bounds) is left to the owner as in
every draft. Nothing is read from the data.

YAML is read as names, lists and texts alone: no tags, no anchors, no duplicate names, no `no` that becomes false.
Numbers keep the decimals that stand in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from dalenius._extras import require_extra
from dalenius.errors import InputError, SourceUnavailableError
from dalenius.tables.compatibility import kind_of_type
from dalenius.tables.draft import WHOSE, opening, table_name
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import NUMERIC, TIMES, Kind, literal, toml_key
from dalenius.tables.sections import BLANK
from dalenius.tables.sources.homes import check_sources

LARGEST = 1_000_000  # bytes of a file
KINDS = {
    "int": Kind.INTEGER,
    "float": Kind.NUMBER,
    "string": Kind.CATEGORY,
    "boolean": Kind.BOOLEAN,
    "datetime": Kind.DATETIME,
}
# What a table says beside its columns, and what becomes of it.
SETTINGS = {
    "rows": "How many rows there are is not public here, and is not needed.",
    "rows_exact": "How many rows there are is not public here, and is not needed.",
    "row_privacy": "",
    "max_ids": "",
    "sample_max_ids": "Rows are never sampled: those of a heavy unit weigh less, so that together they keep the limit.",
    "censor_dims": "Groups are free where a column lists its keys; other keys are found privately, for a price.",
    "clamp_counts": "Counts are released as they are; GREATEST(COUNT(*), 0) in a question does the same, for free.",
    "clamp_columns": "Values are always brought within their bounds.",
    "use_dpsu": "Keys that are not listed are always found by weighted set union.",
}
ATTRIBUTES = {
    "name": "",
    "type": "",
    "private_id": "",
    "lower": "",
    "upper": "",
    "missing_value": "",
    "nullable": "values may always be missing; default says what they become",
    "cardinality": "list its keys instead",
    "sensitivity": "[contribution] totals limits what one unit adds to a sum",
}
_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?")
_QUOTED = re.compile(r'"(?P<a>.+)"|`(?P<b>.+)`|\[(?P<c>.+)\]')
_TRUE, _FALSE = frozenset({"true", "yes", "on", "y"}), frozenset({"false", "no", "off", "n"})


@dataclass(frozen=True)
class Metadata:
    """One table of a file: its path, what it says of itself and of each column, and the columns of its private id.

    ``shared``: other tables of the collection have the same private id.
    """

    collection: str
    schema: str
    table: str
    settings: Mapping[str, str]
    columns: Mapping[str, Mapping[str, str]]
    unit: tuple[str, ...]
    engine: str | None = None
    shared: bool = False

    @property
    def name(self) -> str:
        """As a question would name it."""
        return f"{self.schema}.{self.table}" if self.schema else self.table


def read_metadata(file: Path, table: str | None = None) -> Metadata:
    """The table of that name in a file of metadata, or the only one that it has."""
    check_sources([file])
    try:
        content = file.read_bytes()
    except OSError:
        raise SourceUnavailableError(
            f"The metadata {file.name} cannot be read.",
            why="It is missing, or this user has no access to it.",
            fix="Correct the path.",
        ) from None
    if len(content) > LARGEST:
        raise InputError(
            f"{file.name} is too large.", why=f"Metadata has at most {LARGEST:,} bytes.", fix="Cut it into parts."
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{file.name} is not text.", why="It must be UTF-8.", fix="Save it as UTF-8.") from None
    return _choose_table(_tables(_load_yaml(text, file.name)), table)


def draft_from_metadata(
    metadata: Metadata, source: str | None, schema: Sequence[tuple[str, str]] | None = None, *, file: str
) -> str:
    """The text of a policy.

    Args:
        metadata: What `read_metadata` found.
        source: Where the data is, as the policy will spell it; None leaves it to the owner.
        schema: Names and DuckDB types of the source, where it is known.
        file: What the policy file will be called, for the hints in it.
    """
    types = None if schema is None else {name.lower(): (name, declared) for name, declared in schema}
    more = f"dataset = {literal(table_name(metadata.collection or metadata.schema))}\n" if metadata.shared else ""
    head = opening(
        f"for {literal(metadata.name[:60])}, drafted from SmartNoise's metadata. Check the bounds: they are public,\n"
        "# and must not have been read off the data.",
        file=file,
        name=table_name(metadata.table),
        source=source or f"{BLANK}: Parquet or CSV, a path or a glob",
        unit=_unit(metadata, types),
        more=more,
    )
    if more:
        head += (
            "# Other tables of the collection have the same private id. They share one budget: leave [budget] and\n"
            "# [analysts] in one of their policies only.\n"
        )
    columns = [_column(name, each, types) for name, each in metadata.columns.items() if name not in metadata.unit]
    rows, said = metadata.settings.get("max_ids", "1"), "max_ids" in metadata.settings
    limit = rows if re.fullmatch(r"[1-9]\d{0,17}", rows) else literal(f"{BLANK}: max_ids was {rows[:20]!r}")
    tail = (
        "# What one unit adds at most; the rest of heavier units is cut off.\n[contribution]\n"
        f"rows = {limit:<27} # max_ids{'' if said else ', whose default is 1'}\n"
        f"groups = {limit:<25} # so many rows are in at most so many groups\n"
    )
    return "\n".join([head, *columns, tail, *_remarks(metadata)]).rstrip("\n") + "\n"


# --- the parts of a draft


def _unit(metadata: Metadata, types: Mapping[str, tuple[str, str]] | None) -> str | tuple[str, ...]:
    if metadata.unit:
        found = tuple(_spell(name, types) for name in metadata.unit)
        return found[0] if len(found) == 1 else found
    if _truth(metadata.settings.get("row_privacy", "false")):
        return f"{BLANK}: row_privacy took each row for one person; a column that differs in every row"
    return WHOSE


def _column(name: str, given: Mapping[str, str], types: Mapping[str, tuple[str, str]] | None) -> str:
    section, type_ = f"[columns.{toml_key(_spell(name, types))}]", str(given.get("type", ""))
    if types is not None and name.lower() not in types:
        return f"# {section}  is not in the source\n"
    kind = KINDS.get(type_)
    if kind is None:
        return f"# {section}  type {literal(type_[:40])}: cannot be asked about\n"
    if types is not None and kind is Kind.DATETIME and kind_of_type(types[name.lower()][1]) is Kind.DATE:
        kind = Kind.DATE
    lines = [section, f'type = "{kind.value}"', *_bounds(given, kind)]
    if kind is Kind.DATETIME:
        lines.append('zone = "UTC"                       # where its times are local')
    if kind is Kind.CATEGORY:
        lines.append('# keys = ["a", "b"]                 # all values there can be; without them, groups cost budget')
    if given.get("missing_value") not in (None, "", "null", "~"):
        lines.append(_default(str(given["missing_value"]), kind))
    for attribute, value in given.items():
        if attribute in ATTRIBUTES and not ATTRIBUTES[attribute]:
            continue
        why = ATTRIBUTES.get(attribute, "it is not known")
        lines.append(f"# {_show_setting(attribute, value)} ({why})")
    return "\n".join(lines) + "\n"


def _bounds(given: Mapping[str, str], kind: Kind) -> list[str]:
    ends = [str(given[each]) if each in given else None for each in ("lower", "upper")]
    if kind in TIMES:
        return [f'bounds = ["{BLANK}: earliest", "{BLANK}: latest"]']
    if kind not in NUMERIC:
        return []
    if ends == [None, None]:
        return ["# without bounds it can be counted and filtered, not summed"]
    words = ("lowest", "highest")
    shown = [_number(each, kind) or literal(f"{BLANK}: {word}") for each, word in zip(ends, words, strict=True)]
    return [f"bounds = [{shown[0]}, {shown[1]}]"]


def _number(text: str | None, kind: Kind) -> str | None:
    """A number as TOML writes it; of integers, SmartNoise keeps the whole part."""
    plain = (text or "").replace("_", "")
    if not _NUMBER.fullmatch(plain):
        return None
    value = Decimal(plain)
    if kind is Kind.INTEGER:
        return str(int(value)) if abs(value) < 2**63 else None
    if abs(value.adjusted()) > 40:
        return None
    shown = format(value, "f")
    return f"{shown}0" if shown.endswith(".") else shown


def _default(text: str, kind: Kind) -> str:
    if kind in NUMERIC:
        found = _number(text, kind)
    elif kind is Kind.BOOLEAN:
        found = literal(_truth(text)) if text.lower() in _TRUE | _FALSE else None
    else:
        found = literal(text)
    return f"default = {found or literal(f'{BLANK}: what a missing value becomes')}"


def _remarks(metadata: Metadata) -> Iterator[str]:
    said = {name: value for name, value in metadata.settings.items() if SETTINGS[name]}
    if said or metadata.engine:
        yield "# SmartNoise also said:"
    for name, value in said.items():
        # a number of rows would be read off the data
        shown = name if name.startswith("rows") else _show_setting(name, value)
        yield f"#   {shown}. {SETTINGS[name]}"
    if metadata.engine:
        yield f"#   {_show_setting('engine', metadata.engine)}. The source says where the data is."


def _show_setting(name: str, value: object) -> str:
    """A setting in a remark: quoted where it could end the line."""
    plain = re.compile(r"[\w .+-]{1,40}")
    parts = [each if plain.fullmatch(each) else literal(each[:40]) for each in (str(name), str(value))]
    return ": ".join(parts)


def _spell(name: str, types: Mapping[str, tuple[str, str]] | None) -> str:
    """A column as the source spells it; SmartNoise does not look at case."""
    return types[name.lower()][0] if types and name.lower() in types else name


# --- reading


def _load_yaml(text: str, file: str) -> Any:
    require_extra("smartnoise", "yaml")
    import yaml

    class Loader(yaml.BaseLoader):  # type: ignore[misc]  # PyYAML has no types
        """Names, lists and texts only: nothing is constructed, nothing stands for something else."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("It uses an alias (*name).")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [self.construct_object(each, deep=True) for each, _ in node.value]
            if not all(isinstance(each, str) for each in names) or len(set(names)) < len(names):
                raise yaml.YAMLError("A name is there twice, or is no text.")
            return super().construct_mapping(node, deep=deep)

    try:
        return yaml.load(text, Loader)  # noqa: S506 (a BaseLoader builds texts, lists and mappings, and nothing else)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"Line {mark.line + 1}, column {mark.column + 1}." if mark else f"{error}"
        why = where if mark or type(error) is yaml.YAMLError else "It is not YAML."
    except RecursionError:
        why = "It is nested too deeply."
    raise InputError(f"{file} cannot be read as YAML.", why=why, fix="Correct it.")


def _tables(tree: Any) -> list[Metadata]:
    top = _mapping(tree, "The file")
    engine = top.get("engine") if len(top) > 1 else None
    collections = {name: each for name, each in top.items() if engine is None or name != "engine"}
    if len(collections) != 1:
        raise _wrong("The file", f"it has {len(collections)} collections", "SmartNoise's files have one.")
    ((collection, schemas),) = collections.items()
    found = [
        _table(collection, schema, name, table, engine if isinstance(engine, str) else None)
        for schema, tables in _mapping(schemas, f"Collection {collection!r}").items()
        for name, table in _mapping(tables, f"Schema {schema!r}").items()
    ]
    if not found:
        raise _wrong("The file", "it has no tables", "Each schema holds some.")
    units = [{each.lower() for each in table.unit} for table in found]
    return [
        replace(each, shared=bool(each.unit) and units.count(unit) > 1) for each, unit in zip(found, units, strict=True)
    ]


def _table(collection: str, schema: str, table: str, given: Any, engine: str | None) -> Metadata:
    what = f"Table {f'{schema}.{table}'!r}"
    values = _mapping(given, what)
    columns = {_bare(name): each for name, each in values.items() if name not in SETTINGS}
    for name, each in columns.items():
        if not isinstance(each, Mapping):
            meant = nearest(name, SETTINGS)
            why = f"Did you mean {meant!r}?" if meant else "A column has a type, bounds and the like."
            raise _wrong(what, f"{name[:60]!r} is neither a setting nor a column", why)
        if any(not isinstance(value, str) for value in each.values()):
            raise _wrong(f"Column {name[:60]!r}", "it holds a list or a section", "It holds single values.")
    settings = {name: values[name] for name in SETTINGS if name in values}
    if any(not isinstance(value, str) for value in settings.values()):
        raise _wrong(what, "a setting is a list or a section", "It is one value.")
    unit = tuple(name for name, each in columns.items() if _truth(each.get("private_id", "false")))
    return Metadata(collection, _bare(schema), _bare(table), settings, columns, unit, engine)


def _choose_table(tables: Sequence[Metadata], asked: str | None) -> Metadata:
    names = [each.name for each in tables]
    if asked is None and len(tables) == 1:
        return tables[0]
    shown = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
    if asked is None:
        raise InputError(
            f"The metadata has {len(tables)} tables.", why="A policy is for one.", fix=f"Give --table: {shown}."
        )
    found = [each for each in tables if asked.lower() in {each.name.lower(), each.table.lower()}]
    if len(found) != 1:
        meant = nearest(asked, [*names, *(each.table for each in tables)])
        raise InputError(
            f"There {'are several tables' if found else 'is no table'} {asked!r} in the metadata.",
            why=f"It has: {shown}.",
            fix=f"Did you mean {meant!r}?" if meant else "Name one of them.",
        )
    return found[0]


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(what, "it has no names in it", "The levels are collection, schema, table, column.")
    return value


def _bare(name: str) -> str:
    """A name without the quotes that SQL would need around it."""
    found = _QUOTED.fullmatch(name)
    return next(each for each in found.groups() if each is not None) if found else name


def _truth(text: object) -> bool:
    return str(text).lower() in _TRUE


def _wrong(what: str, problem: str, why: str) -> InputError:
    return InputError(f"{what[:120]} is not SmartNoise metadata: {problem}.", why=why, fix="Correct the file.")
