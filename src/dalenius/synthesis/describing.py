"""What a model says of each column by itself: post-processing, for charts and reports. It costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius._numbers import to_digits
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.synthesis.domain import Codes
    from dalenius.synthesis.modelled import Modelled
    from dalenius.synthesis.stored import StoredModel

MOST_BARS = 24  # of one column
SEED = 1  # what is told of a model is told of the same rows each time
MOST_DRAWN = 200_000  # rows, from which it is told
ABSENT = "no value"
_OTHERS = "others"
_DAY = len("2025-01-01")


@dataclass(frozen=True)
class OneWay:
    """The rows of a model by the values of one column.

    Attributes:
        name: The column.
        labels: Its values, or classes of them: at most `MOST_BARS`.
        shares: Of all rows.
    """

    name: str
    labels: tuple[str, ...]
    shares: tuple[float, ...]


def one_ways(stored: StoredModel) -> list[OneWay]:
    """Every column, from rows that are drawn for it."""
    codes = drawn(stored)
    return [one_way(each, codes[:, at]) for at, each in enumerate(stored.domain.columns)]


def drawn(stored: StoredModel, most: int = MOST_DRAWN) -> Codes:
    """As many rows of codes as the model counts, or ``most``; the same ones each time."""
    rows = max(1, min(stored.counted, most))
    return stored.model.sample(rows, np.random.default_rng(SEED))


def one_way(column: Modelled, codes: Codes) -> OneWay:
    """One column of codes: neighbouring classes together where there are many, of keys the most frequent ones."""
    inside = column.column
    counts = np.bincount(codes, minlength=inside.size) / max(1, len(codes))
    named = inside.size - inside.absent  # keys or classes, and the rest of the keys
    if named <= MOST_BARS:
        names, shares = [label(column, at, at + 1) for at in range(named)], list(counts[:named])
    elif inside.classes:
        edges = np.linspace(0, named, MOST_BARS + 1).round().astype(int)
        spans = list(pairwise(edges))
        names, shares = [label(column, *each) for each in spans], [counts[low:high].sum() for low, high in spans]
    else:
        first = np.sort(np.argsort(-counts[:named], kind="stable")[: MOST_BARS - 1])
        names = [*(label(column, at, at + 1) for at in first), _OTHERS]
        shares = [*counts[first], counts[:named].sum() - counts[first].sum()]
    if inside.absent:
        names, shares = [*names, ABSENT], [*shares, counts[-1]]
    return OneWay(column.name, tuple(names), tuple(float(each) for each in shares))


def label(column: Modelled, low: int, high: int) -> str:
    """What some neighbouring codes mean: a key, or the values from one to another."""
    if column.keys is not None:
        keys = [*column.keys, column.rest_name]
        return str(keys[low]) if high - low == 1 else f"{keys[low]} to {keys[high - 1]}"
    if column.grid is None or column.classes is None:
        raise RuntimeError("A column whose values are sought has none yet.")
    runs = column.classes.runs
    ends = np.array([runs[low][0], runs[high - 1][1]], np.int64)
    first, last = (_written(column.kind, each) for each in _values(column.grid.values(ends, np.random.default_rng(0))))
    if first == last:
        return first
    same_day = column.kind is Kind.DATETIME and first[:_DAY] == last[:_DAY]
    return f"{first} to {last[_DAY + 1 :] if same_day else last}"


def _values(found: NDArray[Any]) -> list[Any]:
    """As Python has them."""
    values: list[Any] = found.tolist()
    return values


def _written(kind: Kind, value: Any) -> str:
    match kind:
        case Kind.DATE:
            return str(value.isoformat())
        case Kind.DATETIME:
            return str(value.isoformat(" ", "minutes"))
        case Kind.INTEGER:
            return f"{value:d}"
    return to_digits(float(value), 4)
