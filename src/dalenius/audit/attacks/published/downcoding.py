"""Downcoding: undoing generalisation by knowing that no more was generalised than had to be (after Cohen 2022).

Our local recoding publishes k rows that are equal as they are, and gives each other class the smallest label over its
rows. So two things are known of a class with a label over the values a and b in one column, all else exact:

1. both a and b are there, or the label would be smaller;
2. each fewer than k times, or those k would have been a class of their own.

Of s rows, then, i have a and s − i have b, with 1 ≤ i, s − i ≤ k − 1. For s = 2k − 2 that is one way, and for k = 2 it
always is: the original rows are there again, as they were. Otherwise the likeliest way is a guess, by how frequent the
values are elsewhere.

What ends it: one level for the whole column (full-domain generalisation), where a label says nothing about its class;
larger k, labels over many values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import classes
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.audit.attacks.attack import Finding, Rate
from dalenius.audit.attacks.published.attack import TableAttack, TableLab
from dalenius.audit.attacks.published.people import published
from dalenius.samples.patients import Patient, patients

_ROLES = Roles.from_dict(
    {"quasi": ["zip", "sex"], "sensitive": ["illness"], "hierarchies": {"zip": {"prefix": [4, 2]}}}, Path()
)
_K = {"local-k2": 2, "local-k10": 10}
TOWNS = 30


@dataclass(frozen=True, slots=True)
class Undone:
    """A class in which one column was generalised, and what it was.

    Attributes:
        rows: Of the class.
        column: The one.
        values: How often each value is there, by what the attacker says.
        certain: Whether no other way is possible.
    """

    rows: NDArray[np.intp]
    column: str
    values: Mapping[str | None, int]
    certain: bool


def undone(table: Table, roles: Roles, k: int, known: Mapping[str, Sequence[str | None]]) -> Iterator[Undone]:
    """What was in the classes of one generalised column whose label covers two values.

    Args:
        table: As published.
        roles: With the hierarchies that it was published with.
        k: As published, too.
        known: All values that each column can have, as often as they are elsewhere.
    """
    found = classes(table, roles.quasi)
    order = np.argsort(found.of_row, kind="stable")
    members = np.split(order, np.cumsum(found.sizes)[:-1])
    values = {name: Table.of({name: known[name]}) for name in roles.quasi}
    under = {name: _under(roles, values[name], table, name) for name in roles.quasi}
    often = {name: Counter(known[name]) for name in roles.quasi}
    for rows in members:
        labels = {name: table[name].values[table[name].codes[rows[0]]] for name in roles.quasi}
        general = [name for name, label in labels.items() if len(under[name][label]) > 1]
        if len(general) == 1 and len(choices := under[general[0]][labels[general[0]]]) == 2:
            first, second = choices
            ways = range(max(1, len(rows) - k + 1), min(k - 1, len(rows) - 1) + 1)
            if ways:
                best = max(ways, key=lambda i: _likely(i, len(rows), often[general[0]], first, second))
                guess = {first: best, second: len(rows) - best}
                yield Undone(rows, general[0], guess, certain=len(ways) == 1)


def _under(roles: Roles, values: Table, table: Table, name: str) -> dict[str | None, list[str | None]]:
    hierarchy = roles.hierarchy(values, name)
    listed = values[name].values
    return {label: [listed[at] for at in np.flatnonzero(hierarchy.covers(label))] for label in table[name].values}


def _likely(i: int, size: int, often: Counter[str | None], first: str | None, second: str | None) -> float:
    """Of i rows of the first value among so many, by how often both are elsewhere."""
    odds = math.log(often[first]) - math.log(often[second])
    return i * odds - math.lgamma(i + 1) - math.lgamma(size - i + 1)


def run(lab: TableLab) -> Finding:
    """Undoes what our own algorithm generalised in some towns, and compares with what it was."""
    size = max(40, lab.people // 5)
    everybody = patients(TOWNS * size)
    method, k = ("optimal", 2) if lab.target == "full-domain" else ("local", _K[lab.target])
    sure, guessed = Counter[bool](), Counter[bool]()  # rows, by whether what is said of them is right
    changed = 0
    for town in range(TOWNS):
        original = _records(everybody[town * size : (town + 1) * size])
        table = published(original, _ROLES, method, k=k)
        known = {name: original[name].cells() for name in _ROLES.quasi}
        shown = {name: table[name].cells() for name in _ROLES.quasi}
        changed += sum(any(shown[name][row] != known[name][row] for name in known) for row in range(table.rows))
        for each in undone(table, _ROLES, k, known):
            right = Counter(known[each.column][row] for row in each.rows) == each.values
            (sure if each.certain else guessed)[right] += len(each.rows)
        lab.progress((town + 1) / TOWNS)
    rate = Rate(sure[True], max(changed, 1), "generalised rows")
    learned = (
        f"{rate} are there again as they were, and {sure[False]:,} are said to be what they were not, where one way is "
        f"left; of {guessed.total():,} more, where several are, {guessed[True]:,} are guessed."
    )
    return lab.found(
        ATTACK.name,
        rate,
        broke=sure[True] > 0 and not sure[False],
        learned=learned,
        wrong=sure[False],
        guessed=guessed[True],
        guesses=guessed.total(),
    )


def _records(people: Sequence[Patient]) -> Table:
    return Table.of(
        {
            "zip": [each.zip for each in people],
            "sex": [each.sex for each in people],
            "illness": [each.illness for each in people],
        }
    )


ATTACK = TableAttack(
    "downcoding",
    "Undoes our own local recoding: a label tells what must have been under it.",
    "The smallest label is a statement about every row of its class.",
    {
        "local-k2": "local recoding, k = 2",
        "local-k10": "local recoding, k = 10",
        "full-domain": "one level for each column, k = 2",
    },
    ("local-k10", "full-domain"),
    run,
)
