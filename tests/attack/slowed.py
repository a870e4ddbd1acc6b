"""How much longer one person makes a question take."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dalenius.audit.fuzzing.arenas import Arena, Places, arena_tables
from dalenius.measuring.public import PublicTable
from dalenius.queries.rules import plan_question


def ratio_of(
    sql: str, places: Places, arena: Arena, rows: int, publics: Mapping[str, PublicTable] | None = None
) -> float:
    """Processor time with the victim, of that without.

    Two runs, of which the first opens what has to be opened, and a third where it could be above 2 as well as below.
    """
    sides, plan = places.pair(arena, rows), plan_question(sql, arena_tables(rows), None, publics or {})
    least = [math.inf, math.inf]
    for at in range(3):
        least = [min(before, side.spent(plan).cpu) for before, side in zip(least, sides, strict=True)]
        if at and not (0.3 < least[0] / least[1] < 0.7 or 1.4 < least[0] / least[1] < 3):
            break
    return least[0] / least[1]
