"""The real table without one unit: the same files, read with a condition.

The unit is said by its place in an order that only the engine knows (by number of rows, or by a keyed hash), so that no
name of anybody comes into this process, a message or a traceback.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.engines.duckdb.opening import quoted
from dalenius.measuring.engines.duckdb.rendering import identifier
from dalenius.measuring.engines.duckdb.statements.source import there

if TYPE_CHECKING:
    from collections.abc import Callable

    from dalenius.measuring.engines.duckdb.connections import DuckDB
    from dalenius.measuring.plan import Table


@dataclass(frozen=True)
class Place:
    """A unit by its place: the ``at``-th in the order of rows, most first, or in a hashed one."""

    heavy: bool
    at: int


class WithoutUnit(Measuring):
    """The rows of a table without those of one unit, in the engine that reads all of them.

    Rows that belong to nobody stay. There is no contribution index: that is about all rows.
    """

    index = None
    fingerprint = None

    def __init__(self, whole: DuckDB, table: Table, place: Place, salt: str) -> None:
        self.columns: Mapping[str, str] = whole.columns
        self.run: Callable[..., list[tuple[Any, ...]]] = whole.run
        self.scan = without_sql(whole.scan, table.policy.unit, whole.columns, place, salt)


def without_sql(scan: str, unit: tuple[str, ...], types: Mapping[str, str], place: Place, salt: str) -> str:
    """The rows that are left, as an item of FROM."""
    names = [identifier(each) for each in unit]
    hashed = " || '|' || ".join([quoted(salt), *(f"coalesce(CAST(hash({name}) AS VARCHAR), '')" for name in names)])
    order = f"{'count(*) DESC, ' if place.heavy else ''}md5({hashed}), {', '.join(names)}"
    chosen = (
        f"SELECT {', '.join(names)} FROM {scan} WHERE {there(unit, types)} "  # noqa: S608
        f"GROUP BY {', '.join(names)} ORDER BY {order} LIMIT 1 OFFSET {place.at}"
    )
    same = " AND ".join(f"kept.{name} = gone.{name}" for name in names)
    return f"(SELECT * FROM {scan} AS kept WHERE NOT EXISTS (SELECT 1 FROM ({chosen}) AS gone WHERE {same}))"  # noqa: S608
