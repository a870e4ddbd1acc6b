"""Attacks on published tables, one file each: they ask nothing, so no budget ends them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from dalenius.audit.attacks.published.attack import TableAttack

# In the order in which one model after the other fell.
TABLE_NAMES = (
    "dictionary",
    "linkage",
    "homogeneity",
    "background-knowledge",
    "probabilistic-inference",
    "skewness",
    "similarity",
    "release-intersection",
    "minimality",
    "downcoding",
    "trajectories",
    "ratings",
)


def table_attack_named(name: str) -> TableAttack:
    """The attack of that name, which is one of `TABLE_NAMES`."""
    return cast("TableAttack", import_module(f"{__name__}.{name.replace('-', '_')}").ATTACK)
