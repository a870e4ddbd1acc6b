"""The fifth pass: which groups, which exact integers, and how much one unit can change them.

Bounding is on exact integers (DESIGN, decisions 1 and 3). For one measure, a unit contributes a vector w over the
groups: the sum of its rows' integers in each. It is brought within the norm C that the policy allows,

    v = w                  where ‖w‖ ≤ C,
    v = trunc(w·C/k)       else, with k = ⌈‖w‖⌉ settled on integers,

so ‖v‖ ≤ C: truncation only shrinks, and ‖w‖·C/k ≤ C. Hence adding or removing a unit changes the sum over all units by
at most C in that norm, whatever its rows hold; exchanging one changes it by at most 2C, and Δ2² = 2C² where no entry
is negative (`mechanisms.vector`). COUNT(DISTINCT unit) adds ones to at most g groups: Δ1 = Δ2² = g. COUNT(DISTINCT x)
keeps at most K pairs of group and value of a unit: Δ1 = K, Δ2² = K² (`statements.distinct`). With grouping sets the
vector goes over the groups of all sets, and is clipped as a whole; `sets` says at what.

Measures of one ratio share the smallest of their factors C/k, so that numerator and denominator stay about the same
rows; each is then within its own C.

Quantiles: rows are counted by group and value, in a tree of values; a unit's row counts over the groups are brought
within C by weights, and `trees.largest` says how long its tree can then be. No entry is negative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError, NotAllowedError, QuestionRefusedError
from dalenius.ledger.budgets import Accounting
from dalenius.measuring import trees
from dalenius.measuring.domains import column_values
from dalenius.measuring.expressions import Aggregate, Column, Expression, columns_of, written
from dalenius.measuring.functions import bounded, dominated, ranges_of, whole
from dalenius.measuring.periods import charged, within
from dalenius.measuring.plan import MOST_GROUPS, Limits, Measure, Plan, Selection, Statistic, Table, needed
from dalenius.measuring.splitting import split
from dalenius.mechanisms.vector import sensitivity_l1, squared_sensitivity_l2
from dalenius.queries.canonical import call
from dalenius.queries.possible import known
from dalenius.queries.rules.clause import check
from dalenius.queries.rules.covariance import covariance
from dalenius.queries.rules.distinct import pairs
from dalenius.queries.rules.sets import layout, together
from dalenius.queries.rules.stage import Stage
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import Kind, Policy
from dalenius.tables.steps import default_step

if TYPE_CHECKING:
    from dalenius.errors import Place

# Products w·C and squares Σw² are taken in 127 bits: C stays below 2⁶², and entries are clamped so that Σw² fits.
MOST = 2**62
FOUND_GROUPS = 512
FEWEST_KEYS, MOST_KEYS, USUAL_KEYS = 16, 200, 32  # on which one unit weighs while they are found
LARGEST = 1e100  # of a value that is summed: its square, with noise, is still a double
_FINEST = Fraction(1, 10**100)  # of a step: it must be a double, and so must what is divided by it
Limit = TypeVar("Limit", int, Fraction)
VARIANCES = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
MOMENTS = VARIANCES | {"avg"}


def bound(stage: Stage) -> Stage:
    """The plan without its prices and its SQL."""
    question, safe = needed(stage.question), needed(stage.safe)
    table = question.table
    limits = _Tightened.of(table, stage.limits)
    first = question.places.get(question.aggregates[0])
    periods = charged(table, safe.where)
    norm = "l1" if table.budget.accounting is Accounting.PURE else "l2"
    columns = table.policy.columns
    possible = partial(known, table, safe.where)
    groups = layout(question.sets, safe.keys, columns, first, pure=norm == "l1", possible=possible)
    selection = _selection(table, [groups.own[each] for each in groups.hidden], limits, stage.limits)
    if selection is not None and groups.sets:
        selection = replace(selection, sets=groups.hidden)
    said = check(needed(stage.options), found=selection is not None)
    if selection is not None and any(each.kind == "units" for each in question.aggregates):
        limits = replace(limits, groups=selection.cap)  # ones in a limited number of groups
    builder = _Builder(
        table.policy,
        limits,
        groups.sizes,
        norm,
        table.budget.neighbors,
        [_norm(table, each) for each in groups.own],
        table.unit,
    )
    statistics: dict[tuple[str, ...], Statistic] = {}
    answers: dict[Aggregate, int] = {}
    squares = {_identity(each, *safe.values[each]) for each in question.aggregates if each.kind in VARIANCES | {"corr"}}
    for each in question.aggregates:
        value, where = safe.values[each]
        identity = _identity(each, value, where)
        if identity not in statistics:
            place = question.places.get(each)
            statistics[identity] = builder.statistic(
                each, value, where, identity in squares, place, safe.others.get(each)
            )
        answers[each] = list(statistics).index(identity)
    # The order in which columns were asked for does not matter to what is measured.
    order = sorted(statistics)
    places = {identity: order.index(identity) for identity in statistics}
    by_number = [places[identity] for identity in statistics]
    plan = Plan(
        question,
        call("and", safe.where, within(table, periods)),
        groups.keys,
        groups.cells,
        limits.groups if limits.groups is not None and limits.groups < groups.finest else None,
        tuple(statistics[identity] for identity in order),
        {each: by_number[number] for each, number in answers.items()},
        norm,
        periods,
        selection,
        notes=(
            *_notes(table, question.aggregates, periods),
            *_unseen(table, question.aggregates),
            *builder.notes,
            *question.notes,
            *said,
        ),
        sets=groups.sets,
    )
    return stage.with_(plan=plan)


def _identity(aggregate: Aggregate, value: Expression | None, where: Expression) -> tuple[str, ...]:
    kind = {"count": "rows"}.get(aggregate.kind, "moments" if aggregate.kind in MOMENTS else aggregate.kind)
    kind = trees.KIND if kind in trees.ASKED else kind
    if aggregate.other is not None:
        return "covariance", f"{written(cast('Expression', value))}, {written(aggregate.other)}", written(where)
    limit = () if aggregate.limit is None else (str(aggregate.limit),)
    return kind, "" if value is None else written(value), written(where), *limit


def _notes(table: Table, aggregates: Sequence[Aggregate], periods: tuple[str, ...]) -> tuple[str, ...]:
    if periods != ("",) and any(each.kind == "units" for each in aggregates):
        return (f"Each period has its own units: somebody in two periods counts twice ({', '.join(table.unit)}).",)
    return ()


def _unseen(table: Table, aggregates: Sequence[Aggregate]) -> tuple[str, ...]:
    """Says that the limit of rows is the least there is, since the noise at `protect` hid all units."""
    found = table.found
    if found is None or table.policy.contribution.rows is not None or found.rows > 1 or "rows" in found.clipped:
        return ()
    if table.relation is not None:  # whose limits were worked out, not seen
        return ()
    if all(each.kind == "units" for each in aggregates):
        return ()
    unit = " + ".join(table.unit)
    why = "there are too few of them to see privately how many rows they have"
    return (f"Only 1 row of one {unit} counts: {why}. The owner can declare it: [contribution] rows.",)


@dataclass(frozen=True)
class _Tightened:
    """The limits that hold for this question: the policy's, or lower ones."""

    rows: int | None
    groups: int | None
    totals: dict[str, Fraction]
    distinct: Mapping[str, int]
    typical: int | None = None  # twice the rows of an average unit, where `rows` was found rather than given

    @classmethod
    def of(cls, table: Table, asked: Limits) -> _Tightened:
        policy, declared, found = table.policy, table.policy.contribution, table.found
        totals = {**(found.totals if found else {}), **declared.totals}
        rows = declared.rows if declared.rows is not None or found is None else found.rows
        for name, value in asked.totals.items():
            column = policy.columns.get(name)
            if column is None or not column.summable:
                meant = nearest(name, [each for each, spec in policy.columns.items() if spec.summable])
                raise InputError(
                    f"There is no total of {name!r} to limit.",
                    why="A total needs a number column with bounds.",
                    fix=f"Did you mean {meant!r}?" if meant else "Name a column that can be summed.",
                )
            totals[name] = _lower(f"total {name}", value, totals.get(name)) or value
        typical = None
        if found is not None and declared.rows is None and asked.rows is None:
            typical = -(-2 * max(1, found.row_count) // max(1, found.units))
        groups, distinct = _lower("groups", asked.groups, declared.groups), found.distinct if found else {}
        return cls(_lower("rows", asked.rows, rows), groups, totals, distinct, typical)


def _lower(what: str, asked: Limit | None, declared: Limit | None) -> Limit | None:
    if asked is None:
        return declared
    if asked <= 0:
        raise InputError(
            f"The limit {what} must be above 0.", why="A unit must be able to add something.", fix="Raise it."
        )
    return asked if declared is None or asked <= declared else declared


def _selection(
    table: Table, hidden: Sequence[Sequence[Expression]], limits: _Tightened, asked: Limits
) -> Selection | None:
    """How the keys are found: on how many of them a unit weighs, and how many units a group must have.

    ``hidden`` are the keys of each grouping set whose groups are not public; a unit weighs on those of all together.
    """
    if not hidden:
        return None
    units = max(table.policy.contribution.units or 0, asked.units or 0)
    if limits.groups is not None:
        return Selection(min(limits.groups * len(hidden), MOST_KEYS), units)
    known, most = table.found.distinct if table.found is not None else {}, 0
    for keys in hidden:
        read = frozenset().union(*map(columns_of, keys))
        caps = [known.get(name) or len(column_values(table.policy.columns[name]) or ()) for name in read]
        most += math.prod(caps) if all(caps) else USUAL_KEYS
    return Selection(max(FEWEST_KEYS, min(most, MOST_KEYS)), units)


def _norm(table: Table, keys: Sequence[Expression]) -> int | None:
    """The least norm of a unit's rows that was found over one of the keys; finer groups only shorten the vector."""
    norms = table.found.norms if table.found and table.policy.contribution.rows is None else {}
    return min((norms[key.name] for key in keys if isinstance(key, Column) and key.name in norms), default=None)


def limited(measure: Measure, clip: int, norm: str, neighbors: Neighbors) -> Measure:
    """The measure with a unit's vector brought within ``clip``, and what one unit can then change (see above)."""
    if norm == "l1":
        sensitivity = sensitivity_l1(clip, neighbors)
    else:
        sensitivity = squared_sensitivity_l2(clip, neighbors, non_negative=not _signed(measure))
    # Pairs are limited in each of so many grouping sets; of all other vectors the clip is that of all sets together.
    return replace(measure, clip=clip, sensitivity=sensitivity * measure.sets)


def _signed(measure: Measure) -> bool:
    """Whether two rows can add integers of different signs."""
    if measure.times is None:
        return measure.kind != "square" and measure.low < 0 < measure.high
    corners = [a * b for a in (measure.low, measure.high) for b in (measure.times.low, measure.times.high)]
    return min(corners) < 0 < max(corners)


class _Builder:
    """Builds statistics under the limits of one question."""

    def __init__(
        self,
        policy: Policy,
        limits: _Tightened,
        sizes: Sequence[int],
        norm: str,
        neighbors: Neighbors,
        found_norms: Sequence[int | None],
        unit: Sequence[str] = (),
    ) -> None:
        self.unit = unit
        self.policy = policy
        self.limits = limits
        self.norm = norm
        self.found_norms = found_norms if norm == "l2" else [None] * len(sizes)  # of each grouping set
        self.neighbors = neighbors
        self.ranges = ranges_of(policy.columns)
        self.integers = frozenset(name for name, each in policy.columns.items() if each.kind is Kind.INTEGER)
        self.sizes, self.cells = sizes, sum(sizes)
        # In how many groups one unit can be. Its rows do not limit that: their number is clipped, not the rows.
        self.reach = sum(each if limits.groups is None else min(each, limits.groups) for each in sizes)
        self.notes: list[str] = []
        # Where groups have to be found there may be so many that entries are clamped (`Compiler.most`) below 2⁶²: a
        # limit past that would silently be a lower one.
        entries = len(sizes) * min(limits.groups or MOST_GROUPS, MOST_GROUPS)
        self.most = MOST if self.cells < MOST_GROUPS else min(MOST, math.isqrt(2**126 // entries))

    def statistic(
        self,
        aggregate: Aggregate,
        value: Expression | None,
        where: Expression,
        squares: bool,
        at: Place | None,
        other: Expression | None = None,
    ) -> Statistic:
        if aggregate.kind == "count":
            return Statistic("rows", (self.rows(where, at, aggregate.limit),))
        if aggregate.kind == "units":
            return Statistic("units", (self.units(where),))
        summed = cast("Expression", value)
        if aggregate.kind == "distinct":
            return Statistic("distinct", (self.distinct(summed, where, at, aggregate.limit),))
        if other is not None:
            return covariance(self, aggregate, (summed, other), where, squares, at)
        low, high = self.range(summed, aggregate, at)
        step = self.step(summed, low, high)
        if aggregate.kind == "sum":
            return Statistic("sum", (self.sum(summed, where, step, 0, at, aggregate.limit),), low, high)
        if aggregate.kind in trees.ASKED:
            return Statistic(trees.KIND, (self.leaves(summed, where, step, at),), low, high)
        return self.moments(summed, where, step, squares, at)

    # --- one measure

    def rows(self, where: Expression, at: Place | None, limit: Fraction | None = None) -> Measure:
        clip = self.row_limit(at, limit)
        clips = [clip if each is None else min(clip, each) for each in self.found_norms]
        return self.measure("rows", None, where, Fraction(1), 0, (0, 1), together(clips, self.norm))

    def joined(self, clip: int) -> int:
        """The limit over all grouping sets, where it is the same in each."""
        return together([clip] * len(self.sizes), self.norm)

    def units(self, where: Expression) -> Measure:
        found = self.measure("units", None, where, Fraction(1), 0, (0, 1), self.reach)
        both = 1 if self.neighbors is Neighbors.ADD_REMOVE else 2
        # At most g ones on either side; where one unit replaces another both sets of ones can differ.
        return replace(found, sensitivity=self.reach * both)

    def distinct(
        self, value: Expression, where: Expression, at: Place | None, limit: Fraction | None = None
    ) -> Measure:
        limits = self.limits
        known = limits.groups or limits.distinct.get(value.name if isinstance(value, Column) else "")
        found = pairs(
            value,
            self.policy,
            groups=limits.groups if limit is None else min(int(limit), known or int(limit)),
            found=limits.distinct,
            rows=limits.rows,
            cells=max(self.sizes),
            at=at,
            unit=self.unit,
            sets=len(self.sizes),
        )
        self.notes.append(found.note)
        one = self.measure("distinct", value, where, Fraction(1), 0, (0, 1), found.most, at)
        return limited(replace(one, sets=len(self.sizes)), found.most, self.norm, self.neighbors)

    def sum(
        self,
        value: Expression,
        where: Expression,
        step: Fraction,
        centre: int,
        at: Place | None,
        limit: Fraction | None = None,
    ) -> Measure:
        low, high = self.whole_range(value, step)
        largest = max(abs(low - centre), abs(high - centre), 1)
        clips = [] if self.limits.rows is None else [self.limits.rows * largest]
        total = self.dominated(value)
        if total is not None and math.isfinite(total) and centre == 0:
            clips.append(max(1, math.floor(Fraction(total) / step)))
        if limit is not None:
            clips.append(max(1, math.floor(limit / step)))
        clip = self.joined(min(clips, default=None) or self.row_limit(at))
        return self.measure("sum", value, where, step, centre, (low - centre, high - centre), clip, at)

    def dominated(self, value: Expression) -> float | None:
        """What follows from the limits of totals for the total of an expression."""
        return dominated(value, {name: float(each) for name, each in self.limits.totals.items()}, self.ranges)

    def square(self, value: Expression, where: Expression, step: Fraction, centre: int, at: Place | None) -> Measure:
        low, high = self.whole_range(value, step)
        largest = max(abs(low - centre), abs(high - centre), 1)
        clips = [self.row_limit(at) * largest**2]
        total = self.dominated(value)
        if total is not None and centre == 0:  # Σx² ≤ max |x| · Σ|x|
            clips.append(max(1, math.floor(Fraction(total) / step)) * largest)
        clip = self.joined(min(clips))
        return self.measure("square", value, where, step, centre, (low - centre, high - centre), clip, at)

    def leaves(self, value: Expression, where: Expression, step: Fraction, at: Place | None) -> Measure:
        """A tree of values, for quantiles."""
        low, high = self.whole_range(value, step)
        # Groups that are found are reckoned to be some hundreds.
        leaves = trees.leaves_for(high - low + 1, self.cells if self.cells < MOST_GROUPS else FOUND_GROUPS)
        if leaves is None:
            raise QuestionRefusedError(
                f"There are too many groups for quantiles: {self.cells:,}.",
                why=f"All groups together have at most {trees.MOST_NODES:,} counts, which is too few for each here.",
                fix="Group by fewer keys, or ask for averages.",
                at=at,
            )
        clip = self.tree_limit(self.rows(where, at).clip, leaves.bit_length())
        found = self.measure("leaves", value, where, step, 0, (low, high), clip, at)
        found = replace(found, width=2 * leaves - 1)
        # A unit's tree has L levels, each within S·C in the plan's norm, and no entry that is negative.
        levels, most = trees.Layout.of(found).levels, trees.SCALE * found.clip
        if self.norm == "l1":
            return replace(found, sensitivity=levels * sensitivity_l1(most, self.neighbors))
        squared = squared_sensitivity_l2(most, self.neighbors, non_negative=True)
        return replace(found, sensitivity=levels * squared)

    def measure(
        self,
        kind: str,
        value: Expression | None,
        where: Expression,
        step: Fraction,
        centre: int,
        ends: tuple[int, int],
        clip: int,
        at: Place | None = None,
    ) -> Measure:
        if clip >= self.most:
            raise QuestionRefusedError(
                "One unit could add too much to be summed exactly.",
                why=f"Its limit, counted in steps, is beyond {'2⁶²' if self.most == MOST else f'{self.most:,}'}.",
                fix="Ask the owner for a coarser step, lower limits or narrower bounds.",
                at=at,
            )
        return limited(Measure(kind, value, where, step, centre, *ends, clip, 0), clip, self.norm, self.neighbors)

    def tree_limit(self, clip: int, levels: int) -> int:
        """The limit of a unit's rows in a tree: less than that of a count, where it was found to suit counts.

        A found limit balances a count's noise with what it cuts off. A tree has √L times that noise (L times in L1),
        and cuts nothing off: it weighs heavy units less. Typical units keep their full weight. What was declared or
        asked for is taken as it is.
        """
        if self.limits.typical is None:
            return clip
        times = levels if self.norm == "l1" else math.sqrt(levels)
        return min(clip, max(math.ceil(clip / times), self.joined(self.limits.typical)))

    # --- averages and variances

    def moments(
        self, value: Expression, where: Expression, step: Fraction, squares: bool, at: Place | None
    ) -> Statistic:
        """Count, sum and (for variances) sum of squares, around the centre that gives the least noise."""
        step = self.coarsened(value, step, at) if squares else step
        present = call("and", where, call("not", call("is_null", value)))
        low, high = self.whole_range(value, step)
        tried = []
        for centre in dict.fromkeys((0, (low + high) // 2)):
            measures = [self.rows(present, at), self.sum(value, where, step, centre, at)]
            if squares:
                measures.append(self.square(value, where, step, centre, at))
            tried.append(split(measures, low - centre, high - centre, self.norm))
        measures_ = min(tried, key=lambda each: each.noise).measures
        return Statistic("moments", measures_, low * step, high * step)

    def coarsened(self, value: Expression, step: Fraction, at: Place | None) -> Fraction:
        """A step at which the squares of one unit can be summed in 62 bits."""
        rows = self.row_limit(at)
        while True:
            low, high = self.whole_range(value, step)
            if self.joined(rows * max(abs(low), abs(high), 1) ** 2) < self.most:
                return step
            step *= 10

    # --- ranges and limits

    def row_limit(self, at: Place | None, limit: Fraction | None = None) -> int:
        if limit is not None:
            most = max(1, int(limit))
            return most if self.limits.rows is None else min(most, self.limits.rows)
        if self.limits.rows is None:
            raise NotAllowedError(
                "How many rows one unit may add is not declared.",
                why="Without a limit, one unit could change the answer by any amount.",
                fix="Ask the owner for [contribution] rows, or give --rows N.",
                at=at,
            )
        return self.limits.rows

    def range(self, value: Expression, aggregate: Aggregate, at: Place | None) -> tuple[Fraction, Fraction]:
        found = bounded(value, self.ranges)
        if found is not None and max(map(abs, found)) > LARGEST:
            raise QuestionRefusedError(
                "What is summed is too large.",
                why=f"Its values may lie beyond {LARGEST:g}; the answer would be no number that can be shown.",
                fix="Scale it down.",
                at=at,
            )
        if found is not None:
            return Fraction(found[0]), Fraction(found[1])
        without = sorted(
            name
            for name in columns_of(value)
            if self.policy.columns[name].kind in {Kind.INTEGER, Kind.NUMBER}
            and self.policy.columns[name].bounds is None
        )
        shown = without[0] if without else "x"
        raise NotAllowedError(
            f"Column {without[0]!r} has no bounds." if without else "What is summed has no bounds.",
            why=f"{aggregate.kind.upper()} needs them: one unit could change it by any amount.",
            fix=f"Ask the owner for bounds, clip it yourself with LEAST(GREATEST({shown}, 0), 100), or count it.",
            at=at,
        )

    def step(self, value: Expression, low: Fraction, high: Fraction) -> Fraction:
        if isinstance(value, Column):
            return needed(self.policy.columns[value.name].step)
        if whole(value, self.integers) and max(abs(low), abs(high)) < 2**53:
            return Fraction(1)
        return max(_FINEST, default_step(low, high) if low < high else default_step(low, low + 1))

    def whole_range(self, value: Expression, step: Fraction) -> tuple[int, int]:
        """The bounds as integers, rounded as the engine rounds: floor(x/step + ½) in doubles."""
        found = needed(bounded(value, self.ranges))
        low, high = (math.floor(each / float(step) + 0.5) for each in found)
        return low, high
