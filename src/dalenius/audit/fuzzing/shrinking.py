"""A smaller pair of tables that shows the same violation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dalenius.audit.fuzzing.tables import Pair


def shrunk(pair: Pair, still: Callable[[Pair], bool], tries: int = 200) -> Pair:
    """The pair with as few rows and columns of the policy as ``tries`` looks allow, while ``still`` holds."""
    left = tries

    def holds(candidate: Pair) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and still(candidate)

    for part in ("others", "instead", "victim"):
        pair = _fewer_rows(pair, part, holds)
    for column in list(pair.shape.policy.columns):
        smaller = pair.with_(shape=pair.shape.without(column))
        if holds(smaller):
            pair = smaller
    return pair


def _fewer_rows(pair: Pair, part: str, holds: Callable[[Pair], bool]) -> Pair:
    """Takes out halves, then quarters, and so on down to single rows."""
    rows: tuple[Any, ...] = getattr(pair, part)
    size = len(rows)
    while size:
        at = 0
        while at < len(rows):
            smaller = pair.with_(**{part: rows[:at] + rows[at + size :]})
            if holds(smaller):
                pair, rows = smaller, getattr(smaller, part)
            else:
                at += size
        size //= 2
    return pair
