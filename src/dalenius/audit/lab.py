"""The attack lab: an attack, a target, and a scorecard of all of them.

Nothing here needs a home: naive targets live in memory, and our curator gets a folder of its own with a budget of its
own, which is gone afterwards. Only a curator behind a URL is somebody's, and is paid. Attacks on published tables make
up the people and publish them themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dalenius.audit.attacks import MADE_UP_NAMES, NAMES, any_named, attack_named
from dalenius.audit.attacks.attack import Attack, Curve, Drawing, Finding, Lab, Progress
from dalenius.audit.attacks.published.attack import FEWEST, MOST, PEOPLE, TableAttack, TableLab
from dalenius.audit.targets.curators import InProcess
from dalenius.audit.targets.naive import Noisy, Plain, Sticky
from dalenius.audit.targets.scene import Scene
from dalenius.audit.targets.target import Noise, Target
from dalenius.errors import InputError

TARGETS = ("plain", "noisy", "sticky", "dalenius")
TOTAL = 1.0  # the budget of our curator, and of each account of a naive one
EPSILON = 0.1  # of one question to our curator
SIZES = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)  # of noise, in √n


@dataclass(frozen=True, slots=True)
class Settings:
    """How the lab is set up.

    Attributes:
        scene: The people.
        total: What our curator may spend in all.
        epsilon: The price of one question to it.
        seed: For the attacker's coins and a naive target's noise; None: fresh ones.
        people: How many are made up for attacks on published tables: at least 100, at most 5,000.
    """

    scene: Scene
    total: float = TOTAL
    epsilon: float | None = None
    seed: int | None = None
    people: int = PEOPLE


def target_named(name: str, attack: Attack, settings: Settings, chance: np.random.Generator) -> Target:
    """A fresh target of that name, for one attack."""
    check_target(name)
    scene, total = settings.scene, settings.total
    asked = attack.price and attack.price * total
    if name == "plain":
        return Plain(scene)
    if name == "noisy":
        if asked is not None:
            return Noisy(scene, chance, epsilon=asked, limit=total)
        return Noisy(scene, chance, epsilon=settings.epsilon or 1.0)
    if name == "sticky":
        return Sticky(scene, chance)
    return InProcess(scene, total=total, epsilon=asked or settings.epsilon or EPSILON * total)


def check_target(name: str) -> None:
    """Refuses what is no target of the lab."""
    if name not in TARGETS:
        raise InputError(
            f"There is no target '{name}'.",
            why=f"There are: {', '.join(TARGETS)}, and curators by their URL.",
            fix="Write --against dalenius, or --against https://….",
        )


def run(name: str, target: str, settings: Settings, progress: Progress | None = None) -> Finding:
    """One attack on one target."""
    attack = any_named(name)
    chance = np.random.default_rng(settings.seed)
    if target not in attack.against:
        if not isinstance(attack, TableAttack):
            check_target(target)
        raise InputError(
            f"The attack '{name}' has nothing to say to '{target}'.",
            why=f"It is made for: {', '.join(attack.against)}.",
            fix=f"Write --against {attack.against[0]}.",
        )
    if isinstance(attack, TableAttack):
        lab = TableLab(target, chance, min(MOST, max(FEWEST, settings.people)))
        return attack.run(replace(lab, progress=progress) if progress else lab)
    with target_named(target, attack, settings, chance) as aimed:
        return _attacked(attack, aimed, chance, progress)


def run_on(name: str, target: Target, seed: int | None = None, progress: Progress | None = None) -> Finding:
    """One attack on a target that is there already, such as a server."""
    return _attacked(attack_named(name), target, np.random.default_rng(seed), progress)


def _attacked(attack: Attack, target: Target, chance: np.random.Generator, progress: Progress | None) -> Finding:
    return attack.run(Lab(target, chance, progress) if progress else Lab(target, chance))


@dataclass(frozen=True, slots=True)
class Scorecard:
    """Who fell to what."""

    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"findings": [each.to_dict() for each in self.findings]}

    def of(self, attack: str, target: str) -> Finding | None:
        """One of them; None where an attack has nothing to say to a target."""
        return next((each for each in self.findings if (each.attack, each.target) == (attack, target)), None)


def run_all(
    settings: Settings, targets: tuple[str, ...] = TARGETS, progress: Callable[[str, float], None] | None = None
) -> Scorecard:
    """Every attack on every target that it is made for; with all targets, also those on what the lab makes up."""
    todo = list(_pairs(targets))
    if targets == TARGETS:
        todo += [(name, target) for name in MADE_UP_NAMES for target in any_named(name).against]
    found = []
    for number, (name, target) in enumerate(todo):
        if progress is not None:
            progress(f"{name} against {target}", number / len(todo))
        found.append(run(name, target, settings))
    return Scorecard(tuple(found))


def by_noise(name: str, settings: Settings, progress: Progress | None = None) -> Drawing | None:
    """How well an attack does against fresh noise of several sizes; None where that is not what it is about."""
    if name in MADE_UP_NAMES or (measured := attack_named(name).by_noise) is None:
        return None
    chance = np.random.default_rng(settings.seed)
    root = min(measured.people, settings.scene.size) ** 0.5
    found = []
    for number, size in enumerate(SIZES):
        target = Noisy(settings.scene, chance, noise=Noise.GAUSSIAN, scale=size * root)
        found.append(_attacked(attack_named(name), target, chance, None).numbers.get(measured.number, float("nan")))
        if progress is not None:
            progress((number + 1) / len(SIZES))
    curves = (
        Curve("fresh noise", SIZES, tuple(found)),
        Curve("guessing", (SIZES[0], SIZES[-1]), (measured.guessing, measured.guessing)),
    )
    return Drawing("By the size of the noise", "standard deviation / √n", measured.words, curves, log_x=True)


def _pairs(targets: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in NAMES:
        for target in targets:
            if target in attack_named(name).against:
                yield name, target
