"""Attacks on reports that a collector gathers from people who do not trust it: they ask nothing, either."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from dalenius.audit.attacks.published.attack import TableAttack

REPORT_NAMES = ("pool-inference",)


def report_attack_named(name: str) -> TableAttack:
    """The attack of that name, which is one of `REPORT_NAMES`."""
    return cast("TableAttack", import_module(f"{__name__}.{name.replace('-', '_')}").ATTACK)
