"""Policies: unit, columns, bounds, keys; and where the data is.

policy                a policy as plain data
reading               from TOML: the table, its public tables; with every mistake named (mistakes)
  protection          the unit, [contribution], [budget], [analysts] and [time]
  columns             [columns.NAME], with keys from code lists
  sections, values    a table of the file, key by key; exact numbers, dates, default steps
writing               back to canonical TOML, and to a hash
difference            what changed between two versions
compatibility         a policy against a schema
draft, smartnoise     a first policy, from a schema or from another system's metadata
practice              made-up rows
registry              the versions that the ledger holds
sources/              where the data is, and whether it changed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy

if TYPE_CHECKING:
    from dalenius.tables.policy import Bounds, BudgetSpec, Column, Contribution, Kind, Period, Policy, PublicSpec, Time
    from dalenius.tables.reading import read_file, read_text

_EXPORTS = {
    "Bounds": "policy",
    "BudgetSpec": "policy",
    "Column": "policy",
    "Contribution": "policy",
    "Kind": "policy",
    "Period": "policy",
    "Policy": "policy",
    "PublicSpec": "policy",
    "Time": "policy",
    "read_file": "reading",
    "read_text": "reading",
}

__all__ = [
    "Bounds",
    "BudgetSpec",
    "Column",
    "Contribution",
    "Kind",
    "Period",
    "Policy",
    "PublicSpec",
    "Time",
    "read_file",
    "read_text",
]

__getattr__, __dir__ = lazy(__name__, _EXPORTS)
