"""Attacks, one file each. Adding one means adding its file and its name here."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, cast

from dalenius.errors import InputError

if TYPE_CHECKING:
    from dalenius.audit.attacks.attack import Attack

# In the order in which a person should read them.
NAMES = (
    "differencing",
    "intersection",
    "averaging",
    "median-filter",
    "overlapping-sums",
    "exhaustive",
    "reconstruction",
    "membership",
    "error-oracle",
    "timing",
    "rare-key",
    "race",
    "collusion",
)


def attack_named(name: str) -> Attack:
    """The attack of that name."""
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        raise InputError(
            f"There is no attack '{name}'.",
            why=f"There are: {', '.join(NAMES)}.",
            fix=f"Did you mean '{near[0]}'?" if near else "See 'dalenius attack list'.",
        )
    return cast("Attack", import_module(f"{__name__}.{name.replace('-', '_')}").ATTACK)
