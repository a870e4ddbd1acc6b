"""What analysts may know of a table, in JSON's terms; the command line and the server tell the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dalenius.errors import NotAllowedError, SourceError
from dalenius.ledger.tokens import Role

if TYPE_CHECKING:
    from dalenius.curator import Curator
    from dalenius.ledger.tokens import Token
    from dalenius.tables.policy import Policy
    from dalenius.tables.registry import Version


def summary(version: Version, limits: Mapping[str, Any] | None = None, closed: str | None = None) -> dict[str, Any]:
    """What analysts may know of a table: not where the data is, nor who else may ask. Found limits are public."""
    return {
        "name": version.table,
        **shape(version.policy),
        "limits": limits,
        "public": public_of(version),
        "version": version.version,
        "data_version": version.data_version,
        "closed": closed,
    }


def datasets_open_to(curator: Curator, token: Token) -> list[str]:
    """The data sets that a token may know of: an analyst, those with an allotment; of others nobody is told."""
    ledger = curator.ledger
    everything = token.role is not Role.ANALYST
    return [name for name in ledger.datasets() if everything or token.analyst in ledger.allotments(name)]


def open_to(curator: Curator, token: Token) -> list[Version]:
    """The tables that a token may ask about, or see."""
    datasets = set(datasets_open_to(curator, token))
    return [each for each in curator.tables() if each.dataset in datasets]


def summary_of(curator: Curator, version: Version) -> dict[str, Any]:
    """One of them, with what is known of it now."""
    return summary(version, curator.registry.limits(version), curator.registry.closed(version.table))


def shape(policy: Policy) -> dict[str, Any]:
    """The part that the policy itself says: whose rows they are, which columns there are, what one unit adds."""
    tree = policy.to_dict()
    return {
        "dataset": policy.dataset,
        "unit": list(policy.unit),
        "path": policy.whose if policy.path else None,
        "neighbors": policy.neighbors.value,
        "columns": tree.get("columns", {}),
        "contribution": tree.get("contribution", {}),
    }


def public_of(version: Version) -> dict[str, dict[str, Any]]:
    """The public tables beside a table: what is unique in them, and columns with types; none where files changed."""
    from dalenius.measuring.public import public_table
    from dalenius.tables.registry import check_public_unchanged

    found = {}
    for name, spec in version.policy.public.items():
        try:
            check_public_unchanged(version, [name])
            columns = dict(public_table(spec, version.public[name]).types)
        except (SourceError, NotAllowedError):  # asking will tell
            columns = None
        found[name] = {"key": list(spec.key), "columns": columns}
    return found
