"""What is found before a generator begins: the keys of a category that declares none, and classes that fit a column.

Guarantee:
    *Keys* of one column: `KeySelection` at (ρ, δ), which is δ-approximate ρ-zCDP; of several, one after another, the
    sums [1, Lemma 2.3 and §8]. What a unit weighs on is a function of its own rows and of the salt.
    *Classes* of one column: `find_classes`, whose counts all come through a `UnitMeasurer`: ρ-zCDP. Rows with an absent
    value are left out, so that what a unit adds is a part of its vector, and no longer than that.
    Both are spent from what the release was charged, and the generator has the rest.

References:
    [1] Bun & Steinke, Concentrated differential privacy (2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.measuring.domains import in_order
from dalenius.measuring.expressions import Column as Read
from dalenius.measuring.functions import TYPES
from dalenius.measuring.plan import Plan, Question, SelectionPlan
from dalenius.mechanisms.key_selection import KeySelection
from dalenius.synthesis.class_search import find_classes
from dalenius.synthesis.domain import Codes, Column, Domain
from dalenius.synthesis.grid import Positions
from dalenius.synthesis.measurer import Measured
from dalenius.synthesis.modelled import MOST_KEYS
from dalenius.synthesis.policy_domain import PolicyDomain
from dalenius.synthesis.position_classes import Classes
from dalenius.synthesis.rows import Limit, UnitMeasurer, Weights
from dalenius.synthesis.views import whole

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.plan import Table

EQUAL = 32  # classes, where too few rows are to be seen
USUAL_KEYS, FEWEST_KEYS, MOST_A_UNIT = 32, 16, 200  # of one column, on which a unit weighs
KEYS_PART, KEYS_PARTS = Fraction(1, 20), Fraction(3, 20)  # of ρ: for one column, and for all together at most
CLASSES_PART, CLASSES_PARTS = Fraction(1, 25), Fraction(1, 10)


@dataclass(frozen=True)
class Shares:
    """How a price is shared: what each column that is sought gets of ρ. Decided by the policy alone.

    Attributes:
        keys: For the keys of one column.
        classes: For the classes of one.
    """

    keys: Fraction
    classes: Fraction

    @classmethod
    def of(cls, domain: PolicyDomain) -> Shares:
        """The more columns are sought, the less each gets, once all have enough."""
        keys, classes = (len(places) for places in (key_places(domain), class_places(domain)))
        return cls(
            min(KEYS_PART, KEYS_PARTS / max(1, keys)),
            min(CLASSES_PART, CLASSES_PARTS / max(1, classes)),
        )


def key_places(domain: PolicyDomain) -> list[int]:
    """The columns whose keys are sought."""
    return [at for at, each in enumerate(domain.columns) if each.sought and each.grid is None]


def class_places(domain: PolicyDomain) -> list[int]:
    """The columns whose classes are sought."""
    return [at for at, each in enumerate(domain.columns) if each.sought and each.grid is not None]


# --- keys


def selection_of(table: Table, name: str, rho: Fraction, delta: float) -> KeySelection:
    """The mechanism that finds the keys of a column; as many keys of a unit count as questions would let count."""
    declared, found = table.policy.contribution.groups, table.found
    cap = declared or max(FEWEST_KEYS, (found.distinct.get(name) if found is not None else None) or USUAL_KEYS)
    return KeySelection(rho, delta, min(cap, MOST_A_UNIT), table.budget.neighbors)


def seek_keys(
    table: Table,
    domain: PolicyDomain,
    where: Expression,
    price: tuple[Fraction, float],
    engine: Engine,
    salt: str,
    seconds: float,
) -> PolicyDomain:
    """The domain with keys in the place of those that were sought. Inside of a look and nowhere else.

    ``price``: (ρ, δ) for each column.
    """
    columns = list(domain.columns)
    for at in key_places(domain):
        spec = table.policy.columns[columns[at].name]
        mechanism = selection_of(table, spec.name, *price)
        read = Read(spec.name, TYPES[spec.kind])
        units = table.policy.contribution.units or 0
        plan = Plan(
            Question(table, where, (read,), ()),
            where,
            (read,),
            cells=(),
            groups=mechanism.cap,
            statistics=(),
            answers={},
            norm="l2",
            selection=SelectionPlan(mechanism.cap, units),
        )
        cells, weights = engine.weights(plan, salt, seconds=seconds)
        passed = mechanism.release(weights, units=units, most=MOST_KEYS).value
        keys: list[Any] = [cell[0] for cell in in_order(cells[place] for place in passed)]
        if spec.default is not None and spec.default not in keys:
            keys.append(spec.default)  # it is declared
        columns[at] = columns[at].with_keys(tuple(keys))
    return PolicyDomain(tuple(columns))


# --- classes


def seek_classes(
    domain: PolicyDomain, codes: Codes, weights: Weights, limit: Limit, rho: Fraction, later: float
) -> tuple[PolicyDomain, Codes, Fraction]:
    """The domain with classes in the place of those that were sought, the codes of all rows, and the ρ that was spent.

    Args:
        domain: Whose keys are known.
        codes: Of all rows (columns × rows); positions where classes are sought.
        weights: What each row weighs.
        limit: What one unit adds.
        rho: For each column.
        later: The deviation of the noise with which the generator counts the values of one column.
    """
    columns, spent = list(domain.columns), Fraction(0)
    if not class_places(domain):
        return domain, codes, spent
    found = np.empty(codes.shape, np.min_scalar_type(max(domain.domain.sizes)))
    for at, column in enumerate(columns):
        if not column.sought or column.grid is None:
            found[at] = codes[at]
            continue
        door = Door(codes[at].astype(np.int64), weights, limit, rho)
        classes = find_classes(door.count, column.grid.size, column.grid.zero, rho, later)
        columns[at] = column.with_classes(classes or Classes.equal(column.grid.size, EQUAL))
        found[at] = columns[at].of_positions(codes[at])
        spent += door.spent
    return PolicyDomain(tuple(columns)), found, spent


class Door:
    """Counts of rows between positions of one column, through a `UnitMeasurer`.

    Args:
        positions: Of all rows; −1 where there is none.
        weights: What each row weighs.
        limit: What one unit adds.
        rho: What may be spent.
    """

    def __init__(self, positions: Positions, weights: Weights, limit: Limit, rho: Fraction) -> None:
        there = positions >= 0
        # Rows with one position weigh together: every count stays the same, and each is taken in no time.
        self._positions, place = np.unique(positions[there], return_inverse=True)
        self._weights = np.zeros(len(self._positions), np.int64)
        np.add.at(self._weights, place, weights[there])
        self._limit, self._rho, self.spent = limit, rho, Fraction(0)

    def count(self, edges: Sequence[int], rho: Fraction) -> Measured:
        """Noisy numbers of rows from each position to before the next; ``edges`` span all of them."""
        codes = np.searchsorted(np.array(edges[1:-1], np.int64), self._positions, side="right")
        domain = Domain((Column("positions", classes=len(edges) - 1),))
        left = self._rho - self.spent
        measurer = UnitMeasurer(domain, codes[None].astype(np.int32), self._weights, self._limit, left)
        self.spent += rho
        (measured,) = measurer.measure([(whole([0], domain.sizes), rho)])
        return measured
