"""Whether every value of a source can be read at all: asked once, by the owner, at `protect`.

A Parquet file can hold a cell that fails in the scan itself, before any cast: a text that is no UTF-8, a time beyond
the calendar. A question would then fail if and only if that row is there. So such a file is not protected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from dalenius.errors import EngineFailedError, SourceUnavailableError

if TYPE_CHECKING:
    from dalenius.tables.sources.fingerprint import Fingerprint

SECONDS = 3600.0  # the owner waits


def check_decodes(fingerprint: Fingerprint, columns: Callable[[tuple[tuple[str, str], ...]], Sequence[str]]) -> None:
    """Reads all values of some columns once, and keeps none of them. In CSV files everything can be read as text."""
    from dalenius.measuring.engines.duckdb.connections import DuckDB
    from dalenius.measuring.engines.duckdb.rendering import identifier

    with closing(DuckDB(fingerprint)) as engine:  # one connection for both
        wanted = columns(tuple(engine.columns.items()))
        if fingerprint.form != "parquet" or not wanted:
            return
        hashes = ", ".join(f"bit_xor(hash({identifier(name)}))" for name in wanted)
        try:
            engine.run(f"SELECT {hashes} FROM {engine.scan}", seconds=SECONDS)  # noqa: S608
        except EngineFailedError:
            raise SourceUnavailableError(
                "Not every value of the source can be read.",
                why="A text that is not UTF-8, or a time beyond the calendar, makes reading fail; questions would too.",
                fix="Write the file again with such values removed or replaced.",
            ) from None
