"""What releases about a whole table share: whose rows, when they leave, what one unit adds, and what was paid for.

Synthetic tables and models are made from all rows of a table that stand in the periods which pay. Everything here
follows from the policy, from what `protect` has released, and from the ledger; nothing looks at a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError, UnknownTableError
from dalenius.ledger.requests import WHOLE
from dalenius.ledger.suspensions import LATE
from dalenius.measuring import pace
from dalenius.measuring.batches import MOST_ROWS
from dalenius.measuring.pace import FIXED, PLAIN, PLAIN_WORK, SAFETY, SHAPES, Times
from dalenius.releasing.leaving import charges_of_kind, own_releases
from dalenius.releasing.opened import Opened, tables_of
from dalenius.releasing.stored import kind_named
from dalenius.tables.mistakes import nearest

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Budget
    from dalenius.ledger.receipts import Receipt
    from dalenius.measuring.plan import Table
    from dalenius.releasing.leaving import Asker, Leaving

NOTHING_PAID = {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}
_GRID = 0.05  # seconds
_LATEST = 100  # releases of one meaning, at different prices


def table_named(asker: Asker, name: str, opened: Opened) -> Table:
    """A table that this analyst may ask about."""
    tables = tables_of(asker, opened.versions, opened.budgets)
    found = {each.lower(): each for each in tables}.get(name.lower())
    if found is None:
        meant = nearest(name, list(tables))
        raise UnknownTableError(
            f"There is no table {name!r}.",
            why="It is none that this analyst may ask about.",
            fix=f"Did you mean {meant!r}?" if meant else "See 'dalenius tables'.",
        )
    return tables[found]


def known_rows(table: Table) -> int:
    """How many rows there are, by the noisy number that `protect` released; 0: it released none."""
    return max(0, table.found.row_count) if table.found is not None else 0


def times_of(table: Table, seconds: float, speed: float) -> Times:
    """When something leaves that takes so long on the machine of bench/RESULTS.md: a function of public things."""
    tables = list(table.relation.tables())
    declared = [each.policy.time.answer for each in tables if each.policy.time.answer is not None]
    caps = [each.policy.time.cap for each in tables if each.policy.time.cap is not None]
    least = max(declared, default=pace.ANSWER)
    if all(known_rows(each) for each in tables) or not declared:
        least = max(least, SAFETY * speed * seconds)
    else:  # the policy's word is the time of a plain question, and grows with what this does beyond one
        least *= max(1.0, seconds / (FIXED + PLAIN * SHAPES["grouped"] + PLAIN_WORK / 1000))
    answer = math.ceil(least / _GRID - 1e-9) * _GRID
    return Times(answer, max(2 * answer, min(caps, default=pace.CAP)))


def late_of(table: Table) -> int:
    """After how many late releases an analyst is suspended."""
    found = (each.policy.time.late for each in table.relation.tables())
    return min((each for each in found if each is not None), default=LATE)


def guarantee_of(budget: Budget, unit: str, epsilon: float) -> dict[str, Any]:
    """What holds of something that cost ``epsilon``."""
    return {
        "kind": "approx" if budget.delta else "pure",
        "epsilon": epsilon,
        "delta": budget.delta,
        "unit": ", ".join([unit, *([budget.period] if budget.period else [])]),
        "neighbors": budget.neighbors.value,
    }


def rows_limit(table: Table, asked: int | None, *, average: bool) -> tuple[int, tuple[str, ...]]:
    """How many rows of one unit are used, by what is public: as declared; else as it was found at `protect`.

    Args:
        table: Whose rows.
        asked: What somebody asks for; more than the table's own limit is not given.
        average: Where nothing is declared it is no more than twice what units have on average, if there are noisy
            numbers of units and rows: for what all noise is in proportion to.
    """
    declared, found = table.policy.contribution.rows, table.found
    own = declared
    if own is None and found is not None:
        own = found.rows
        if average and found.units > 0 and found.row_count > 0:
            own = min(own, -(-2 * found.row_count // found.units))
    if own is None and asked is None:
        raise InputError(
            "Nothing says how many rows one unit has.",
            why="Noise must hide all that one unit adds.",
            fix="Give --rows-per-unit N, or have the owner declare [contribution] rows.",
        )
    most = declared if declared is not None else MOST_ROWS if found is None else max(1, found.rows)
    if asked is None:
        return max(1, min(own or 1, most)), ()
    if asked > most:
        return most, (f"The table's own limit is lower than the one you gave, and holds: {most:,} rows of one unit.",)
    return asked, ()


# --- what was paid for


@dataclass(frozen=True)
class Paid:
    """A release that was paid for: its bytes, the proof of its charge, and the periods that paid."""

    content: bytes
    receipt: Receipt
    periods: tuple[str, ...]


def paid_release(asker: Asker, release: str, kind: str, what: str) -> Paid:
    """A release of one kind that this asker has paid for, by its number; another's is not told from none.

    The owner is shown any.

    Args:
        asker: Who asks for it.
        release: Its number, as its receipt has it.
        kind: The name of its kind.
        what: The kind in words, such as "synthetic table".
    """
    receipt = asker.ledger.receipt(release, None if asker.is_owner else asker.name)
    charge, content = asker.ledger.content(receipt)
    if kind_named(charge) != kind:
        raise InputError(
            f"This release is no {what}.",
            why="A release of another kind has that number.",
            fix=f"Take the id of a {what}'s receipt.",
        )
    return Paid(content, receipt, tuple(charge.get("periods") or (WHOLE,)))


def best_release(leaving: Leaving, asker: Asker) -> str | None:
    """The number of the best release of the same meaning that this asker has paid for, at whatever price."""
    charges = charges_of_kind(asker, leaving.kind, leaving.snapshot, 0.0, _LATEST, leaving.key)
    found = own_releases(asker, charges[:1])
    return found[0].receipt.id if found else None
