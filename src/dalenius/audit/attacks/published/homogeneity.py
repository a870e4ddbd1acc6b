"""Homogeneity: a class of k rows that all have one illness hides nobody's (Machanavajjhala et al. 2006).

k-anonymity says how many rows look alike, not what they say. l-diversity asks for l values in each class, and then no
class has one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.audit.attacks.attack import Finding, Rate
from dalenius.audit.attacks.published.attack import TableAttack, TableLab
from dalenius.audit.attacks.published.beliefs import Beliefs
from dalenius.audit.attacks.published.people import QUASI, published, records, roles_for
from dalenius.samples.patients import patients

K, L = 5, 3


def exposed(beliefs: Beliefs) -> NDArray[np.bool_]:
    """The rows whose class has one value."""
    return np.asarray((beliefs.counts > 0).sum(axis=1) == 1)[beliefs.of_row]


def run(lab: TableLab) -> Finding:
    """Looks for classes of one value."""
    diverse: dict[str, Any] = {"l": L} if lab.target == "l-diverse" else {}
    table = published(records(patients(lab.people)), roles_for("illness"), k=K, **diverse)
    beliefs = Beliefs.of(table, QUASI, "illness")
    rate = Rate(int(exposed(beliefs).sum()), beliefs.rows)
    learned = f"The illness of {rate}, who are in a class where all have the same."
    return lab.found(ATTACK.name, rate, broke=rate.hits > 0, learned=learned)


ATTACK = TableAttack(
    "homogeneity",
    "Looks for classes whose rows all have the same illness.",
    "To be hidden among k is no help if all k have it.",
    {"k-anonymous": f"{K}-anonymous", "l-diverse": f"{K}-anonymous with {L} illnesses in each class"},
    ("l-diverse",),
    run,
)
