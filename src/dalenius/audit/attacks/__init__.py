"""Attacks, one file each. Adding one means adding its file and its name.

The name stands here, or in `published` if it is on a table, or in `collected` if it is on reports of local privacy.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, cast

from dalenius.audit.attacks.collected import REPORT_NAMES, report_attack_named
from dalenius.audit.attacks.published import TABLE_NAMES, table_attack_named
from dalenius.errors import InputError

if TYPE_CHECKING:
    from dalenius.audit.attacks.attack import Attack
    from dalenius.audit.attacks.published.attack import TableAttack

__all__ = ["MADE_UP_NAMES", "NAMES", "REPORT_NAMES", "TABLE_NAMES", "any_named", "attack_named"]

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

# On what the lab makes up and publishes or collects itself: they ask no questions.
MADE_UP_NAMES = (*TABLE_NAMES, *REPORT_NAMES)


def attack_named(name: str) -> Attack:
    """The attack of that name, on systems that answer questions."""
    if name not in NAMES:
        raise _unknown(name, NAMES)
    return cast("Attack", import_module(f"{__name__}.{name.replace('-', '_')}").ATTACK)


def any_named(name: str) -> Attack | TableAttack:
    """The attack of that name, on whatever it is."""
    if name not in (*NAMES, *MADE_UP_NAMES):
        raise _unknown(name, (*NAMES, *MADE_UP_NAMES))
    if name in REPORT_NAMES:
        return report_attack_named(name)
    return table_attack_named(name) if name in TABLE_NAMES else attack_named(name)


def _unknown(name: str, names: tuple[str, ...]) -> InputError:
    near = get_close_matches(name, names, n=1)
    return InputError(
        f"There is no attack '{name}'.",
        why=f"There are: {', '.join(names)}.",
        fix=f"Did you mean '{near[0]}'?" if near else "See 'dalenius attack list'.",
    )
