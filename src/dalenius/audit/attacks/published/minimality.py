"""Minimality: that a table was generalised says why it had to be (Wong, Fu, Wang and Pei 2007).

Our optimum generalises no more than the model needs. Whoever knows that, and everybody's place (from a list of voters),
goes through all the ways in which the published illnesses can belong to the people, publishes each with the same
algorithm, and keeps those that give the same table. In what is left, somebody's infection can be certain, although each
class shows it for no more than half.

What ends it: levels that are chosen without looking at the illnesses. Then every way gives the same table, none is
ruled out, and the model's own bound holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.audit.attacks.attack import Finding, Rate
from dalenius.audit.attacks.published.attack import TableAttack, TableLab
from dalenius.audit.attacks.published.people import published

L = 2
VILLAGES = 200
STREETS = ("21110",) * 5 + ("21111",) * 2  # of everybody in a village
INFECTED = 2
TOGETHER = 0.3  # how often it is the two who live in one house
_ROLES = Roles.from_dict({"quasi": ["zip"], "sensitive": ["illness"], "hierarchies": {"zip": {"prefix": [4]}}}, Path())
World = frozenset[int]  # who is infected
Rows = tuple[tuple[str | None, ...], ...]


def consistent(seen: Rows, worlds: Iterable[World], publish: Callable[[World], Rows]) -> list[World]:
    """The worlds that are published so."""
    return [each for each in worlds if publish(each) == seen]


def believed(left: Sequence[World], people: int) -> NDArray[np.float64]:
    """How likely each is infected, when all worlds that are left are as likely."""
    return np.array([sum(person in each for each in left) / len(left) for person in range(people)])


def run(lab: TableLab) -> Finding:
    """Publishes many small villages, and goes through what each can have been."""
    people = len(STREETS)
    worlds = [frozenset(each) for each in combinations(range(people), INFECTED)]
    publish = _fixed if lab.target == "fixed-levels" else _minimal
    exposed = infected = above = 0
    most = 0.0
    for number in range(VILLAGES):
        true = (
            frozenset(range(5, 7)) if lab.chance.random() < TOGETHER else worlds[int(lab.chance.integers(len(worlds)))]
        )
        beliefs = believed(consistent(publish(true), worlds, publish), people)
        most = max(most, float(beliefs.max()))
        above += bool(beliefs.max() > 1 / L)
        exposed += sum(bool(beliefs[each] == 1) for each in true)
        infected += len(true)
        lab.progress((number + 1) / VILLAGES)
    rate = Rate(exposed, infected, "infected people")
    learned = (
        f"{rate} are known for certain; in {above:,} of {VILLAGES:,} villages somebody is believed infected with more "
        f"than the 1/{L} that the model promises, at most {most:.0%}."
    )
    return lab.found(ATTACK.name, rate, broke=above > 0, learned=learned, most=most, villages=above / VILLAGES)


def _village(infected: World) -> Table:
    """All others have an illness of their own, so that the model is only about the infected."""
    illnesses = ["infected" if at in infected else f"other {at}" for at in range(len(STREETS))]
    return Table.of({"zip": STREETS, "illness": illnesses})


@cache
def _minimal(infected: World) -> Rows:
    table = published(_village(infected), _ROLES, "optimal", l=L, l_kind="probabilistic")
    return _rows(table["zip"].cells(), table)


@cache
def _fixed(infected: World) -> Rows:
    table = _village(infected)
    return _rows([f"{each[:4]}*" for each in STREETS], table)


def _rows(zips: Sequence[str | None], table: Table) -> Rows:
    """As a set of rows: their order says nothing, nor which other illness somebody has."""
    hidden = ["infected" if each == "infected" else "other" for each in table["illness"].cells()]
    return tuple(sorted(zip(zips, hidden, strict=True), key=str))


ATTACK = TableAttack(
    "minimality",
    "Goes through all tables that our own optimum would have published so.",
    "What an algorithm did not do says something, too.",
    {
        "l-diverse": f"the least generalised table in which no illness exceeds 1/{L} of its class",
        "fixed-levels": "levels chosen without looking at the illnesses",
    },
    ("fixed-levels",),
    run,
)
