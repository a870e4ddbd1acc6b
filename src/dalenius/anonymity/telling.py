"""What must be said of a table that is to be published, beside what the models reach.

A model counts rows, knows only the columns that have a role, and looks at one table alone. Where that is not what the
reader takes it for, it is said here, for the terminal, JSON, the report and the console alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalenius.anonymity.options import Options
    from dalenius.anonymity.sources import Rows
    from dalenius.anonymity.table import Table
    from dalenius.ledger.publications import PublishedRows

ROWS_NOT_PEOPLE = "k counts rows, not people, and so do the other models"
LOST = "Everything is lost"
_NOTHING_LEFT = 1 - 1e-9  # NCP


def told(
    table: Table, rows: Rows, options: Options, facts: Mapping[str, Any], before: Sequence[PublishedRows] = ()
) -> dict[str, Any]:
    """Columns that are published as they are, and warnings; plain JSON.

    Args:
        table: The rows as they are.
        rows: Whose they are.
        options: What was asked.
        facts: What was made of it.
        before: What was published of the same people before.
    """
    roles = rows.roles
    named = {*roles.identifiers, *roles.quasi, *roles.sensitive}
    found = []
    shared = _rows_of_others(table, rows)
    if shared:
        least = "At least " if rows.version is not None and rows.version.policy.path else ""
        found.append(f"{least}{shared:,} rows belong to somebody who has another: {ROWS_NOT_PEOPLE}.")
    elif not rows.owner and len(roles.identifiers) > 1:
        found += _repeated(table, roles.identifiers)
    if before and facts.get("release", 1) == 1:
        found.append(
            f"Rows of the same people were published before (entry {before[-1].entry}): whoever has both tables can "
            "intersect them, and the models hold for each alone."
        )
    loss = facts.get("loss")
    if loss and loss["ncp"] >= _NOTHING_LEFT:
        found.append(
            f"{LOST}: every quasi-identifier is * in every row (NCP 1). Ask for a smaller k, let some rows "
            "be suppressed (--suppress 5%), name fewer quasi-identifiers, or give them hierarchies."
            if options.m is None
            else f"{LOST}: every quasi-identifier is * in every row (NCP 1). Ask for a smaller m."
        )
    # a series with --m shows nothing of other columns
    plain = [name for name in table.names if name not in named] if options.m is None else []
    return {"as_they_are": plain, "warnings": found}


def _repeated(table: Table, identifiers: Sequence[str]) -> list[str]:
    """Identifiers that are different in all rows only together, such as a visit and its patient.

    Any of them may say who somebody is, and nobody said which; told is the one that has the most values.
    """
    name = max(identifiers, key=lambda each: (len(table[each].values) < table.rows, len(table[each].values)))
    shared = _sharing(table, [name])
    if not shared:
        return []
    return [f"{shared:,} rows have the same {name!r} as another. If that says who somebody is, {ROWS_NOT_PEOPLE}."]


def for_record(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The same without what only the owner is shown: how many rows share a person is in no published file."""
    several = f"Some rows belong to somebody who has another: {ROWS_NOT_PEOPLE}."
    found = [several if ROWS_NOT_PEOPLE in each else each for each in facts.get("warnings", ())]
    return {name: each for name, each in facts.items() if name != "counterfeits_by_class"} | {"warnings": found}


def _rows_of_others(table: Table, rows: Rows) -> int:
    """How many rows are of somebody who has more than one, by the unit, or by the identifiers of unprotected rows."""
    whose = rows.owner or rows.roles.identifiers
    return _sharing(table, whose) if whose else 0


def _sharing(table: Table, columns: Sequence[str]) -> int:
    """How many rows agree in these columns with another."""
    from dalenius.anonymity.classes import classes

    return sum(int(size) for size in classes(table, list(columns)).sizes if size > 1)
