"""The search for limits at `protect`: priced with the plan, run once the policy is on record, public from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from dalenius.errors import NotAllowedError
from dalenius.ledger.requests import LIMITS, OWNER
from dalenius.measuring.limits.at_protect import ProtectSearch, known_limits, read_limits
from dalenius.measuring.pace import Times
from dalenius.measuring.plan import Found, Table
from dalenius.owner.protect import Protected, next_budget
from dalenius.releasing.kinds import Kind
from dalenius.releasing.leaving import Asker, Leaving, release
from dalenius.releasing.pacing import Pace
from dalenius.releasing.snapshot import Snapshot, moved_from, through

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.requests import Answered
    from dalenius.measuring.engines.sources import Engines
    from dalenius.tables.registry import Registry, Version

SECONDS = 3600.0  # the owner waits
_LEFT = "data_version"  # in limits that were found for earlier data
_SLACK = 60.0  # for what comes around the search of another process


class Searches(Kind):
    """Limits that were found at `protect` or `refresh`, public from then on."""

    name: ClassVar[str] = LIMITS
    verb: ClassVar[str] = "found limits of"

    def prepare(self, asker: Asker, request: Any) -> Leaving:  # noqa: ARG002
        """Nobody asks for limits alone."""
        raise NotAllowedError(
            "Limits are not asked for.",
            why="The owner's 'protect' finds them, once for the same data.",
            fix="See 'dalenius tables' for those that were found.",
        )

    def show(
        self,
        asker: Asker,  # noqa: ARG002
        request: Any,  # noqa: ARG002
        leaving: Leaving,  # noqa: ARG002
        answered: Answered,
    ) -> Found:
        """The limits."""
        return read_limits(answered.content)

    def read(self, content: bytes) -> dict[str, Any]:
        """The limits, as JSON has them."""
        return read_limits(content).to_dict()


KIND = Searches()


def price(
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
    snapshot = Snapshot.of(search.table, registry.current())
    leaving = Leaving(
        LIMITS,
        snapshot,
        search.key(snapshot.data_version),
        search.epsilon,
        search.event,
        Pace(lambda _: Times(SECONDS, SECONDS), SECONDS),
        lambda look: search.run(look.engine, look.seconds),
        asked=f"limits of {version.table}",
        periods=search.periods,
    )
    answered = release(leaving, Asker(OWNER, ledger, registry, engines), patience=SECONDS + _SLACK)
    limits = read_limits(answered.content).to_dict()
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
) -> tuple[ProtectSearch | None, Mapping[str, Any] | None]:
    """The search that a version needs, and what it would find where that is known already."""
    table = table_of(version, planned, registry, ledger)
    search = ProtectSearch.of(table)
    if search is None or _behind(version, registry):  # nobody may look at people before
        return None, None
    own = registry.limits(version)
    if own is not None and not (anew and _LEFT in own):
        return search, own
    there = [
        (replace(table, policy=each.policy), limits)
        for each, limits in registry.limits_of_data(version.table, version.data_version)
        if not (anew and _LEFT in limits)
    ]
    found = known_limits(search, [(each, Found.from_dict(limits)) for each, limits in there])
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
    moved = moved_from(version, period, registry, ledger)
    return Table(version.policy, budget, period, through=on_the_way, moved=moved)
