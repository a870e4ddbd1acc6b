"""A first policy for a source, from its schema alone: names and types of columns.

Only the types of a CSV's columns depend on rows: they are guessed from its first ones. Nothing else does: no extremes,
no counts, no keys. What only the owner can know is marked `FILL IN`, which `policy check` refuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dalenius.errors import InputError
from dalenius.tables.compatibility import base_type, kind_of_type
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import TIMES, Kind, literal, toml_key
from dalenius.tables.sections import BLANK

_PEOPLE = (
    "user|person|patient|customer|client|member|student|pupil|employee|worker|subject|participant|respondent|visitor|"
    "citizen|subscriber|tenant|passenger|driver|player|device|account|household|uid|ssn"
)
_UNIT = (
    re.compile(rf"({_PEOPLE})s?[_ ]?(id|no|nr|number|key|uuid|hash|code)", re.IGNORECASE),
    re.compile(rf"({_PEOPLE})s?", re.IGNORECASE),
    re.compile(r"(id|.*_id|.*id)", re.IGNORECASE),
)
_DATE_NAME = re.compile(r"(.*_)?(date|day|when|birthday|dob|born)(_.*)?", re.IGNORECASE)
_TIME_NAME = re.compile(r"(.*_)?(time|timestamp|at)", re.IGNORECASE)
_SMALL = re.compile(r".*(region|country|state|city|sex|gender|type|kind|category|class|status|code|group|level|plan)")

_HEAD = """\
# A policy {origin}
# Fill in what is marked {blank!r}, delete the columns nobody should ask about, then:
#   dalenius policy check {file}
#   dalenius protect {file}

[table]
name = {name}
source = {path}
# The unit is who is protected: a person, a device, a household, or a person on one day (a list of columns). Everything
# with the same unit counts as one. Choose the largest thing whose presence must not show.
unit = {unit}
{more}neighbors = "add-remove"           # or "substitute": then the number of units is public

[budget]
# ε caps what may ever be learned about one unit, over all questions of all analysts: whatever is believed about
# somebody before, the odds change by at most a factor of e^ε (ε = 0.1: 1.1, 1: 2.7, 3: 20). Others chose about:
#{epsilons}
epsilon = 1.0
delta = 1e-6                       # the chance that the promise fails; well below 1/(number of units)
accounting = "zcdp"                # or "pure", without delta
# selection = 0.5                  # the part of δ for finding keys that are not declared; fixed once it is protected
# share_answers = false            # who asks what another has asked is charged to the budget anew, and learns of nobody

[analysts.ana]                     # what each analyst may spend of it
epsilon = 0.5

