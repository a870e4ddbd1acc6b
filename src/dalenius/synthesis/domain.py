"""Which values a synthetic table may have: from declarations alone, never from the data.

A column is a list of codes 0, 1, …, each with a meaning that the policy gives it: declared keys, equal classes between
declared bounds, one code for the rest of the keys, one for absent values. Generators see codes; only `decode` knows
what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError

Codes = NDArray[np.integer[Any]]
REST = "other"


@dataclass(frozen=True)
class Column:
    """One column: its keys or classes, in this order, then the rest of the keys, then absent values, where asked.

    Attributes:
        name: As in the policy.
        keys: Declared keys; empty for a column of numbers.
        lower: Where the first class begins, for a column of numbers.
        upper: Where the last class ends.
        classes: How many equal classes lie between.
        whole: Numbers are whole: then so are the numbers drawn from a class.
        rest: There is a code for keys that were not declared.
        absent: There is a code for absent values.
        ordered: Neighbouring codes are alike, so that they may be merged.
    """

    name: str
    keys: tuple[Any, ...] = ()
    lower: float = 0.0
    upper: float = 0.0
    classes: int = 0
    whole: bool = False
    rest: bool = False
    absent: bool = False
    ordered: bool = False

    def __post_init__(self) -> None:
        if bool(self.keys) == bool(self.classes):
            raise InputError(
                f"Column {self.name!r} needs either keys or bounds.",
                why="What values a synthetic column may have comes from its declaration, never from the data.",
                fix="Declare its keys, or its bounds and how many classes lie between them.",
            )
        if self.classes and not (np.isfinite([self.lower, self.upper]).all() and self.lower < self.upper):
            raise InputError(
                f"The bounds of column {self.name!r} enclose nothing.",
                why="Classes of equal width lie between them.",
                fix="Declare a lower bound that is below the upper one.",
            )

    @property
    def known(self) -> int:
        """How many keys or classes are declared."""
        return len(self.keys) or self.classes

    @property
    def size(self) -> int:
        """How many codes there are."""
        return self.known + self.rest + self.absent

    @property
    def doubtful(self) -> range:
        """The codes that nobody declared: the rest and absent values. Noise alone must not make any (`start`)."""
        return range(self.known, self.size)

    def decode(self, codes: Codes, rng: np.random.Generator) -> NDArray[Any]:
        """Values of these codes; numbers are uniform within their class.

        >>> Column("sex", keys=("f", "m"), absent=True).decode(np.array([0, 2]), np.random.default_rng(0)).tolist()
        ['f', None]
        """
        found = np.empty(len(codes), object)
        if self.keys:
            labels = np.array([*self.keys, *([REST] * self.rest), None], object)
            found[:] = labels[np.minimum(codes, len(labels) - 1)]
            return found
        inside = codes < self.classes
        drawn = self.numbers(codes[inside], rng)
        found[inside] = drawn.astype(np.int64).tolist() if self.whole else drawn.tolist()
        return found

    def numbers(self, classes: Codes, rng: np.random.Generator) -> NDArray[np.float64]:
        """Numbers of these classes, none of which is absent."""
        edges = np.linspace(self.lower, self.upper, self.classes + 1)
        low, high = edges[classes], edges[classes + 1]
        drawn: NDArray[np.float64] = low + (high - low) * rng.random(len(low))
        if self.whole:  # of the whole numbers of a class each alike; a class without any gives the one above it
            first = np.ceil(low)
            count = np.maximum(1, np.ceil(high) - first)
            drawn = np.minimum(first + np.floor(rng.random(len(low)) * count), np.floor(self.upper))
        return drawn


@dataclass(frozen=True)
class Domain:
    """The columns of a table, each known by its place.

    >>> domain = Domain((Column("sex", keys=("f", "m")), Column("age", lower=0, upper=100, classes=50)))
    >>> domain.sizes, domain.place("age")
    ((2, 50), 1)
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

    def decode(self, table: Codes, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """The columns of a table of codes (rows × columns), as values."""
        return {column.name: column.decode(table[:, at], rng) for at, column in enumerate(self.columns)}


def sized(sizes: Sequence[int], ordered: Sequence[bool] | None = None) -> Domain:
    """A domain of columns c0, c1, … whose keys are 0, 1, …: for tables that are codes already.

    >>> sized([2, 3]).sizes
    (2, 3)
    """
    alike = ordered or [False] * len(sizes)
    columns = zip(sizes, alike, strict=True)
    return Domain(tuple(Column(f"c{at}", tuple(range(size)), ordered=way) for at, (size, way) in enumerate(columns)))
