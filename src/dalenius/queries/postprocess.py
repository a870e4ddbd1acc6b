"""What is done with released values: the question's own keys, arithmetic on aggregates, HAVING, ORDER BY, LIMIT.

All of it is post-processing of numbers that are public by now; nothing here sees a row, and the engine that computes
has no files. Keys are those of the question, NULL where a grouping set has none, in the order that was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, TypeAlias

from dalenius.measuring.estimates import Estimate
from dalenius.measuring.expressions import TRUE, Aggregate, Call, Expression, Key, Literal, Scalar, Type, walk
from dalenius.measuring.function_values import arrow_type, is_sayable
from dalenius.measuring.functions import whole
from dalenius.queries.rules.total import make_total
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.plan import Order, Plan
    from dalenius.queries.total_intervals import Clipped

Interval: TypeAlias = tuple[float, float]
# of a cell: a number, two ends, or None; where the cell is a list, a list of these
Error: TypeAlias = Any
Ends: TypeAlias = Any
_SURE = 2.0**53  # past it, doubles are not all integers that there are


@dataclass(frozen=True)
class ReleasedTable:
    """Columns, rows, and the noise in every cell; None where there is none.

    ``total_interval`` also allows for what clipping took, of which ``clipping`` is the share in each column; None where
    that is not known.
    """

    columns: tuple[str, ...]
    keys: tuple[bool, ...]
    rows: tuple[tuple[Any, ...], ...]
    noise_error: tuple[tuple[Error, ...], ...]
    interval: tuple[tuple[Ends, ...], ...]
    total_interval: tuple[tuple[Ends, ...], ...]
    clipping: tuple[float | None, ...]
    places: tuple[int, ...] = ()  # of the rows among the plan's groups


def tabulate(
    plan: Plan,
    keys: Sequence[Sequence[Any]],
    estimates: Mapping[Aggregate, Sequence[Estimate]],
    clipped: Mapping[Aggregate, Clipped] | None = None,
) -> ReleasedTable:
    """The question's own view of keys and estimates; ``clipped``: what clipping took, where that is known."""
    question = plan.question
    view = _View(plan, keys, estimates, clipped or {})
    columns = [view.column(output.expression) for output in question.outputs]
    places = shown_groups(plan)
    if question.having != TRUE:
        kept = view.column(question.having)
        places = [at for at in places if kept[at].value is True]
    places = _sorted(places, question.order, view)
    last = None if question.limit is None else question.offset + question.limit
    places = places[question.offset : last]
    return ReleasedTable(
        tuple(output.name for output in question.outputs),
        tuple(_is_key(output.expression) for output in question.outputs),
        tuple(tuple(column[at].value for column in columns) for at in places),
        tuple(tuple(column[at].noise_error for column in columns) for at in places),
        tuple(tuple(_interval(column[at]) for column in columns) for at in places),
        tuple(tuple(column[at].total for column in columns) for at in places),
        tuple(view.share(output.expression) for output in question.outputs),
        tuple(places),
    )


def values_over(
    plan: Plan, expression: Expression, keys: Sequence[Sequence[Any]], estimates: Mapping[Aggregate, Sequence[Estimate]]
) -> list[Any]:
    """An expression over any number of groups, given column by column; without its errors."""
    view = _View(plan, keys, estimates, {})
    view.size = len(next(iter(estimates.values())))
    if isinstance(expression, Aggregate):
        return [each.value for each in estimates[expression]]
    parts = list(dict.fromkeys(each for each in walk(expression) if isinstance(each, Aggregate)))
    values = {each: [estimate.value for estimate in estimates[each]] for each in parts}
    return [view.typed(expression, each) for each in view.evaluated(expression, parts, [values])[0]]


@dataclass(frozen=True, slots=True)
class _Cell:
    value: Any
    noise_error: Error = None
    low: float | None = None
    high: float | None = None
    total: Ends = None
    ends: Ends = None  # of a list, in place of low and high


def _listed(cells: Sequence[_Cell]) -> _Cell:
    """Several numbers as one cell: its error and its interval are lists too."""
    totals = [each.total for each in cells]
    return _Cell(
        [each.value for each in cells],
        [each.noise_error for each in cells],
        total=totals if any(totals) else None,
        ends=[_interval(each) for each in cells],
    )


