"""The form's answers as a policy in TOML.

What was typed is written as a value, never as code: a text that is no number stays a text in quotes, and `read_text`
says what is wrong with it and where. Comments hold nothing that was typed, nor any name of the data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dalenius.tables.draft import WHOSE, guess_kind, guess_unit, table_name
from dalenius.tables.policy import BOUNDED, KEYED, TIMES, Kind, literal, toml_key
from dalenius.tables.sections import BLANK

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_HEAD = """\
# Drafted from names and types of columns. (Of a CSV, the types are guessed from its first rows; nothing else comes
# from a row.)

[table]
name = {name}
source = {source}                # below the server's data folder
# The unit is who is protected: everything with the same unit counts as one.
unit = {unit}
"""
_BUDGET = """
[budget]
# ε caps what may ever be learned about one unit, over all questions of all analysts.
epsilon = {epsilon}
"""
_COLUMNS = """
# One section per column. A column that is not here cannot be asked about. Bounds are what a value can be, for anyone;
# values outside are moved to the nearest bound.
"""
_LIMITS = """
# What one unit adds at most; the rest of heavier units is cut off. The limits are public: do not read them off the
# data. What is not declared here is found privately when the table is protected, for a part of the budget.
"""


@dataclass
class ColumnForm:
    """What the form says of one column; all texts as they were typed."""

    name: str
    declared: str  # the type in the source
    include: bool
    kind: Kind | None  # None: cannot be asked about
    low: str = ""
    high: str = ""
    keys: str = ""
    default: str = ""


@dataclass
class PolicyForm:
    """What the form says."""

    source: str
    name: str
    unit: str
    columns: list[ColumnForm]
    dataset: str = ""  # of another table, whose budget it joins
    epsilon: str = "1.0"
    delta: str = "1e-6"
    rows: str = ""
    groups: str = ""
    analysts: list[tuple[str, str]] = field(default_factory=list)


def first_form(source: str, schema: Sequence[tuple[str, str]]) -> PolicyForm:
    """How the form begins: guessed from names and types alone. Identifiers and free texts are left out."""
    unit = guess_unit(schema)
    columns = []
    for name, declared in schema:
        kind = guess_kind(name, declared)
        lone = guess_unit([(name, declared)]) is not None
        columns.append(ColumnForm(name, declared, kind not in {None, Kind.TEXT} and name != unit and not lone, kind))
    return PolicyForm(source, table_name(Path(source).name.split(".")[0]), unit or "", columns)


def text(form: PolicyForm) -> str:
    """The policy; what the owner still has to say is marked, and refused by every check.

    >>> print(text(PolicyForm("a.csv", "a", "id", [ColumnForm("age", "BIGINT", True, Kind.INTEGER, "0", "old")])))
    # Drafted ...
    [columns.age]
    type = "integer"
    bounds = [0, "old"]
    ...
    """
    parts = [_HEAD.format(name=literal(form.name), source=literal(form.source), unit=literal(form.unit or WHOSE))]
    if form.dataset:
        parts.append(f"dataset = {literal(form.dataset)}             # on the budget of this data set\n")
    else:
        pure = form.delta.strip() in {"", "0"}
        epsilon = _number(form.epsilon) if form.epsilon.strip() else literal(f"{BLANK}: such as 1.0")
        parts.append(_BUDGET.format(epsilon=epsilon))
        parts.append(
            'accounting = "pure"\n'
            if pure
            else f"delta = {_number(form.delta)}                       # what may be lost on top\n"
        )
    for name, epsilon in form.analysts:
        if name.strip():
            said = _number(epsilon) if epsilon.strip() else literal(f"{BLANK}: what the analyst may spend")
            parts.append(f"\n[analysts.{toml_key(name.strip())}]\nepsilon = {said}\n")
    parts.append(_COLUMNS)
    parts += [
        _column(each, each.kind) for each in form.columns if each.include and each.kind and each.name != form.unit
    ]
    parts.append(_LIMITS)
    limits = [f"{name} = {_number(value)}\n" for name, value in (("rows", form.rows), ("groups", form.groups)) if value]
    parts += ["[contribution]\n", *limits] if limits else []
    return "".join(parts)


def _column(column: ColumnForm, kind: Kind) -> str:
    lines = [f"[columns.{toml_key(column.name)}]", f'type = "{kind.value}"']
    if kind is Kind.DATETIME:
        lines.append('zone = "UTC"                       # where its times are local')
    low, high = column.low.strip(), column.high.strip()
    if kind in BOUNDED and (low or high):
        ends = (("earliest", low), ("latest", high)) if kind in TIMES else (("lowest", low), ("highest", high))
        said = [_value(kind, each) if each else literal(f"{BLANK}: {what}") for what, each in ends]
        lines.append(f"bounds = [{', '.join(said)}]")
    keys = [each.strip() for each in column.keys.split(",") if each.strip()]
    if kind in KEYED and keys:
        lines.append(f"keys = [{', '.join(_value(kind, each) for each in keys)}]")
    if column.default.strip():
        lines.append(f"default = {_value(kind, column.default.strip())}")
    return "\n".join(lines) + "\n\n"


def _value(kind: Kind, said: str) -> str:
    if kind in {Kind.INTEGER, Kind.NUMBER}:
        return _number(said)
    return said.lower() if kind is Kind.BOOLEAN and said.lower() in {"true", "false"} else literal(said)


def _number(said: str) -> str:
    said = said.strip()
    return said if _NUMBER.fullmatch(said) else literal(said)
