"""Each question of a workload as sums over classes of rows: what all of them are made of, and how.

Counts, sums and averages over public groups are *linear*: each of their numbers is a sum of what is measured in the
cells, which are the combinations of the attributes' classes. A question's condition and keys say, attribute by
attribute, which classes go into which of its numbers; where it names no atom of an attribute, all of them do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import TRUE, Expression, conjuncts, written
from dalenius.queries.workloads.attributes import Atoms, Attribute

if TYPE_CHECKING:
    from dalenius.measuring.plan import Measure, Plan
    from dalenius.measuring.strategies.factors import Array
    from dalenius.measuring.strategies.strategy import Inferred, Strategy
    from dalenius.measuring.strategies.workload import Product

_FEW = 8  # products that are taken as they are
_FAMILIES = frozenset({"rows", "sum", "moments"})


@dataclass(frozen=True, slots=True)
class Summed:
    """What is added up: rows, or a value in steps less a centre."""

    value: Expression | None
    step: Fraction = Fraction(1)
    centre: int = 0

    @property
    def text(self) -> str:
        """In the fixed notation, for an order."""
        return "" if self.value is None else f"{written(self.value)} step {self.step}"


ROWS = Summed(None)


@dataclass(frozen=True)
class Term:
    """One measure of one question.

    Attributes:
        question: The question's number among the different plans of the workload.
        statistic: The statistic's number in its plan.
        summed: What it adds up.
        atoms: Which rows, and in which groups.
    """

    question: int
    statistic: int
    summed: Summed
    atoms: Atoms


def why_not_linear(plan: Plan) -> str | None:
    """Why a question's numbers are no sums over cells that are public; None: they are."""
    if plan.selection is not None:
        return "its groups are found privately"
    if plan.sets:
        return "it has grouping sets"
    for aggregate, number in plan.answers.items():
        if plan.statistics[number].kind not in _FAMILIES or len(plan.statistics[number].measures) > 2:
            return "only counts of rows, sums and averages are sums over groups"
        if aggregate.limit is not None:
            return "it bounds an aggregate of its own"
    return None


def terms_of(plans: Sequence[Plan]) -> list[Term]:
    """All measures of all questions. Averages use the sums of the same value that others ask for, where there are."""
    plain = {
        (each.value, each.step)
        for plan in plans
        for statistic in plan.statistics
        if statistic.kind == "sum"
        for each in statistic.measures
    }
    return [
        Term(number, at, _summed(measure, plain), atoms_of(plan, measure))
        for number, plan in enumerate(plans)
        for at, statistic in enumerate(plan.statistics)
        for measure in statistic.measures
    ]


def _summed(measure: Measure, plain: set[tuple[Expression | None, Fraction]]) -> Summed:
    if measure.kind == "rows":
        return ROWS
    centre = 0 if (measure.value, measure.step) in plain else measure.centre
    return Summed(measure.value, measure.step, centre)


def atoms_of(plan: Plan, measure: Measure) -> Atoms:
    """What a measure tells rows apart by."""
    conditions = (*conjuncts(plan.where), *conjuncts(measure.where))
    return Atoms(plan.keys, tuple(dict.fromkeys(each for each in conditions if each != TRUE)))


@dataclass(frozen=True)
class Sums:
    """Which classes go into which numbers of a term.

    Attributes:
        parts: By the number of an attribute: of each of its classes, into which part of the numbers it goes; −1: none.
        sizes: By the same: how many parts there are.
        places: Of each group of the question, which of all combinations of parts it is; −1: no row is in it, since a
            later group has the same keys, as doubles, and is the one that a question alone puts rows in.
    """

    parts: Mapping[int, tuple[int, ...]]
    sizes: Mapping[int, int]
    places: tuple[int, ...]

    @property
    def empty(self) -> bool:
        """Whether no row can go anywhere: all its numbers are 0."""
        return any(all(each < 0 for each in own) for own in self.parts.values())

    @property
    def whole(self) -> bool:
        """Whether every class goes into one of its groups."""
        if any(each < 0 for own in self.parts.values() for each in own):
            return False
        return len({each for each in self.places if each >= 0}) == math.prod(self.sizes.values())

    def variances(self, strategy: Strategy) -> Array:
        """Of its numbers in all groups, for noise of variance 1 on each integer that is measured."""
        import numpy as np

        if self.empty:
            return np.zeros(len(self.places))
        return self.picked(strategy.variances(self.product()))

    def answers(self, inferred: Inferred) -> Array:
        """Its numbers in all groups."""
        import numpy as np

        if self.empty:
            return np.zeros(len(self.places))
        return self.picked(inferred.answers(self.product()))

    def picked(self, numbers: Array) -> Array:
        """Of numbers for all combinations of parts those of the groups, in order."""
        import numpy as np

        places = np.array(self.places, dtype=int)
        return np.where(places < 0, 0, numbers[places])

    def to_json(self) -> dict[str, Any]:
        """As it is stored with an answer. Classes in order, each a part of its own, are None.

        Others are written by runs, or there would be as many numbers as questions for each of many thresholds.
        """
        parts = {str(at): [_written(each), len(each), self.sizes[at]] for at, each in self.parts.items()}
        return {"parts": parts, "places": _written(self.places)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any], groups: int) -> Sums:
        """As `to_json` wrote it."""
        parts = {int(at): _read(own, length) for at, (own, length, _) in data["parts"].items()}
        sizes = {int(at): size for at, (_, _, size) in data["parts"].items()}
        return cls(parts, sizes, _read(data["places"], groups))

    def product(self, weight: float = 1.0) -> Product:
        """For strategies."""
        from dalenius.measuring.strategies.factors import Identity, Rows
        from dalenius.measuring.strategies.workload import Product

        factors: dict[int, Any] = {}
        for at, own in self.parts.items():
            if _is_identity(own) and self.sizes[at] == len(own) > 1:
                factors[at] = Identity(len(own))
            elif set(own) != {0}:  # else all classes count, as in an attribute that is not named
                factors[at] = Rows.of(_matrix(own, self.sizes[at]))
        return Product(factors, weight)


