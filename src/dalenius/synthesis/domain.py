"""Which values a synthetic table may have, as codes: what generators see of columns.

A column is a list of codes 0, 1, …: keys or classes, then one code for the rest of the keys and one for absent values,
where there are such. What codes mean, `modelled` knows; they come from declarations, or were found with noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError

Codes = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Column:
    """One column: its keys or classes, in this order, then the rest of the keys, then absent values, where asked.

    Attributes:
        name: As in the policy.
        keys: Its keys; empty for a column of classes.
        classes: How many classes there are, for a column of numbers or times.
        rest: There is a code for keys that are not among these.
        absent: There is a code for absent values.
        ordered: Neighbouring codes are alike, so that they may be merged.
    """

    name: str
    keys: tuple[Any, ...] = ()
    classes: int = 0
    rest: bool = False
    absent: bool = False
    ordered: bool = False

    def __post_init__(self) -> None:
        if bool(self.keys) == bool(self.classes):
            raise InputError(
                f"Column {self.name!r} needs either keys or classes.",
                why="What values a synthetic column may have does not come from the data.",
                fix="Declare its keys, or its bounds.",
            )

    @property
    def known(self) -> int:
        """How many keys or classes there are."""
        return len(self.keys) or self.classes

    @property
    def size(self) -> int:
        """How many codes there are."""
        return self.known + self.rest + self.absent

    @property
    def doubtful(self) -> range:
        """The codes that nobody declared: the rest and absent values. Noise alone must not make any (`start`)."""
        return range(self.known, self.size)


@dataclass(frozen=True)
class Domain:
    """The columns of a table, each known by its place.

    >>> domain = Domain((Column("sex", keys=("f", "m")), Column("age", classes=50, absent=True)))
    >>> domain.sizes, domain.place("age")
    ((2, 51), 1)
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if not names or len(set(names)) < len(names):
            raise InputError(
                "A synthetic table needs at least one column, and no two of one name.",
                why="Columns are known by their names.",
                fix="Choose columns, each once.",
            )

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each column has."""
        return tuple(column.size for column in self.columns)

    def place(self, name: str) -> int:
        """Where a column stands."""
        if name not in self.names:
            raise InputError(
                f"There is no column {name!r} among those to be modelled.",
                why="Only chosen columns can be asked for.",
                fix=f"Take one of {', '.join(self.names)}.",
            )
        return self.names.index(name)


def sized(sizes: Sequence[int], ordered: Sequence[bool] | None = None) -> Domain:
    """A domain of columns c0, c1, … whose keys are 0, 1, …: for tables that are codes already.

    >>> sized([2, 3]).sizes
    (2, 3)
    """
    alike = ordered or [False] * len(sizes)
    columns = zip(sizes, alike, strict=True)
    return Domain(tuple(Column(f"c{at}", tuple(range(size)), ordered=way) for at, (size, way) in enumerate(columns)))
