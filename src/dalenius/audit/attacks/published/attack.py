"""An attack on a published table or on reports: it asks nothing, it has them. It is told by how often it is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dalenius.audit.attacks.attack import Drawing, Finding, Progress, Rate, nobody_looks

PEOPLE = 1000
FEWEST, MOST = 100, 5000  # a smaller town has nobody with a rare infection; a larger one only takes longer


@dataclass(frozen=True, slots=True)
class TableLab:
    """What an attack on a table is run with.

    Attributes:
        target: How the made-up people were published: one of the attack's `against`.
        chance: The attacker's own coins, and those of what is made up.
        people: How many are made up.
        progress: Told how much is done, from 0 to 1.
    """

    target: str
    chance: np.random.Generator
    people: int = PEOPLE
    progress: Progress = nobody_looks

    def found(
        self, attack: str, rate: Rate, *, broke: bool, learned: str, drawing: Drawing | None = None, **numbers: float
    ) -> Finding:
        """A finding about this lab's table."""
        told = {"hits": float(rate.hits), "of": float(rate.of), "share": rate.share, **numbers}
        return Finding(attack, self.target, broke, learned, 0, None, "", told, drawing, rate)


@dataclass(frozen=True, slots=True)
class TableAttack:
    """One attack on published tables, or on collected reports.

    Attributes:
        name: As it is typed.
        title: What it does, in a line.
        teaches: What one learns from it.
        about: The publications that it is tried on, in words: first what it breaks, then what stops it.
        stopped_by: Those of them that stop it.
        run: It.
    """

    name: str
    title: str
    teaches: str
    about: Mapping[str, str]
    stopped_by: tuple[str, ...]
    run: Callable[[TableLab], Finding]

    @property
    def against(self) -> tuple[str, ...]:
        """The publications that it is tried on."""
        return tuple(self.about)
