"""A spare row on each side of a join, so that no side is ever empty.

DuckDB stops reading one side of a join as soon as it sees that the other holds no row at all. A condition that only one
person fulfils would decide that: `WHERE p.title = …` leaves nobody of people, or one, and all of visits is read, or
none. So each item of FROM that is joined gets one row more, which belongs to nobody, holds NULL in every column, and
passes every condition. The spare rows of all items meet each other and nothing else, and the one row that they make is
dropped once everything is joined (`without`), above a LIMIT that no condition moves below.
"""

from __future__ import annotations

from dalenius.measuring.engines.duckdb.rendering import identifier

# Columns of policies are printable: none has a name with this in it.
OURS = "\x1f"
HERE = f"LIMIT {2**63 - 1}"  # conditions from above are tried above it
_SPARE = identifier(f"{OURS}spare")
_NO_SPARE = identifier(f"{OURS}no spare")


def spare(alias: str) -> str:
    """Whether a row of an item is the spare one."""
    return f"{alias}.{_SPARE}"


def no_spare(alias: str) -> str:
    """FALSE in all rows but the spare one, and NULL there, so that it equals no `spare`: for NOT EXISTS."""
    return f"{alias}.{_NO_SPARE}"


def with_spare(rows: str) -> str:
    """Rows, and one more."""
    each = f"SELECT *, FALSE AS {_SPARE}, FALSE AS {_NO_SPARE} FROM ({rows})"  # noqa: S608
    return f"{each} UNION ALL BY NAME SELECT TRUE AS {_SPARE}"


def without(shown: list[str], joined: str, alias: str) -> str:
    """What is shown of the rows that were joined, less the spare one."""
    rows = f"SELECT {', '.join([*shown, f'{spare(alias)} AS {_SPARE}'])} FROM {joined} {HERE}"  # noqa: S608
    return f"SELECT * EXCLUDE ({_SPARE}) FROM ({rows}) WHERE NOT {_SPARE}"  # noqa: S608


def passing(condition: str, alias: str) -> str:
    """A condition that the spare row fulfils too."""
    return f"({spare(alias)} OR {condition})"


def equal(one: str, other: str) -> str:
    """What is NULL in both spare rows, and in no other row, or in none that `present` lets pass."""
    return f"({one} IS NOT DISTINCT FROM {other})"


def hidden(value: str, alias: str) -> str:
    """A value that is NULL in the spare row, whatever a function makes of NULL."""
    return f"CASE WHEN {spare(alias)} THEN NULL ELSE {value} END"
