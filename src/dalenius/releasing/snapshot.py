"""What a question reads: the versions of all tables in it, on whose files an engine is opened, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from dalenius.errors import SourceUnavailableError
from dalenius.measuring.engines.sources import schema
from dalenius.measuring.plan import EarlierPeriods, Found
from dalenius.tables.sources.fingerprint import check_unchanged, identities, source_changed
from dalenius.tables.sources.homes import check_outside

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.engines.sources import Engines
    from dalenius.measuring.plan import Table
    from dalenius.measuring.public import PublicTable
    from dalenius.tables.policy import Column, Period, Policy
    from dalenius.tables.registry import Registry, Version
    from dalenius.tables.sources.fingerprint import Fingerprint


@dataclass(frozen=True)
class Snapshot:
    """A table, or several as one, with the versions that it is made of."""

    table: Table
    versions: tuple[Version, ...]
    publics: tuple[PublicTable, ...] = ()

    @classmethod
    def of(cls, table: Table, versions: Mapping[str, Version]) -> Snapshot:
        """What a table reads, given the versions in force."""
        return cls(table, tuple(versions[name] for name in table.reads), tuple(table.relation.publics()))

    @property
    def dataset(self) -> str:
        """Whose budget pays."""
        return self.versions[0].dataset

    @property
    def epoch(self) -> int:
        """Whose rows are read, of all people who were declared to be new ones; of several tables, the earliest."""
        return min(each.epoch for each in self.versions)

    @property
    def data_version(self) -> str:
        """What a stored answer is about, besides its plan."""
        if len(self.versions) == 1:
            return str(self.versions[0].data_version)
        return " ".join(f"{each.table} {each.data_version}" for each in self.versions)

    def check_unchanged(self) -> None:
        """Refuses files that are no longer what was protected."""
        for each in self.versions:
            check_unchanged(each.table, each.fingerprint, each.policy.source)
        for table in self.publics:
            check_outside(table.fingerprint.paths)
            check_unchanged(table.name, table.fingerprint, [str(path) for path in table.fingerprint.paths])

    def state(self) -> tuple[object, ...]:
        """What the file system says of the files at this moment.

        The same before and after a look means that they were not exchanged and put back in between.
        """
        fingerprints = [*(each.fingerprint for each in self.versions), *(each.fingerprint for each in self.publics)]
        return tuple(identities(each.paths) for each in fingerprints)

    def check_kept(self, before: tuple[object, ...]) -> None:
        """Refuses what was read if files are not what they were before, or no longer what was protected."""
        self.check_unchanged()
        if self.state() != before:
            raise source_changed(self.versions[0].table)

    def engine(self, engines: Engines) -> Engine:
        """The engine of these files."""
        files = {each.table: each.fingerprint for each in self.versions}
        return engines.over(self.table, files, self.publics)


def through(policy: Policy, versions: Mapping[str, Version]) -> dict[str, Version]:
    """The tables that a policy's path goes through, by the names that the path calls them."""
    spelled = {name.lower(): each for name, each in versions.items()}
    return {hop.table: spelled[hop.table.lower()] for hop in policy.path if hop.table.lower() in spelled}


def texts_of(fingerprint: Fingerprint) -> frozenset[str] | None:
    """The columns that lie in files as text, by their schema alone; None where that cannot be read now."""
    try:
        return frozenset(name for name, type_ in schema(fingerprint.paths, fingerprint.form) if type_ == "VARCHAR")
    except SourceUnavailableError:
        return None


def moved_from(
    version: Version, period: Period | None, registry: Registry, ledger: Ledger | None
) -> tuple[EarlierPeriods, ...]:
    """How earlier policies told the periods of the same people, where that was another way and something was charged.

    A refresh, or a policy with other files, changes nothing about that: the rows of before may still be there. Only
    people who were declared to be new ones begin anew. What was planned under one policy and charged right after the
    next was recorded counts as charged under that one.
    """
    if period is None or ledger is None:
        return ()
    known, now = registry.versions().get(version.table, []), version.policy.columns.get(period.column)
    # One look at the ledger for each way in a row, however many refreshes there were meanwhile.
    ways = [
        (was, epoch, next(same).entry)
        for (was, epoch), same in groupby(known, lambda each: (each.policy.columns.get(period.column), each.epoch))
    ]
    if not ways:  # its first policy
        return ()
    ends = [entry for _, _, entry in ways[1:]] + [None]
    found: dict[Column, frozenset[str]] = {}
    for (was, epoch, entry), end in zip(ways, ends, strict=True):
        if was is not None and was != now and epoch == version.epoch:
            found[was] = found.get(was, frozenset()) | ledger.periods_between(version.dataset, entry, end)
    return tuple(EarlierPeriods(was, charged) for was, charged in found.items() if charged)


def found_of(registry: Registry, version: Version, *, reads_on: bool = True) -> Found | None:
    """The limits that were found for a version (`Registry.limits`)."""
    known = registry.limits(version, reads_on=reads_on)
    if known is None:
        return None
    found = Found.from_dict(known)
    # Limits that a refresh left are as good as before; how many units there are of each size, nobody knows now.
    return replace(found, sizes={}, carried=True) if "data_version" in known else found
