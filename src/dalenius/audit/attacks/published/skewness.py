"""Skewness: in a class that has both values, one may be twenty times as frequent as elsewhere (Li et al. 2007).

An infection that one in twelve has: a class in which half of all have it is 2-diverse, as diverse as two values can be,
and tells of everybody in it what nobody would have thought. t-closeness asks that a class be like the whole table: with
the distance of two values, what is believed rises by at most t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.audit.attacks.attack import Finding, Rate
from dalenius.audit.attacks.published.attack import TableAttack, TableLab
from dalenius.audit.attacks.published.beliefs import Beliefs
from dalenius.audit.attacks.published.people import QUASI, published, records, roles_for
from dalenius.samples.patients import patients

K, T = 5, 0.1
RISE = 0.25  # of what is believed, from which the attacker is content


def rise(beliefs: Beliefs) -> NDArray[np.float64]:
    """By how much a class raises what is believed of some value, for each row: the largest."""
    return np.asarray((beliefs.shares - beliefs.prior).max(axis=1))[beliefs.of_row]


def run(lab: TableLab) -> Finding:
    """Looks for classes in which infection is far more frequent than in the table."""
    models = {"t": T, "t_distance": "equal"} if lab.target == "t-close" else {"l": 2}
    table = published(records(patients(lab.people)), roles_for("infected"), k=K, **models)
    beliefs = Beliefs.of(table, QUASI, "infected")
    yes = table["infected"].values.index("yes")
    gain = (beliefs.shares[:, yes] - beliefs.prior[yes])[beliefs.of_row]
    rate = Rate(int((gain >= RISE).sum()), beliefs.rows)
    learned = (
        f"{rate} are believed infected with at least {RISE:.0%} more than the {beliefs.prior[yes]:.1%} of the table; "
        f"the most is {beliefs.shares[:, yes].max():.0%}."
    )
    most = float(gain.max())
    return lab.found(ATTACK.name, rate, broke=rate.hits > 0, learned=learned, most=most)


ATTACK = TableAttack(
    "skewness",
    "Looks for classes in which a rare infection is frequent.",
    "Two values in each class are no secret if one is rare.",
    {
        "l-diverse": f"{K}-anonymous, both values in each class",
        "t-close": f"{K}-anonymous, within t = {T} of the table",
    },
    ("t-close",),
    run,
)
