"""Rows drawn from a stored model: with what is known of all of them, for a condition, and dealt to made-up units.

Which rows a condition leaves is the model's to say (`conditional`). Whose they are is told as for all rows: they are
dealt to units. A unit of n rows has as many of these as such units have in a table that is drawn without the condition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.synthesis.allowed import drawn_places, places_of
from dalenius.synthesis.conditional import Conditional
from dalenius.synthesis.known_facts import Kept, kept
from dalenius.synthesis.meaning import Drawn, Meaning
from dalenius.synthesis.rounding import systematic
from dalenius.tables.condition_reading import read_condition
from dalenius.tables.conditions import ALWAYS, Condition, Every, columns_of, holding
from dalenius.tables.policy import Facts

if TYPE_CHECKING:
    from dalenius.synthesis.stored import StoredModel
    from dalenius.synthesis.units import MadeUpUnits

TRIAL = 100_000  # rows without the condition, by which units are told how many of their rows are so
FEW = 50  # units: fewer tell nothing
SPARE = 2  # rows that are drawn for each that is wanted, where totals are to be met

Units = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Drawing:
    """A model, what is known, and what is wanted of its rows.

    Attributes:
        stored: The model.
        facts: What everybody knows of all rows; None: nothing.
        where: A condition for the rows that are wanted; None: all are.
    """

    stored: StoredModel
    facts: Facts | None = None
    where: str | None = None

    @cached_property
    def condition(self) -> Condition:
        """What is wanted."""
        if self.where is None:
            return ALWAYS
        kinds = {each.name: each.kind for each in self.stored.domain.columns}
        return holding(read_condition(self.where, kinds))

    @cached_property
    def _kept(self) -> Kept:
        return kept(self.stored, self.facts or Facts())

    @cached_property
    def _given(self) -> Conditional:
        """What rows are drawn from."""
        all_rows = self._kept.conditional
        if self.where is None:
            return all_rows
        return replace(all_rows, condition=Every((all_rows.condition, self.condition)))

    @cached_property
    def chance(self) -> float:
        """The part of the rows for which the condition holds, by the model."""
        return 1.0 if self.where is None else min(1.0, self._given.mass / self._kept.conditional.mass)

    @cached_property
    def expected(self) -> int:
        """How many rows of the table are so, by the model and by what is known."""
        known = self._kept.rows
        return round((self.stored.rows if known is None else known) * self.chance)

    def rows(self, wanted: int | None, rng: np.random.Generator) -> tuple[Drawn, Units]:
        """So many rows, or as many as there are, and the number of the unit of each."""
        from dalenius.synthesis.stored import check_rows

        wanted = self._usual if wanted is None else wanted
        check_rows(wanted)
        drawn = self._drawn(wanted, rng)
        units = self.stored.units
        if units is None or not wanted:
            return drawn, np.arange(1, wanted + 1)
        return self._dealt(drawn, units, rng)

    @property
    def _usual(self) -> int:
        if self.where is not None and not self.expected:
            raise InputError(
                "No row of a table of this size is expected to be so.",
                why=f"It is of {self.chance:.2g} of the rows that the model describes.",
                fix="Say how many rows there are to be (--rows), or ask for less at once.",
            )
        return self.expected

    def _drawn(self, wanted: int, rng: np.random.Generator) -> Drawn:
        if not self.facts and self.where is None:
            return self._plain(wanted, rng)
        if self._kept.totals and self.where is None:
            return self._settled(wanted, rng)
        return self._given.rows(wanted, rng)

    def _plain(self, wanted: int, rng: np.random.Generator) -> Drawn:
        columns = self.stored.domain.columns
        codes = self.stored.model.sample(wanted, rng) if wanted else np.zeros((0, len(columns)), np.int32)
        return Drawn(codes, places_of(columns, codes, {}, rng))

    def _settled(self, wanted: int, rng: np.random.Generator) -> Drawn:
        """More rows than are wanted, of which those are taken that meet the totals: of one column, to a row.

        Rows that count as much as their totals want are taken by systematic sampling, in the order of that column.
        """
        spare = self._completed(self._given.rows(SPARE * wanted, rng), rng)
        weights = np.ones(len(spare))
        totals = self._kept.totals
        first = min(totals, key=lambda at: len(totals[at]))
        for at in (*totals, *totals, *totals, first):
            has = np.bincount(spare.codes[:, at], weights, minlength=len(totals[at]))
            share = totals[at] * (wanted / float(totals[at].sum()))
            weights *= np.divide(share, has, out=np.zeros(len(share)), where=has > 0)[spare.codes[:, at]]
        order = rng.permutation(len(spare))
        order = order[np.argsort(spare.codes[order, first], kind="stable")]
        taken = np.repeat(order, systematic(weights[order], wanted, rng)) if wanted else order[:0]
        return spare.at(rng.permutation(taken))

    def _completed(self, rows: Drawn, rng: np.random.Generator) -> Drawn:
        """With values that are known to be there and that noise left no row: some rows get them, where rules allow."""
        for at, numbers in self._kept.totals.items():
            has = np.bincount(rows.codes[:, at], minlength=len(numbers))
            for code in np.flatnonzero((numbers > 0) & (has == 0)):
                which = rng.permutation(len(rows))[: math.ceil(len(rows) * numbers[code] / numbers.sum())]
                some = rows.at(which)
                some.codes[:, at] = some.places[:, at] = code
                self._given.follow(some)
                holds = self._given.meaning.holds(some)
                rows.codes[which[holds]], rows.places[which[holds]] = some.codes[holds], some.places[holds]
        return rows

    # --- whose rows they are

    def _dealt(self, drawn: Drawn, units: MadeUpUnits, rng: np.random.Generator) -> tuple[Drawn, Units]:
        """Rows in the order of units. One that no longer is as it must be stands as its unit's first row does."""
        dealt = units.dealt(drawn.codes, self._sizes(units, len(drawn), rng), rng)
        found = Drawn(dealt.of(drawn.codes), dealt.of(drawn.places))
        for at in dealt.always:
            if not (units.fixed and units.fixed[at]):  # alike, and yet each of its own value
                found.places[:, at] = drawn_places(self.stored.domain.columns[at], found.codes[:, at], None, rng)
        if self.facts or self.where is not None:
            self._given.follow(found)
            broken = ~self._given.meaning.holds(found)
            found.codes[broken] = drawn.codes[dealt.heads[broken]]
            found.places[broken] = drawn.places[dealt.heads[broken]]
        return found, dealt.numbers

    def _sizes(self, units: MadeUpUnits, wanted: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """How many of these rows each unit has."""
        held = [self.stored.domain.place(name) for name in columns_of(self.condition)]
        if all(
            units.alike[at] == 1.0 and units.fixed and units.fixed[at] for at in held
        ):  # a unit is so with all of its rows, or with none
            return units.sizes_of(wanted, rng)
        size = max(1, min(TRIAL, self.stored.rows))
        every, numbers = Drawing(self.stored, self.facts).rows(size, rng)
        counts = np.bincount(numbers[Meaning(self.stored.domain, self.condition).holds(every)])
        counts = counts[counts > 0]
        if len(counts) < FEW:
            return np.ones(wanted, np.int64)
        some = rng.choice(counts, math.ceil(1.2 * wanted / counts.mean()) + 100)
        while some.sum() < wanted:
            some = np.concatenate([some, some])
        sizes = np.diff(np.minimum(np.cumsum(some), wanted), prepend=0)
        found: NDArray[np.int64] = sizes[sizes > 0]
        return found
