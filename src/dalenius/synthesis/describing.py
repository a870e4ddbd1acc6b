"""What a model says of each column by itself: post-processing, for charts and reports. It costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dalenius._numbers import to_digits
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.synthesis.domain import Codes
    from dalenius.synthesis.policy_domain import Modelled
    from dalenius.synthesis.stored import StoredModel

MOST_BARS = 24  # of one column
SEED = 1  # what is told of a model is told of the same rows each time
MOST_DRAWN = 200_000  # rows, from which it is told
ABSENT = "no value"
_REST = "others"
_DAY = len("2025-01-01")
_EPOCH = datetime.fromisoformat("1970-01-01")


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
    """As many rows of codes as the table has, or ``most``; the same ones each time."""
    rows = max(1, min(stored.rows, most))
    return stored.model.sample(rows, np.random.default_rng(SEED))


def one_way(column: Modelled, codes: NDArray[np.integer]) -> OneWay:
    """One column of codes: neighbouring classes together where there are many, of keys the most frequent ones."""
    counts = np.bincount(codes, minlength=column.column.size) / max(1, len(codes))
    known, absent = counts[: column.column.known], counts[column.column.known :].sum()
    if len(known) <= MOST_BARS:
        names, shares = [label(column, at, at + 1) for at in range(len(known))], list(known)
    elif column.column.classes:
        edges = np.linspace(0, len(known), MOST_BARS + 1).round().astype(int)
        spans = list(pairwise(edges))
        names, shares = [label(column, *each) for each in spans], [known[low:high].sum() for low, high in spans]
    else:
        first = np.sort(np.argsort(-known, kind="stable")[: MOST_BARS - 1])
        names = [*(label(column, at, at + 1) for at in first), _REST]
        shares = [*known[first], known.sum() - known[first].sum()]
    if column.column.absent:
        names, shares = [*names, ABSENT], [*shares, absent]
    return OneWay(column.name, tuple(names), tuple(float(each) for each in shares))


def label(column: Modelled, low: int, high: int) -> str:
    """What some neighbouring codes mean: a key, or the values from one to another."""
    inside = column.column
    if inside.keys:
        ends = [str(inside.keys[low]), str(inside.keys[high - 1])]
        return ends[0] if high - low == 1 else " to ".join(ends)
    edges = np.linspace(inside.lower, inside.upper, inside.classes + 1)
    first, last = edges[low], edges[high]
    if inside.whole and column.kind is not Kind.DATETIME:  # the last class ends one above the last whole number
        first, last = np.ceil(first), max(np.ceil(first), np.ceil(last) - 1)
    ends = [_written(column.kind, each) for each in (first, last)]
    if ends[0] == ends[1]:
        return ends[0]
    same_day = column.kind is Kind.DATETIME and ends[0][:_DAY] == ends[1][:_DAY]
    return f"{ends[0]} to {ends[1][_DAY + 1 :] if same_day else ends[1]}"


def _written(kind: Kind, value: float) -> str:
    match kind:
        case Kind.DATE:
            return (_EPOCH + timedelta(days=float(value))).date().isoformat()
        case Kind.DATETIME:
            return (_EPOCH + timedelta(seconds=float(value))).isoformat(" ", "minutes")
        case Kind.INTEGER:
            return f"{value:.0f}"
    return to_digits(float(value), 4)
