"""What follows from one measure alone: where each group of a question is made of whole groups of another.

Rows are told apart by attributes (`workloads.attributes`), and groups of either question are products of their classes.
So a question's groups are made of the other's just if that holds attribute by attribute: each class that is in a part
of the one is in a part of the other, which lies in it as a whole. A class with rows that the other never counted, such
as those whose key is NULL, makes it fail: then nothing follows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.expressions import columns_of
from dalenius.measuring.function_values import column_values
from dalenius.queries.known.refuting import is_refuted
from dalenius.queries.workloads.attributes import (
    MOST_COMBINED,
    MOST_TRIED,
    Atoms,
    Attribute,
    Found,
    components,
    find_attributes,
)
from dalenius.queries.workloads.linear import sums_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.function_values import Columns
    from dalenius.queries.workloads.linear import Sums

Cells = Sequence[tuple[Any, ...]]
NOTHING = Atoms((), ())  # counts all rows: with it among the questions, every row has a class in each attribute
_MOST_CLASSES = 2**14  # of one attribute, here: who asks waits for it
_MOST_WORK = 2**18  # values of atoms that are tried, for one question


@dataclass
class Attributes:
    """Classes of rows, found once for each set of questions that are compared."""

    columns: Columns
    left: int = _MOST_WORK
    _found: dict[tuple[Atoms, ...], tuple[Attribute, ...] | None] = field(default_factory=dict)
    _parts: Found = field(default_factory=dict)
    _sizes: dict[str, int | None] = field(default_factory=dict)

    def of(self, *asked: Atoms) -> tuple[Attribute, ...] | None:
        """What some questions tell rows apart by; None where that is too much."""
        key = tuple(dict.fromkeys(asked))
        if key not in self._found:
            self._found[key] = self._looked_for(key)
        return self._found[key]

    def _looked_for(self, asked: tuple[Atoms, ...]) -> tuple[Attribute, ...] | None:
        atoms = {atom for each in asked for atom in (*each.keys, *each.conditions)}
        if not frozenset().union(*map(columns_of, atoms)) <= set(self.columns):
            return None  # of a join, a question knows the columns that it reads
        self.left -= sum(map(self._work, components(atoms)))
        if self.left < 0:
            return None
        try:
            found = find_attributes([*asked, NOTHING], self.columns, self._parts)
        except QuestionRefusedError:
            return None
        return None if any(each.size > _MOST_CLASSES for each in found) else found

    def _work(self, component: Sequence[Expression]) -> int:
        """What it may take to find the classes of some atoms: values that are tried, or combinations of theirs."""
        names = frozenset().union(*map(columns_of, component))
        listed = [self._values(name) for name in names]
        tried = math.prod(each + 1 for each in listed if each is not None)
        if None in listed or tried > MOST_TRIED:
            tried = min(MOST_COMBINED, 2 ** min(60, len(component)))
        return tried * len(component)

    def _values(self, name: str) -> int | None:
        """How many values a column can have; None where they are not public."""
        if name not in self._sizes:
            listed = column_values(self.columns[name])
            self._sizes[name] = None if listed is None else len(listed)
        return self._sizes[name]


def reads(atoms: Atoms) -> frozenset[str]:
    """The columns that tell its rows apart."""
    return frozenset().union(*map(columns_of, (*atoms.keys, *atoms.conditions)))


def part_in_part(inner: Sequence[int] | None, outer: Sequence[int] | None, classes: int) -> dict[int, int] | None:
    """For each part of the inner question the part of the outer one that it lies in; −1: in none.

    Args:
        inner: The part of each class; −1: none; None: there is but one part, of all classes.
        outer: The same of the question that is to follow.
        classes: How many there are.

    Returns:
        None where a part of the outer question is not made of whole parts of the inner one.

    >>> part_in_part([0, 1, 2, -1], [0, 0, -1, -1], 4)
    {0: 0, 1: 0, 2: -1}
    >>> part_in_part([0, 0, 1, -1], [0, 1, 1, -1], 4) is None
    True
    >>> part_in_part([0, 1, -1], [0, 0, 0], 3) is None
    True
    """
    own = [0] * classes if inner is None else inner
    wanted = [0] * classes if outer is None else outer
    found: dict[int, int] = {}
    for mine, theirs in zip(own, wanted, strict=True):
        if mine < 0:
            if theirs >= 0:
                return None
        elif found.setdefault(mine, theirs) != theirs:
            return None
    return found


def follows(inner: tuple[Atoms, Cells], outer: tuple[Atoms, Cells], attributes: Attributes) -> NDArray[np.int64] | None:
    """Of each group of the inner question, to which group of the outer one it adds; −1: to none.

    None where the outer question does not follow from the inner one.
    """
    if not reads(outer[0]) <= reads(inner[0]):
        return None  # it tells rows apart that the inner one does not
    if inner[0] != outer[0] and is_refuted(inner[0], outer[0], attributes.columns):
        return None
    found = attributes.of(inner[0], outer[0])
    if found is None:
        return None
    own, wanted = sums_of(*inner, found), sums_of(*outer, found)
    if own.empty or wanted.empty:
        return None
    ways: list[dict[int, int]] = []
    for at, attribute in enumerate(found):
        way = part_in_part(own.parts.get(at), wanted.parts.get(at), attribute.size)
        if way is None:
            return None
        ways.append(way)
    return _added(own, wanted, ways, len(found))


def _added(own: Sums, wanted: Sums, ways: Sequence[Mapping[int, int]], attributes: int) -> NDArray[np.int64] | None:
    """The group that each inner group adds to; None where an inner group is missing that an outer one is made of."""
    left = np.array(own.places, dtype=np.int64)
    place = np.zeros(len(left), dtype=np.int64)
    needed = np.ones(1, dtype=np.int64)
    stride, kept = 1, np.ones(len(left), dtype=bool)
    for at in reversed(range(attributes)):
        size, target = own.sizes.get(at, 1), wanted.sizes.get(at, 1)
        way = np.array([ways[at].get(each, -1) for each in range(size)], dtype=np.int64)
        part = way[left % size] if at in own.parts else np.full(len(left), way[0])
        left = left // size if at in own.parts else left
        kept &= part >= 0
        place += stride * np.maximum(part, 0)
        stride *= target
        # How many inner parts each outer part has, attribute by attribute: their product over a group's parts.
        needed = np.multiply.outer(np.bincount(way[way >= 0], minlength=target), needed).ravel()
    counted = np.bincount(place[kept], minlength=math.prod(wanted.sizes.values()))
    groups = np.array(wanted.places, dtype=np.int64)
    if (counted[groups] != needed[groups]).any() or (needed[groups] == 0).any():
        return None
    group_of = np.full(len(needed), -1, dtype=np.int64)
    group_of[groups] = np.arange(len(groups))
    found: NDArray[np.int64] = np.where(kept, group_of[place], -1)
    return found
