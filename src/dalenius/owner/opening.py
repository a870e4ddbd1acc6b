"""Opens rows that are about nobody as a public table beside a protected one: one more name in its policy.

The rows are synthetic: post-processing of what was charged, whoever paid for it. That everyone who may ask can read
them is the owner's decision, as for every public table, and stands in the ledger as a version of the policy. What the
policy says of the protected table stays as it is, so that stored answers and limits do.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dalenius.tables.mistakes import invalid
from dalenius.tables.policy import Policy, PublicSpec
from dalenius.tables.registry import Registry
from dalenius.tables.sections import check_identifier


def check_public_name(name: str, table: str, registry: Registry) -> None:
    """Refuses a name that cannot be a public table's beside a protected one, before any file is written.

    One that is a public table of this policy already is given to the new rows.
    """
    check_identifier(name, "the name of a public table")
    for version in registry.current().values():
        if version.table.lower() == name.lower():
            raise invalid(
                "the name of a public table",
                f"there is a protected table {version.table!r}.",
                why="SQL cannot tell them apart.",
                fix="Choose another name.",
            )
        others = [each for each in version.policy.public if each.lower() == name.lower()]
        if others and (version.table != table or others != [name]):
            raise invalid(
                "the name of a public table",
                f"{others[0]!r} is a public table of {version.table!r}.",
                why="A name means one thing to everyone who asks.",
                fix="Choose another name.",
            )


def with_public(policy: Policy, name: str, file: Path) -> Policy:
    """The same policy with one more public table, or with other rows for one that it has."""
    spec = PublicSpec(name, (str(file.absolute()),))
    return replace(policy, public={**policy.public, name: spec})
