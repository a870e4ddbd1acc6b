"""The rows of units, a few units at a time: what learning reads where sums do not do. Never outside of a look.

What is read (`UnitRows`) is an expression for each column over the rows of a table, or of a relation; every column is
cleaned first, as for questions. Of a unit with more rows than ``rows``, exactly so many are read. An engine gives them
as `UnitBatch`es: whole units, in an order that a keyed hash decides.

Neighbours
    Let D and D′ differ in one unit v, and let both be read with one salt. Then

    * exactly v's rows are missing from one of them. Which rows of a unit are read, and in which order, is a function
      of that unit's own rows and of the salt, and so is its tag;
    * all other units have the rows that they had, and follow each other in the same order. Units come in the order of
      their tags, wherever v would have stood;
    * v itself adds at most ``rows`` rows, and stands in one batch.

    So what is worked out for each unit by itself, brought within a bound and added up, changes by at most that bound
    when v is added or removed, and by at most twice that when another takes its place. Removing v moves the edges of
    batches after it: **a batch is a means of transport and no unit of any mechanism**. To average over a batch, to
    number units through, or to sample by batches, is to let v decide about others. Parts are by tags (`parts`),
    samples by a coin for each unit.

What is not hidden
    Everything here is exact. How many units, batches and rows there are is as secret as any of their values, and so is
    the time that it takes to go through them. Who reads must therefore

    * read inside `look` only, when the charge is on disk, through the private door (`_exact.exact_batches`);
    * let nothing leave but what a mechanism made: no batch, no tag, no number of batches, no progress, no log;
    * leave at a fixed time (`releasing.pacing`), whatever the number of batches was;
    * decide by public facts how often, in which passes and in batches of how many units it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.accounting import parameters
from dalenius.errors import InputError, NotAllowedError
from dalenius.measuring.expressions import TRUE, Expression, Type, columns_of, walk
from dalenius.measuring.functions import ANY
from dalenius.measuring.relations import full

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dalenius.measuring.plan import Table

MOST_ROWS = 10**6  # of one unit: beyond that nothing is limited


@dataclass(frozen=True, slots=True)
class UnitRows:
    """What is read of units.

    Attributes:
        table: Whose rows. It may be made of several (`Table.made_of`); a row's unit is that of the relation.
        columns: What is read of each row: total expressions (`rules.total`), of numbers, truth values, texts or times.
        rows: Of one unit, at most so many. Of one that has n > rows, exactly so many, each row with the same
            probability rows/n over the secret salt; of rows that are alike, as many as their share, to within one.
        where: Which rows there are, made total. Where budgets are per period it must keep to the charged ones
            (`periods.within_periods`); the unit is then the person in one period.
    """

    table: Table
    columns: tuple[Expression, ...]
    rows: int
    where: Expression = TRUE

    def __post_init__(self) -> None:
        parameters.count(self.rows, "rows")
        if self.rows > MOST_ROWS:
            raise InputError(
                f"rows must be at most {MOST_ROWS:,}.",
                why="It limits what one unit can add to a batch.",
                fix="Give the number of rows that most units have.",
            )
        check_read(self.table, self.columns)


def check_read(table: Table, columns: Sequence[Expression]) -> None:
    """Refuses what is no value of a row, and what says whose it is."""
    if not columns or any(each.type not in ANY for each in columns):
        raise InputError(
            "There must be columns, and each a number, a truth value, a text or a time.",
            why="Nothing else is a value of a row.",
            fix="Name columns of the table.",
        )
    named = {name for each in columns for name in columns_of(each)} & naming_columns(table)
    if named or any(part.type is Type.UNIT for each in columns for part in walk(each)):
        raise NotAllowedError(
            "A column that says who somebody is cannot be read.",
            why="Rows are read without the names of their units.",
            fix="Leave it out.",
        )


def naming_columns(table: Table) -> frozenset[str]:
    """The columns that name a unit, as far as the table says: nobody reads them."""
    found = set(table.policy.unit)
    for source in table.relation.sources:
        found |= {
            full(source, name)
            for name, names in source.identities.items()
            if any(each.startswith("unit ") for each in names)
        }
    return frozenset(found)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnitBatch:
    """All rows that are read of some units. It holds exact values of people: it never leaves a look, not even as text.

    Attributes:
        tags: For each unit 64 bits of a keyed hash, in ascending order over all batches. They are the unit's own,
            whoever else is there, and tell nothing without the salt. Two units may share one, hardly ever.
        starts: Where the rows of each unit begin, and where those of the last one end: units + 1 places.
        values: Each column over all rows: float64 (finite, never −0.0), bool, str as objects, datetime64.
        absent: For each column, which rows have no value. `values` has 0, False, "" or 1970-01-01 there: a NaN that
            somebody forgot about would get past every clipping.
    """

    tags: NDArray[np.uint64]
    starts: NDArray[np.int64]
    values: tuple[NDArray[Any], ...]
    absent: tuple[NDArray[np.bool_], ...]

    @property
    def owners(self) -> NDArray[np.int64]:
        """For each row the place of its unit among those of the batch, from 0."""
        import numpy as np

        return np.repeat(np.arange(len(self.tags)), np.diff(self.starts))

    def parts(self, count: int) -> NDArray[np.int64]:
        """For each unit the one of ``count`` disjoint parts that it belongs to, by its tag alone.

        Adding or removing a unit changes its own part and leaves all other units where they are.
        """
        import numpy as np

        return (self.tags % np.uint64(count)).astype(np.int64)

    def __repr__(self) -> str:
        return "UnitBatch(…)"  # into a traceback or a log goes nothing, not even a number
