"""Notes in the names that were typed: what plans call columns of joins and subqueries is not shown to anybody.

Notes are made beside the numbers that they are about, in the notation of plans (`written`). Here the expressions of a
plan are looked for in them, and written as SQL. Nothing but the plan is read: a note tells what it told before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import Expression, written
from dalenius.queries.sql_words import SqlWords

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan


def plain_notes(plan: Plan, notes: Sequence[str]) -> tuple[str, ...]:
    """The notes, with every expression of the plan as people write it."""
    if not notes:
        return ()
    pairs = _pairs(plan)
    return tuple(_replaced(each, pairs) for each in notes)


def plain_limits(plan: Plan, limits: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Reports on limits that were found, with what was measured as people write it."""
    pairs = _pairs(plan) if limits else []
    return tuple({**each, "measure": _replaced(each["measure"], pairs)} for each in limits)


def _pairs(plan: Plan) -> list[tuple[str, str]]:
    """What stands for each expression in plans and for people, the longest first; bare words are the same in both."""
    words = SqlWords.of(plan)
    found = {written(each): words.text(each) for each in dict.fromkeys(_expressions(plan))}
    different = [(inner, shown) for inner, shown in found.items() if inner != shown and re.search(r'["(]', inner)]
    return sorted(different, key=lambda pair: -len(pair[0]))


def _expressions(plan: Plan) -> Iterator[Expression]:
    for measure in plan.measures:
        for each in filter(None, (measure, measure.times)):
            if each.value is not None:
                yield each.value
    for aggregate in plan.question.aggregates:
        for part in (aggregate.value, aggregate.other):
            if part is not None:
                yield part
    yield from plan.question.keys


def _replaced(note: str, pairs: Sequence[tuple[str, str]]) -> str:
    """One pass from left to right: what was put in is not looked into again."""
    found, at = list[str](), 0
    while at < len(note):
        pair = next((each for each in pairs if note.startswith(each[0], at)), None)
        found.append(note[at] if pair is None else pair[1])
        at += 1 if pair is None else len(pair[0])
    return "".join(found)
