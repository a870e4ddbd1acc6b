"""The tables that are open to an asker, as releases see them: policies in force, budgets, limits that were found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dalenius.errors import NotAllowedError
from dalenius.measuring.plan import Table
from dalenius.releasing.snapshot import found_of, moved_from, texts_of, through

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Budget
    from dalenius.releasing.leaving import Asker
    from dalenius.tables.registry import Version


@dataclass(frozen=True)
class Opened:
    """One look at ledger and registry: the versions in force, and the data sets in which an asker has an allotment."""

    versions: Mapping[str, Version]
    budgets: Mapping[str, Budget]

    @classmethod
    def of(cls, asker: Asker) -> Opened:
        """As they are now."""
        versions = asker.registry.current()
        with asker.ledger.state() as state:
            open_ = sorted(each for each in state.budgets if (each, asker.name) in state.allotments)
            return cls(versions, {each: state.budgets[each] for each in open_})

    def open_versions(self) -> list[Version]:
        """The tables of these data sets."""
        return [version for version in self.versions.values() if version.dataset in self.budgets]


def tables_of(
    asker: Asker, versions: Mapping[str, Version], budgets: Mapping[str, Budget] | None = None
) -> dict[str, Table]:
    """The tables that this analyst may ask about: those of data sets in which there is an allotment (``budgets``)."""
    budgets = Opened.of(asker).budgets if budgets is None else budgets
    if not budgets:
        raise NotAllowedError(
            f"Analyst {asker.name!r} has no allotment.",
            why="Who may ask, and how much, is the owner's decision.",
            fix="Ask the owner for one, or check the name.",
        )
    return tables_in(asker, versions, budgets)


def tables_in(asker: Asker, versions: Mapping[str, Version], budgets: Mapping[str, Budget]) -> dict[str, Table]:
    """The tables of some data sets, as questions see them."""
    periods = {
        version.dataset: version.policy.budget.period
        for version in versions.values()
        if version.policy.budget is not None
    }
    seen = {name: each for name, each in versions.items() if each.dataset in budgets}
    found = {
        name: Table(
            version.policy,
            budgets[version.dataset],
            periods.get(version.dataset),
            found_of(asker.registry, version, reads_on=False),
            texts=texts_of(version.fingerprint),
            moved=moved_from(version, periods.get(version.dataset), asker.registry, asker.ledger),
        )
        for name, version in seen.items()
    }
    return {
        name: replace(table, through={each: found[way.table] for each, way in through(table.policy, seen).items()})
        for name, table in found.items()
    }


def check_open(asker: Asker, *tables: str) -> None:
    """Refuses a closed table, whoever asks and whatever is asked."""
    for name in tables:
        why = asker.registry.closed(name)
        if why is not None:
            raise NotAllowedError(f"Table {name!r} is closed.", why=why, fix="Ask the owner to refresh it.")
