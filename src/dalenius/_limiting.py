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
_LEFT = "data_version"  # in limits that were found for earlier data
_SLACK = 60.0  # for what comes around the search of another process


def priced(
    planned: Sequence[Protected], registry: Registry, ledger: Ledger | None, *, anew: bool = False
) -> list[Protected]:
    """What the search of each will cost; nothing where limits are declared, or were found for the same before.

    With ``anew``, limits that were found for earlier data and that a refresh left do not count.
    """
    found = []
    for each in planned:
        search, done = _wanted(each.version, planned, registry, ledger, anew)
        found.append(replace(each, search=None if search is None or done is not None else search.charge))
    return found


def find(
    planned: Sequence[Protected], registry: Registry, ledger: Ledger, engines: Engines, *, anew: bool = False
) -> list[Protected]:
    """Finds what is missing: charged to the data set, then looked at, then recorded."""
    return [_found(each, planned, registry, ledger, engines, anew) for each in planned]


def found_of(registry: Registry, version: Version) -> Found | None:
    """The limits that were found for a version."""
    known = registry.limits(version)
    return None if known is None else Found.from_dict(known)


def _found(
    each: Protected,
    planned: Sequence[Protected],
    registry: Registry,
    ledger: Ledger,
    engines: Engines,
    anew: bool,
) -> Protected:
    version = each.version
    search, done = _wanted(version, planned, registry, ledger, anew)
    if search is None:
        return each
    if done is not None:
        if registry.limits(version) is None:
            _record(version, done, ledger)
        return replace(each, search=None, limits=done)
    reading = Reading.of(search.table, registry.current())
    reading.check_unchanged()
    engine = reading.engine(engines)
    engine.columns  # noqa: B018 (an unreadable file is found before anything is charged)
    engine.ready()  # and so is an engine that cannot begin

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
        epoch=reading.epoch,
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
    version: Version, planned: Sequence[Protected], registry: Registry, ledger: Ledger | None, anew: bool
) -> tuple[Search | None, Mapping[str, Any] | None]:
    """The search that a version needs, and what it would find where that is known already."""
    table = table_of(version, planned, registry, ledger)
    search = Search.of(table)
    if search is None or _behind(version, registry):  # nobody may look at people before
        return None, None
    own = registry.limits(version)
    if own is not None and not (anew and _LEFT in own):
        return search, own
    there = [
        (replace(table, policy=each.policy), limits)
        for each, limits in registry.found(version.table, version.data_version)
        if not (anew and _LEFT in limits)
    ]
    found = known(search, [(each, Found.from_dict(limits)) for each, limits in there])
    left = [limits[_LEFT] for _, limits in there if _LEFT in limits]
    return search, None if found is None else found.to_dict() | ({_LEFT: min(left)} if left else {})


def _behind(version: Version, registry: Registry) -> bool:
    """Whether it, or a table that its path goes through, still holds the people before."""
    epoch = max(version.epoch, registry.epoch(version.dataset))
    return any(each.epoch < epoch for each in (version, *through(version.policy, registry.current()).values()))


def left_by(before: Version, after: Version, registry: Registry) -> Mapping[str, Any] | None:
    """The limits that a refresh leaves as they are, with the data version for which they were found."""
    limits = registry.limits(before)
    if limits is None or before.data_version == after.data_version:
        return limits
    return {_LEFT: before.data_version} | limits


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
