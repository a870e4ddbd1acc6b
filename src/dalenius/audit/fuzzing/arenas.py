"""Where questions compete: a victim, with or without an index, in tables of several sizes that are made when needed."""

from __future__ import annotations

import shutil
from collections import OrderedDict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.audit.fuzzing.meters import Side
from dalenius.audit.fuzzing.victims import NAME, VICTIMS, Victim, pair, tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from dalenius.measuring.plan import Table

_KEPT = 20_000_000  # rows of made tables that stay on disk


@dataclass(frozen=True, eq=False)
class Arena:
    """Neighbouring tables but for their size."""

    number: int
    victim: Victim
    indexed: bool

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.victim.name}{', with an index' if self.indexed else ''}"


ARENAS = tuple(
    Arena(at, victim, indexed)
    for at, (victim, indexed) in enumerate((victim, indexed) for indexed in (False, True) for victim in VICTIMS)
)


@cache
def tables_of(rows: int) -> Mapping[str, Table]:
    """The tables as questions see them."""
    return tables(rows)


class Places:
    """The pairs of tables that were made, the least recently used of which are dropped.

    Args:
        folder: Where they lie.
        seed: Decides what the dull rows hold.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed = folder, seed
        self._made: OrderedDict[tuple[Arena, int], tuple[Side, Side]] = OrderedDict()
        self._nothing: dict[Arena, Side] = {}

    def pair(self, arena: Arena, rows: int) -> tuple[Side, Side]:
        """The table with the victim, and its neighbour."""
        key = (arena, rows)
        if key not in self._made:
            both = pair(arena.victim, rows, self._seed)
            made = [self._side(arena, f"{rows}-{at}", rows, each) for at, each in enumerate(both)]
            self._made[key] = (made[0], made[1])
        self._made.move_to_end(key)
        while len(self._made) > 1 and sum(size for _, size in self._made) > _KEPT // 2:
            (old, size), sides = self._made.popitem(last=False)
            for at, side in enumerate(sides):
                side.close()
                shutil.rmtree(self._folder / f"{old.number}-{size}-{at}")
        return self._made[key]

    def nothing(self, arena: Arena, rows: int) -> Side:
        """Tables without rows: what a question takes there it takes anywhere."""
        if arena not in self._nothing:
            empty = {name: each.slice(0, 0) for name, each in pair(arena.victim, 400, self._seed)[0].items()}
            self._nothing[arena] = self._side(arena, "nothing", rows, empty)
        return self._nothing[arena]

    def _side(self, arena: Arena, name: str, rows: int, made: Mapping[str, pa.Table]) -> Side:
        indexed = {NAME: tables_of(rows)[NAME]} if arena.indexed else {}
        return Side(self._folder / f"{arena.number}-{name}", made, indexed)
