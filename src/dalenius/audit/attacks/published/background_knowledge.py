"""Background knowledge: what the victim does not have, ruled out value by value (Machanavajjhala et al. 2006).

The attacker knows of the victim some values that it is not: people of that family have no heart disease. Here the worst
of all such attackers: who rules out the values that are most frequent in the class and not the victim's. With l values
in each class it takes l − 1 of them to be certain; recursive (c, l)-diversity bounds what is believed after l − 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.audit.attacks.attack import Curve, Drawing, Finding, Rate
from dalenius.audit.attacks.published.attack import TableAttack, TableLab
from dalenius.audit.attacks.published.beliefs import Beliefs
from dalenius.audit.attacks.published.people import QUASI, published, records, roles_for
from dalenius.samples.patients import patients

K, L = 5, 3
KNOWN = 1  # values ruled out
_DRAWN = 5


def believed(beliefs: Beliefs, known: int) -> NDArray[np.float64]:
    """What is believed of each row's own value once the most frequent ``known`` others of its class are ruled out."""
    counts = beliefs.counts[beliefs.of_row].copy()
    own = counts[np.arange(beliefs.rows), beliefs.value].copy()
    counts[np.arange(beliefs.rows), beliefs.value] = 0
    others = np.sort(counts, axis=1)[:, : max(0, counts.shape[1] - known)].sum(axis=1)
    return np.asarray(own / (own + others))


def run(lab: TableLab) -> Finding:
    """Rules one value out for everybody, and counts who is certain then."""
    diverse: dict[str, Any] = {"l": L} if lab.target == "l-diverse" else {}
    table = published(records(patients(lab.people)), roles_for("illness"), k=K, **diverse)
    beliefs = Beliefs.of(table, QUASI, "illness")
    certain = [Rate(int((believed(beliefs, known) == 1).sum()), beliefs.rows) for known in range(_DRAWN)]
    rate = certain[KNOWN]
    learned = f"The illness of {rate}, knowing one that they do not have."
    curve = Curve(lab.target, tuple(map(float, range(_DRAWN))), tuple(each.share for each in certain))
    drawing = Drawing("By what is known beforehand", "illnesses ruled out", "share of people certain", (curve,))
    return lab.found(ATTACK.name, rate, broke=rate.hits > 0, learned=learned, drawing=drawing)


ATTACK = TableAttack(
    "background-knowledge",
    "Knows one illness that the victim does not have, and is certain of another.",
    "What is hidden between two is told by who knows one of them.",
    {"k-anonymous": f"{K}-anonymous", "l-diverse": f"{K}-anonymous with {L} illnesses in each class"},
    ("l-diverse",),
    run,
)
