"""Made-up units: whose the rows of a synthetic table are, so that questions about persons can be asked of it.

Rows come from the model. They are dealt to units of sizes that were counted with noise, so that two rows of one unit
are alike in a column as often as they were counted to be: rows are sorted, columns with few values first, and each
unit gets some that follow one another. Where rows of a unit are alike less often than always, a row is sorted by
another row's value now and then. In a column in which they always are (a year of birth) all rows of a unit get the
value of one of them.

All of it is post-processing of what `unit_counts` measures. What is not modelled: whether units with many rows differ
from others, and what the rows of a unit have in common beside single columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.domain import Codes
from dalenius.synthesis.position_classes import Classes

Number = TypeVar("Number", bound=np.generic)
NEARLY = 0.98  # chance of a row to be sorted by its own value, from which on all rows of a unit have one


@dataclass(frozen=True, eq=False)
class Dealt:
    """Rows in the order of units.

    Attributes:
        order: Which row stands in each place.
        heads: Which row of the same unit is followed in columns that are always alike.
        always: These columns.
        numbers: Of the unit in each place.
    """

    order: NDArray[np.int64]
    heads: NDArray[np.int64]
    always: tuple[int, ...]
    numbers: NDArray[np.int64]

    def of(self, table: NDArray[Number]) -> NDArray[Number]:
        """A table (rows × columns), dealt."""
        found = table[self.order]
        for at in self.always:
            found[:, at] = table[self.heads, at]
        return found


@dataclass(frozen=True, eq=False)
class MadeUpUnits:
    """What units are like.

    Attributes:
        name: Of the column that says whose a row is.
        count: How many there are, by noisy count.
        sizes: Classes of their numbers of rows, less one.
        shares: Of units, in each of these classes.
        alike: Of each column of the model, how often two rows of one unit are alike; None: no more than any two rows,
            as far as the noise lets see.
        fixed: Whether rows of a unit that are alike there have one value, and not values of one class alone.
    """

    name: str
    count: float
    sizes: Classes
    shares: NDArray[np.float64]
    alike: tuple[float | None, ...]
    fixed: tuple[bool, ...] = ()

    @property
    def rows(self) -> float:
        """How many rows all of them have."""
        middle = np.array([(first + last) / 2 + 1 for first, last in self.sizes.runs])
        return float(self.count * (middle * self.shares).sum())

    def deal(self, codes: Codes, rng: np.random.Generator) -> tuple[Codes, NDArray[np.int64]]:
        """The rows (rows × columns) in the order of units, and the number of the unit of each."""
        dealt = self.dealt(codes, self.sizes_of(len(codes), rng), rng)
        return dealt.of(codes), dealt.numbers

    def dealt(self, codes: Codes, held: NDArray[np.int64], rng: np.random.Generator) -> Dealt:
        """Which rows go to which unit, where units have so many rows each."""
        places = self._chances(codes)
        keys = [self._key(codes[:, at], chance, rng) for at, chance in places]
        order = np.lexsort((rng.random(len(codes)), *keys[::-1]))
        begins = np.cumsum(held) - held
        one = np.repeat(begins + rng.integers(0, np.maximum(held, 1)), held)
        # numbers say nothing of what was sorted
        numbers = (rng.permutation(len(held)) + 1)[np.repeat(np.arange(len(held)), held)]
        final = np.argsort(numbers, kind="stable")
        always = tuple(at for at, chance in places if chance >= NEARLY)
        return Dealt(order[final], order[one[final]], always, numbers[final])

    def sizes_of(self, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Sizes of units that add up to so many rows; the last one gets what is left."""
        mean = self.rows / max(self.count, 1e-9)
        drawn = list[NDArray[np.int64]]()
        total = 0
        while total < rows:
            some = rng.choice(len(self.shares), int((rows - total) / max(mean, 1.0)) + 16, p=self.shares)
            drawn.append(self.sizes.draw(some, rng) + 1)
            total += int(drawn[-1].sum())
        sizes = np.concatenate([*drawn, np.zeros(0, np.int64)])
        ends = np.minimum(np.cumsum(sizes), rows)
        found: NDArray[np.int64] = np.diff(ends, prepend=0)
        return found[found > 0]

    def _chances(self, codes: Codes) -> list[tuple[int, float]]:
        """By which columns rows are sorted, those with few values first, and how often by the row's own value.

        Two rows sorted by their own value with chance q are alike with chance q² + (1 − q²)·p, where p is that of any
        two rows.
        """
        found = list[tuple[int, int, float]]()
        for at, alike in enumerate(self.alike):
            shares = np.unique(codes[:, at], return_counts=True)[1] / max(1, len(codes))
            by_chance = float((shares**2).sum())
            if alike is not None and alike > by_chance:
                chance = min(1.0, ((alike - by_chance) / (1 - by_chance)) ** 0.5)
                found.append((len(shares), at, chance))
        return [(at, chance) for _, at, chance in sorted(found)]

    def _key(self, codes: Codes, chance: float, rng: np.random.Generator) -> Codes:
        other = rng.random(len(codes)) >= chance
        found = codes.copy()
        found[other] = rng.permutation(codes)[: int(other.sum())]
        return found

    def to_json(self) -> dict[str, Any]:
        """As it is stored with a model."""
        return {
            "name": self.name,
            "count": self.count,
            "sizes": self.sizes.to_json(),
            "shares": [round(float(each), 9) for each in self.shares],
            "alike": list(self.alike),
            "fixed": list(self.fixed),
        }

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> MadeUpUnits:
        """As `to_json` wrote it."""
        shares: Sequence[float] = data["shares"]
        whole = np.array(shares, np.float64)
        return cls(
            data["name"],
            data["count"],
            Classes.of_json(data["sizes"]),
            whole / whole.sum(),
            tuple(data["alike"]),
            tuple(data.get("fixed", ())),
        )
