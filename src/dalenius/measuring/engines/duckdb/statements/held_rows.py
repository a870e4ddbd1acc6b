"""All rows, each with how many its unit has: one SELECT, fetched in columns.

source, clean, kept  as for batches
…                    with the number of rows of the unit: a window, so that units are compared as GROUP BY does it
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dalenius.measuring.engines.duckdb.statements import source
from dalenius.measuring.engines.duckdb.statements.batches import as_arrays, planned, streaming
from dalenius.measuring.engines.duckdb.statements.sums import Compiler, with_steps
from dalenius.measuring.held_rows import HeldRows, RowBatch

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from dalenius.measuring.engines.duckdb.statements import Runner

_FETCHED = 2**16  # rows at a time


def read_rows(reading: HeldRows, engine: Runner, salt: str, *, seconds: float = 60.0) -> Iterator[RowBatch]:
    """As `Engine.held_rows`."""
    text = HeldCompiler(reading).statement(engine.scan, engine.columns, salt)
    return map(_batch, streaming(engine).stream(text, rows=_FETCHED, seconds=seconds))


class HeldCompiler(Compiler):
    """Writes the SELECT. Methods are the steps; planted bugs replace single ones."""

    def __init__(self, reading: HeldRows) -> None:
        super().__init__(planned(reading.table, reading.columns, reading.where))

    def statement(self, scan: str, types: Mapping[str, str], salt: str) -> str:
        """All steps."""
        read = source.source_sql(self.plan, scan, types, salt)
        return f"WITH {read},\n{with_steps([('clean', self.clean()), ('kept', self.kept())])}\n{self.shown()}"

    def shown(self) -> str:
        """Every row with a unit. A row without a period belongs to nobody."""
        there = " WHERE period IS NOT NULL" if self.period is not None else ""
        held = f"count(*) OVER (PARTITION BY {', '.join(self.units)}) AS held"
        return f"SELECT {', '.join(self.keys)}, {held} FROM kept{there}"  # noqa: S608


def _batch(found: pa.RecordBatch) -> RowBatch:
    columns = [_column(found[at]) for at in range(found.num_columns - 1)]
    values, absent, places = zip(*columns, strict=True)
    return RowBatch(found["held"].to_numpy(), values, absent, places)


def _column(column: pa.Array) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Values, which of them are absent, and for texts their places."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_boolean(column.type)):
        return (*as_arrays(column), None)
    texts = column.dictionary_encode(null_encoding="encode")
    return (*as_arrays(texts.dictionary), texts.indices.to_numpy())
