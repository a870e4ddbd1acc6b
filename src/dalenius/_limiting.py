"""The search for limits at `protect`: priced with the plan, run once the policy is on record, public from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dalenius._paths import through
from dalenius._protecting import Protected, next_budget
from dalenius._reading import Reading
from dalenius.ledger.requests import OWNER, Claim, Request
from dalenius.queries.finding import Search, known, read
from dalenius.queries.plan import Found, Table

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.queries.engines.duckdb import Engines
    from dalenius.tables.registry import Registry, Version

SECONDS = 3600.0  # the owner waits
_SLACK = 60.0  # for what comes around the search of another process


def priced(planned: Sequence[Protected], registry: Registry, ledger: Ledger | None) -> list[Protected]:
    """What the search of each will cost; nothing where limits are declared, or were found for the same before."""
    found = []
    for each in planned:
        search, done = _wanted(each.version, planned, registry, ledger)
        found.append(replace(each, search=None if search is None or done is not None else search.charge))
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
    search, done = _wanted(version, planned, registry, ledger)
    if search is None:
        return each
    if done is not None:
        limits = done.to_dict()
        if registry.limits(version) is None:
            _record(version, limits, ledger)
        return replace(each, search=None, limits=limits)
    reading = Reading.of(search.table, registry.current())
    reading.check_unchanged()
    engine = reading.engine(engines)
    engine.columns  # noqa: B018 (an unreadable file is found before anything is charged)

    def work(_: Claim) -> bytes:
        content = search.run(engine, SECONDS)
        reading.check_unchanged()
        return content

    request = Request(
        version.dataset,
        OWNER,
        search.key(reading.data_version),
        search.epsilon,
        search.event,
        question=f"limits of {version.table}",
        periods=search.periods,
    )
    answered = ledger.ask(request, work, patience=SECONDS + _SLACK)
    limits = read(answered.content).to_dict()
    _record(version, limits, ledger)
    # Free where another process has just found them, or had when it was stopped.
    return replace(each, search=None if answered.free else search.charge, limits=limits)


def _record(version: Version, limits: Mapping[str, Any], ledger: Ledger) -> None:
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


def _wanted(
    version: Version, planned: Sequence[Protected], registry: Registry, ledger: Ledger | None
) -> tuple[Search | None, Found | None]:
    """The search that a version needs, and what it would find where that is known already."""
    table = table_of(version, planned, registry, ledger)
    search = Search.of(table)
    if search is None:
        return None, None
    own = registry.limits(version)
    if own is not None:
        return search, Found.from_dict(own)
    before = [
        (replace(table, policy=each.policy), Found.from_dict(limits))
        for each, limits in registry.found(version.table, version.data_version)
    ]
    return search, known(search, before)


def table_of(version: Version, planned: Sequence[Protected], registry: Registry, ledger: Ledger | None) -> Table:
    """A version as questions see it, with the budget that it will have: what is shown is what will be charged."""
    versions = registry.current()
    current = {name: each.policy for name, each in versions.items()}
    policies = current | {each.version.table: each.version.policy for each in planned}
    carriers = [each for each in policies.values() if each.dataset == version.dataset and each.budget is not None]
    carrier = carriers[0] if carriers else version.policy
    budget = next_budget(carrier, current.get(carrier.name), ledger)
    if budget is None:
        raise RuntimeError("A data set without a budget was planned.")
    period = carrier.budget.period if carrier.budget else None
    ways = through(version.policy, versions | {each.version.table: each.version for each in planned})
    on_the_way = {name: Table(each.policy, budget, period) for name, each in ways.items()}
    return Table(version.policy, budget, period, through=on_the_way)
