"""What a condition means for rows of a model: for which it holds, and what it says of single columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.allowed import ABSENT, Allowed, Places, allowed, joined
from dalenius.tables.conditions import ALWAYS, Columns, Condition, Either, Every, Negated, atoms_of, compared

if TYPE_CHECKING:
    from dalenius.synthesis.domain import Codes
    from dalenius.synthesis.policy_domain import PolicyDomain
    from dalenius.tables.conditions import Atom

MOST_ALTERNATIVES = 64
Masks: TypeAlias = "NDArray[np.bool_]"
Sets: TypeAlias = "Mapping[int, Allowed]"  # of some columns, by their places: what is allowed


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows that were drawn: their codes, and where in its class each value lies (rows × columns)."""

    codes: Codes
    places: Places

    def __len__(self) -> int:
        return len(self.codes)

    def at(self, rows: NDArray[np.intp] | NDArray[np.int64] | Masks | slice) -> Drawn:
        """Some of them."""
        return Drawn(self.codes[rows], self.places[rows])

    @staticmethod
    def together(parts: Sequence[Drawn]) -> Drawn:
        """All of several."""
        return Drawn(np.concatenate([each.codes for each in parts]), np.concatenate([each.places for each in parts]))


@dataclass(frozen=True, eq=False)
class Meaning:
    """A condition without negations, on the columns of a model.

    Attributes:
        domain: The columns.
        condition: What must hold.
    """

    domain: PolicyDomain
    condition: Condition = ALWAYS

    @cached_property
    def _allowed(self) -> dict[Atom, tuple[int, Allowed]]:
        """Of each comparison with constants, the column's place and the values it allows."""
        found: dict[Atom, tuple[int, Allowed]] = {}
        for atom in atoms_of(self.condition):
            if not isinstance(atom, Columns):
                at = self.domain.place(atom.column)
                found[atom] = at, allowed(self.domain.columns[at], atom)
        return found

    # --- of single columns

    @cached_property
    def alternatives(self) -> list[Sets]:
        """What it says of single columns; one of these holds for every row that is so. None: no row can be.

        What it says of two columns together is not there, and nothing is where alternatives would be too many.
        """
        return self._sets(self.condition)

    def _sets(self, condition: Condition) -> list[Sets]:
        match condition:
            case Columns():
                return [{}]
            case Either(parts):
                return _any_of([each for part in parts for each in self._sets(part)])
            case Every(parts):
                found: list[Sets] = [{}]
                for part in parts:
                    both = [_both(one, other) for one in found for other in self._sets(part)]
                    if len(both) <= MOST_ALTERNATIVES:
                        found = [each for each in both if not any(among.empty for among in each.values())]
                return found
            case Negated():
                raise RuntimeError("Negations come out first.")
            case _:
                at, among = self._allowed[condition]
                return [] if among.empty else [{at: among}]

    # --- of rows

    def holds(self, rows: Drawn) -> Masks:
        """For which rows it holds."""
        return self._holds(self.condition, rows)

    def _holds(self, condition: Condition, rows: Drawn) -> Masks:
        match condition:
            case Every(parts):
                held = np.ones(len(rows), bool)
                for each in parts:
                    held &= self._holds(each, rows)
                return held
            case Either(parts):
                held = np.zeros(len(rows), bool)
                for each in parts:
                    held |= self._holds(each, rows)
                return held
            case Columns(first, op, second):
                places = [self.domain.place(name) for name in (first, second)]
                one, other = (self._comparable(at, rows.places[:, at]) for at in places)
                held = np.asarray(compared(one, op, other), bool)
                for at in places:
                    held &= rows.places[:, at] != ABSENT
                return held
            case Negated():
                raise RuntimeError("Negations come out first.")
            case _:
                at, among = self._allowed[condition]
                return among.has(rows.places[:, at])

    def _comparable(self, at: int, places: Places) -> NDArray[np.generic]:
        """Values that can be compared with another column's; of absent ones, any."""
        column, places = self.domain.columns[at], np.maximum(places, 0)
        if column.grid is not None:
            return column.grid.values(places, np.random.default_rng(1))
        return np.array(column.shown_keys)[places]


def _both(one: Sets, other: Sets) -> Sets:
    """What both say."""
    return {**one, **{at: one[at].within(among) if at in one else among for at, among in other.items()}}


def _any_of(every: list[Sets]) -> list[Sets]:
    """Alternatives; those that speak of one column alone, and of the same, are one."""
    if not all(every):
        return [{}]
    alone = dict[int, list[Allowed]]()
    for each in every:
        if len(each) == 1:
            ((at, among),) = each.items()
            alone.setdefault(at, []).append(among)
    found: list[Sets] = [{at: joined(parts)} for at, parts in alone.items()]
    found += [each for each in every if len(each) > 1]
    return found if len(found) <= MOST_ALTERNATIVES else [{}]
