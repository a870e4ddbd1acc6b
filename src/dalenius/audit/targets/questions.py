"""Questions of attacks: a count, a sum or a mean of the people who meet some conditions.

They are kept as what they mean, so that a naive target can work them out with arrays, and are written as SQL for a
curator, which sees nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np

from dalenius.audit.targets.scene import Bits, Scene

COUNT, SUM = "COUNT(*)", "SUM(amount)"


@dataclass(frozen=True)
class People:
    """A condition on who is meant: these, or all but these."""

    places: tuple[int, ...]
    named: bool = True

    @cached_property
    def sql(self) -> str:
        """As an analyst writes it."""
        listed = ", ".join(map(str, self.places))
        if len(self.places) == 1:
            return f"person {'=' if self.named else '<>'} {listed}"
        return f"person {'IN' if self.named else 'NOT IN'} ({listed})"

    def mask(self, scene: Scene) -> Bits:
        """Who meets it."""
        found = np.full(scene.size, not self.named)
        found[list(self.places)] = self.named
        return found


@dataclass(frozen=True)
class Secret:
    """The condition that the secret is so."""

    value: bool = True

    @property
    def sql(self) -> str:
        """As an analyst writes it."""
        return "secret" if self.value else "NOT secret"

    def mask(self, scene: Scene) -> Bits:
        """Who meets it."""
        return scene.secret if self.value else ~scene.secret


Condition = People | Secret


class Trap(Enum):
    """What an expression does on the rows that it is aimed at."""

    FAIL = "fail"
    DAWDLE = "dawdle"


@dataclass(frozen=True)
class Aimed:
    """An expression that only rows with some property reach: the rest of the table is there to hide it.

    Attributes:
        when: The rows that it is aimed at.
        trap: What it does there, where nothing prevents it.
        sql: The expression.
    """

    when: tuple[Condition, ...]
    trap: Trap
    sql: str


@dataclass(frozen=True)
class Question:
    """One number about the people who meet all conditions."""

    conditions: tuple[Condition, ...] = ()
    measure: str = COUNT
    aimed: Aimed | None = None

    def sql(self, table: str) -> str:
        """As an analyst types it."""
        where = _all(self.conditions)
        measure = self.measure
        if self.aimed is not None:
            measure = f"SUM(CASE WHEN {_all(self.aimed.when)} THEN {self.aimed.sql} ELSE 1 END)"
        ending = f" WHERE {where}" if where else ""
        return f"SELECT {measure} AS answer FROM {table}{ending}"  # noqa: S608 (what the curator makes of it is the test)

    def reworded(self, place: int) -> Question:
        """The same about everybody but one, whose secret the attacker knows."""
        return replace(self, conditions=(People((place,), named=False), *self.conditions))

    def mask(self, scene: Scene) -> Bits:
        """Who is counted."""
        found = np.ones(scene.size, dtype=bool)
        for each in self.conditions:
            found &= each.mask(scene)
        return found

    def truth(self, scene: Scene) -> float:
        """The exact answer."""
        mask = self.mask(scene)
        return float(mask.sum() if self.measure == COUNT else scene.amount[mask].sum())


def _all(conditions: tuple[Condition, ...]) -> str:
    return " AND ".join(each.sql for each in conditions)


def half(scene: Scene) -> People:
    """The first half of the people, the victim among them: enough for any rule about the size of a group."""
    return People(tuple(range(scene.size // 2)))


def these(places: Bits) -> People:
    """A condition that only people of a mask meet."""
    return People(tuple(map(int, np.flatnonzero(places))))


def all_but(places: Bits) -> People:
    """A condition that everybody else meets."""
    return People(tuple(map(int, np.flatnonzero(places))), named=False)