class _View:
    """Keys and estimates as columns of one table, one row per group."""

    def __init__(
        self,
        plan: Plan,
        keys: Sequence[Sequence[Any]],
        estimates: Mapping[Aggregate, Sequence[Estimate]],
        clipped: Mapping[Aggregate, Clipped],
    ) -> None:
        self.keys, self.estimates, self.clipped = keys, estimates, clipped
        self.size, self.types = len(plan.cells), key_types(plan)
        self.shared = plan.answers  # which statistic an aggregate comes from
        integers = (each for each, found in estimates.items() if _counts(each) and _are_whole(found))
        self.whole: frozenset[Expression] = frozenset((*integers, *whole_keys(plan)))

    def column(self, expression: Expression) -> list[_Cell]:
        match expression:
            case Key(number=number):
                return [_Cell(value) for value in self.keys[number]]
            case Aggregate():
                known, estimates = self.clipped.get(expression), self.estimates[expression]
                totals = [None] * self.size if known is None else known.totals
                return [
                    _Cell(each.value, each.noise_error, each.low, each.high, total)
                    for each, total in zip(estimates, totals, strict=True)
                ]
            case Call(function="list", arguments=parts):
                return [_listed(cells) for cells in zip(*map(self.column, parts), strict=True)]
            case Literal(value=value):
                return [_Cell(self.typed(expression, value)) for _ in range(self.size)]
        return self.computed(expression)

    def typed(self, expression: Expression, value: Any) -> Any:
        """A number as an integer where the expression's type is one: made of integers alone, and not a quotient."""
        known = isinstance(value, float) and abs(value) < _SURE
        return int(value) if known and whole(expression, frozenset(), self.whole) else value

    def share(self, expression: Expression) -> float | None:
        """What clipping took of the one aggregate that a column is made of; of several, their losses cancel or add."""
        parts = {each for each in walk(expression) if isinstance(each, Aggregate)}
        known = self.clipped.get(*parts) if len(parts) == 1 else None
        return None if known is None else known.loss.share

    def computed(self, expression: Expression) -> list[_Cell]:
        """Arithmetic on released values. Its noise error adds those of its parts as independent noise adds.

        Each aggregate in turn is moved up and down by its noise error; the larger effect counts. Effects of different
        statistics add in squares, which to first order is the half-width of the whole at the same confidence; those
        of one statistic (AVG and VAR of one column) add up plainly, which is no less. Of one aggregate whose losses are
        known, the ends of its total interval are moved to as well.
        """
        parts = list(dict.fromkeys(each for each in walk(expression) if isinstance(each, Aggregate)))
        values = {each: [estimate.value for estimate in self.estimates[each]] for each in parts}
        errors = {each: [estimate.noise_error or 0.0 for estimate in self.estimates[each]] for each in parts}
        variants = [values]
        for moved in parts:
            for sign in (1, -1):
                shifted = [
                    None if value is None else value + sign * error
                    for value, error in zip(values[moved], errors[moved], strict=True)
                ]
                variants.append({**values, moved: shifted})
        known = self.clipped.get(parts[0]) if len(parts) == 1 else None
        if known is not None:
            ends_of = ([None if each is None else each[end] for each in known.totals] for end in (0, 1))
            variants += [{parts[0]: each} for each in ends_of]
        results = self.evaluated(expression, parts, variants)
        base, around = results[0], results[1:]
        found = []
        for at, value in enumerate(base):
            if not isinstance(value, float) or not parts:
                found.append(_Cell(self.typed(expression, value)))
                continue
            # Aggregates of one statistic share their noise, so their effects may all point the same way.
            effects: dict[int, float] = {}
            for number, part in enumerate(parts):
                moved_to = [around[2 * number][at], around[2 * number + 1][at]]
                effect = max((abs(each - value) for each in moved_to if each is not None), default=0.0)
                effects[self.shared[part]] = effects.get(self.shared[part], 0.0) + effect
            error = math.hypot(*effects.values())
            ends = [] if known is None else [each[at] for each in around[-2:]]
            sure = bool(ends) and all(isinstance(each, float) for each in ends)
            total = (min(value - error, *ends), max(value + error, *ends)) if sure else None
            found.append(_Cell(self.typed(expression, value), error, value - error, value + error, total))
        return found

    def evaluated(
        self, expression: Expression, parts: Sequence[Aggregate], variants: Sequence[Mapping[Aggregate, Sequence[Any]]]
    ) -> list[list[Any]]:
        """An expression over several variants of the aggregates' values."""
        import pyarrow as pa

        from dalenius.measuring.engines.sources import reference

        used = sorted({each.number for each in walk(expression) if isinstance(each, Key)})
        table: dict[str, Any] = {"place": list(range(self.size * len(variants)))}
        for number in used:
            table[f"k{number}"] = pa.array(list(self.keys[number]) * len(variants), arrow_type(self.types[number]))
        for at, part in enumerate(parts):
            values = [value for variant in variants for value in variant[part]]
            table[f"a{at}"] = pa.array([None if v is None else float(v) for v in values], pa.float64())
        found = reference().evaluated(make_total(expression), pa.table(table), parts, self.whole)
        rows = [each if is_sayable(each, expression.type) else None for each in found]
        return [rows[at * self.size : (at + 1) * self.size] for at in range(len(variants))]