def gather_products(needed: Sequence[tuple[Sums, float]]) -> tuple[Product, ...]:
    """All that is needed of one thing that is added up, each with its weight, as few products as say the same.

    The same sums that several questions need are one product, whose squared error counts as all of theirs. Of many
    numbers of one weight that are sums over classes of the same attribute, such as ranges, each is a row of one.
    """
    from dalenius.measuring.strategies.factors import Rows
    from dalenius.measuring.strategies.workload import Product

    weights: dict[tuple[Any, ...], float] = {}
    first: dict[tuple[Any, ...], Sums] = {}
    for sums, weight in needed:
        if not sums.empty:
            key = tuple((at, own, sums.sizes[at]) for at, own in sums.parts.items() if set(own) != {0})
            weights[key] = weights.get(key, 0.0) + weight**2
            first.setdefault(key, sums)
    rows: dict[tuple[int, float], list[tuple[int, ...]]] = {}
    found: list[Product] = []
    for key, squared in weights.items():
        if len(weights) > _FEW and len(key) == 1 and key[0][2] == 1:
            rows.setdefault((key[0][0], squared), []).append(key[0][1])
        else:
            found.append(first[key].product(math.sqrt(squared)))
    for (at, squared), owns in rows.items():
        matrix = [[int(each >= 0) for each in own] for own in owns]
        found.append(Product({at: Rows.of(matrix)}, math.sqrt(squared)))
    return tuple(found) or (Product(),)


def _written(own: Sequence[int]) -> Any:
    """Numbers as they are stored: None where they are 0, 1, 2 …; by runs, where that is shorter."""
    if _is_identity(own):
        return None
    runs = [each for value, same in groupby(own) for each in (value, len(list(same)))]
    return {"runs": runs} if len(runs) < len(own) else list(own)


def _read(stored: Any, length: int) -> tuple[int, ...]:
    """As `_written` wrote them."""
    if stored is None:
        return tuple(range(length))
    if isinstance(stored, Mapping):
        runs = stored["runs"]
        return tuple(value for value, same in zip(runs[::2], runs[1::2], strict=True) for _ in range(same))
    return tuple(stored)


def _is_identity(own: Sequence[int]) -> bool:
    return list(own) == list(range(len(own)))


def _matrix(own: Sequence[int], size: int) -> Any:
    import numpy as np
    from scipy import sparse

    columns = np.flatnonzero(np.array(own) >= 0)
    rows = np.array(own)[columns]
    return sparse.csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=(size, len(own)))


def sums_of(atoms: Atoms, cells: Sequence[tuple[Any, ...]], attributes: Sequence[Attribute]) -> Sums:
    """Where the rows of each cell go, in one measure of a question with these groups."""
    parts: dict[int, tuple[int, ...]] = {}
    sizes: dict[int, int] = {}
    places = [0] * len(cells)
    for number, attribute in enumerate(attributes):
        keys = [(place, key) for place, key in enumerate(atoms.keys) if key in attribute.values]
        conditions = [each for each in atoms.conditions if each in attribute.values]
        if not keys and not conditions:
            continue
        own = [tuple(cell[place] for place, _ in keys) for cell in cells]
        ranks = {values: rank for rank, values in enumerate(dict.fromkeys(own))}
        truths = [attribute.values[each] for each in conditions]
        holds = map(all, zip(*truths, strict=True)) if truths else [True] * attribute.size
        told = zip(*(attribute.values[key] for _, key in keys), strict=True) if keys else [()] * attribute.size
        parts[number] = tuple(
            ranks.get(values, -1) if counts else -1 for values, counts in zip(told, holds, strict=True)
        )
        sizes[number] = len(ranks)
        places = [place * len(ranks) + ranks[values] for place, values in zip(places, own, strict=True)]
    last = {cell: at for at, cell in enumerate(cells)}
    return Sums(parts, sizes, tuple(-1 if last[cell] > at else places[at] for at, cell in enumerate(cells)))
