"""Policies: unit, columns, bounds, keys; and where the data is.

policy         a policy as plain data         reading, columns, sections   from TOML, every mistake named
writing        back to canonical TOML         values, steps                exact numbers, dates, default steps
code_lists     keys from a file               compatibility                a policy against a schema
fingerprint    what the files are             difference                   between two versions
draft          a first policy from a schema   registry                     the versions that the ledger holds
practice       made-up rows                   public                       the tables that hold nobody's secrets
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
