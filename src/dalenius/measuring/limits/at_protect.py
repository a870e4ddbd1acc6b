"""Limits of what one unit adds, found privately at `protect` where the owner declared none (DESIGN, decision 3).

For each quantity of a unit (its rows, Σ|x| of a number column, the L2 norm of its rows over the keys of a column, how
many keys it has) the units are counted by size, in classes that grow by √2. A unit is in one class of each, so the
whole histogram has sensitivity 1: noise of one unit's worth on every class tells how the sizes are spread, except for
the last hundred units or so. The limit is where clipping would cost about as much as noise: below it lies the bias of
what is cut off, above it the noise that grows with the limit (`histogram`).

A histogram rather than a sparse vector: for the same ρ it gives all classes at once with less noise than one
comparison, so the tail's slope is known where a threshold search only knows one point, and the few largest units can
be reckoned with instead of cut off (docs/decisions/0004).
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.accounting import conversions
from dalenius.accounting.events import Event, Pure, Zcdp
from dalenius.accounting.guarantees import ZCDP
from dalenius.accounting.neighbors import Neighbors
from dalenius.ledger.budgets import Accounting
from dalenius.measuring.expressions import TRUE
from dalenius.measuring.function_values import column_values
from dalenius.measuring.functions import ranges_of
from dalenius.measuring.limits.choosing import MEDIAN, ChosenLimit, choose_limit
from dalenius.measuring.limits.counts import LengthCounts
from dalenius.measuring.limits.histogram import CLASSES, noise_deviation
from dalenius.measuring.periods import charged_periods, paying_periods
from dalenius.measuring.plan import Found
from dalenius.mechanisms import noise
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Budget
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Table
    from dalenius.tables.policy import Policy

RHO, EPSILON = 0.005, 0.1  # what the search costs at most, under zCDP and pure
PART = 0.05  # of the budget, where that is less
_NORM_KEYS = 1000  # columns with more keys than this are rarely grouped by
_HIDDEN_KEYS = 100  # how many groups a question is reckoned to have, where keys are not public
_USUAL_KEYS = 32  # of one unit, where the noise hides how many it has
_LEAST_SHARE = 1e-4  # of the mass; less than that is not told from nothing
_USUAL = 1.0  # the ε of a question that limits are made for


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is limited: "rows"; "total" of a number column; "norm" of rows over a column's keys; "distinct" keys."""

    kind: str
    column: str = ""

    @property
    def weight(self) -> int:
        """Its part of the price, beside the others."""
        return {"rows": 3, "total": 2, "norm": 2, "distinct": 1}[self.kind]

    @property
    def name(self) -> str:
        """As people read it."""
        return f"{self.kind} {self.column}".rstrip()


def quantities(policy: Policy, accounting: Accounting) -> tuple[Quantity, ...]:
    """What has to be found: nothing where `rows` is declared, since the owner has then decided.

    Under pure accounting no question uses an L2 norm, nor keys that are not public, so they are not paid for.
    """
    if policy.contribution.rows is not None:
        return ()
    totals = [Quantity("total", name) for name, each in policy.columns.items() if each.summable]
    totals = [each for each in totals if each.column not in policy.contribution.totals]
    if accounting is Accounting.PURE:
        return (Quantity("rows"), *totals)
    keyed = [name for name, each in policy.columns.items() if 1 < len(column_values(each) or ()) <= _NORM_KEYS]
    hidden = [name for name, each in policy.columns.items() if each.kind is Kind.CATEGORY and each.public_keys is None]
    norms = (Quantity("norm", name) for name in [*keyed, *hidden])
    return (Quantity("rows"), *totals, *norms, *(Quantity("distinct", name) for name in hidden))


