"""Whose a row is: columns of the table itself, or a path of keys through other tables of the data set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dalenius.tables.mistakes import invalid
from dalenius.tables.policy import Hop
from dalenius.tables.sections import Section

_FIX = 'Write unit = "user_id", a list of columns that name one unit together, or { path = "…" }.'
_PATH = 'Write { path = "l_orderkey -> orders.o_orderkey -> orders.o_custkey" }.'
_STEP = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,62})\.(.+)")


def read_unit(table: Section, name: str) -> tuple[tuple[str, ...], tuple[Hop, ...]]:
    """The unit's columns, and the path to them where they are another table's."""
    value = table.need("unit", _FIX)
    if isinstance(value, Mapping):
        return _path(Section(value, table.at("unit"), ("path",)), name)
    given = value if isinstance(value, list) else [value]
    if not given or not all(isinstance(each, str) and each for each in given):
        raise invalid(
            table.at("unit"), "this must be a column or a list of columns.", why="It says who is protected.", fix=_FIX
        )
    if len(set(given)) < len(given):
        raise invalid(table.at("unit"), "a column is there twice.", why="Once is enough.", fix="Remove one.")
    return tuple(given), ()


def _path(section: Section, name: str) -> tuple[tuple[str, ...], tuple[Hop, ...]]:
    """``a -> t.k -> t.b -> …``: from a column to the key of the next table, and on from one of its columns."""
    steps = [each.strip() for each in section.string("path", fix=_PATH).split("->")]
    place, why = section.at("path"), "A path goes from a column to the unique key of a table, and on from its column."
    if len(steps) < 3 or len(steps) % 2 == 0 or not steps[0]:
        raise invalid(place, "this is no path.", why=why, fix=_PATH)
    column, hops, seen = steps[0], [], {name.lower()}
    for at in range(1, len(steps), 2):
        key, onward = (_STEP.fullmatch(each) for each in steps[at : at + 2])
        if key is None or onward is None or key[1] != onward[1]:
            raise invalid(place, f"{steps[at]!r} and {steps[at + 1]!r} do not belong together.", why=why, fix=_PATH)
        if key[1].lower() in seen:
            raise invalid(place, f"it comes to table {key[1]!r} again.", why="Then it would not end.", fix=_PATH)
        seen.add(key[1].lower())
        hops.append(Hop(column, key[1], key[2]))
        column = onward[2]
    return (column,), tuple(hops)


def check_apart(unit: tuple[str, ...], path: tuple[Hop, ...], columns: Iterable[str]) -> None:
    """Refuses a column of the table itself that is called as the unit at the end of its path: one name, two values."""
    named = {each.lower() for each in unit} if path else set()
    for name in columns:
        if name.lower() in named:
            raise invalid(
                f"columns.{name}",
                "its path ends in a column of the same name.",
                why="One name would mean whose a row is and what it holds.",
                fix="Rename the column in the source, or leave it out of the policy.",
            )


def path_text(hops: tuple[Hop, ...], unit: tuple[str, ...]) -> str:
    """A path as it is written.

    >>> path_text((Hop("l_orderkey", "orders", "o_orderkey"),), ("o_custkey",))
    'l_orderkey -> orders.o_orderkey -> orders.o_custkey'
    """
    onward = [*(hop.column for hop in hops[1:]), unit[0]]
    return " -> ".join(
        [hops[0].column, *(f"{h.table}.{h.key} -> {h.table}.{o}" for h, o in zip(hops, onward, strict=True))]
    )
