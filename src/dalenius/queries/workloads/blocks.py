"""What is measured for a workload: blocks of questions over the same rows, and their parts.

Questions over the same table (or relation) whose numbers are sums over cells make one *block*. For each thing that is
added up in it, rows or a value, there is a *part*: a strategy, an integer matrix A over the cells, chosen by the
expected error of the questions that need it (`measuring.strategies`); what is measured is A·x, x being the exact
integers of the cells. Whatever is not linear is *beside*: asked as it would be alone, at a share of the price.

*Clipping.* One unit adds a vector w over the cells, in 2^bits parts of a step (`measuring.measures`). It is brought
within a limit L in L1: the rows of the unit in all cells together, or the total of what it adds to a sum. Then A·w is a
sum of columns of A, weighed by the entries of w, so by the triangle inequality

    ‖A·w‖₂ ≤ Σⱼ |wⱼ|·‖aⱼ‖₂ ≤ L·maxⱼ ‖aⱼ‖₂   and   ‖A·w‖₁ ≤ L·maxⱼ ‖aⱼ‖₁.

Where the cells themselves are measured (A = 1) under zCDP, w is clipped in L2, in which it is shorter: ‖w‖₂ ≤ L. Those
cells are then just the ones that are counted: of their sums, an L2 norm would say less. Where there are too many cells
to count, rows are weighed and counted in tables of a few attributes (`marginals`), within the same L1 limit.

Guarantee:
    A is an integer matrix and w an integer vector, so the bounds are exact: adding or removing a unit changes A·x by at
    most Δ2² = L²·maxⱼ Σᵢ Aᵢⱼ² in squares, or Δ1 = L·maxⱼ Σᵢ |Aᵢⱼ|. Exchanging one for another changes it by at most
    twice that in norm; ‖u − v‖² ≤ ‖u‖² + ‖v‖² where neither A nor what rows add has entries of either sign
    (`mechanisms.vector`). A part with share s of the price gets discrete Gaussian noise of variance Δ2²/2ρs, which is
    ρs-zCDP, or discrete Laplace noise of scale Δ1/εs, which is εs-DP. A question beside, at share s, is as private as
    `outer.joint` says of it. The shares sum to 1, the parts see the same rows, and compose by addition.
    Nothing that is chosen here depends on a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.accounting.neighbors import Neighbors

if TYPE_CHECKING:
    from dalenius.measuring.limits.clip_search import Clip
    from dalenius.measuring.plan import Measure, Plan
    from dalenius.measuring.strategies.strategy import Strategy
    from dalenius.measuring.strategies.workload import Workload
    from dalenius.queries.planning import Planned
    from dalenius.queries.workloads.attributes import Attribute
    from dalenius.queries.workloads.linear import Summed, Sums, Term
    from dalenius.queries.workloads.marginals import Weighed


@dataclass(frozen=True)
class Counted:
    """Cells that the engine counts: the combinations of some attributes' classes, in the order of these."""

    attributes: tuple[int, ...]
    plan: Plan


@dataclass(frozen=True)
class Part:
    """One thing that is added up in a block, and what is measured of it.

    Attributes:
        summed: What is added up.
        strategy: What is measured.
        workload: What its questions need of it.
        measure: What a unit adds is limited as this says, in the plan's norm.
        counted: The number, in its block, of what the engine counts for it.
        number: Its own among the measures of that.
        share: Of the price.
        search: What goes of the price into finding a lower limit first (`limits`); 0: its limit stands.
        found: A lower limit, once that is known, with the noisy counts that it was chosen from.
        before: The limit that it had, in steps.
    """

    summed: Summed
    strategy: Strategy
    workload: Workload
    measure: Measure
    counted: int
    number: int
    share: Fraction
    search: Fraction = Fraction(0)
    found: Clip | None = None
    before: int = 0

    def change(self, norm: str, neighbors: Neighbors) -> int:
        """What one unit can change in what is measured: Δ2² where noise is Gaussian ("l2"), Δ1 where it is Laplace."""
        limit, columns = self.measure.limit, self.strategy.change(norm)
        if norm == "l1":
            return limit * columns * (1 if neighbors is Neighbors.ADD_REMOVE else 2)
        if neighbors is Neighbors.ADD_REMOVE:
            return limit**2 * columns
        signed = self.strategy.signed or self.measure.low < 0 < self.measure.high
        return limit**2 * columns * (4 if signed else 2)


@dataclass(frozen=True)
class Block:
    """Questions over the same rows.

    Attributes:
        planned: One of them, for what it reads.
        questions: Their numbers among the plans of the workload.
        attributes: What they tell rows apart by.
        counted: What the engine counts.
        parts: What is measured of that.
        terms: Their measures, each with the number of its part and where its rows go.
    """

    planned: Planned
    questions: tuple[int, ...]
    attributes: tuple[Attribute, ...]
    counted: tuple[Counted | Weighed, ...]
    parts: tuple[Part, ...]
    terms: tuple[tuple[Term, int, Sums], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many classes each attribute has."""
        return tuple(each.size for each in self.attributes)


@dataclass(frozen=True)
class WorkloadPlan:
    """A workload as it will run.

    Attributes:
        plans: The different questions, in the order of their keys.
        keys: These.
        weights: How much an error in each counts.
        blocks: What is measured for those that are linear.
        beside: The numbers of all others, each with its share of the price, and why.
    """

    plans: tuple[Planned, ...]
    keys: tuple[str, ...]
    weights: tuple[float, ...]
    blocks: tuple[Block, ...]
    beside: Mapping[int, tuple[Fraction, str]]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Of all blocks."""
        return tuple(part for block in self.blocks for part in block.parts)
