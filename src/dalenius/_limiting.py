"""The search for limits at `protect`: priced with the plan, run once the policy is on record, public from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dalenius._protecting import Protected, budget_of
from dalenius.ledger.requests import OWNER, Claim, Request
from dalenius.queries.finding import Search, read
from dalenius.queries.plan import Found, Table
from dalenius.tables.fingerprint import check_unchanged

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.queries.engines.duckdb import Engines
    from dalenius.tables.policy import Period
    from dalenius.tables.registry import Registry, Version

SECONDS = 3600.0  # the owner waits


def priced(planned: Sequence[Protected], registry: Registry, ledger: Ledger | None) -> list[Protected]:
    """What the search of each will cost; nothing where limits are declared, or were found for this very version."""
    found = []
    for each in planned:
        search = Search.of(table_of(each.version, planned, registry, ledger))
        done = registry.limits(each.version)
        known = search is not None and done is not None
        found.append(each if search is None or known else replace(each, search=search.charge))
    return found


def find(planned: Sequence[Protected], registry: Registry, ledger: Ledger, engines: Engines) -> list[Protected]:
    """Finds what is missing: charged to the data set, then looked at, then recorded."""
    return [_found(each, planned, registry, ledger, engines) for each in planned]


def found_of(registry: Registry, version: Version) -> Found | None:
    """The limits that were found for a version."""
    known = registry.limits(version)
    return None if known is None else Found.from_dict(known)


def _found(
    each: Protected, planned: Sequence[Protected], registry: Registry, ledger: Ledger, engines: Engines
) -> Protected:
    version = each.version
    known = registry.limits(version)
    if known is not None:
        return replace(each, limits=known)
    search = Search.of(table_of(version, planned, registry, ledger))
    if search is None:
        return each
    check_unchanged(version.table, version.fingerprint, version.policy.source)
    engine = engines.of(version.fingerprint, search.table)
    engine.columns  # noqa: B018 (an unreadable file is found before anything is charged)

    def work(_: Claim) -> bytes:
        content = search.run(engine, SECONDS)
        check_unchanged(version.table, version.fingerprint, version.policy.source)
        return content

    request = Request(
        version.dataset,
        OWNER,
        search.key(version.data_version),
        search.epsilon,
        search.event,
        question=f"limits of {version.table}",
        periods=search.periods,
    )
    limits = read(ledger.ask(request, work).content).to_dict()
    ledger.record(
        "limits",
        {
            "table": version.table,
            "dataset": version.dataset,
            "version": version.version,
            "data_version": version.data_version,
            "found": limits,
        },
    )
    return replace(each, limits=limits)


def table_of(version: Version, planned: Sequence[Protected], registry: Registry, ledger: Ledger | None) -> Table:
    """A version as questions see it: with the budget and the period of its data set."""
    policies = {name: each.policy for name, each in registry.current().items()}
    policies |= {each.version.table: each.version.policy for each in planned}
    carriers = [each for each in policies.values() if each.dataset == version.dataset and each.budget is not None]
    budget = budget_of(carriers[0]) if carriers else None
    if ledger is not None and version.dataset in ledger.datasets():
        budget = ledger.budget(version.dataset)
    periods: Mapping[str, Period | None] = {
        each.dataset: each.budget.period for each in policies.values() if each.budget is not None
    }
    if budget is None:
        raise RuntimeError("A data set without a budget was planned.")
    return Table(version.policy, budget, periods.get(version.dataset))