# One section per column. A column that is not here cannot be asked about. Bounds are what a value can be, for anyone;
# values outside are moved to the nearest bound. Wide bounds cost accuracy, tight ones cost truth.
"""

WHOSE = f"{BLANK}: the column that says whose a row is"

# Stated by those who ran them; the units differ, so compare them with care.
EPSILONS = (
    ("US Census 2020, redistricting file", "19.6", "per person, once, for all tables"),
    ("Apple, keyboard, Safari, health usage", "2 to 16", "per device and day, on the device"),
    ("Google, community mobility reports", "2.6", "per person and day"),
    ("Microsoft, Windows app usage", "1.7", "per device and six hours, on the device"),
    ("Google, symptom search trends", "1.7", "per person and day"),
    ("Wikipedia, page views by country", "1", "per person and day"),
    ("LinkedIn, audience engagements", "35", "per member, for a month of one advertiser's questions"),
)

_TAIL = """\
# What one unit adds at most; the rest of heavier units is cut off, and noise grows with the limit. The limits are
# public: do not read them off the data. Without rows, 'dalenius protect' finds limits privately: once, for a part of
# the budget ('protect --dry-run' says how much), and public from then on. With fewer than some {few:,} units it cannot
# see much: then declare rows.
[contribution]
rows = "{blank}: rows of one unit that count, where you know what is usual; else delete this line"
# groups = 8                       # groups of an answer that one unit may be in; without it, all
# totals = {{ amount = 1000 }}       # the most that one unit's sum of a column counts for
"""
FEW = 2000  # units; below that, limits found privately are mostly noise


def draft_policy(
    source: str,
    schema: Sequence[tuple[str, str]],
    *,
    file: str = "policy.toml",
    unit: str | None = None,
    keys: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """The text of a policy.

    Args:
        source: As the owner typed it, relative to where the policy will be.
        schema: Names and DuckDB types.
        file: What the policy file will be called, for the hints in it.
        unit: The unit's column, if the owner named it.
        keys: Code lists: column → (file, column of the file).
    """
    names = [name for name, _ in schema]
    for asked in ([unit] if unit else []) + list(keys or {}):
        if asked not in names:
            meant = nearest(asked, names)
            raise InputError(
                f"The source has no column {asked!r}.",
                why="Names are compared letter by letter.",
                fix=f"Did you mean {meant!r}?" if meant else "Name one of its columns.",
            )
    guessed = unit or guess_unit(schema)
    head = opening(
        f"for {Path(source).name}, drafted from names and types of columns. (Of a CSV, the types are guessed from\n"
        "# its first rows; nothing else comes from a row.)",
        file=file,
        name=table_name(Path(source).name.split(".")[0]),
        source=source,
        unit=guessed or WHOSE,
    )
    columns = [_column(name, declared, (keys or {}).get(name), guessed) for name, declared in schema if name != guessed]
    return "\n".join([head, *columns, _TAIL.format(blank=BLANK, few=FEW)])


def opening(origin: str, *, file: str, name: str, source: str, unit: str | Sequence[str], more: str = "") -> str:
    """How every draft begins: table, budget and analysts; ``more`` are lines of [table] that follow the unit."""
    return _HEAD.format(
        origin=origin,
        blank=BLANK,
        file=file,
        name=literal(name),
        path=literal(source),
        unit=literal(unit),
        more=more,
        epsilons="\n#".join(f"   {who:<38} {epsilon:>7}   {whose}" for who, epsilon, whose in EPSILONS),
    )


def guess_unit(schema: Sequence[tuple[str, str]]) -> str | None:
    """The column that most looks like somebody's number."""
    plain = [
        name for name, declared in schema if kind_of_type(declared) in {Kind.INTEGER, Kind.TEXT, Kind.CATEGORY, None}
    ]
    for pattern in _UNIT:
        for name in plain:
            if pattern.fullmatch(name):
                return name
    return None


def guess_kind(name: str, declared: str) -> Kind | None:
    """A column's kind by its type; a text that is called a date is one."""
    kind = kind_of_type(declared)
    if kind is Kind.TEXT and _DATE_NAME.fullmatch(name):
        return Kind.DATE
    if kind is Kind.TEXT and _TIME_NAME.fullmatch(name):
        return Kind.DATETIME
    return Kind.CATEGORY if kind is Kind.TEXT and _SMALL.fullmatch(name.lower()) else kind


def _column(name: str, declared: str, keys: tuple[str, str] | None, unit: str | None) -> str:
    kind, section = guess_kind(name, declared), f"[columns.{toml_key(name)}]"
    if kind is Kind.TEXT and keys is not None:
        kind = Kind.CATEGORY
    if kind is None:
        return f"# {section}  {base_type(declared)} in the source: cannot be asked about\n"
    lines = [f"{section:<34} # {_hint(name, kind, unit)}", f'type = "{kind.value}"']
    if kind is Kind.DATETIME:
        lines.append('zone = "UTC"                       # where its times are local')
    if keys is not None:
        lines.append(f"keys = {{ file = {literal(keys[0])}, column = {literal(keys[1])} }}")
    elif kind in {Kind.INTEGER, Kind.NUMBER} or kind in TIMES:
        low, high = ("earliest", "latest") if kind in TIMES else ("lowest", "highest")
        lines.append(f'bounds = ["{BLANK}: {low}", "{BLANK}: {high}"]')
    elif kind is Kind.CATEGORY:
        lines.append('# keys = ["a", "b"]                 # all values there can be; without them, groups cost budget')
    if kind is Kind.NUMBER:
        lines.append("# step = 0.01                      # what it is rounded to; else (high − low)/2²⁰, roughly")
    return "\n".join(lines) + "\n"


def _hint(name: str, kind: Kind, unit: str | None) -> str:
    if any(pattern.fullmatch(name) for pattern in _UNIT):
        return "looks like an identifier: delete this section" if unit else "is this the unit?"
    return {
        Kind.INTEGER: "delete the bounds if it is a code: it can then be counted and filtered, not summed",
        Kind.NUMBER: "can be summed between its bounds",
        Kind.TEXT: "can be counted and filtered; delete it if it holds names or notes",
        Kind.CATEGORY: "groups",
        Kind.BOOLEAN: "true or false",
    }.get(kind, "time")


def table_name(given: str) -> str:
    """A name that a table can have."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", given).strip("_")[:57].lower()
    return name if name and not name[0].isdigit() else f"table_{name}".rstrip("_")
