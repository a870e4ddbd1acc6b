"""The rows of units in batches: one SELECT a pass, in the order of units, cut into whole units as it is fetched.

source, clean, kept  as for sums, with the columns that are read in the place of groups
tagged   each row with its unit's tag: 64 bits of a keyed hash
counted  the different rows of each unit, and how many of each there are
placed   a keyed hash of each, which puts those of one unit in order
laid     how many rows there are up to and including each, in that order, and in all
spread   where a unit's first row falls; how many of its rows are read
chosen   which of those each different row is
…        in the order of tags

Which rows. Lay the n rows of a unit in the order of their hashes, rows that are alike beside one another, and let q be
min(n, rows) and s a number from 0 to n − 1 that the unit's tag decides. The first c rows hold ⌊(c·q + s)/n⌋ of those
that are read: q of n in all, since s < n, and all of them where q = n. With s uniform, each row is among them with
probability q/n. To take the first q by a hash of what is in them, as groups are chosen, would be wrong for rows: alike
ones have one hash, and of 99 and one other the single one would be chosen half of the time.

It is a function of the unit's own rows and of the salt. Rows with the same hash are put in order by what is in them.

Passes. The tags of pass p of m are those from p·2⁶⁴/m on, so units come in the order of tags whatever m is: it only
says how many of them DuckDB holds at once. A unit's tag is made of DuckDB's own hash, which is the same for values that
are equal (0.0 and −0.0): no unit is in two passes, or twice in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from dalenius.accounting import parameters
from dalenius.errors import NotAllowedError
from dalenius.measuring.batches import UnitBatch, UnitRows
from dalenius.measuring.engines.duckdb.opening import quoted
from dalenius.measuring.engines.duckdb.statements import source
from dalenius.measuring.engines.duckdb.statements.sums import Compiler, with_steps
from dalenius.measuring.expressions import Call, Column, Expression, Type
from dalenius.measuring.functions import bounded, ranges_of
from dalenius.measuring.plan import Plan, Question

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dalenius.measuring.engines.duckdb.statements import Runner, Streaming
    from dalenius.measuring.plan import Table

_TAGS = 2**64
_FETCHED = 2**14  # rows at a time
_DAY = datetime.fromisoformat("1970-01-01")  # times have no zone
# What stands for NULL, by the types that expressions have in Arrow.
_HARMLESS = {"double": 0.0, "bool": False, "string": "", "date32[day]": _DAY.date(), "timestamp[us]": _DAY}


def read_batches(
    reading: UnitRows, engine: Runner, salt: str, *, units: int, passes: int = 1, seconds: float = 60.0
) -> Iterator[UnitBatch]:
    """As `Engine.batches`. What is asked for is checked now, rows are read when the first batch is wanted."""
    parameters.count(units, "units")
    parameters.count(passes, "passes")
    reader = streaming(engine)
    compiler = RowCompiler(reading)
    edges = [_TAGS * at // passes for at in range(passes + 1)]
    texts = [
        compiler.statement(engine.scan, engine.columns, salt, first, after - 1) for first, after in pairwise(edges)
    ]
    return _cut((found for text in texts for found in reader.stream(text, rows=_FETCHED, seconds=seconds)), units)


def streaming(engine: Runner) -> Streaming:
    """The same engine, if it gives rows at all."""
    if not hasattr(engine, "stream"):
        raise NotAllowedError(
            "Rows of single units cannot be read here.", why="The engine only adds up.", fix="Ask for sums."
        )
    return cast("Streaming", engine)


class RowCompiler(Compiler):
    """Writes the SELECT of one pass. Methods are the steps; planted bugs replace single ones."""

    def __init__(self, reading: UnitRows) -> None:
        super().__init__(planned(reading.table, reading.columns, reading.where))
        self.limit = reading.rows

    def statement(self, scan: str, types: Mapping[str, str], salt: str, first: int, last: int) -> str:
        """All steps, for the units whose tags lie between two."""
        read = source.source_sql(self.plan, scan, types, salt)
        steps = [
            ("clean", self.clean()),
            ("kept", self.kept()),
            ("tagged", self.tagged(salt)),
            ("counted", self.counted(first, last)),
            ("placed", self.placed()),
            ("laid", self.laid()),
            ("spread", self.spread()),
            ("chosen", self.chosen()),
        ]
        return f"WITH {read},\n{with_steps(steps)}\n{self.shown()}"

    def tagged(self, salt: str) -> str:
        """Each row with its unit's tag. A row without a period belongs to nobody."""
        unit = f"CAST(hash({', '.join(self.units)}) AS VARCHAR)"
        there = " WHERE period IS NOT NULL" if self.period is not None else ""
        return f"SELECT *, md5_number_upper({quoted(f'{salt}|unit|')} || {unit}) AS tag FROM kept{there}"  # noqa: S608

    def counted(self, first: int, last: int) -> str:
        """The different rows of each unit."""
        names = ", ".join(["tag", *self.units, *self.keys])
        inside = "" if last - first == _TAGS - 1 else f" WHERE tag BETWEEN {first}::UBIGINT AND {last}::UBIGINT"
        return f"SELECT {names}, count(*) AS n FROM tagged{inside} GROUP BY {names}"  # noqa: S608

    def placed(self) -> str:
        """A hash that the tag keys, so that what is in a row does not decide on its place."""
        values = f"CAST(hash({', '.join(self.keys)}) AS VARCHAR)"
        return f"SELECT *, md5_number_upper(CAST(tag AS VARCHAR) || '|' || {values}) AS place FROM counted"  # noqa: S608

    def laid(self) -> str:
        """A unit's rows beside one another."""
        own, order = ", ".join(["tag", *self.units]), ", ".join(["place", *self.keys])
        return (
            f"SELECT *, sum(n) OVER (PARTITION BY {own} ORDER BY {order} ROWS UNBOUNDED PRECEDING) AS through, "  # noqa: S608
            f"sum(n) OVER (PARTITION BY {own}) AS held FROM placed"
        )

    def spread(self) -> str:
        """How many are read, and where the first one falls."""
        start = "CAST(hash(tag) AS HUGEINT) % held"
        return f"SELECT *, {self.quota()} AS quota, {start} AS start FROM laid"  # noqa: S608

    def quota(self) -> str:
        """How many rows of a unit are read."""
        return f"least({self.limit}, held)"

    def chosen(self) -> str:
        """Of those that are read, how many come before each different row, and how many up to its last."""
        before, after = ("((through - n) * quota + start) // held", "(through * quota + start) // held")
        return f"SELECT *, {before} AS earlier, {after} AS later FROM spread"  # noqa: S608

    def shown(self) -> str:
        """The rows that are read. ``earlier`` is 0 where a unit begins, and nowhere else."""
        copies = "CAST(earlier AS INTEGER) AS earlier, CAST(later - earlier AS INTEGER) AS copies"
        order = ", ".join(["tag", *self.units, "earlier"])
        return f"SELECT tag, {', '.join(self.keys)}, {copies} FROM chosen WHERE later > earlier ORDER BY {order}"  # noqa: S608


