"""The attacks on classes, tried on somebody's own table before it is published.

Each is aimed at the table as it is: nothing is made up. They need one table, so several releases and the attacks on
trails are not among them; nor does a table on which all of them fail protect anybody from who knows more.
"""

from __future__ import annotations

import numpy as np

from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.audit.attacks.attack import Finding, Rate
from dalenius.audit.attacks.published.background_knowledge import KNOWN, believed
from dalenius.audit.attacks.published.beliefs import Beliefs
from dalenius.audit.attacks.published.homogeneity import exposed
from dalenius.audit.attacks.published.linkage import candidates
from dalenius.audit.attacks.published.probabilistic_inference import SURE, bets
from dalenius.audit.attacks.published.similarity import NARROW, spans
from dalenius.audit.attacks.published.skewness import RISE, rise
from dalenius.errors import InputError

_LINKED = 2000  # people who are looked up at most


def tried_on(
    table: Table, roles: Roles, *, original: Table | None = None, name: str = "this table"
) -> tuple[Finding, ...]:
    """What the attacks find in a table, for each of its sensitive columns.

    Args:
        table: As it is, or would be, published.
        roles: Its quasi-identifiers and sensitive columns.
        original: The rows as they were, in any order, for somebody who knows everybody's quasi-identifiers and looks
            them up; then linkage is tried, too.
        name: What the findings call the table.

    Raises:
        InputError: It has no rows.
    """
    if not table.rows:
        raise InputError("The table has no rows.", why="There is nobody to attack.", fix="Name another table.")
    found = [] if original is None else [_linkage(table, roles, original, name)]
    for column in roles.sensitive:
        found += _on_classes(table, roles, column, name)
    return tuple(found)


def _on_classes(table: Table, roles: Roles, column: str, name: str) -> list[Finding]:
    beliefs = Beliefs.of(table, roles.quasi, column)
    same = int(exposed(beliefs).sum())
    certain = int((believed(beliefs, KNOWN) == 1).sum())
    placed, right = bets(beliefs)
    raised = rise(beliefs)
    told = [
        _told("homogeneity", name, same, table.rows, f"have the same {column} as all who look like them"),
        _told("background-knowledge", name, certain, table.rows, f"are certain once one other {column} is ruled out"),
        _told(
            "probabilistic-inference",
            name,
            int(right.sum()),
            table.rows,
            f"have the {column} that at least {SURE:.0%} of those who look like them have ({int(placed.sum()):,} bets)",
        ),
        _told(
            "skewness",
            name,
            int((raised >= RISE).sum()),
            table.rows,
            f"are in a class where some {column} is more frequent than in the table by {RISE:.0%} or more "
            f"(at most {raised.max():.0%})",
        ),
    ]
    numbers = table[column].numbers
    if numbers is not None and not np.isnan(numbers).any() and len(numbers) > 1:
        narrow = int((spans(beliefs, numbers) <= NARROW).sum())
        told.append(
            _told("similarity", name, narrow, table.rows, f"have a {column} known within {NARROW:.0%} of its scale")
        )
    return told


def _linkage(table: Table, roles: Roles, original: Table, name: str) -> Finding:
    if original.rows != table.rows:
        raise InputError(
            "The original has other rows than the published table.",
            why="Everybody in one must be in the other.",
            fix="Give the table from which it was made.",
        )
    places = np.linspace(0, table.rows - 1, min(table.rows, _LINKED)).astype(np.intp)
    found = candidates(original.take(places), table, roles)
    alone = sum(len(rows) == 1 for rows in found)  # everybody's own row fits, so the only one that does is theirs
    least = min(map(len, found))
    words = f"are the only row that fits what is known of them (at least {least} fit)"
    return _told("linkage", name, alone, len(places), words)


def _told(attack: str, target: str, hits: int, of: int, words: str) -> Finding:
    rate = Rate(hits, of)
    numbers = {"hits": float(hits), "of": float(of), "share": rate.share}
    return Finding(attack, target, hits > 0, f"{rate} {words}.", 0, None, "", numbers, None, rate)
