"""The façade: protect, ask, release."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.errors import HomeMissingError, NotAllowedError
from dalenius.ledger.chain import ANCHOR
from dalenius.ledger.database import NAME
from dalenius.ledger.home import find_home, future_home
from dalenius.ledger.ledger import Ledger
from dalenius.releasing.stored import Stored, releases_of
from dalenius.tables.policy import Policy
from dalenius.tables.reading import read_file, read_text
from dalenius.tables.registry import Registry, Version
from dalenius.tables.sources.homes import know

if TYPE_CHECKING:
    from dalenius.analyst import Analyst
    from dalenius.anonymity.options import Options, Progress
    from dalenius.anonymity.publishing import Published
    from dalenius.measuring.engines.sources import Engines
    from dalenius.owner.index import IndexProgress
    from dalenius.owner.protect import Protected
    from dalenius.owner.refresh import Refreshed
    from dalenius.releasing.pacing import Pacer
    from dalenius.synthesis.release import SyntheticTable


class Curator:
    """Stands between the tables of one home and the people who ask about them.

    Args:
        home: Folder of ledger and policies; else `DALENIUS_HOME`, else the nearest `.dalenius` upwards.
        ledger: A ledger that is already open; its home is then the curator's.
    """

    def __init__(self, home: Path | str | None = None, ledger: Ledger | None = None) -> None:
        self._given = Path(home) if home is not None else None
        self._ledger = ledger
        self._registry: Registry | None = None
        self._engines: Engines | None = None
        with suppress(HomeMissingError, OSError):
            self.home  # noqa: B018 (known from here on: none of its files is a source)

    @property
    def home(self) -> Path:
        """The home folder, which must exist."""
        home = self._ledger.home if self._ledger else find_home(self._given)
        know(home, self)
        return home

    @property
    def ledger(self) -> Ledger:
        """The ledger of the home."""
        if self._ledger is None:
            self._ledger = Ledger.open(self.home)
        return self._ledger

    @property
    def registry(self) -> Registry:
        """All versions of all tables."""
        if self._registry is None:
            self._registry = Registry(self.ledger)
        return self._registry

    # --- the owner

    def protect(
        self,
        policy: Policy | Path | str,
        *more: Policy | Path | str,
        dry_run: bool = False,
        yes: bool = False,
        reason: str = "",
        progress: IndexProgress | None = None,
    ) -> list[Protected]:
        """Puts policies in force: all of them, or none.

        A table that is new is recorded. A changed policy is recorded only with ``yes``; without it, what would change
        is returned and nothing is written. More ε also needs a reason, which stays in the ledger.

        Args:
            policy: A policy, or the path of one.
            more: More of them, such as the other tables of a data set.
            dry_run: Check everything and write nothing.
            yes: The owner has seen the difference.
            reason: Why, for the history.
            progress: Told how the contribution index grows: table, files written, files in all, what comes next.
        """
        from dalenius.owner import index, limits, protect

        policies = [_read(each) for each in (policy, *more)]
        there = self._has_ledger()
        registry, ledger = (self.registry, self.ledger) if there else (Registry(None), None)
        since = registry.place
        planned = limits.price(protect.plan(policies, registry, ledger, reason), registry, ledger)
        if dry_run or (not yes and any(each.needs for each in planned)):
            return planned
        unexplained = [each for each in planned if "reason" in each.needs]
        if unexplained:
            raise NotAllowedError(
                f"More ε for {unexplained[0].version.dataset!r} needs a reason.",
                why="It widens what was promised to the people in the table; the history must say why.",
                fix="Give one with --reason TEXT.",
            )
        if ledger is None:
            self._ledger = ledger = Ledger.create(self._made_home())
            registry = self.registry
        recorded = protect.record([replace(each, needs=()) for each in planned], registry, ledger, since)
        # Before the search for limits, which looks at the same sizes.
        recorded = index.prepare(recorded, registry, ledger, self.engines, progress)
        return limits.find(recorded, registry, ledger, self.engines)

    def refresh(
        self,
        name: str,
        *,
        new_people: bool = False,
        find_limits: bool = False,
        yes: bool = False,
        dry_run: bool = False,
        reason: str = "",
        progress: IndexProgress | None = None,
    ) -> Refreshed:
        """Records that the data behind a table's name changed: the files as they are now become its next data version.

        Stored answers belong to their data version, so the same question is a new one, charged anew. The budget covers
        all versions together: a unit's rows in any of them are that unit's. Limits stay as they were found.

        Args:
            name: The table.
            new_people: Nobody in the new data was in the data set before: its budget starts afresh. Needs ``yes`` and
                a reason; without ``yes``, what would be done is returned and nothing is written. Other tables of the
                data set are closed until they are refreshed like this too.
            find_limits: Find the limits again, for the new data; charged to the data set.
            yes: The owner means it.
            dry_run: Check everything and write nothing.
            reason: Why, for the history.
            progress: Told how the contribution index grows: table, files written, files in all, what comes next.
        """
        from dalenius.owner.refresh import RefreshRequest, refresh

        request = RefreshRequest(name, new_people, find_limits, yes, dry_run, reason)
        return refresh(request, self.registry, self.ledger, self.engines, progress=progress)

    def check(self, policy: Policy | Path | str) -> Policy:
        """Checks a policy against its source, without a home; returns it with everything spelled out."""
        from dalenius.owner.protect import inspect
        from dalenius.owner.public_files import inspect_public

        found = _read(policy)
        inspect(found)
        inspect_public(found)
        return found

    def tables(self) -> list[Version]:
        """The tables that are protected, by name."""
        return [version for _, version in sorted(self.registry.current().items())]

    def policy(self, name: str) -> Policy:
        """The policy in force of a table."""
        return self.history(name)[-1].policy

    def history(self, name: str) -> list[Version]:
        """Every version of a table, oldest first."""
        return self.registry.history(name)

    def releases(self) -> list[Stored]:
        """Everything that left, of every kind, oldest first."""
        return list(releases_of(self.ledger))

    def publish(
        self,
        table: str,
        options: Options,
        *,
        output: Path | str | None = None,
        yes: bool = False,
        dry_run: bool = False,
        reason: str = "",
        progress: Progress | None = None,
    ) -> Published:
        """Publishes rows of a protected table, without a guarantee. From then on no ε bounds what can be learned of it.

        That they leave is on record before they do. The same request about the same data is the same publication.

        Args:
            table: Its name; its policy has [anonymity].
            options: What is asked of the rows, and how they are made.
            output: Where they are written, as CSV or Parquet by its ending; nowhere: `Published.file` has them.
            yes: The owner knows that it cannot be undone. Without it nothing is published.
            dry_run: Only tell what it would be like: nothing is written, and nothing is put on record.
            reason: Why, for the history.
            progress: Told how far it is.
        """
        from dalenius.anonymity import publishing
        from dalenius.anonymity.places import check_leaving
        from dalenius.anonymity.sources import table_rows

        rows = table_rows(table, self.registry)
        check_leaving(rows, options, self.registry, self.home)
        if dry_run:
            before = () if rows.version is None else self.ledger.published(rows.version.dataset)
            return publishing.preview(rows, options, progress=progress, before=before)
        place = None if output is None else Path(output)
        if place is not None:
            publishing.check_output_of(place, rows, options, self.registry)
        form = publishing.FORMS[0] if place is None else place.suffix.lower()
        wanted = publishing.Wanted(table, options, form, yes=yes, reason=reason)
        found = publishing.publish(self.ledger, rows, wanted, progress=progress)
        if place is not None:
            found.write(place)
        return found

    def synthetic(self, release: str) -> SyntheticTable:
        """A synthetic table that some analyst has paid for, by the number of its release. Nothing is charged."""
        from dalenius.ledger.requests import OWNER
        from dalenius.releasing.leaving import Asker
        from dalenius.synthesis.kind import again

        return again(Asker(OWNER, self.ledger, self.registry, self.engines), release)

    def open_synthetic(
        self,
        release: SyntheticTable | str,
        name: str,
        file: Path | str,
        *,
        rows: int | None = None,
        seed: int | None = None,
        where: str | None = None,
    ) -> Protected:
        """Opens a synthetic table as a public one: who may ask about the real table tries questions on it, for nothing.

        Rows are written to a file, which the policy of the real table names from then on; what it says besides stays,
        and so do stored answers. The file must stay where it is. Nothing is charged.

        Args:
            release: The synthetic table, or the id of its receipt.
            name: What questions call it. If the policy has a public table of that name, these rows take its place.
            file: Where the rows are kept (csv or parquet): outside of every home, best in a folder of its own.
            rows: How many; as many as the real table has, by noisy count.
            seed: The same seed gives the same rows.
            where: A condition that holds for all of them.
        """
        from dalenius.anonymity.places import check_apart
        from dalenius.owner.opening import check_public_name, with_public

        found = self.synthetic(release) if isinstance(release, str) else release
        table, place = found.stored.table, Path(file)
        check_public_name(name, table, self.registry)
        check_apart([], [place], self.registry)
        found.write(place, rows, seed=seed, where=where)
        number = f" of {found.receipt['id']}" if found.receipt else ""
        changed = with_public(self.policy(table), name, place)
        (done,) = self.protect(changed, yes=True, reason=f"Opened synthetic rows{number} as {name}.")
        return done

    # --- analysts

    def analyst(self, name: str, *, pacer: Pacer | None = None) -> Analyst:
        """What one analyst may do; with a ``pacer``, answers leave at fixed times (`pacing`)."""
        from dalenius.analyst import Analyst

        return Analyst(name, self.ledger, self.registry, self.engines, pacer)

    @property
    def engines(self) -> Engines:
        """The warm connections to the tables' files."""
        if self._engines is None:
            from dalenius.measuring.engines.sources import FOLDER, Engines

            self._engines = Engines(storage=self.home / FOLDER)
        return self._engines

    def _has_ledger(self) -> bool:
        if self._ledger is not None:
            return True
        try:
            home = self.home
        except HomeMissingError:
            return False
        return (home / NAME).exists() or (home / ANCHOR).exists()

    def _made_home(self) -> Path:
        try:
            return self.home
        except HomeMissingError:
            home = future_home(self._given)
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            return home


def _read(policy: Policy | Path | str) -> Policy:
    # A policy made in Python is read back from its text: whatever way it came, it was checked.
    if isinstance(policy, Policy):
        return replace(read_text(policy.text), key_files=policy.key_files)
    return read_file(Path(policy))
