"""Conditions that compare one expression with constants: what they are wherever that expression may be.

Between two constants, all values are alike to them. So there are 2n + 1 *places* beside n constants in order: an odd
one is a constant, an even one all that lies before the next, or after the last; where there is no order, any even one
stands for whatever is no constant. One more, the last, is NULL. A condition is worked out at all of them at once.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import Call, Expression, Literal, Scalar, Type, walk
from dalenius.measuring.function_values import sort_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Truths = NDArray[np.int8]

ORDERED = frozenset({Type.NUMBER, Type.DATE, Type.DATETIME})
_LOGIC = frozenset({"and", "or", "not"})
_COMPARING = frozenset({"eq", "ne", "lt", "le", "in", "is_null"})
_TRUE, _NULL, _FALSE = 1, 0, -1  # so that AND is the least, OR the greatest, NOT the negative


def subjects_of(condition: Expression) -> set[Expression]:
    """What a condition is about; a condition that is not understood is about itself, which nothing else is."""
    if isinstance(condition, Call) and condition.function in _LOGIC:
        return set().union(*map(subjects_of, condition.arguments))
    if isinstance(condition, Call) and condition.function in _COMPARING:
        found = [each for each in condition.arguments if not isinstance(each, Literal)]
        if len(found) == 1 and (condition.function != "in" or found[0] is condition.arguments[0]):
            return set(found)
    return {condition}


def constants_of(conditions: Sequence[Expression], subject: Expression) -> list[Scalar] | None:
    """All that the subject is compared with, in order; None where a condition does something else."""
    if subject.type is Type.BOOLEAN:
        return None
    found: set[Scalar] = set()
    for condition in conditions:
        if subjects_of(condition) - {subject}:
            return None
        for part in walk(condition):
            if isinstance(part, Call) and part.function in _COMPARING and subject in part.arguments:
                literals = [each for each in part.arguments if isinstance(each, Literal)]
                if any(each.type is not subject.type for each in literals):
                    return None
                if part.function in {"lt", "le"} and subject.type not in ORDERED:
                    return None
                found |= {each.value for each in literals}
    return None if None in found else sorted(found, key=sort_key)


def place_of(value: Scalar, constants: Sequence[Scalar]) -> int:
    """Where a value is, beside constants in order."""
    if value is None:
        return 2 * len(constants) + 1
    at = bisect_left(constants, sort_key(value), key=sort_key)
    return 2 * at + (at < len(constants) and constants[at] == value)


def is_reached(at: int, constants: Sequence[Any], reach: tuple[float, float] | None, *, whole: bool = False) -> bool:
    """Whether an expression that lies within ``reach`` can be there.

    ``whole``: it is a whole number, or a day: nothing lies between one and the next.

    >>> [is_reached(at, [39.0, 40.0], None) for at in range(5)]
    [True, True, True, True, True]
    >>> [is_reached(at, [39.0, 40.0], (0.0, 40.0), whole=True) for at in range(5)]
    [True, True, False, True, False]
    """
    if at % 2:
        own = constants[at // 2]
        inside = reach is None or bool(reach[0] <= own <= reach[1])
        return inside and not (whole and isinstance(own, float) and not own.is_integer())
    after = constants[at // 2 - 1] if at else None
    before = constants[at // 2] if at // 2 < len(constants) else None
    if whole and after is not None and before is not None and not _has_between(after, before):
        return False
    if reach is None:
        return True
    return bool((after is None or after < reach[1]) and (before is None or before > reach[0]))


def _has_between(after: Any, before: Any) -> bool:
    """Whether a whole number, or a day, lies between two constants."""
    if isinstance(after, date):
        return bool((before - after).days > 1)
    return bool(math.floor(after) + 1 < before)


def holds(condition: Expression, constants: Sequence[Scalar]) -> NDArray[np.bool_]:
    """At each place beside constants whether a condition is true; these are all that its subject is compared with."""
    found: NDArray[np.bool_] = _truth(condition, {each: 2 * at + 1 for at, each in enumerate(constants)}) == _TRUE
    return found


def _truth(condition: Expression, odd: dict[Scalar, int]) -> Truths:
    """SQL's three-valued truth of a condition at all places, of which constants have odd numbers."""
    import numpy as np

    size = 2 * len(odd) + 2
    if isinstance(condition, Literal):
        value = condition.value
        return np.full(size, _NULL if value is None else _TRUE if value else _FALSE, dtype=np.int8)
    if not isinstance(condition, Call):
        raise TypeError("A condition that was not understood.")
    arguments = condition.arguments
    match condition.function:
        case "and":
            return np.asarray(np.minimum.reduce([_truth(each, odd) for each in arguments]), dtype=np.int8)
        case "or":
            return np.asarray(np.maximum.reduce([_truth(each, odd) for each in arguments]), dtype=np.int8)
        case "not":
            return -_truth(arguments[0], odd)
    numbers = np.arange(size)
    if condition.function == "is_null":
        return np.where(numbers == size - 1, _TRUE, _FALSE).astype(np.int8)
    own = [odd[each.value] for each in arguments if isinstance(each, Literal)]
    match condition.function:
        case "in" | "eq":
            true = np.isin(numbers, own)
        case "ne":
            true = numbers != own[0]
        case "lt" | "le":
            # of the first argument to the second
            below = own[0] - numbers if isinstance(arguments[1], Literal) else numbers - own[0]
            true = below > 0 if condition.function == "lt" else below >= 0
        case _:
            raise TypeError("A condition that was not understood.")
    found = np.where(true, _TRUE, _FALSE).astype(np.int8)
    found[-1] = _NULL
    return found
