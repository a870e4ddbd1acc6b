"""Limits of what one unit adds, found privately at `protect` where the owner declared none (DESIGN, decision 3).

For each quantity of a unit (its rows, Σ|x| of a number column, the L2 norm of its rows over the keys of a column) the
units are counted by size, in classes that grow by √2. A unit is in one class of each, so the whole histogram has
sensitivity 1: noise of one unit's worth on every class tells how the sizes are spread, except for the last hundred
units or so. The limit is where clipping would cost about as much as noise: below it lies the bias of what is cut off,
above it the noise that grows with the limit.

A histogram rather than a sparse vector: for the same ρ it gives all classes at once with less noise than one
comparison, so the tail's slope is known where a threshold search only knows one point, and the few largest units can
be reckoned with instead of cut off (docs/decisions/0004).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.accounting import conversions
from dalenius.accounting.events import Event, Pure, Zcdp
from dalenius.accounting.guarantees import ZCDP
from dalenius.accounting.neighbors import Neighbors
from dalenius.mechanisms import noise
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.queries.domains import column_values
from dalenius.queries.expressions import TRUE
from dalenius.queries.periods import charged
from dalenius.queries.plan import Found
from dalenius.queries.statements.sizes import units_sql
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Budget
    from dalenius.queries.engines.engine import Engine
    from dalenius.queries.plan import Table
    from dalenius.tables.policy import Policy

RHO, EPSILON = 0.005, 0.1  # what the search costs at most, under zCDP and pure
PART = 0.05  # of the budget, where that is less
CLASSES = 129  # sizes 0, 1, …, up to 2⁶⁴, by factors of √2
_NORM_KEYS = 1000  # columns with more keys than this are rarely grouped by
_HIDDEN_KEYS = 100  # how many groups a question is reckoned to have, where keys are not public
_REACH = 4.0  # how far beyond the last class that stands out of the noise a tail is believed
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


def quantities(policy: Policy) -> tuple[Quantity, ...]:
    """What has to be found: nothing where `rows` is declared, since the owner has then decided."""
    if policy.contribution.rows is not None:
        return ()
    totals = [Quantity("total", name) for name, each in policy.columns.items() if each.summable]
    totals = [each for each in totals if each.column not in policy.contribution.totals]
    keyed = [name for name, each in policy.columns.items() if 1 < len(column_values(each) or ()) <= _NORM_KEYS]
    hidden = [name for name, each in policy.columns.items() if each.kind is Kind.CATEGORY and each.public_keys is None]
    norms = (Quantity("norm", name) for name in [*keyed, *hidden])
    return (Quantity("rows"), *totals, *norms, *(Quantity("distinct", name) for name in hidden))


@dataclass(frozen=True)
class Search:
    """A search for limits, priced before anything is looked at.

    Guarantee:
        Each histogram is a vector in which one unit has a single 1: Δ1 = Δ2² = 1 (2 where one unit replaces another).
        Units and rows are counted at the limits just found, with Δ2² = 1 and C². All are composed; ``event`` is the
        whole price.
    """

    table: Table
    quantities: tuple[Quantity, ...]
    epsilon: float
    rho: float | None
    periods: tuple[str, ...] = field(default=("",))

    @classmethod
    def of(cls, table: Table) -> Search | None:
        """The search that a table needs, or None."""
        wanted = quantities(table.policy)
        if not wanted:
            return None
        epsilon, rho = _price(table.budget)
        return cls(table, wanted, epsilon, rho, charged(table, TRUE))

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

    def key(self, data_version: int) -> str:
        """The key under which its result is stored: what is counted, not what else the policy says."""
        policy = self.table.policy
        lines = [f"limits {policy.name} {data_version} {policy.unit} {' '.join(self.periods)}"]
        lines += [f"{each.kind} {policy.columns.get(each.column)!r}" for each in self.quantities]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def run(self, engine: Engine, seconds: float) -> bytes:
        """Looks at the data, once the charge is on disk."""
        noise.fresh_key()
        shares = self._shares()
        found: dict[Quantity, int] = {}
        for quantity, share in zip(self.quantities, shares, strict=False):
            sql = units_sql(self.table, quantity.kind, quantity.column, engine.scan, engine.columns)
            counts = [0] * CLASSES
            for place, count in engine.run(
                f"{sql} SELECT size, count(*) FROM sizes GROUP BY size",  # noqa: S608
                seconds=seconds,
            ):
                counts[int(place)] = int(count)
            law = self._mechanism(1, share, CLASSES)
            noisy = [int(value) for value in law.release(counts).value.tolist()]
            found[quantity] = chosen(noisy, _deviation(law), self._noise_per_step(), self._cells(quantity))
        rows = found[Quantity("rows")]
        sql = units_sql(self.table, "rows", "", engine.scan, engine.columns)
        ((units, total),) = engine.run(
            f"{sql} SELECT count(*), coalesce(sum(least(value, {rows})), 0) FROM sizes",  # noqa: S608
            seconds=seconds,
        )
        units = self._mechanism(1, shares[-2]).release(int(units)).value
        total = self._mechanism(rows, shares[-1]).release(int(total)).value
        return json.dumps(self._written(found, units, total)).encode()

    def _written(self, found: Mapping[Quantity, int], units: int, rows: int) -> dict[str, Any]:
        columns = self.table.policy.columns
        steps = {each.column: columns[each.column].step for each in found if each.kind == "total"}
        return {
            "rows": found[Quantity("rows")],
            "totals": {name: str(found[Quantity("total", name)] * (step or 1)) for name, step in steps.items()},
            "norms": {each.column: value for each, value in found.items() if each.kind == "norm"},
            "distinct": {each.column: value for each, value in found.items() if each.kind == "distinct"},
            "units": max(0, units),
            "row_count": max(0, rows),
        }

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

    def _noise_per_step(self) -> float:
        """Median |noise| of a usual question, for each step of the limit."""
        cost = self.table.budget.filter().price(_USUAL)
        return 0.6745 / math.sqrt(2 * cost.rho) if isinstance(cost, ZCDP) else math.log(2) / _USUAL

    def _cells(self, quantity: Quantity) -> int:
        if quantity.kind != "norm":
            return 1
        return len(column_values(self.table.policy.columns[quantity.column]) or ()) or _HIDDEN_KEYS


def chosen(noisy: Sequence[int], deviation: float, noise_per_step: float, cells: int = 1) -> int:
    """The limit at which bias and noise are least, from a noisy histogram of sizes; public post-processing.

    Class 0 holds size 0, class 1 size 1, class j the sizes above 2^((j−2)/2) up to 2^((j−1)/2).

    >>> chosen([0, 5000, *[0] * 127], deviation=10.0, noise_per_step=3.0)
    1
    """
    middle = [0.0, 1.0, *(2 ** ((at - 1) / 2 - 0.25) for at in range(2, CLASSES))]
    clear = [at for at in range(1, len(noisy)) if noisy[at] > 4 * deviation]
    if not clear:
        return 1
    last = clear[-1]
    counts = [max(0.0, float(each)) if each > 2 * deviation else 0.0 for each in noisy[: last + 1]]
    slope = _slope([(math.log(middle[at]), math.log(noisy[at]), noisy[at]) for at in clear[-6:]], deviation)
    for at in range(last + 1, CLASSES):
        believed = slope is not None and middle[at] <= _REACH * middle[last]
        counts.append(noisy[last] * (middle[at] / middle[last]) ** slope if believed else 0.0)  # type: ignore[operator]

    def cost(limit: int) -> float:
        cut = sum(count * (size - limit) for count, size in zip(counts, middle, strict=True) if size > limit)
        return cut / cells + noise_per_step * limit

    candidates = sorted({math.ceil(2 ** (at / 4)) for at in range(4 * CLASSES // 2)})
    return min(candidates, key=cost)


def _slope(points: Sequence[tuple[float, float, int]], deviation: float) -> float | None:
    """Least squares of log count on log size, by how well each count is known; None with fewer than three classes."""
    if len(points) < 3:
        return None
    weights = [count * count / (deviation * deviation + count) for _, _, count in points]
    total = sum(weights)
    x = sum(w * p[0] for w, p in zip(weights, points, strict=True)) / total
    y = sum(w * p[1] for w, p in zip(weights, points, strict=True)) / total
    spread = sum(w * (p[0] - x) ** 2 for w, p in zip(weights, points, strict=True))
    return min(-0.5, sum(w * (p[0] - x) * (p[1] - y) for w, p in zip(weights, points, strict=True)) / spread)


def read(content: bytes) -> Found:
    """As `Search.run` wrote it."""
    return Found.from_dict(json.loads(content))


def _price(budget: Budget) -> tuple[float, float | None]:
    """ε and ρ of the search: a fixed small amount, or a small part of a small budget."""
    whole = budget.filter().price(budget.epsilon)
    if not isinstance(whole, ZCDP):
        return min(EPSILON, PART * budget.epsilon), None
    epsilon = conversions.zcdp_epsilon(min(RHO, PART * whole.rho), budget.delta / 2)
    cost = budget.filter().price(epsilon)
    return epsilon, cost.rho if isinstance(cost, ZCDP) else None


def _deviation(mechanism: DiscreteGaussian | Laplace) -> float:
    if isinstance(mechanism, DiscreteGaussian):
        return math.sqrt(float(mechanism.variance))
    return math.sqrt(2) * float(mechanism.scale)