def planned(table: Table, columns: Sequence[Expression], where: Expression) -> Plan:
    """The plan of a question that would group by what is read: its steps up to `kept` are those of a reading."""
    ranges = ranges_of(table.policy.columns)

    def finite(each: Expression) -> Expression:
        # Numbers of total expressions are finite. It is made sure of: what is not would get past every clipping.
        known = each.type is not Type.NUMBER or isinstance(each, Column) or bounded(each, ranges) is not None
        return each if known else Call("finite", (each,), Type.NUMBER)

    question = Question(table, where, tuple(columns), ())
    keys = tuple(map(finite, columns))
    return Plan(question, where, keys, cells=(), groups=None, statistics=(), answers={}, norm="l2")


def _cut(fetched: Iterator[pa.RecordBatch], units: int) -> Iterator[UnitBatch]:
    """What is fetched, in batches of so many whole units."""
    import numpy as np
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    begun = 0  # units among what is waiting
    for each in fetched:
        waiting.append(each)
        begun += int(np.count_nonzero(each["earlier"].to_numpy() == 0))
        if begun <= units:  # the last one may go on
            continue
        table = pa.Table.from_batches(waiting).combine_chunks()
        starts = np.flatnonzero(table["earlier"].to_numpy() == 0)
        full = (begun - 1) // units * units
        for at in range(0, full, units):
            yield _batch(table.slice(starts[at], starts[at + units] - starts[at]))
        waiting, begun = table.slice(starts[full]).to_batches(), begun - full
    if begun:
        yield _batch(pa.Table.from_batches(waiting).combine_chunks())


def _batch(table: pa.Table) -> UnitBatch:
    """Whole units as arrays; each row as often as it is read."""
    import numpy as np

    copies = table["copies"].to_numpy()
    first = np.flatnonzero(table["earlier"].to_numpy() == 0)
    ends = np.concatenate([[0], np.cumsum(copies, dtype=np.int64)])
    starts = np.append(ends[first], ends[-1])
    columns = [as_arrays(table[name]) for name in table.column_names if name.startswith("k")]
    values = tuple(np.repeat(each, copies) for each, _ in columns)
    absent = tuple(np.repeat(each, copies) for _, each in columns)
    return UnitBatch(table["tag"].to_numpy()[first], starts, values, absent)


def as_arrays(column: pa.ChunkedArray | pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A column in numpy, with something harmless where it is NULL; and where that is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    filled: Any = pc.fill_null(column, pa.scalar(_HARMLESS[str(column.type)], column.type))
    absent: Any = column.is_null()
    return (_numpy(filled), _numpy(absent))


def _numpy(column: Any) -> NDArray[Any]:
    import pyarrow as pa

    chunked = isinstance(column, pa.ChunkedArray)
    found: NDArray[Any] = column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False)
    return found
