"""Linkage: records without names, and a list with names (Sweeney 1997, 2002).

A hospital's records without names have date of birth, sex and postcode; so has the list of voters, with names. Whoever
looks each voter up and finds one record that fits has named it. In a k-anonymous table k records fit everybody who is
in it, so that a link is a guess among k.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.hierarchies import SUPPRESSED
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.audit.attacks.attack import Finding, Rate
from dalenius.audit.attacks.published.attack import TableAttack, TableLab
from dalenius.audit.attacks.published.people import published
from dalenius.samples.patients import Patient, patients

K = 5
_QUASI = ("born", "zip", "sex")
_ROLES = Roles.from_dict(
    {
        "quasi": _QUASI,
        "sensitive": ["illness"],
        "hierarchies": {"born": {"prefix": [7, 4, 3]}, "zip": {"prefix": [4, 2]}},
    },
    Path(),
)


def fitting(known: Table, table: Table, roles: Roles) -> NDArray[np.int64]:
    """How many rows of a published table fit each row of a table of known people, and 0 where none does.

    Both are compared by the labels of the hierarchies that the table was published with.
    """
    return np.array([len(each) for each in candidates(known, table, roles)], dtype=np.int64)


def candidates(known: Table, table: Table, roles: Roles) -> list[NDArray[np.intp]]:
    """The rows of a published table that fit each row of known people."""
    labels = {name: _labels(known, table, roles, name) for name in roles.quasi}
    found = []
    for row in range(known.rows):
        fits = np.ones(table.rows, dtype=bool)
        for name in roles.quasi:
            column = table[name]
            good = np.zeros(len(column.values), dtype=bool)
            good[labels[name][known[name].codes[row]]] = True
            fits &= good[column.codes]
        found.append(np.flatnonzero(fits))
    return found


def _labels(known: Table, table: Table, roles: Roles, name: str) -> list[list[int]]:
    """For each known value the labels of the table that may stand for it, by their place among its values."""
    hierarchy, places = roles.hierarchy(known, name), {each: at for at, each in enumerate(table[name].values)}
    found = []
    for value in range(len(known[name].values)):
        texts = [level[own[value]] for level, own in zip(hierarchy.labels, hierarchy.maps, strict=True)]
        found.append([places[each] for each in {*texts, SUPPRESSED} if each in places])
    return found


def run(lab: TableLab) -> Finding:
    """Looks everybody on the list of voters up in the records."""
    people = patients(lab.people)
    voters = [at for at, each in enumerate(people) if each.votes]
    table = _records(people)
    if lab.target == "k-anonymous":
        table = published(table, _ROLES, k=K)
    found = candidates(_records([people[at] for at in voters]), table, _ROLES)
    alone = [(at, rows[0]) for at, rows in zip(voters, found, strict=True) if len(rows) == 1]
    rate = Rate(sum(at == int(row) for at, row in alone), len(voters), "voters")
    # Who links all the same draws one of the rows that fit.
    drawn = sum(int(lab.chance.choice(rows)) == at for at, rows in zip(voters, found, strict=True) if len(rows))
    least = min((len(rows) for rows in found if len(rows)), default=0)
    learned = (
        f"{rate} have one record that fits, which is theirs: name and illness together. At least {least} "
        f"{'records fit' if least != 1 else 'record fits'} each; drawing one of them names {drawn:,} rightly."
    )
    return lab.found(ATTACK.name, rate, broke=rate.hits > 0, learned=learned, least=least, drawn=drawn / len(voters))


def _records(people: Sequence[Patient]) -> Table:
    return Table.of(
        {
            "born": [each.born.isoformat() for each in people],
            "zip": [each.zip for each in people],
            "sex": [each.sex for each in people],
            "illness": [each.illness for each in people],
        }
    )


ATTACK = TableAttack(
    "linkage",
    "Looks everybody on a list of voters up in medical records without names.",
    "Date of birth, postcode and sex are a name.",
    {"no-names": "records without names", "k-anonymous": f"{K}-anonymous, by Mondrian"},
    ("k-anonymous",),
    run,
)