@dataclass(frozen=True)
class ProtectSearch:
    """A search for limits, priced before anything is looked at.

    Guarantee:
        Each histogram is a vector in which one unit has a single 1: Δ1 = Δ2² = 1 (2 where one unit replaces another).
        Units and rows are counted at the limits just found, with Δ2² = 1 and C². All are composed; ``event`` is the
        whole price. The noisy histograms themselves are released with the limits (``sizes``): what is chosen from them
        is post-processing, so that costs no more.
    """

    table: Table
    quantities: tuple[Quantity, ...]
    epsilon: float
    rho: float | None
    periods: tuple[str, ...] = field(default=("",))

    @classmethod
    def of(cls, table: Table) -> ProtectSearch | None:
        """The search that a table needs, or None."""
        wanted = quantities(table.policy, table.budget.accounting)
        if not wanted:
            return None
        epsilon, rho = _price(table.budget)
        return cls(table, wanted, epsilon, rho, paying_periods(table, _periods(table)))

    @property
    def event(self) -> Event:
        """What it does."""
        neighbors = self.table.budget.neighbors
        return Pure(self.epsilon, neighbors) if self.rho is None else Zcdp(self.rho, 0, neighbors)

    @property
    def charge(self) -> dict[str, float | None]:
        """What it costs: ε typed, ρ charged, and which part of the data set's budget that is."""
        whole = self.table.budget.filter().price(self.table.budget.epsilon)
        part = self.epsilon / whole.epsilon if not isinstance(whole, ZCDP) else (self.rho or 0.0) / whole.rho
        return {"epsilon": self.epsilon, "rho": self.rho, "part": part}

    def key(self, data_version: int | str) -> str:
        """The key under which its result is stored: what is counted, not what else the policy says."""
        lines = [f"limits {self.table.policy.name} {data_version}"]
        lines += [identity(self.table, each) for each in self.quantities]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def run(self, engine: Engine, seconds: float) -> bytes:
        """Looks at the data, once the charge is on disk; all of it takes ``seconds`` at most."""
        noise.fresh_key()
        until = time.monotonic() + seconds

        def left() -> float:
            return max(1.0, until - time.monotonic())

        shares = self._shares()
        found: dict[Quantity, ChosenLimit] = {}
        sizes: dict[Quantity, LengthCounts] = {}
        for quantity, share in zip(self.quantities, shares, strict=False):
            counts = [0] * CLASSES
            for place, count in engine.sizes(self.table, quantity.kind, quantity.column, seconds=left()):
                counts[place] = count
            law = self._mechanism(1, share, CLASSES)
            noisy = [int(value) for value in law.release(counts).value.tolist()]
            sizes[quantity] = LengthCounts.of(noisy, law)
            norms = quantity.kind == "norm"
            found[quantity] = choose_limit(noisy, law, self._noise(quantity), self._cells(quantity), norms=norms)
        rows = found[Quantity("rows")].limit
        units, total = engine.rows_within(self.table, rows, seconds=left())
        units = self._mechanism(1, shares[-2]).release(units).value
        total = self._mechanism(rows, shares[-1]).release(total).value
        return json.dumps(self._written(found, sizes, units, total)).encode()

    def _written(
        self, found: Mapping[Quantity, ChosenLimit], sizes: Mapping[Quantity, LengthCounts], units: int, rows: int
    ) -> dict[str, Any]:
        columns = self.table.policy.columns
        limits = {
            each: self._unseen(each, found) if choice.clipped is None else choice.limit
            for each, choice in found.items()
        }
        steps = {each.column: columns[each.column].step for each in found if each.kind == "total"}
        return {
            "rows": limits[Quantity("rows")],
            "totals": {name: str(limits[Quantity("total", name)] * (step or 1)) for name, step in steps.items()},
            "norms": {each.column: value for each, value in limits.items() if each.kind == "norm"},
            "distinct": {each.column: value for each, value in limits.items() if each.kind == "distinct"},
            "units": max(0, units),
            "row_count": max(0, rows),
            "clipped": {each.name: _shown(one.clipped) for each, one in found.items() if one.clipped is not None},
            "sizes": {each.name: counts.to_json() for each, counts in sizes.items()},
        }

    def _unseen(self, quantity: Quantity, found: Mapping[Quantity, ChosenLimit]) -> int:
        """The limit of what the noise hides: as much as the limit of rows allows, for a lower one would be made up."""
        rows = found[Quantity("rows")].limit
        if quantity.kind == "distinct":
            return min(rows, _USUAL_KEYS)
        if quantity.kind != "total":
            return rows
        column = self.table.policy.columns[quantity.column]
        low, high = ranges_of({quantity.column: column})[quantity.column]
        return rows * (math.floor(max(abs(low), abs(high)) / (column.step or 1)) + 1)

    def _shares(self) -> list[Fraction]:
        """Parts of the price: each quantity by its weight, then one for the units and one for the rows."""
        weights = [*(each.weight for each in self.quantities), 1, 1]
        return [Fraction(each, sum(weights)) for each in weights]

    def _mechanism(self, bound: int, share: Fraction, dimension: int = 1) -> DiscreteGaussian | Laplace:
        neighbors = self.table.budget.neighbors
        exchanged = 2 if neighbors is Neighbors.SUBSTITUTE else 1
        if self.rho is None:
            return Laplace(Fraction(self.epsilon) * share, bound * exchanged, dimension, neighbors)
        squared = bound * bound * exchanged
        return DiscreteGaussian(squared / (2 * Fraction(self.rho) * share), squared, dimension, neighbors)

    def _noise(self, quantity: Quantity) -> Callable[[int], float]:
        """Median |noise| of a usual question at a limit.

        It grows with the limit; where a unit adds ones to so many groups, with its root (Δ2² = limit).
        """
        cost = self.table.budget.filter().price(_USUAL)
        each = MEDIAN / math.sqrt(2 * cost.rho) if isinstance(cost, ZCDP) else math.log(2) / _USUAL
        return (lambda limit: each * math.sqrt(limit)) if quantity.kind == "distinct" else (lambda limit: each * limit)

    def _cells(self, quantity: Quantity) -> int:
        if quantity.kind not in {"norm", "distinct"}:
            return 1
        return len(column_values(self.table.policy.columns[quantity.column]) or ()) or _HIDDEN_KEYS


