"""All rows in no order, each with how many its unit has: what tables of counts read. Never outside of a look.

Where a row's weight follows from its unit's number of rows alone, nothing has to be sorted and no unit has to stand
together: that makes this several times faster than `batches`, whose rules for who reads hold here as well.

Neighbours
    Let D and D′ differ in one unit v. Then exactly v's rows are missing from one of them, and all other rows have the
    values and the number beside them that they had: that number is of the row's own unit. The order of rows, and where
    one batch ends, may differ in any way: **what is worked out must not depend on either** (sums do not).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.measuring.batches import check_read
from dalenius.measuring.expressions import TRUE, Expression

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dalenius.measuring.plan import Table


@dataclass(frozen=True, slots=True)
class HeldRows:
    """What is read of rows.

    Attributes:
        table: As `UnitRows.table`.
        columns: As `UnitRows.columns`.
        where: As `UnitRows.where`. A unit has only those of its rows for which it holds.
    """

    table: Table
    columns: tuple[Expression, ...]
    where: Expression = TRUE

    def __post_init__(self) -> None:
        check_read(self.table, self.columns)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowBatch:
    """Some rows. It holds exact values of people: it never leaves a look, not even as text.

    Attributes:
        held: Of each row, how many rows its unit has in all.
        values: Each column, as `UnitBatch.values`; of texts only the different ones.
        absent: As `UnitBatch.absent`; of texts, of the different ones.
        places: For a column of texts, where the text of each row stands among the different ones; else None.
    """

    held: NDArray[np.int64]
    values: tuple[NDArray[Any], ...]
    absent: tuple[NDArray[np.bool_], ...]
    places: tuple[NDArray[np.integer[Any]] | None, ...]

    def coded(
        self, at: int, code: Callable[[NDArray[Any], NDArray[np.bool_]], NDArray[np.integer[Any]]]
    ) -> NDArray[np.integer[Any]]:
        """What ``code`` makes of a column's values, row by row. Of texts it is given each different one once."""
        found, places = code(self.values[at], self.absent[at]), self.places[at]
        return found if places is None else found[places]

    def __repr__(self) -> str:
        return "RowBatch(…)"  # into a traceback or a log goes nothing, not even a number
