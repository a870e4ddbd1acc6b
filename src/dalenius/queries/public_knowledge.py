"""What is public of a question before it is asked: how many rows, how large units are, how far they spread.

Everything comes from what `protect` released (`Found`) and from the policy. No other question is looked at, nobody's,
so it is the same for every analyst.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial, reduce
from typing import TYPE_CHECKING

from dalenius.measuring.expressions import TRUE, Column, Expression, columns_of
from dalenius.measuring.function_values import column_values
from dalenius.measuring.limits.expected_lengths import Lengths, effective_groups
from dalenius.measuring.limits.expected_values import Variety, tell_variety, with_values
from dalenius.measuring.value_spread import may_differ
from dalenius.queries.postprocess import most_groups
from dalenius.queries.selectivity import ALL, Kept, keeps
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.limits.counts import LengthCounts
    from dalenius.measuring.plan import Found, Measure, Plan

_USUAL = Variety(3.0)  # of values, where nobody knows: between even values and log-normal ones
_EVENLY = (0.125, 0.375, 0.625, 0.875)  # of the way from a centre to the farther bound
_PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of what a condition takes, that it takes as whole units
ROWS = 1000  # a group of so many rows stands for the ones that nobody has counted
GROUPS = 100  # so many stand for those that nobody knows before they are found


@dataclass(frozen=True)
class PublicKnowledge:
    """What is public about one plan; ``own_rows``: how many rows its groups have, as an own answer says."""

    plan: Plan
    own_rows: float | None = None

    @property
    def found(self) -> Found | None:
        """What `protect` released of the rows that are asked about."""
        return self.plan.table.found

    @cached_property
    def groups(self) -> int:
        """How many groups the answer has; of grouping sets, the one with most."""
        if self.plan.selection is not None and not self.plan.cells:
            return GROUPS
        return max(1, most_groups(self.plan))

    @cached_property
    def counted(self) -> bool:
        """Whether it is known how many rows there are."""
        return self.own_rows is not None or (self.found is not None and self.found.row_count > 0)

    def rows(self, measure: Measure) -> int:
        """How many rows of a group count for a measure."""
        counting = replace(measure, kind="rows") if measure.kind in {"rows", "leaves", "histogram"} else None
        lengths = self.lengths(counting) if self.counted and counting is not None else None
        if lengths is None:
            return self.rows_of(measure.where)
        return max(1, round(lengths.kept(measure.clip) / self.groups))

    def rows_of(self, where: Expression) -> int:
        """How many rows of a group a condition keeps, beside the question's own."""
        if self.own_rows is not None and (self.found is None or where == TRUE):
            return max(1, round(self.own_rows / self.groups))
        if self.found is None or not self.counted:
            return ROWS
        return max(1, round(self.found.row_count * self.kept(where).share / self.groups))

    def units(self, measure: Measure) -> float:
        """How many units are in a group."""
        lengths = self.lengths(replace(measure, kind="rows"), reach=1.0)
        if lengths is None:
            units = 0.0 if self.found is None else self.found.units * self.kept(measure.where).units
            return max(1.0, units / self.groups)
        # N rows at random are in m·(1 − (1 − 1/m)^N) of m groups.
        reach = self._reach_of_groups
        different = reach * (1 - (1 - 1 / reach) ** lengths.sizes) if reach > 1 else lengths.sizes**0
        return max(1.0, float(lengths.units @ different) / self.groups)

    def kept(self, where: Expression) -> Kept:
        """What the question's condition, and that of one aggregate, leave."""
        if where not in self._kept:
            conditions = {self.plan.where, where} - {TRUE}
            parts = (keeps(each, self.plan.table.policy, self._mean_and_square, self._reach) for each in conditions)
            self._kept[where] = self._as_counted(reduce(Kept.__mul__, parts, ALL), where)
        return self._kept[where]

    def _as_counted(self, guessed: Kept, where: Expression) -> Kept:
        """With the share that an own answer says, taken of units and of their rows as it was guessed."""
        whole = self._sizes("rows")
        if self.own_rows is None or whole is None or where != TRUE or self.plan.where == TRUE or guessed.share >= 1:
            return guessed
        share = min(1.0, max(self.own_rows, 1.0) / max(whole.total, 1.0))
        power = math.log(share) / math.log(guessed.share)
        return Kept(guessed.units**power, guessed.rows**power)

    # --- columns

    def mean(self, column: str) -> float | None:
        """The mean of a column whose values have one sign, from units' totals and rows."""
        totals, spec = self._sizes(f"total {column}"), self.plan.table.policy.columns.get(column)
        rows = self._sizes("rows")
        if totals is None or rows is None or spec is None or spec.bounds is None or spec.step is None:
            return None
        low, high = float(spec.bounds.low), float(spec.bounds.high)
        if low < 0 < high:
            return None
        size = totals.total * float(spec.step) / max(rows.total, 1.0)
        return min(max(low, size if high > 0 else -size), high)

    def mean_of(self, value: Expression | None) -> float | None:
        """The same of what is summed, where that is a column."""
        return self.mean(value.name) if isinstance(value, Column) else None

    def square_of(self, value: Expression | None) -> float | None:
        """The mean square of what is summed, in that of its mean: how far values differ, as units' totals tell."""
        variety = self._variety(value.name) if isinstance(value, Column) else None
        return None if variety is None else variety.square

    def _mean_and_square(self, column: str) -> tuple[float, float | None] | None:
        mean, variety = self.mean(column), self._variety(column)
        return None if mean is None else (mean, None if variety is None else variety.square)

    def _variety(self, column: str) -> Variety | None:
        if column not in self._varieties:
            totals, rows, mean = self._sizes(f"total {column}"), self._sizes("rows"), self.mean(column)
            spec = self.plan.table.policy.columns.get(column)
            if totals is None or rows is None or mean is None or mean <= 0 or spec is None or spec.bounds is None:
                self._varieties[column] = None
            else:
                low, high = float(spec.bounds.low), float(spec.bounds.high)
                possible = partial(may_differ, low, high, mean)
                self._varieties[column] = tell_variety(totals, rows, possible)
        return self._varieties[column]

    def _reach(self, column: str) -> float | None:
        """Into how many of a column's values a unit's rows fall; dates and numbers are reckoned to differ by row."""
        spec, rows = self.plan.table.policy.columns.get(column), self._sizes("rows")
        norms = self._sizes(f"norm {column}")
        if spec is not None and norms is None and spec.kind in {Kind.DATE, Kind.DATETIME, Kind.NUMBER}:
            return math.inf
        if rows is None or norms is None or spec is None:
            return None
        return effective_groups(rows, norms, len(column_values(spec) or ()) or GROUPS)

    @cached_property
    def _reach_of_groups(self) -> float:
        """Into how many groups of the question, where they would be equally large."""
        found, keys = 1.0, self.plan.question.keys
        for at, key in enumerate(keys):
            names = columns_of(key)
            reach = self._reach(*names) if len(names) == 1 else None
            if reach is not None:
                found *= min(reach, self._values_of(at))
        return max(1.0, min(found, float(self.groups)))

    def _values_of(self, key: int) -> int:
        place = key + (1 if self.plan.sets else 0)
        if not self.plan.cells:
            return GROUPS
        return max(1, len({cell[place] for cell in self.plan.cells}))

    # --- units

    def lengths(self, measure: Measure, kept: Kept | None = None, reach: float | None = None) -> Lengths | None:
        """Units by what they add to a measure, and by the length of that over the question's groups.

        Args:
            measure: Of rows, or of sums and squares of a column with one sign; of others nothing is known.
            kept: What conditions keep, where it is known better than by a guess.
            reach: Into how many groups a unit's rows fall, where that is.
        """
        base = self._base(measure)
        if base is None:
            return None
        kept = self.kept(measure.where) if kept is None else kept
        if measure.kind == "rows" and reach is None and kept == ALL:
            norms = self._norms()
            if norms is not None:
                return norms
        groups = self._reach_of_groups if reach is None else reach
        return base.thinned(kept.units, kept.rows).spread(groups if self.plan.norm == "l2" else 1.0)

    def over_groups(self, lengths: Lengths, measure: Measure) -> Lengths:
        """Lengths that were counted over the question's groups, with the rows that would have them."""
        return lengths.sized(self._reach_of_groups) if measure.kind == "rows" and self.plan.norm == "l2" else lengths

    def candidates(self, measure: Measure, total: float) -> list[Lengths]:
        """What units may be like in a question whose groups showed ``total`` together, in steps.

        Of sums around a centre, what is public says too little beside counts of just these.
        """
        base, found = self._base(measure), list[Lengths | None]()
        if base is None or measure.low < 0 < measure.high:
            return []
        share = min(1.0, max(total, 1.0) / max(base.total, 1.0))
        everything = self.kept(measure.where) == ALL
        keeps = [ALL] if everything else [Kept(share**part, share ** (1 - part)) for part in _PARTS]
        reaches = [1.0] if self.groups == 1 or self.plan.norm != "l2" else self._reaches
        if everything:
            found.append(self.lengths(measure))
        found += [self.lengths(measure, kept, reach) for kept in keeps for reach in reaches]
        return [each for each in found if each is not None]

    @property
    def _reaches(self) -> list[float]:
        steps = max(2, math.ceil(3 * math.log2(self.groups)) + 1)
        return [float(self.groups ** (at / (steps - 1))) for at in range(steps)]

    def hidden_values(self, measure: Measure) -> int:
        """How many values a column may have that does not say: between those of one unit and one for each unit."""
        names = frozenset() if measure.value is None else columns_of(measure.value)
        reach = self._reach(*names) if len(names) == 1 else None
        units = self.found.units if self.found is not None else 0
        return max(1, round(math.sqrt((1.0 if reach is None or math.isinf(reach) else reach) * max(1, units))))

    def _base(self, measure: Measure) -> Lengths | None:
        """Units by their rows, or by their total of what is summed, in steps."""
        rows = self._sizes("rows")
        if rows is None or measure.kind == "rows":
            return rows
        if measure.kind not in {"sum", "square"} or measure.value is None:
            return None
        degree = measure.primitive.degree
        if measure.low < 0 < measure.high:
            # Around a centre: as if a unit's values were alike, and those of all spread evenly.
            return rows.mixed([(measure.largest * each) ** degree for each in _EVENLY])
        if measure.centre != 0 or not isinstance(measure.value, Column):
            return None
        spec, totals = self.plan.table.policy.columns[measure.value.name], self._sizes(f"total {measure.value.name}")
        if totals is None or spec.step is None:
            return None
        sums, variety = totals.times(float(spec.step / measure.step)), self._variety(measure.value.name)
        return with_values(sums, rows, variety or _USUAL, squared=degree > 1)

    def _norms(self) -> Lengths | None:
        """Over the keys of one column, as they were found."""
        keys = self.plan.question.keys
        if len(keys) != 1 or not isinstance(keys[0], Column) or self.plan.sets or self.plan.norm != "l2":
            return None
        norms = self._sizes(f"norm {keys[0].name}")
        return None if norms is None else norms.sized(self._reach_of_groups)

    def _sizes(self, name: str) -> Lengths | None:
        if name not in self._known:
            counts = None if self.found is None else self.found.sizes.get(name)
            self._known[name] = None if counts is None else _lengths_of(counts, name.startswith("norm "))
        return self._known[name]

    @cached_property
    def _kept(self) -> dict[Expression, Kept]:
        return {}

    @cached_property
    def _varieties(self) -> dict[str, Variety | None]:
        return {}

    @cached_property
    def _known(self) -> dict[str, Lengths | None]:
        return {}


@lru_cache(maxsize=256)  # of a few tables: many questions ask for the same
def _lengths_of(counts: LengthCounts, norms: bool) -> Lengths | None:
    return Lengths.of(counts, norms=norms)
