"""Corners instead of grids: where several parameters are extreme at once is where a bound breaks first.

`make test-long` runs the whole grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from tests.conftest import LONG


def corners(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """All combinations of the axes' ends, and every value between them once with the others at an end.

    In the long form, all combinations of all values.
    """
    if LONG:
        return list(product(*axes))
    found = list(product(*(dict.fromkeys((axis[0], axis[-1])) for axis in axes)))
    for place, axis in enumerate(axes):
        for at, value in enumerate(axis[1:-1]):
            others = [each[-((at + other) % 2)] for other, each in enumerate(axes)]
            found.append((*others[:place], value, *others[place + 1 :]))
    return found
