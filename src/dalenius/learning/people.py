"""How many units there are, as far as it is public: for room, for divisors, and for how much noise a sum can bear.

Where `protect` searched for limits it has released a noisy count, which is free to use. Where it did not (the owner
declared `rows`), or where the data changed since, units are counted with noise in the same look, for `COUNT` of its
price: one number to which a unit adds 1, so 1/2σ²-zCDP, or Δ/b-DP with Laplace noise of scale b.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.accounting.guarantees import ZCDP
from dalenius.accounting.neighbors import Neighbors
from dalenius.learning.rules import Population
from dalenius.measuring.limits.at_protect import units_deviation
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian, widened
from dalenius.mechanisms.laplace import Laplace

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Budget
    from dalenius.measuring.plan import Table

COUNT = Fraction(1, 50)  # of the price
MOST_COUNTED = 2**24  # units, where no count was released: for more there is no room


def released(table: Table, rows: int, held_out: float) -> Population | None:
    """As `protect` has counted them; None: no count was released that bounds what is there now."""
    found = table.found
    if found is None or found.carried or "rows" not in found.sizes:
        return None
    every = Population.counted(float(found.units), units_deviation(found), rows=rows, held=held(table, rows))
    return replace(every, units=every.units * (1 - held_out))


def counted(table: Table, rows: int, count: int, mechanism: DiscreteGaussian | Laplace) -> Population:
    """As they were counted in the look."""
    return Population.counted(float(max(1, count)), deviation(mechanism), rows=rows, held=held(table, rows))


def unknown(table: Table, rows: int) -> Population:
    """Before they are counted: room for as many as there is room for at all."""
    return Population(1.0, MOST_COUNTED, rows=rows, held=held(table, rows))


def held(table: Table, rows: int) -> float:
    """Rows of a unit on average, by noisy counts."""
    found = table.found
    if found is None or found.units < 1:
        return 1.0
    return min(float(rows), max(1.0, found.row_count / found.units))


def counter(budget: Budget, epsilon: float) -> DiscreteGaussian | Laplace:
    """What counts units in a look of that price."""
    cost, neighbors = budget.filter().price(epsilon), budget.neighbors
    exchanged = neighbors is Neighbors.SUBSTITUTE  # one may have no row that counts, where another has some
    if isinstance(cost, ZCDP):
        change = 2 if exchanged else 1
        return DiscreteGaussian(widened(change / (2 * Fraction(cost.rho) * COUNT)), change, 1, neighbors)
    return Laplace(Fraction(epsilon) * COUNT, 2 if exchanged else 1, 1, neighbors)


def deviation(mechanism: DiscreteGaussian | Laplace) -> float:
    """The standard deviation of its noise."""
    if isinstance(mechanism, DiscreteGaussian):
        return math.sqrt(mechanism.variance)
    return math.sqrt(2) * float(mechanism.scale)
