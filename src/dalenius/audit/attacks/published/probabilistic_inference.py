"""Probabilistic inference: the most frequent illness of the class is a good guess.

Distinct l-diversity counts values, however rare: nine of ten with one illness and two others are diverse. The attacker
bets on the most frequent one where it is frequent enough. Probabilistic l-diversity bounds it by 1/l; β-likeness bounds
by how much the share of any value may exceed that in the table, relative to it (Cao and Karras 2012).
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

K, L, BETA = 10, 3, 2
SURE = 0.5  # what the attacker bets from

_MODELS: dict[str, dict[str, Any]] = {
    "distinct-l-diverse": {"l": L},
    "probabilistic-l-diverse": {"l": L, "l_kind": "probabilistic"},
    "beta-like": {"beta": BETA},
}


def bets(beliefs: Beliefs, sure: float = SURE) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows are bet on, and which of these bets are right."""
    guess = beliefs.counts.argmax(axis=1)[beliefs.of_row]
    placed = beliefs.shares.max(axis=1)[beliefs.of_row] >= sure
    return np.asarray(placed), np.asarray(placed & (guess == beliefs.value))


def run(lab: TableLab) -> Finding:
    """Bets on the most frequent illness of each class."""
    table = published(records(patients(lab.people)), roles_for("illness"), k=K, **_MODELS[lab.target])
    beliefs = Beliefs.of(table, QUASI, "illness")
    placed, right = bets(beliefs)
    rate, made = Rate(int(right.sum()), beliefs.rows), int(placed.sum())
    most = float(beliefs.shares.max())
    share = f", {right.sum() / made:.0%} of the bets" if made else ""
    learned = f"The illness of {rate}{share}; in the clearest class {most:.0%} have the same."
    return lab.found(ATTACK.name, rate, broke=rate.hits > 0, learned=learned, bets=made, most=most)


ATTACK = TableAttack(
    "probabilistic-inference",
    "Bets on the illness that most of the class have.",
    "Several values are no secret if one is nearly all.",
    {
        "distinct-l-diverse": f"{K}-anonymous with {L} illnesses in each class",
        "probabilistic-l-diverse": f"none of them above 1/{L} of its class",
        "beta-like": f"none more than {1 + BETA} times as frequent as in the table",
    },
    ("probabilistic-l-diverse", "beta-like"),
    run,
)
