"""A workload at a price: what is measured together, at which limits, and what is better asked one by one.

Under zCDP cells may be measured themselves, limited in L2, or by some other strategy, limited in L1; averages may be
made of what is measured for all, or be asked beside, so that nothing must be limited together with their sums. Of these
ways the one with the least expected error is taken, and the price is shared so that it becomes least.

Parts may be worse than the questions by themselves: a question looks for its own limit, which may be far lower than one
for all rows that the others need. Then those questions are asked beside, each as it would be alone. So no part of a
workload is expected to have a larger total squared error, by the weights of its questions, than these have one by one,
at equal parts of the price; nor has any average a wider margin.

All of that follows from plans, and from what was released at `protect`: nothing here has seen a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.queries.public_knowledge import PublicKnowledge
from dalenius.queries.workloads.expecting import ByItself, Expecting, SquaredErrors
from dalenius.queries.workloads.limits import Limiting
from dalenius.queries.workloads.linear import ROWS
from dalenius.queries.workloads.planning import EVERYTHING, LaidOut, plan_workload
from dalenius.queries.workloads.pricing import Cost, WorkloadPrice
from dalenius.queries.workloads.sharing import exact_shares

if TYPE_CHECKING:
    from dalenius.queries.planning import Planned
    from dalenius.queries.workloads.blocks import WorkloadPlan

_MANY = 200  # questions: of more, each alone would have too little of the price to be worth a comparison
ALONE = "it is expected to be more exact by itself, at limits of its own"


def settle_workload(
    plans: Sequence[Planned],
    keys: Sequence[str],
    weights: Sequence[float],
    epsilon: float,
    check: Callable[[], None] = lambda: None,
) -> WorkloadPlan:
    """What is measured for some different questions at a price. Never touches the data.

    ``check`` is called before each way is tried: it may refuse to wait any longer.
    """
    if len(plans) > _MANY:
        drafted = plan_workload(plans, keys, weights)
        return Limiting(drafted, Cost.of(drafted, epsilon)).planned()
    trying = _Trying(plans, keys, weights, epsilon, check)
    plain = trying.drafted((), frozenset())
    if plans[0].plan.norm == "l1":
        return trying.settled(plain)
    averages = trying.averages
    cells = trying.drafted(averages, EVERYTHING)
    better = frozenset(each for each, error in cells.errors.items() if error < plain.errors.get(each, math.inf))
    # Where the cells of rows are not better, nothing is gained where averages are beside.
    mixed = trying.drafted(averages if ROWS.text in better else (), better)
    return trying.settled(min((plain, cells, mixed), key=lambda each: each.error))


@dataclass(frozen=True)
class _Tried:
    """One way to ask.

    Attributes:
        workload: With limits.
        beside: The questions that are asked beside, and why.
        by_cells: Of what cells are measured.
        errors: The squared error of each thing that is added up, in that of one by one, in those questions.
        error: How much more squared error it has than one by one, added up over them, in that of all questions.
        worse: The questions that need something of which one by one is better, or are themselves far better so.
    """

    workload: WorkloadPlan
    beside: Mapping[int, str]
    by_cells: Container[str]
    errors: Mapping[str, float]
    error: float
    worse: frozenset[int]


class _Trying:
    """Ways to ask some questions at a price, compared."""

    def __init__(
        self,
        plans: Sequence[Planned],
        keys: Sequence[str],
        weights: Sequence[float],
        epsilon: float,
        check: Callable[[], None],
    ) -> None:
        self.plans, self.keys, self.weights, self.epsilon, self.check = plans, keys, weights, epsilon, check
        self._asked: ByItself = {}
        self._public: dict[int, PublicKnowledge] = {}
        self._alone: dict[str, float] = {}
        self._laid: LaidOut = {}
        self.averages = [
            at for at, each in enumerate(plans) if any(len(one.measures) > 1 for one in each.plan.statistics)
        ]

    def settled(self, tried: _Tried) -> WorkloadPlan:
        """One way, with the questions of parts that are expected to be worse than one by one asked beside."""
        while tried.worse:
            tried = self.drafted((*tried.beside, *sorted(tried.worse)), tried.by_cells)
        return tried.workload

    def drafted(self, beside: Iterable[int], by_cells: Container[str]) -> _Tried:
        """A way, at limits and shares of the price that fit."""
        self.check()
        aside = dict.fromkeys(beside, ALONE)
        drafted = plan_workload(self.plans, self.keys, self.weights, aside, by_cells=by_cells, laid=self._laid)
        cost = Cost.of(drafted, self.epsilon)
        first = self._expecting(drafted, cost)
        return self._tried(self._expecting(_reshared(drafted, first, cost), cost), aside, by_cells)

    def _expecting(self, drafted: WorkloadPlan, cost: Cost) -> Expecting:
        found = Limiting(drafted, cost, self._public).planned()
        return Expecting(found, WorkloadPrice(cost, (), {}), 0.95, self._asked)

    def _tried(self, expecting: Expecting, aside: Mapping[int, str], by_cells: Container[str]) -> _Tried:
        errors: dict[str, float] = {}
        saved, worse = 0.0, set[int]()
        for block, part in expecting.each_part():
            found = expecting.squared_errors(block, part, weighted=True)
            text, ratio = part.summed.text, found.together / max(found.alone, 1e-300)
            errors[text] = max(ratio, errors.get(text, 0.0))
            # The first time it is that of all questions.
            saved += min(0.0, found.together - found.alone) / self._alone.setdefault(text, max(found.alone, 1e-300))
            if ratio > 1:
                worse |= {term.question for term, at, _ in block.terms if block.parts[at] is part}
        inside = {number for block in expecting.workload.blocks for number in block.questions}
        worse |= {each for each in self.averages if each in inside and expecting.is_worse(each)}
        worse |= self._better_alone(expecting.questions_apart())
        return _Tried(expecting.asked, aside, by_cells, errors, saved, frozenset(worse))

    def _better_alone(self, errors: Mapping[int, SquaredErrors]) -> set[int]:
        """The questions with a limit of their own that gain more if they are asked beside than all others lose by that.

        Each error is in that of one by one, r for the question that is worst of k; the noise of the others grows by a
        kth of the price that it takes, to 1/(1 − 1/k) of what it is. So it is asked beside, where r counts as 1, if
        (r − 1) is more than what that adds; and so on with the next.
        """
        total, found = sum(self.weights), set[int]()
        left = shares = sum(self.weights[at] for at in errors) / total
        searching = [at for at in errors if self.plans[at].plan.searched]
        for number in sorted(searching, key=lambda at: errors[at].together, reverse=True):
            rest = sum(errors[at].noise * self.weights[at] ** 2 for at in errors if at not in found and at != number)
            less = left - self.weights[number] / total
            if not rest or less <= 0:
                break
            grown = self._growth(shares, less) - self._growth(shares, left)
            if (errors[number].together - 1) * self.weights[number] ** 2 <= grown * rest:
                break
            found.add(number)
            left = less
        return found

    def _growth(self, before: float, after: float) -> float:
        """How much noise grows in squares where a share of the price becomes smaller."""
        return before / after if self.plans[0].plan.norm == "l2" else (before / after) ** 2


def _reshared(workload: WorkloadPlan, expecting: Expecting, cost: Cost) -> WorkloadPlan:
    """Parts share the price anew, so that the sum of their squared errors, each in that of one by one, is least.

    Noise at a share s has N/s of it (N/s² under pure), which adds up to least for s ∝ √N (s ∝ N^⅓).
    """
    raw = []
    for block, part in expecting.each_part():
        found, share = expecting.squared_errors(block, part, weighted=True), float(part.share + part.search)
        noise = found.noise / max(found.alone, 1e-300)
        raw.append(math.sqrt(noise * share) if cost.norm == "l2" else (noise * share**2) ** (1 / 3))
    if not raw or min(raw) <= 0:
        return workload
    whole = sum((part.share for part in workload.parts), Fraction(0))
    shares = iter(exact_shares(raw))
    blocks = tuple(
        replace(block, parts=tuple(replace(part, share=whole * next(shares)) for part in block.parts))
        for block in workload.blocks
    )
    return replace(workload, blocks=blocks)
