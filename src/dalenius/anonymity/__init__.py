"""Anonymised tables: k-anonymity and its successors, and what they do not protect.

    table, roles, hierarchies   what is published, who is who in it, how values become coarser
    classes                     rows that look alike, and the sensitive values in them: one pass
    models/                     one promise per file: check it on classes
    losses/                     what generalisation takes away
    transformers/               one method per file: full-domain optimum, Mondrian, local recoding, greedy
    checking, run               check a published table; make one

A table made here is published without a guarantee: whoever knows more than the model assumes learns more than it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy

if TYPE_CHECKING:
    from dalenius.anonymity.checking import CheckResult, check
    from dalenius.anonymity.hierarchy_files import hierarchy_file
    from dalenius.anonymity.models import asked
    from dalenius.anonymity.options import Options
    from dalenius.anonymity.roles import Roles
    from dalenius.anonymity.run import Publication, anonymize
    from dalenius.anonymity.table import Table, read_table, write_table

_EXPORTS = {
    "CheckResult": "checking",
    "Options": "options",
    "Publication": "run",
    "Roles": "roles",
    "Table": "table",
    "anonymize": "run",
    "asked": "models",
    "check": "checking",
    "hierarchy_file": "hierarchy_files",
    "read_table": "table",
    "write_table": "table",
}

__all__ = [
    "CheckResult",
    "Options",
    "Publication",
    "Roles",
    "Table",
    "anonymize",
    "asked",
    "check",
    "hierarchy_file",
    "read_table",
    "write_table",
]

__getattr__, __dir__ = lazy(__name__, _EXPORTS)
