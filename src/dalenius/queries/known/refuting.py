"""A value that shows at once that a question does not follow from another one.

To find all classes of rows takes milliseconds (`following`), and most pairs of questions have nothing to do with one
another. Where conditions compare one column with constants, some of these constants are tried first: a value that the
one question counts and the other does not ends it. What is not refuted so is looked at in full, so nothing is known or
unknown by this that would not be without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import Call, Column, Literal, columns_of, walk
from dalenius.queries.workloads.comparisons import ORDERED, subjects_of
from dalenius.tables import Kind

if TYPE_CHECKING:
    from dalenius import tables
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.function_values import Columns
    from dalenius.queries.workloads.attributes import Atoms

_TRIED = 6  # constants of each question and column


def is_refuted(inner: Atoms, outer: Atoms, columns: Columns) -> bool:
    """Whether some value of one column shows that the outer question does not follow from the inner one.

    Of the classes of one column, the inner question counts those where its conditions hold, and without a key on that
    column it does not tell them apart. So a value that only the outer one counts was never counted, and a value that
    only the inner one counts cannot be left out. With a key of the outer question, a value may also not count for that.
    """
    names = frozenset().union(*map(columns_of, (*inner.conditions, *outer.conditions)))
    return any(_shows(name, inner, outer, columns) for name in names)


def _shows(name: str, inner: Atoms, outer: Atoms, columns: Columns) -> bool:
    mine, theirs = ([each for each in one.conditions if name in columns_of(each)] for one in (inner, outer))
    keyed, wanted = (any(name in columns_of(each) for each in one.keys) for one in (inner, outer))
    if mine == theirs or (keyed and wanted) or name not in columns:
        return False
    if not all(_is_plain(each, name) for each in (*mine, *theirs)):
        return False
    others = (each for each in (*inner.keys, *outer.keys) if name in columns_of(each))
    if any(len(columns_of(each)) > 1 for each in others):
        return False
    for value in (*_constants(mine), *_constants(theirs)):
        if not _is_possible(value, columns[name]):
            continue
        counted, asked = (all(_holds(each, value) is True for each in one) for one in (mine, theirs))
        if (counted and not asked and not keyed) or (asked and not counted and not wanted):
            return True
    return False


def _is_plain(condition: Expression, name: str) -> bool:
    """Whether it compares that column itself with constants of its own type."""
    found = subjects_of(condition)
    if len(found) != 1:
        return False
    (subject,) = found
    if not isinstance(subject, Column) or subject.name != name:
        return False
    for part in walk(condition):
        if isinstance(part, Literal) and part.value is not None and part.type is not subject.type:
            return False
        if isinstance(part, Call) and part.function in {"lt", "le"} and subject.type not in ORDERED:
            return False
    return True


def _constants(conditions: Sequence[Expression]) -> list[Any]:
    parts = (part for each in conditions for part in walk(each))
    return list(islice((each.value for each in parts if isinstance(each, Literal) and each.value is not None), _TRIED))


def _is_possible(value: Any, column: tables.Column) -> bool:
    """Whether rows may have it; what is not certain is no."""
    if column.public_keys is not None:
        return value in column.public_keys
    if column.kind is Kind.INTEGER and isinstance(value, float) and not value.is_integer():
        return False
    if column.bounds is not None:
        return bool(column.bounds.low <= value <= column.bounds.high)
    return True


def _holds(condition: Expression, value: Any) -> bool | None:
    """SQL's truth of a condition about one column, where that has a value."""
    if isinstance(condition, Literal):
        return None if condition.value is None else bool(condition.value)
    if not isinstance(condition, Call):
        return None
    arguments = condition.arguments
    match condition.function:
        case "and" | "or":
            parts = [_holds(each, value) for each in arguments]
            decided = condition.function == "or"
            return decided if decided in parts else None if None in parts else not decided
        case "not":
            inside = _holds(arguments[0], value)
            return None if inside is None else not inside
        case "is_null":
            return False
    compared: list[Any] = [each.value if isinstance(each, Literal) else value for each in arguments]
    first, *rest = compared
    match condition.function:
        case "in":
            return first in rest if None not in rest else first in rest or None
        case _ if first is None or None in rest:
            return None
        case "eq":
            return bool(first == rest[0])
        case "ne":
            return bool(first != rest[0])
        case "lt":
            return bool(first < rest[0])
        case "le":
            return bool(first <= rest[0])
    return None
