"""Rows of units, as training sees them: read inside of a look, and nowhere else.

Of each unit at most so many rows are read; which, a keyed hash decides, from the unit's own rows alone. Units come in
the order of their tags, which are a keyed hash too. Whether a unit is held out follows from its own tag. So adding or
removing a unit adds or removes its own rows and changes no other unit's (`measuring.batches`, "Neighbours").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from dalenius.learning.units import encode
from dalenius.measuring._exact import exact_batches
from dalenius.measuring.batches import UnitBatch, UnitRows
from dalenius.measuring.expressions import Column as Read
from dalenius.measuring.functions import TYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.features import Values
    from dalenius.learning.task import Task
    from dalenius.learning.units import Units
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.plan import Table

_UNITS = 2**14  # in one batch
_PARTS = 10_000  # a share of units is a whole number of so many parts


def held_out(tags: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """Which units are held out, each by its own tag."""
    return (tags % np.uint64(_PARTS)).astype(np.int64) < round(share * _PARTS)


def read_units(
    table: Table,
    task: Task,
    where: Expression,
    engine: Engine,
    salt: str,
    seconds: float,
    *,
    rows: int,
    share: float = 0.0,
    held: bool = False,
) -> Iterator[Units]:
    """The units of a table, a few at a time: those that are learned from, or those that are held out.

    Args:
        table: Whose rows.
        task: Which columns, and what their values become.
        where: Which rows there are.
        engine: Where they are.
        salt: Of the keyed hash.
        seconds: That it may take.
        rows: Of one unit, at most so many.
        share: How many of the units are held out.
        held: Those; else the others.
    """
    columns = (task.target, *task.features)
    reading = UnitRows(table, tuple(Read(each.name, TYPES[each.kind]) for each in columns), rows, where)
    for batch in exact_batches(reading, engine, salt, units=_UNITS, seconds=seconds):
        part = _of(batch, held_out(batch.tags, share) == held) if share else batch
        found: Values = {each.name: (part.values[at], part.absent[at]) for at, each in enumerate(columns)}
        yield encode(task, found, part.starts, rows=rows)


def _of(batch: UnitBatch, wanted: NDArray[np.bool_]) -> UnitBatch:
    """Some units of a batch, in its order."""
    rows = wanted[batch.owners]
    held = np.diff(batch.starts)[wanted]
    return UnitBatch(
        batch.tags[wanted],
        np.concatenate([np.zeros(1, np.int64), np.cumsum(held)]),
        tuple(each[rows] for each in batch.values),
        tuple(each[rows] for each in batch.absent),
    )
