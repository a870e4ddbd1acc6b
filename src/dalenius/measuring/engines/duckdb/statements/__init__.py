"""The SELECTs that an engine runs for a plan, one kind per file. Nothing of the analyst's text is in them.

Here is what all of them share: what each is made of, what it needs of an engine, and how a contribution index is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dalenius.errors import EngineFailedError

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.measuring.engines.duckdb.index import Index
    from dalenius.measuring.plan import Table


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT of a plan: the numbers of the measures that it gives, and its text after the source."""

    kind: str
    measures: tuple[int, ...]
    sql: str


class RunSelect(Protocol):
    """An engine's `run`."""

    def __call__(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """The rows of a SELECT."""


class Runner(Protocol):
    """Knows its files and runs one SELECT on them."""

    @property
    def scan(self) -> str:
        """The files, in FROM."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The types of their columns."""

    @property
    def index(self) -> Index | None:
        """How much each unit holds, where that was prepared; it may be out of date, which its user checks."""
        return None

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """Runs generated SQL."""


class Streaming(Protocol):
    """A `Runner` that need not hold all that a SELECT gives."""

    def stream(self, sql: str, *, rows: int, seconds: float = 60.0) -> Iterator[pa.RecordBatch]:
        """Runs generated SQL, and gives so many rows at a time."""


def no_number() -> EngineFailedError:
    """The error about a NULL among results: every statement is written so that there is none."""
    return EngineFailedError(
        "The engine failed.", why="It gave no number where one was expected.", fix="Report it as a bug."
    )


@dataclass(frozen=True)
class IndexedSelect:
    """A SELECT that uses an index: alone, or with the rows, of which it then trusts what it says of some columns."""

    sql: str
    columns: Sequence[str] | None = None  # None: no row is read


def run_indexed(
    table: Table, engine: Runner, made: Callable[[Index], IndexedSelect | None], seconds: float
) -> Sequence[tuple[Any, ...]] | None:
    """The rows of a SELECT that uses the engine's index; None where there is no good one, or it does not help.

    Whether it is used is decided before anything is looked at, and then it must do: a statement that fails is a failure
    of the question, as any other is. Were the general way tried next, whoever sees how long an answer takes could tell
    that a value somewhere had made it fail. (That an index was exchanged meanwhile is the owner's doing, not a row's.)

    Raises:
        SourceChangedError: The rows are not those that the index is about, so that it says nothing of what units hold.
        EngineFailedError: The engine could not run it.
    """
    index = valid_index(table, engine)
    found = None if index is None else made(index)
    if index is None or found is None:
        return None
    before = index.state()
    state = None if found.columns is None else index.check_rows(found.columns, engine.scan, seconds)
    try:
        rows = engine.run(found.sql, seconds=seconds)
    except EngineFailedError:
        if index.state() != before:
            return None
        error = EngineFailedError(
            "The engine could not compute the answer.",
            why="Its own message is held back because it could quote the data. The contribution index may be damaged.",
            fix="Ask the owner, who has the index built again by protecting the table with the same policy.",
        )
        error.alarm = "index failed"
        raise error from None
    if state is not None:
        index.check_kept(state)
    return rows if index.state() == before else None  # one that was exchanged in between may be about other files


def valid_index(table: Table, engine: Runner) -> Index | None:
    """The engine's index if it is about this table's files and policy as they are now. Every question asks."""
    index: Index | None = getattr(engine, "index", None)
    fingerprint = getattr(engine, "fingerprint", None)
    if index is None or fingerprint is None or not index.valid(table, fingerprint):
        return None
    return index
