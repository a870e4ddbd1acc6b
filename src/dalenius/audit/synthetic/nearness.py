"""How near rows are to synthetic ones: the distance to the nearest, and to the ten nearest on average."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

    from dalenius.synthesis.domain import Codes, Domain

_AT_ONCE = 64  # rows
NEIGHBOURS = 10

Floats = NDArray[np.float32]


def nearness(rows: Codes, synthetic: Codes, domain: Domain, told: Callable[[float], object]) -> tuple[Floats, Floats]:
    """For each row (columns × rows) its distance to the nearest synthetic one, and the mean of the ten nearest.

    A column adds 1 where values differ; one whose values have an order, by how many of them lie between.
    """
    first, several = list[Floats](), list[Floats]()
    most = min(NEIGHBOURS, synthetic.shape[1])
    for begin in range(0, rows.shape[1], _AT_ONCE):
        part = rows[:, begin : begin + _AT_ONCE]
        apart = np.zeros((part.shape[1], synthetic.shape[1]), np.float32)
        for at, column in enumerate(domain):
            here, there = part[at][:, None], synthetic[at][None, :]
            if not column.ordered:
                apart += here != there
                continue
            known = column.known
            both = (here < known) & (there < known)
            apart += np.where(both, np.abs(here - there) / max(1, known - 1), (here != there).astype(np.float32))
        nearest = np.partition(apart, most - 1, axis=1)[:, :most]
        first.append(nearest.min(axis=1))
        several.append(nearest.mean(axis=1))
        told(min(1.0, (begin + _AT_ONCE) / rows.shape[1]))
    return np.concatenate(first), np.concatenate(several)
