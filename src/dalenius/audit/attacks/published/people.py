"""The table that attacks on tables are tried on: a town's patients, and how they are published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.samples.patients import Patient

QUASI = ("age", "zip", "sex")
_HIERARCHIES = {"age": {"width": 5, "levels": 4}, "zip": {"prefix": [4, 2]}, "sex": "suppress"}


def records(people: Sequence[Patient]) -> Table:
    """What a hospital has, without names."""
    return Table.of(
        {
            "age": [str(each.age) for each in people],
            "zip": [each.zip for each in people],
            "sex": [each.sex for each in people],
            "illness": [each.illness for each in people],
            "infected": ["yes" if each.infected else "no" for each in people],
            "salary": [str(each.salary) for each in people],
        }
    )


def roles_for(*sensitive: str) -> Roles:
    """Age, postcode and sex are known; some column is not."""
    return Roles.from_dict({"quasi": QUASI, "sensitive": sensitive, "hierarchies": _HIERARCHIES}, Path())


def published(table: Table, roles: Roles, method: str = "mondrian", **models: Any) -> Table:
    """The table as our own transformer publishes it, in the order of the people: attacks must know who is who."""
    from dalenius.anonymity.models import asked
    from dalenius.anonymity.run import anonymize

    return anonymize(table, roles, asked(**models), method=method, keep_order=True).table
