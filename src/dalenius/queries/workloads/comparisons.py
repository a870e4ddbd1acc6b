"""Conditions that compare one expression with constants: what they are wherever that expression may be.

Between two constants, all values are alike to them. A spot stands for such values: a constant itself, what lies
between two, NULL, or anything else where there is no order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dalenius.measuring.expressions import Call, Expression, Literal, Scalar, Type, walk
from dalenius.measuring.function_values import sort_key

ORDERED = frozenset({Type.NUMBER, Type.DATE, Type.DATETIME})
_LOGIC = frozenset({"and", "or", "not"})
_COMPARING = frozenset({"eq", "ne", "lt", "le", "in", "is_null"})


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


class Spot:
    """Where an expression is, in the order of constants."""

    def compare(self, constant: Scalar) -> int | None:
        """−1, 0 or 1: below, at, above; None: NULL."""
        raise NotImplementedError


@dataclass(frozen=True)
class Point(Spot):
    """One value; None: NULL."""

    value: Scalar

    def compare(self, constant: Scalar) -> int | None:
        """By the order of values."""
        if self.value is None:
            return None
        if self.value == constant:
            return 0
        return -1 if sort_key(self.value) < sort_key(constant) else 1


@dataclass(frozen=True)
class Between(Spot):
    """Even: before the constant of half that number, or after all; odd: at a constant."""

    at: int
    constants: Sequence[Scalar]

    def compare(self, constant: Scalar) -> int | None:
        """By their numbers."""
        place = 2 * self.constants.index(constant) + 1
        return (self.at > place) - (self.at < place)


@dataclass(frozen=True)
class Other(Spot):
    """Something that is no constant; there is no order."""

    def compare(self, constant: Scalar) -> int | None:  # noqa: ARG002
        """Not equal, which is all that is asked."""
        return 1


def is_reached(at: int, constants: Sequence[Any], reach: tuple[float, float] | None) -> bool:
    """Whether an expression that lies within ``reach`` can be there."""
    if reach is None:
        return True
    if at % 2:
        return bool(reach[0] <= constants[at // 2] <= reach[1])
    after = constants[at // 2 - 1] if at else -math.inf
    before = constants[at // 2] if at // 2 < len(constants) else math.inf
    return bool(after < reach[1] and before > reach[0])


def holds_at(condition: Expression, subject: Expression, place: Spot) -> bool:
    """Whether a condition is true where its subject is there; NULL is not true."""
    return _truth(condition, subject, place) is True


def _truth(condition: Expression, subject: Expression, place: Spot) -> bool | None:
    """SQL's three-valued truth of a condition where its subject is at a place."""
    if isinstance(condition, Literal):
        return None if condition.value is None else bool(condition.value)
    if not isinstance(condition, Call):
        raise TypeError("A condition that was not understood.")
    arguments = condition.arguments
    match condition.function:
        case "and":
            truths = [_truth(each, subject, place) for each in arguments]
            return False if False in truths else None if None in truths else True
        case "or":
            truths = [_truth(each, subject, place) for each in arguments]
            return True if True in truths else None if None in truths else False
        case "not":
            truth = _truth(arguments[0], subject, place)
            return None if truth is None else not truth
        case "is_null":
            return place == Point(None)
        case "in":
            sides = [place.compare(each.value) for each in arguments[1:] if isinstance(each, Literal)]
            return None if None in sides else 0 in sides
    first, second = arguments
    literal = first if isinstance(first, Literal) else second
    side = place.compare(literal.value) if isinstance(literal, Literal) else None
    if side is None:
        return None
    if condition.function in {"eq", "ne"}:
        return (side == 0) == (condition.function == "eq")
    below = side if second is literal else -side  # of the first argument to the second
    return below < 0 if condition.function == "lt" else below <= 0
