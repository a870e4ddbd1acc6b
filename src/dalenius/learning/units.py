"""What training sees of units: their rows as numbers, in a room whose size is public."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalenius.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.features import Values
    from dalenius.learning.task import Task


@dataclass(frozen=True, eq=False, repr=False)
class Units:
    """Rows of units. It holds exact values of people: it never leaves a look, not even as text.

    Attributes:
        numbers: Units × rows × columns, whole steps of 2⁻¹⁴; a row that is not there is all 0, and then adds 0 to
            every gradient. The last column is 1 in each row that is there.
        aims: Units × rows: the place of a row's class, or a number from 0 to 1.
    """

    numbers: NDArray[np.float32]
    aims: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return "Units(…)"


def encode(task: Task, values: Values, starts: NDArray[np.int64] | None = None, *, rows: int = 1) -> Units:
    """Rows as numbers, unit by unit.

    Args:
        task: What is learned from which columns.
        values: Of the target and every feature: values and which are absent, row by row (as `measuring.batches`).
        starts: Where the rows of each unit begin, and where the last one's end; None: each row is a unit.
        rows: The most that are taken of a unit, the first ones.
    """
    count = len(values[task.target.name][0])
    ends = np.arange(count + 1) if starts is None else starts
    aims, known = task.aims(*values[task.target.name])
    found = np.empty((count, task.width), np.float32)
    at = 0
    for each in task.features:
        each.encode(*values[each.name], into=found[:, at : at + each.width])
        at += each.width
    found[:, -1] = 1 << 14
    found[~known] = 0  # nothing is learned from a row without a target
    held = np.diff(ends)
    place = np.arange(count) - np.repeat(ends[:-1], held)
    owner = np.repeat(np.arange(len(held)), held)
    kept = place < rows
    units = Units(np.zeros((len(held), rows, task.width), np.float32), np.zeros((len(held), rows)))
    units.numbers[owner[kept], place[kept]] = found[kept]
    units.aims[owner[kept], place[kept]] = aims[kept]
    return units


def in_room(parts: Iterable[Units], task: Task, *, capacity: int, rows: int = 1) -> Units:
    """Units in a room for ``capacity`` of them, and one place more that stays empty; those beyond are left out."""
    room = Units(np.zeros((capacity + 1, rows, task.width), np.float32), np.zeros((capacity + 1, rows)))
    at = 0
    for part in parts:
        if part.numbers.shape[1:] != room.numbers.shape[1:]:
            raise InputError("Units are of another task.", why="Their rows differ.", fix="Encode them by the recipe.")
        taken = min(len(part), capacity - at)
        room.numbers[at : at + taken] = part.numbers[:taken]
        room.aims[at : at + taken] = part.aims[:taken]
        at += taken
    return room
