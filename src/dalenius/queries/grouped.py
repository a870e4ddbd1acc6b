"""Groups as the question sees them: its own keys, NULL where a grouping set has none, in the order that was asked for.

All of it is about what was released or is public; nothing here sees a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import Scalar, Type, written
from dalenius.measuring.functions import whole
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan


def columns(plan: Plan) -> list[list[Any]]:
    """The groups' keys, column by column, as people write them: whole numbers without a point. Then GROUPING(…)."""
    declared = plan.table.policy.columns
    integers = frozenset(name for name, each in declared.items() if each.kind is Kind.INTEGER)
    found: list[list[Any]] = []
    for at, key in enumerate(plan.question.keys):
        values: list[Any] = [_value(plan, cell, at) for cell in plan.cells]
        if key.type is Type.NUMBER and whole(key, integers):
            values = [None if value is None else int(value) for value in values]
        found.append(values)
    marks = ([_marks(_set(plan, cell), places) for cell in plan.cells] for places in plan.question.groupings)
    return [*found, *marks]


def types(plan: Plan) -> Mapping[int, Type]:
    """The types of these columns."""
    keys = [key.type for key in plan.question.keys]
    return dict(enumerate([*keys, *(Type.NUMBER for _ in plan.question.groupings)]))


def shown(plan: Plan) -> list[int]:
    """Which groups the answer has, in its order: set by set as asked for. One that is asked twice is there twice."""
    if not plan.question.sets:
        return list(range(len(plan.cells)))
    by_set, found = _by_set(plan), list[int]()
    for asked in plan.question.sets:
        own = by_set.get(tuple(sorted(asked)), [])
        found += own if list(asked) == sorted(asked) else _sorted(plan, own, asked)
    return found


def _sorted(plan: Plan, places: Sequence[int], keys: Sequence[int]) -> list[int]:
    """Groups of one set by its keys in another order than theirs; values of a key stay in the order that they have."""
    values = {at: [_value(plan, plan.cells[at], key) for key in keys] for at in places}
    ranks = [
        {value: rank for rank, value in enumerate(dict.fromkeys(each))} for each in zip(*values.values(), strict=True)
    ]
    return sorted(places, key=lambda at: [rank[value] for rank, value in zip(ranks, values[at], strict=True)])


def finest(plan: Plan) -> int:
    """How many groups the set with most of them has."""
    return max(map(len, _by_set(plan).values()), default=1)


def described(plan: Plan) -> str:
    """What rows are grouped by, for people."""
    if not plan.sets:
        return ", ".join(map(written, plan.keys)) or "none: one answer"
    keys = plan.question.keys
    sets = ["(" + ", ".join(written(keys[at]) for at in each) + ")" for each in plan.sets]
    return f"{len(sets)} sets: {', '.join(sets)}"


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
