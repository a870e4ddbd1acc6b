"""Similarity: three different salaries, all of them low (Li et al. 2007).

l-diversity counts values and does not know which are alike. Whoever finds a class whose salaries lie close together
knows everybody's, nearly. t-closeness with the ordered distance knows how far values are apart: a class that lies at
one end of the scale is far from the table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.audit.attacks.attack import Finding, Rate
from dalenius.audit.attacks.published.attack import TableAttack, TableLab
from dalenius.audit.attacks.published.beliefs import Beliefs
from dalenius.audit.attacks.published.people import QUASI, published, records, roles_for
from dalenius.samples.patients import patients

K, L, T = 5, 3, 0.15
NARROW = 0.25  # of the whole scale


def spans(beliefs: Beliefs, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much of the scale of all numbers each row's class covers."""
    there = beliefs.counts > 0
    low = np.where(there, numbers, np.inf).min(axis=1)
    high = np.where(there, numbers, -np.inf).max(axis=1)
    return np.asarray((high - low) / max(float(np.ptp(numbers)), 1e-300))[beliefs.of_row]


def run(lab: TableLab) -> Finding:
    """Looks for classes whose salaries lie close together."""
    models = {"t": T, "t_distance": "ordered"} if lab.target == "t-close" else {"l": L}
    table = published(records(patients(lab.people)), roles_for("salary"), k=K, **models)
    numbers = table["salary"].numbers
    assert numbers is not None  # noqa: S101 (they are made so)
    covered = spans(Beliefs.of(table, QUASI, "salary"), numbers)
    rate = Rate(int((covered <= NARROW).sum()), table.rows)
    learned = (
        f"The salary of {rate}, within {NARROW:.0%} of the scale; the median class covers {np.median(covered):.0%}."
    )
    return lab.found(ATTACK.name, rate, broke=rate.hits > 0, learned=learned, narrowest=float(covered.min()))


ATTACK = TableAttack(
    "similarity",
    "Looks for classes whose salaries are different and yet alike.",
    "Different values can say the same.",
    {
        "l-diverse": f"{K}-anonymous with {L} salaries in each class",
        "t-close": f"{K}-anonymous, within t = {T} of the table by the ordered distance",
    },
    ("t-close",),
    run,
)
