"""The seam: what a plan needs of an engine. What an engine writes, reads and keeps for it is its own affair.

Besides, the two things that surround all statements of an engine. *One end*: each statement has a limit of its own, and
none goes on past that of the whole question (`within`). *A record*, for audits; nobody watches a server. Which
statements run for a question, in which order and with what success must not depend on what single rows hold (ATTACKS,
H24): each takes its time, and time can be seen. An engine notes all of them; while nobody watches, a note is one
comparison. A record holds the texts that our compiler wrote, never a result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from dalenius.measuring.batches import UnitBatch, UnitRows
    from dalenius.measuring.domains import Cell
    from dalenius.measuring.held_rows import HeldRows, RowBatch
    from dalenius.measuring.plan import Plan, Table

Held: TypeAlias = Any  # what an engine keeps between two looks of one question; nobody else looks into it


class Prepared(Protocol):
    """What was prepared: how large it is, and how long each file took."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def seconds(self) -> Mapping[str, float]:
        """By file."""


class Engine(Protocol):
    """The rows of one version of a table, or of several tables seen as one.

    Every number is exact: integers, clipped per unit as the plan says (`measures`), or what single rows hold, so many
    of each unit (`batches`). Which statements run, in which
    order and with what success depends on the plan, on types and on sizes, never on what single units hold.
    """

    def ready(self) -> None:
        """Refuses where nothing could run now, before anything is charged; reads no row."""

    def prepare(self, table: Table, progress: Callable[[int, int, str], None]) -> str | Prepared:
        """Prepares, for the owner, what makes questions about a table faster; or "none" or "kept".

        ``progress`` hears how many files of how many are done, and what comes next.
        """

    def measure(self, plan: Plan, salt: str, *, seconds: float = 60.0, held: Held = None) -> list[list[int]]:
        """For each measure its integers: cell by cell, and in each as many as its width.

        Args:
            plan: What is measured.
            salt: The secret that decides which groups of a unit count, where it is in too many.
            seconds: How long a statement may take.
            held: What `hold` gave, where keys were found before.
        """

    def lengths(self, plan: Plan, salt: str, *, seconds: float = 60.0) -> list[list[int]]:
        """For each measure that finds its own clip: how many units there are by the length of their vector."""

    def hold(self, plan: Plan, salt: str, *, seconds: float = 60.0) -> Held:
        """Room for what the two looks of a question that finds its keys have in common; nothing is read yet."""

    def weights(
        self, plan: Plan, salt: str, *, seconds: float = 60.0, held: Held = None
    ) -> tuple[list[Cell], list[int]]:
        """All keys that occur, each with its weight (`mechanisms.key_selection`), in no order that says anything."""

    def sizes(self, table: Table, kind: str, column: str, *, seconds: float = 60.0) -> list[tuple[int, int]]:
        """How many units there are by the class of their size (`limits.histogram`): class, units."""

    def rows_within(self, table: Table, most: int, *, seconds: float = 60.0) -> tuple[int, int]:
        """How many units there are, and how many rows they have where none counts for more than ``most``."""

    def batches(
        self, reading: UnitRows, salt: str, *, units: int, passes: int = 1, seconds: float = 60.0
    ) -> Iterator[UnitBatch]:
        """What is read of units, so many of them at a time; the last batch may have fewer, and there may be none.

        The same reading, salt and source give the same units, rows and order each time, whatever the numbers below are.
        Adding or removing one unit changes nothing about any other (`measuring.batches`, which says what whoever
        reads must keep to).

        Args:
            reading: What is read.
            salt: The secret that decides the order of units, and which rows of a unit are read if it has too many.
            units: A batch has so many at most, and at most `UnitRows.rows` rows of each, whatever there is.
            passes: The source is read so often, each time for another share of the units: it takes longer, and the
                engine holds fewer rows at once. To be chosen by what is public, as ``units`` is.
            seconds: How long a pass may take, without what is done with its batches.
        """

    def held_rows(self, reading: HeldRows, salt: str, *, seconds: float = 60.0) -> Iterator[RowBatch]:
        """All rows in no order, so many at a time, each with how many its unit has; there may be no batch at all.

        Args:
            reading: What is read.
            salt: The secret of the data set.
            seconds: How long it may take, without what is done with the rows.
        """


# --- one end for all statements of a question

_END: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What runs inside, in this thread, is stopped so many seconds from now."""
    before = _END.set(min(_END.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _END.reset(before)


def left(seconds: float) -> float:
    """What is left of so many seconds."""
    return max(0.0, min(seconds, _END.get() - time.monotonic()))


# --- the statements that the engines of this process run


class Ran(NamedTuple):
    """One statement, and what became of it: "done", "failed", "late", or "refused" before it ran; "left" half read."""

    text: str
    outcome: str


_watched: list[Ran] | None = None


def note(text: str, outcome: str) -> None:
    """A statement came to its end."""
    if _watched is not None:
        _watched.append(Ran(text, outcome))


@contextmanager
def recorded() -> Iterator[list[Ran]]:
    """All statements of this process, in the order of their ends, while the block runs; one record at a time."""
    global _watched  # noqa: PLW0603 (an engine's threads must see it as well)
    before, _watched = _watched, []
    try:
        yield _watched
    finally:
        _watched = before
