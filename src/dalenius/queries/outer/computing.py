"""The outer part, run: in a process of its own, on what was released and on public tables.

It is SQL that an analyst shaped, so it runs where questions over public tables do (`engines.duckdb.confined`): written
anew from the tree, looked at a second time by the engine's own parser against one list of functions, within limits of
memory, time and rows. The process is given the released values, never a file of a protected table nor its name; it has
no clock and no chance. It starts after the charge is on disk, but for one that is given no values, to see whether the
statement would run at all (`check_outer`): for what cannot be computed nothing should be charged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from dalenius.errors import EngineError
from dalenius.measuring.engines.duckdb import confined
from dalenius.measuring.engines.duckdb.given import value_to_json
from dalenius.measuring.engines.duckdb.statements.relation import scan_of_public
from dalenius.queries.outer.cutting import column_name
from dalenius.queries.outer.sources import write
from dalenius.queries.outer.types import column_types
from dalenius.queries.public_questions import refuse_failed, refuse_word
from dalenius.tables.sources.fingerprint import check_unchanged
from dalenius.tables.sources.homes import check_outside

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan
    from dalenius.measuring.public import PublicTable
    from dalenius.queries.outer.noise_copies import Copies
    from dalenius.queries.outer.sources import OuterQuery

SECONDS = confined.SECONDS
MOST_ROWS = 100_000  # of an answer: as many as there may be groups
Outcome: TypeAlias = confined.Outcome
CARRY_SECONDS = 5.0  # for all copies together; without them an answer has no errors, but it is there
FEWEST_SECONDS = 1.0  # with fewer left, it is not tried once more


@dataclass(frozen=True)
class Given:
    """A release as the outer part reads it: its name, its rows, and copies of them."""

    name: str
    plan: Plan
    rows: Sequence[Sequence[Any]]
    copies: Copies | None = None

    def to_json(self) -> dict[str, Any]:
        """For the child."""
        outputs = self.plan.question.outputs
        values = {column_name(at): [value_to_json(_finite(row[at])) for row in self.rows] for at in range(len(outputs))}
        copied = {} if self.copies is None else self.copies.columns
        moved = {column_name(at): [_finite(each) for each in column] for at, column in copied.items()}
        size, number = len(self.rows), 0 if self.copies is None else self.copies.number
        types = column_types(self.plan, [[*found, *moved.get(name, ())] for name, found in values.items()])
        return {
            "name": self.name,
            "columns": [list(each) for each in zip(values, types, strict=True)],
            "size": size,
            "values": values,
            "copies": moved if number else {},
            "copy": [copy for copy in range(1, number + 1) for _ in range(size)],
            "row": list(range(size)) * number,
        }


def check_outer(query: OuterQuery, given: Sequence[Given], publics: Sequence[PublicTable], question: str) -> None:
    """Refuses what would not run, on empty tables."""
    _run(query, given, publics, question, most=0, carry=None)


def compute_outer(
    query: OuterQuery, given: Sequence[Given], publics: Sequence[PublicTable], question: str, confidence: float
) -> Outcome:
    """The answer, with how far noise moves its cells where that can be told.

    Raises:
        QuestionRefusedError: It cannot be computed.
        EngineTimeoutError: It took too long.
        EngineFailedError: It needs more memory than it may have.
    """
    number = min((each.copies.number for each in given if each.copies is not None), default=0)
    if query.base is None or not number:
        return _run(query, given, publics, question, most=MOST_ROWS, carry=None)
    carry = {
        "base": write(query.base),
        "at_once": None if query.at_once is None else write(query.at_once),
        "copies": number,
        "confidence": confidence,
        "seconds": CARRY_SECONDS,
        "identified": query.identified,
    }
    begun = monotonic()
    try:
        return _run(query, given, publics, question, most=MOST_ROWS, carry=carry)
    except EngineError:  # perhaps for the copies alone
        left = SECONDS - (monotonic() - begun)
        if left < FEWEST_SECONDS:
            raise
        alone = [Given(each.name, each.plan, each.rows) for each in given]
        return _run(query, alone, publics, question, most=MOST_ROWS, carry=None, seconds=left)


def _run(
    query: OuterQuery,
    given: Sequence[Given],
    publics: Sequence[PublicTable],
    question: str,
    *,
    most: int,
    carry: Mapping[str, Any] | None,
    seconds: float | None = None,
) -> Outcome:
    files = [path for table in publics for path in table.fingerprint.paths]
    _check_unchanged(publics)
    found = confined.run(
        query.sql,
        {table.name: scan_of_public(table) for table in publics},
        list(dict.fromkeys(files)),
        {name.lower() for table in publics for name in table.types},
        most=most,
        seconds=SECONDS if seconds is None else seconds,
        given=[each.to_json() for each in given],
        carry=carry,
    )
    _check_unchanged(publics)  # what was read is what was declared
    if found.refused is not None:
        raise refuse_word(found.refused, question)
    if found.failed is not None:
        raise refuse_failed(found.failed, publics)
    if len(found.columns) != len(query.columns) + query.identified:
        raise refuse_failed("BinderException", publics)  # it was read otherwise than the engine reads it
    return found


def _check_unchanged(publics: Sequence[PublicTable]) -> None:
    for table in publics:
        check_outside(table.fingerprint.paths)
        check_unchanged(table.name, table.fingerprint, [str(path) for path in table.fingerprint.paths])


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str | date | None) else float(value)
