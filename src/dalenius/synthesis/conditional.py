"""Rows of a model for which a condition holds, drawn as the model has them: P(row | condition), exactly.

A condition is a few alternatives (`tables.conditions`), of each of which all comparisons must hold. What an alternative
says of single columns is evidence: the model is conditioned on it (`conditioned`), and its mass is known. So rows are
drawn from the alternatives in proportion to their masses. A row that belongs to k of them is proposed k times as often
as it should be, hence kept with chance 1/k (Karp & Luby, 1983); and one for which two columns do not compare as they
must is drawn again. What is kept has the model's own distribution given the condition.

It is post-processing of a model: it costs nothing, and its refusals depend on the model alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.synthesis.allowed import ABSENT, fraction, places_of
from dalenius.synthesis.conditioned import conditioned, settled
from dalenius.synthesis.meaning import Drawn, Masks, Meaning, Sets
from dalenius.synthesis.rounding import systematic
from dalenius.tables.conditions import ALWAYS, Condition

if TYPE_CHECKING:
    from dalenius.synthesis.conditioned import Evidence
    from dalenius.synthesis.model import Model
    from dalenius.synthesis.policy_domain import PolicyDomain

LEAST = 1e-9  # of the mass: below that a condition holds for nothing that a model could know of
TRIES, FIRST_TRIES = 10, 2_000_000  # rows that are drawn for each that is wanted, at most; and besides
FEW = 100  # rows: where fewer are found in all tries, there are none
BATCH, BATCH_VALUES = 500_000, 4_000_000  # rows at a time, and values: whoever draws may ask a server to
SPARE = 4  # rows that are drawn for each that is taken, where rows weigh differently
PILOT = 50_000  # rows by which it is told how often a condition holds


@dataclass(frozen=True, eq=False)
class _Alternative:
    """What it allows of single columns, by their places; the model given that; and its mass."""

    allowed: Sets
    model: Model
    mass: float


@dataclass(frozen=True, eq=False)
class Conditional:
    """A model, and a condition without negations on its columns.

    Attributes:
        model: Of rows.
        domain: What its codes mean.
        condition: What holds for all rows that are drawn.
        counts: What each code of each column counts besides (`known_facts`), as evidence; none: all the same.
        factors: The same, by which rows that are drawn are weighed: as evidence it might leave few that are kept.
        follows: Of a column (by its place) the one that it follows from, and the code that goes with each of its
            codes; −1: none does.
    """

    model: Model
    domain: PolicyDomain
    condition: Condition = ALWAYS
    counts: Evidence = ()
    factors: Evidence = ()
    follows: Mapping[int, tuple[int, NDArray[np.int32]]] = field(default_factory=dict)

    @cached_property
    def meaning(self) -> Meaning:
        """What the condition says."""
        return Meaning(self.domain, self.condition)

    @cached_property
    def _alternatives(self) -> list[_Alternative]:
        """Those that can hold."""
        if not self.meaning.alternatives:
            raise InputError(
                "No row can be so.",
                why="What must hold contradicts itself, or the values that the policy declares.",
                fix="Correct the condition, or see 'dalenius tables' for the values of each column.",
            )
        model = settled(self.model)
        models = [(sets, *conditioned(model, self._evidence(sets))) for sets in self.meaning.alternatives]
        found = [_Alternative(sets, model, mass) for sets, model, mass in models if mass >= LEAST]
        if not found:
            raise _nothing()
        return found

    def _evidence(self, sets: Sets) -> Evidence:
        """What each code counts. What is said of a column that follows from another is said of that one."""
        columns = self.domain.columns
        found = list(self.counts) or [None] * len(columns)
        for at, among in sets.items():
            place, part = at, fraction(columns[at], among)
            if at in self.follows:
                place, goes = self.follows[at]
                part = np.where(goes >= 0, part[goes], 1.0)
            before = found[place]
            found[place] = part if before is None else before * part
        return found

    @cached_property
    def mass(self) -> float:
        """The chance of a row of the model to be so, times what its codes count; as far as rows must be tried, by some.

        What codes count is the same for two conditions, so that their masses compare.
        """
        rng = np.random.default_rng(1)
        some = self._proposed(PILOT, rng)
        kept = np.mean(self._kept(some, rng) * self._weights(some))
        return float(kept) * sum(each.mass for each in self._alternatives)

    def rows(self, wanted: int, rng: np.random.Generator) -> Drawn:
        """So many rows for which the condition holds."""
        if not self.factors or not wanted:
            return self._tried(wanted, rng)
        most = self._batch // SPARE
        sizes = [min(most, wanted - at) for at in range(0, wanted, most)]
        return Drawn.together([self._weighed(each, rng) for each in sizes])

    @property
    def _batch(self) -> int:
        """So many rows are tried at once."""
        return max(1_000, min(BATCH, BATCH_VALUES // len(self.domain.columns)))

    def _weighed(self, wanted: int, rng: np.random.Generator) -> Drawn:
        """Rows taken in proportion to what they weigh; one that is taken again gets other values of its classes."""
        spare = self._tried(SPARE * wanted, rng)
        often = systematic(self._weights(spare), wanted, rng)
        taken = np.repeat(np.arange(len(spare)), often)
        again = np.concatenate([[False], taken[1:] == taken[:-1]])
        found = self._again(spare.at(taken), again, rng)
        return found.at(rng.permutation(wanted))

    def _again(self, rows: Drawn, which: Masks, rng: np.random.Generator) -> Drawn:
        """Some of the rows with other values of their classes, where the condition holds for these too."""
        codes = rows.codes[which]
        other = Drawn(codes, places_of(self.domain.columns, codes, {}, rng))
        holds = self.meaning.holds(other)
        rows.places[np.flatnonzero(which)[holds]] = other.places[holds]
        return rows

    def _weights(self, rows: Drawn) -> NDArray[np.float64]:
        found = np.ones(len(rows))
        for at, each in enumerate(self.factors):
            if each is not None:
                found *= each[rows.codes[:, at]]
        return found

    def _tried(self, wanted: int, rng: np.random.Generator) -> Drawn:
        """So many rows for which the condition holds; where few of many are so, these stand more than once."""
        parts, tried, kept = list[Drawn](), 0, 0
        while kept < wanted or not parts:
            if tried >= FIRST_TRIES + TRIES * wanted:
                if kept < FEW:
                    raise _nothing(f"Of {tried:,} rows that were tried, {kept:,} were so.")
                found = Drawn.together(parts)
                taken = np.sort(rng.integers(0, kept, wanted))
                again = np.concatenate([[False], taken[1:] == taken[:-1]])
                return self._again(found.at(taken), again, rng).at(rng.permutation(wanted))
            lacking = wanted - kept
            # the first time no more than are wanted: where every row is kept, none is left over
            some = self._proposed(min(self._batch, lacking if not tried else _more(lacking, kept, tried)), rng)
            parts.append(some.at(self._kept(some, rng)))
            tried, kept = tried + len(some), kept + len(parts[-1])
        return Drawn.together(parts).at(slice(wanted))

    def _proposed(self, size: int, rng: np.random.Generator) -> Drawn:
        """Rows of all alternatives, in random order."""
        masses = np.array([each.mass for each in self._alternatives])
        parts = list[Drawn]()
        for each, number in zip(self._alternatives, systematic(masses, size, rng).tolist(), strict=True):
            codes = each.model.sample(number, rng) if number else np.zeros((0, len(self.domain.columns)), np.int32)
            among = {at: some for at, some in each.allowed.items() if at not in self.follows}
            parts.append(Drawn(codes, places_of(self.domain.columns, codes, among, rng)))
        found = Drawn.together(parts)
        self.follow(found)
        return found if len(parts) == 1 else found.at(rng.permutation(size))

    def _kept(self, rows: Drawn, rng: np.random.Generator) -> Masks:
        held = self.meaning.holds(rows)
        if len(self._alternatives) > 1:
            often = np.zeros(len(rows), np.int64)
            for each in self._alternatives:
                within = np.ones(len(rows), bool)
                for at, among in each.allowed.items():
                    within &= among.has(rows.places[:, at])
                often += within
            held &= rng.random(len(rows)) * np.maximum(often, 1) < 1
        return held

    def follow(self, rows: Drawn) -> None:
        """Gives columns that follow from another the value that goes with that one's."""
        for at, (of, goes) in self.follows.items():
            found = goes[rows.codes[:, of]]
            there = found >= 0
            absent = self.domain.columns[at].absent_code
            rows.codes[there, at] = found[there]
            rows.places[there, at] = np.where(found[there] == absent, ABSENT, found[there])


def _more(lacking: int, kept: int, tried: int) -> int:
    """About as many as it takes, by what was kept so far."""
    return math.ceil(lacking * tried / max(kept, 0.5) * 1.1) + 64


def _nothing(tried: str = "") -> InputError:
    return InputError(
        "The model has no such rows, or hardly any.",
        why=tried or "Fewer than one in a billion of the rows that it describes is so.",
        fix="Ask for less at once: wider ranges, or fewer columns. Nothing is charged for trying.",
    )