def identity(table: Table, quantity: Quantity) -> str:
    """What was counted for a quantity: the same text, the same sizes of all units of the same data."""
    policy, period = table.policy, table.period
    told = None if table.budget.period is None or period is None else policy.columns.get(period.column)
    return f"{policy.unit} {' '.join(_periods(table))} {told!r} {quantity.kind} {policy.columns.get(quantity.column)!r}"


def known_limits(search: ProtectSearch, before: Sequence[tuple[Table, Found]]) -> Found | None:
    """The limits that a search would find, where earlier ones of the same data found each of them; newest last.

    They were paid for and are public, whatever their ε was: nothing is looked at, and nothing is charged.
    """
    found: list[tuple[Quantity, Found]] = []
    for quantity in search.quantities:
        meant = identity(search.table, quantity)
        there = [each for table, each in before if _has(each, quantity) and identity(table, quantity) == meant]
        if not there:
            return None
        found.append((quantity, there[-1]))
    whole = found[0][1]  # the rows are always searched
    return Found(
        whole.rows,
        {each.column: one.totals[each.column] for each, one in found if each.kind == "total"},
        {each.column: one.norms[each.column] for each, one in found if each.kind == "norm"},
        whole.units,
        whole.row_count,
        {each.column: one.distinct[each.column] for each, one in found if each.kind == "distinct"},
        {each.name: one.clipped[each.name] for each, one in found if each.name in one.clipped},
        {each.name: one.sizes[each.name] for each, one in found if each.name in one.sizes},
    )


def _has(found: Found, quantity: Quantity) -> bool:
    parts: dict[str, Mapping[str, Any]] = {"total": found.totals, "norm": found.norms, "distinct": found.distinct}
    return quantity.kind == "rows" or quantity.column in parts[quantity.kind]


def _periods(table: Table) -> tuple[str, ...]:
    return charged_periods(
        table, TRUE, "The search for limits", "Declare [contribution] rows, then nothing is searched."
    )


def _shown(share: float) -> float:
    """Two digits: the rest is noise."""
    return float(f"{share:.2g}") if share >= _LEAST_SHARE else 0.0


def rows_deviation(found: Found) -> float:
    """Of the noise of the number of rows: for what one unit adds, at a smaller part of the price than the sizes had."""
    law, part = found.sizes["rows"].law, Quantity("rows").weight
    return found.rows * noise_deviation(law) * (math.sqrt(part) if isinstance(law, DiscreteGaussian) else part)


def units_deviation(found: Found) -> float:
    """Of the noise of the number of units: one unit adds 1 to it, at a smaller part of the price than the sizes had."""
    return rows_deviation(found) / found.rows


def read_limits(content: bytes) -> Found:
    """As `ProtectSearch.run` wrote it."""
    return Found.from_dict(json.loads(content))


def _price(budget: Budget) -> tuple[float, float | None]:
    """ε and ρ of the search: a fixed small amount, or a small part of a small budget."""
    whole = budget.filter().price(budget.epsilon)
    if not isinstance(whole, ZCDP):
        return min(EPSILON, PART * budget.epsilon), None
    epsilon = conversions.zcdp_epsilon(min(RHO, PART * whole.rho), budget.conversion_delta)
    cost = budget.filter().price(epsilon)
    return epsilon, cost.rho if isinstance(cost, ZCDP) else None
