"""The neighbouring relation: which two tables a guarantee compares."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from dalenius.errors import InputError


class Neighbors(Enum):
    """Add or remove one unit, or substitute one unit for another.

    Every guarantee and every event carries its relation, because an ε under one is not an ε under the
    other: losses under different relations are never added.

    >>> Neighbors.of("substitute")
    <Neighbors.SUBSTITUTE: 'substitute'>
    """

    ADD_REMOVE = "add-remove"
    SUBSTITUTE = "substitute"

    @classmethod
    def of(cls, value: Neighbors | str) -> Neighbors:
        """The relation named by a policy or a file."""
        try:
            return cls(value)
        except ValueError:
            raise InputError(
                f"Unknown neighbouring relation {value!r}.",
                why="A guarantee compares tables that differ in one unit, in one of two ways.",
                fix='Use "add-remove" or "substitute".',
            ) from None


def common_neighbors(relations: Iterable[Neighbors]) -> Neighbors:
    """The one relation that all share; refuses to mix two.

    An empty collection has spent nothing, which holds under either relation.
    """
    found = set(relations)
    if len(found) > 1:
        raise InputError(
            "Losses under different neighbouring relations do not add up.",
            why="One was stated for adding or removing a unit, the other for substituting one.",
            fix="State every mechanism under the same relation (the sensitivities change with it).",
        )
    return found.pop() if found else Neighbors.ADD_REMOVE
