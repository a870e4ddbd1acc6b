"""Equivalence classes: rows that look alike in all quasi-identifiers, and the sensitive values in them.

All models are computed from these counts, in one pass: class × sensitive value, kept sparse, since a class of ten rows
has at most ten of perhaps a thousand values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.table import Column, Table

_DENSE = 4_000_000  # cells up to which it is faster to count than to sort


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each value is in each class: entries `start[c]:start[c + 1]` belong to class c.

    Attributes:
        start: One more than there are classes.
        value: Codes of values, ascending within a class.
        count: How often.
        width: How many values there are.
    """

    start: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]
    width: int

    @staticmethod
    def of(of_row: NDArray[Any], codes: NDArray[Any], classes: int, width: int) -> Counts:
        """Counted from the class and the value of each row."""
        keys = of_row.astype(np.int64) * width + codes
        if classes * width <= max(_DENSE, len(keys)):
            dense = np.bincount(keys, minlength=classes * width)
            places = np.flatnonzero(dense)
            count = dense[places]
        else:
            places, count = np.unique(keys, return_counts=True)
        start = np.searchsorted(places, np.arange(classes + 1) * width)
        return Counts(start, places % width, count, width)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """The class of each entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each class."""
        return self.total(self.count)

    def total(self, entries: NDArray[Any]) -> NDArray[Any]:
        """The sum of something over each class's entries."""
        if entries.dtype.kind == "f":  # a running sum of floats would carry its rounding from class to class
            return np.bincount(self.owner, entries, minlength=len(self.start) - 1)
        summed = np.concatenate(([0], np.cumsum(entries)))
        return summed[self.start[1:]] - summed[self.start[:-1]]

    def largest(self, entries: NDArray[Any]) -> NDArray[Any]:
        """The largest of something over each class's entries; 0 where it has none."""
        found = np.zeros(len(self.start) - 1, entries.dtype)
        filled = np.diff(self.start) > 0
        if filled.any():
            found[filled] = np.maximum.reduceat(entries, self.start[:-1][filled])
        return found

    def descending(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The counts with the largest first in each class, and the rank of each (from 1)."""
        order = np.lexsort((-self.count, self.owner))
        return self.count[order], np.arange(len(self.count)) - np.repeat(self.start[:-1], np.diff(self.start)) + 1

    def merged(self, new: NDArray[Any], classes: int) -> Counts:
        """With class c become part of class `new[c]`; below 0: dropped."""
        owner = new[self.owner]
        kept = owner >= 0
        keys = owner[kept] * self.width + self.value[kept]
        if classes * self.width <= max(_DENSE, 4 * len(keys)):
            dense = np.bincount(keys, self.count[kept], minlength=classes * self.width)
            places = np.flatnonzero(dense)
            count = dense[places].astype(np.int64)
        else:
            places, found = np.unique(keys, return_inverse=True)
            count = np.bincount(found, self.count[kept]).astype(np.int64)
        return Counts(
            np.searchsorted(places, np.arange(classes + 1) * self.width), places % self.width, count, self.width
        )

    def take(self, some: NDArray[np.intp]) -> Counts:
        """Some of the classes, in this order."""
        lengths = np.diff(self.start)[some]
        start = np.concatenate(([0], np.cumsum(lengths)))
        entries = np.repeat(self.start[some] - start[:-1], lengths) + np.arange(int(start[-1]))
        return Counts(start, self.value[entries], self.count[entries], self.width)

    def dense(self) -> NDArray[np.int64]:
        """All of it, as classes × width."""
        found = np.zeros((len(self.start) - 1, self.width), np.int64)
        found[self.owner, self.value] = self.count
        return found


@dataclass(frozen=True, eq=False)
class Groups:
    """What a model looks at: sizes of classes, sensitive values in them, and how many people fall into each."""

    sizes: NDArray[np.int64]
    counts: Mapping[str, Counts]
    population: NDArray[np.int64] | None = None

    def take(self, some: NDArray[np.intp]) -> Groups:
        """Some of the classes, in this order."""
        people = None if self.population is None else self.population[some]
        return Groups(self.sizes[some], {name: each.take(some) for name, each in self.counts.items()}, people)


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a table.

    Attributes:
        of_row: The class of each row, from 0.
        sizes: Rows of each.
    """

    of_row: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """One row of each class."""
        found = np.zeros(len(self.sizes), np.intp)
        found[self.of_row[::-1]] = np.arange(len(self.of_row))[::-1]
        return found

    def counts(self, column: Column) -> Counts:
        """How often each value of a column is in each class."""
        return Counts.of(self.of_row, column.codes, len(self.sizes), len(column.values))

    def groups(self, table: Table, sensitive: Sequence[str]) -> Groups:
        """What models look at."""
        return Groups(self.sizes, {name: self.counts(table[name]) for name in sensitive})


def classes(table: Table, columns: Sequence[str]) -> Classes:
    """The classes of rows that are equal in these columns.

    >>> found = classes(Table.of({"age": ["1", "2", "1"], "sex": ["f", None, "f"]}), ["age", "sex"])
    >>> found.of_row, found.sizes
    (array([0, 1, 0]), array([2, 1]))
    """
    found = [table[name] for name in columns]
    of_row = group([each.codes for each in found], [len(each.values) for each in found], table.rows)
    return Classes(of_row, np.bincount(of_row))


def group(codes: Sequence[NDArray[Any]], widths: Sequence[int], rows: int) -> NDArray[np.int64]:
    """A number for each distinct combination of codes, from 0 in the order of the codes, for each row."""
    keys, size = np.zeros(rows, np.int64), 1
    for own, width in zip(codes, widths, strict=True):
        if size * width >= 1 << 62:
            keys, size = _dense(keys, size)
        keys, size = keys * width + own, size * max(width, 1)
    return _dense(keys, size)[0]


def _dense(keys: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], int]:
    if size <= max(_DENSE, 4 * len(keys)):
        seen = np.zeros(size, np.bool_)
        seen[keys] = True
        numbers = np.cumsum(seen)
        return numbers[keys] - 1, int(numbers[-1]) if size else 0
    distinct, found = np.unique(keys, return_inverse=True)
    return found.astype(np.int64), len(distinct)