def _sorted(places: list[int], order: Sequence[Order], view: _View) -> list[int]:
    columns = [(view.column(each.expression), each) for each in order]

    def compare(one: int, other: int) -> int:
        for column, term in columns:
            a, b = column[one].value, column[other].value
            if a is None or b is None:
                if (a is None) != (b is None):
                    return (-1 if term.nulls_first else 1) * (1 if a is None else -1)
                continue
            if a != b:
                return (1 if a > b else -1) * (-1 if term.descending else 1)
        return 0

    return sorted(places, key=cmp_to_key(compare)) if columns else places


def _counts(aggregate: Aggregate) -> bool:
    """Whether it is a number of something, or a sum: of integers an integer, as averages and quantiles are not."""
    return aggregate.kind in {"count", "units", "distinct", "sum", "sum_distinct"}


def _are_whole(found: Sequence[Estimate]) -> bool:
    return all(each.value is None or isinstance(each.value, int) for each in found)


def _is_key(expression: Expression) -> bool:
    return not any(isinstance(each, Aggregate) for each in walk(expression))


def _interval(cell: _Cell) -> Ends:
    if cell.ends is not None:
        return cell.ends
    return None if cell.low is None or cell.high is None else (cell.low, cell.high)


# --- groups, as the question sees them


def key_columns(plan: Plan) -> list[list[Any]]:
    """The groups' keys, column by column, as people write them: whole numbers without a point. Then GROUPING(…)."""
    found: list[list[Any]] = []
    for at, integer in enumerate(_whole_keys(plan)[: len(plan.question.keys)]):
        values: list[Any] = [_value(plan, cell, at) for cell in plan.cells]
        if integer:
            values = [None if value is None else int(value) for value in values]
        found.append(values)
    marks = ([_marks(_set(plan, cell), places) for cell in plan.cells] for places in plan.question.groupings)
    return [*found, *marks]


def whole_keys(plan: Plan) -> frozenset[Key]:
    """The keys whose values are whole numbers."""
    types = key_types(plan)
    return frozenset(Key(at, types[at]) for at, integer in enumerate(_whole_keys(plan)) if integer)


def _whole_keys(plan: Plan) -> list[bool]:
    """Which of these columns are whole numbers."""
    declared = plan.table.policy.columns
    integers = frozenset(name for name, each in declared.items() if each.kind is Kind.INTEGER)
    keys = [key.type is Type.NUMBER and whole(key, integers) for key in plan.question.keys]
    return [*keys, *(True for _ in plan.question.groupings)]


def key_types(plan: Plan) -> Mapping[int, Type]:
    """The types of these columns."""
    keys = [key.type for key in plan.question.keys]
    return dict(enumerate([*keys, *(Type.NUMBER for _ in plan.question.groupings)]))


def shown_groups(plan: Plan) -> list[int]:
    """Which groups the answer has, in its order: set by set as asked for. One that is asked twice is there twice."""
    if not plan.question.sets:
        return list(range(len(plan.cells)))
    by_set, found = _by_set(plan), list[int]()
    for asked in plan.question.sets:
        own = by_set.get(tuple(sorted(asked)), [])
        found += own if list(asked) == sorted(asked) else _reordered(plan, own, asked)
    return found


def _reordered(plan: Plan, places: Sequence[int], keys: Sequence[int]) -> list[int]:
    """Groups of one set by its keys in another order than theirs; values of a key stay in the order that they have."""
    values = {at: [_value(plan, plan.cells[at], key) for key in keys] for at in places}
    ranks = [
        {value: rank for rank, value in enumerate(dict.fromkeys(each))} for each in zip(*values.values(), strict=True)
    ]
    return sorted(places, key=lambda at: [rank[value] for rank, value in zip(ranks, values[at], strict=True)])


def most_groups(plan: Plan) -> int:
    """How many groups the set with most of them has."""
    return max(map(len, _by_set(plan).values()), default=1)


def _by_set(plan: Plan) -> Mapping[tuple[int, ...], list[int]]:
    """The places of each set's groups."""
    if not plan.sets:
        return {tuple(range(len(plan.question.keys))): list(range(len(plan.cells)))}
    found: dict[tuple[int, ...], list[int]] = {}
    for at, cell in enumerate(plan.cells):
        found.setdefault(_set(plan, cell), []).append(at)
    return found


def _set(plan: Plan, cell: tuple[Scalar, ...]) -> tuple[int, ...]:
    """The set that a group belongs to."""
    return plan.sets[int(cell[0])] if plan.sets else tuple(range(len(plan.question.keys)))  # type: ignore[arg-type]


def _value(plan: Plan, cell: tuple[Scalar, ...], key: int) -> Scalar:
    if not plan.sets:
        return cell[key]
    return cell[1 + key] if key in _set(plan, cell) else None


def _marks(own: tuple[int, ...], keys: tuple[int, ...]) -> int:
    """A bit for each key, the first the highest: 1 where the set does not have it."""
    return sum(1 << at for at, key in enumerate(reversed(keys)) if key not in own)
