"""Trajectories: four taxi rides are as good as a name (de Montjoye et al. 2013; New York's taxis, 2014).

Rides were published with a number instead of a name, the same for all rides of one person. Whoever saw the victim take
a taxi a few times (in a photograph with a date) looks for the number that has all these rides, and has all others with
them. Coarser times and places help less than one thinks. What ends it is to publish rides that belong to nobody: each
row by itself, k of them alike. Then sightings cannot be put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dalenius.anonymity.classes import classes
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.anonymity.unicity import Trails, drawn, trails
from dalenius.audit.attacks.attack import Curve, Drawing, Finding, Rate
from dalenius.audit.attacks.published.attack import TableAttack, TableLab
from dalenius.audit.attacks.published.people import published
from dalenius.samples.trips import Trip, trips

K, KNOWN, TRIED = 5, 4, 500
_ROLES = Roles.from_dict(
    {
        "quasi": ["zone", "hour"],
        "hierarchies": {"zone": {"width": 5, "levels": 3}, "hour": {"width": 6, "levels": 6}},
    },
    Path(),
)


def run(lab: TableLab) -> Finding:
    """Looks for everybody by some of their rides."""
    table = rides(trips(lab.people))
    if lab.target == "no-numbers":
        return _by_single_rides(lab, published(table, _ROLES, k=K))
    if lab.target == "coarse":
        table = _coarse(table)
    found = trails(table, "person", ["zone", "hour"])
    rates = [_by_trails(found, known, lab.chance) for known in range(1, KNOWN + 1)]
    learned = f"All rides of {rates[-1]}, from {KNOWN} of them; one ride is enough for {rates[0].share:.0%}."
    ys = tuple(each.share for each in rates)
    return _told(lab, rates[-1], learned, ys, broke=rates[-1].share > 1 / K)


def rides(made: Sequence[Trip]) -> Table:
    """As published: a number for each person, place, hour and fare."""
    return Table.of(
        {
            "person": [str(each.person) for each in made],
            "zone": [str(each.zone) for each in made],
            "hour": [str(each.hour) for each in made],
            "fare": [str(each.fare) for each in made],
        }
    )


def _coarse(table: Table) -> Table:
    """Districts of five zones, and quarters of a day: the same level everywhere."""
    cells = {name: table[name].cells() for name in table.names}
    cells["zone"] = [str(int(str(each)) // 5) for each in cells["zone"]]
    cells["hour"] = [str(int(str(each)) // 6) for each in cells["hour"]]
    return Table.of(cells)


def _by_trails(found: Trails, known: int, chance: np.random.Generator) -> Rate:
    """How many people are the only ones with so many of their own points, drawn by chance."""
    who = chance.permutation(found.count)[:TRIED]
    hits = sum(len(found.sharing(drawn(found.of(int(each)), known, chance))) == 1 for each in who)
    return Rate(int(hits), len(who))


def _by_single_rides(lab: TableLab, table: Table) -> Finding:
    """Rows are nobody's: each sighting fits a class, and says nothing about another ride. A fare is the prize."""
    found = classes(table, ["zone", "hour"])
    chosen = lab.chance.permutation(table.rows)[:TRIED]
    hits = sum(int(lab.chance.integers(found.sizes[found.of_row[row]])) == 0 for row in chosen)
    rate, least = Rate(int(hits), len(chosen), "rides"), int(found.sizes.min())
    learned = (
        f"Nobody's trail. Of rides that were seen, the very row of {rate}, by drawing one of those that fit: at least "
        f"{least} do."
    )
    return _told(lab, rate, learned, (rate.share,) * KNOWN, broke=least < K)


def _told(lab: TableLab, rate: Rate, learned: str, ys: tuple[float, ...], *, broke: bool) -> Finding:
    curve = Curve(lab.target, tuple(float(at) for at in range(1, KNOWN + 1)), ys)
    drawing = Drawing("By what was seen", "rides known", "share found", (curve,))
    return lab.found(ATTACK.name, rate, broke=broke, learned=learned, drawing=drawing)


ATTACK = TableAttack(
    "trajectories",
    "Finds all taxi rides of somebody who was seen taking four.",
    "Where somebody was is who somebody is.",
    {
        "numbered": "a number instead of a name, the same on all rides of one person",
        "coarse": "the same, with districts of five zones and quarters of a day",
        "no-numbers": f"each ride by itself, {K} of them alike",
    },
    ("no-numbers",),
    run,
)
