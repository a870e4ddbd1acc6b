"""`refresh`: the data behind a name changed. Thought through before anything is written, then written at once.

The files as they are now become the table's next data version. Neighbours differ by one unit in *all* versions
together: a person who is in the old and in the new files is one unit, so every release about any version is charged to
the same budget, and nothing is given back. Only where the owner declares that nobody of before is in the new data does
the budget start afresh: a new epoch of the data set (parallel composition over people).

Order of writing: one transaction holds the epoch, the data version, the limits that stay and what is closed; the
contribution index and a search for limits come after it. A crash before it leaves everything as it was, a crash after
it a table that can be asked, only slower; `refresh` again completes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dalenius.errors import BudgetError, EngineError, NotAllowedError, PolicyInvalidError, SourceError
from dalenius.ledger.actions import ENOUGH, explains
from dalenius.owner import index, limits
from dalenius.owner.other_homes import check_first_home
from dalenius.owner.paths import repeated_keys
from dalenius.owner.protect import Protected, check_not_behind, check_people, concerns, inspect, overtaken
from dalenius.owner.public_files import check_public
from dalenius.tables.sources.fingerprint import Fingerprint, unchanged

if TYPE_CHECKING:
    from pathlib import Path

    from dalenius.ledger.ledger import Ledger
    from dalenius.measuring.engines.sources import Engines
    from dalenius.tables.registry import Registry, Version

# Looks at a table's files, given all versions as they will be in force; a reason closes the table to everyone.
Check = Callable[["Version", Mapping[str, "Version"]], str | None]
# Asked about the refreshed table, and about the others of its data set, whose meaning may hang on it.
CHECKS: tuple[Check, ...] = (repeated_keys,)
_TRIES = 3


@dataclass(frozen=True)
class RefreshRequest:
    """What the owner wants; see `Curator.refresh`."""

    table: str
    new_people: bool = False
    find_limits: bool = False
    yes: bool = False
    dry_run: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Refreshed:
    """What `refresh` did, or would do.

    Attributes:
        version: The table's version, in force if `recorded`.
        state: "changed"; "moved" (the same files elsewhere: the same data version); "unchanged".
        files: How many files were "added", "removed" and "rewritten".
        new_people: Whether the budget of the data set starts afresh, or the table follows where it did.
        needs: What is missing before it can be recorded: "yes", "reason".
        recorded: Whether it is in force now.
        reopened: Whether the table was closed, and no longer is.
        closed: Why tables are closed to everyone, by name: those that were checked, and those with the people before.
        search: What finding the limits costs the data set: ε, ρ and part of the budget.
        limits: The limits in force; with "data_version" where they were found for earlier data.
        index: How the contribution index fares, as for `Protected`.
    """

    version: Version
    state: str
    files: Mapping[str, int]
    new_people: bool = False
    needs: tuple[str, ...] = ()
    recorded: bool = False
    reopened: bool = False
    closed: Mapping[str, str] = field(default_factory=dict)
    search: Mapping[str, float | None] | None = None
    limits: Mapping[str, Any] | None = None
    index: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "table": self.version.table,
            "dataset": self.version.dataset,
            "version": self.version.version,
            "data_version": self.version.data_version,
            "epoch": self.version.epoch,
            "state": self.state,
            "files": dict(self.files),
            "new_people": self.new_people,
            "needs": list(self.needs),
            "recorded": self.recorded,
            "reopened": self.reopened,
            "closed": dict(self.closed),
            "search": self.search,
            "limits": self.limits,
            "index": self.index,
        }


@dataclass(frozen=True)
class _Planned:
    done: Refreshed
    records: tuple[tuple[str, dict[str, Any]], ...]


def refresh(
    request: RefreshRequest,
    registry: Registry,
    ledger: Ledger,
    engines: Engines,
    *,
    checks: Sequence[Check] | None = None,
    progress: index.IndexProgress | None = None,
) -> Refreshed:
    """Does it. Where another process comes first it is thought through again: that one may have done the same."""
    for _ in range(_TRIES):
        since = registry.place
        planned = _plan(request, registry, CHECKS if checks is None else checks, ledger.home)
        done = _priced(planned.done, request, registry, ledger)
        if request.dry_run or (done.needs and not request.yes):
            return done
        if "reason" in done.needs:
            raise NotAllowedError(
                f"New people in {done.version.dataset!r} need a reason.",
                why=f"The budget starts afresh; the history must say why. {ENOUGH}",
                fix="Give one with --reason TEXT.",
            )
        if not planned.records:
            return _completed(done, request, registry, ledger, engines, progress)
        version = done.version
        written = ledger.record_all(planned.records, since=since, overtaken=partial(concerns, [version]))
        if written is not None:
            done = replace(done, version=registry.current()[version.table], needs=(), recorded=True)
            return _completed(done, request, registry, ledger, engines, progress)
    raise overtaken()


def _plan(request: RefreshRequest, registry: Registry, checks: Sequence[Check], home: Path) -> _Planned:
    """What would be written; raises for whatever may not be done."""
    before = registry.history(request.table)[-1]
    found, state = _looked_at(before)
    if request.new_people and state == "unchanged":
        raise NotAllowedError(
            f"The files of {before.table!r} are those of before.",
            why="So are the people in them.",
            fix="Put the new files in their place first, or leave --new-people out.",
        )
    epoch = registry.epoch(before.dataset)
    if state == "changed" and not request.new_people:
        check_not_behind(before, registry)
    begins = request.new_people and before.epoch == epoch
    version = replace(
        before,
        data_version=before.data_version + (state == "changed"),
        fingerprint=found,
        reason=request.reason,
        epoch=epoch + begins if request.new_people else before.epoch,
    )
    if state != "unchanged":
        _check_files(version, registry, home)
    was_closed = registry.closed(before.table) is not None
    current = registry.current() | {version.table: version}
    closed = _checked(version, current, registry, checks) if state != "unchanged" or was_closed else {}
    reopened = was_closed and version.table not in closed and version.epoch == epoch + begins
    records: list[tuple[str, dict[str, Any]]] = []
    if begins:
        records.append(
            (
                "epoch",
                {"dataset": version.dataset, "epoch": version.epoch, "table": version.table, "reason": request.reason},
            )
        )
    if state != "unchanged" or reopened:
        records.append(("refresh", _record(before, version, registry, request)))
    records += [
        ("closed", {"table": name, "dataset": version.dataset, "why": why})
        for name, why in closed.items()
        if records or name != version.table  # one that stays closed is so already
    ]
    behind = {
        name: f"It still holds the people before; refresh {name} --new-people follows."
        for name, each in current.items()
        if each.dataset == version.dataset and each.epoch < epoch + begins
    }
    needs = () if not request.new_people else ("yes",) if explains(request.reason) else ("yes", "reason")
    files = _counted(before.fingerprint, found)
    done = Refreshed(version, state, files, request.new_people, needs, reopened=reopened, closed=behind | closed)
    return _Planned(done, tuple(records))


def _looked_at(before: Version) -> tuple[Fingerprint, str]:
    """The files as they are now, each value of which can be read as the policy says."""
    policy = before.policy
    if unchanged(before.fingerprint, policy.source):
        return before.fingerprint, "unchanged"
    try:
        found = inspect(policy)
    except PolicyInvalidError as error:
        raise PolicyInvalidError(
            f"The files of {before.table!r} no longer fit its policy: {error.message}",
            why=error.why,
            fix="Write the files as the policy says, or change the policy and run 'dalenius protect' with it.",
            at=error.at,
        ) from None
    # A footer does not vouch for every value, so only files that were hashed as a whole are known to be the same.
    whole = all(file.complete for file in (*found.files, *before.fingerprint.files))
    return found, "moved" if whole and found.same_content(before.fingerprint) else "changed"


def _check_files(version: Version, registry: Registry, home: Path) -> None:
    known = registry.known_as(version.fingerprint, version.dataset)
    if known is not None:
        raise NotAllowedError(
            f"The source of {version.table!r} holds a file of table {known.table!r}.",
            why=f"That belongs to the data set {known.dataset!r}: the same people would have two budgets.",
            fix="Take that file out of the source.",
        )
    check_first_home(version, registry, home)
    check_public([version], registry)
    check_people(version, registry)


def _checked(
    version: Version, current: Mapping[str, Version], registry: Registry, checks: Sequence[Check]
) -> dict[str, str]:
    """Why tables have to be closed: this one, and others of its data set that are open."""
    closed = {}
    for name in dict.fromkeys((version.table, *sorted(current))):
        each = current[name]
        if name != version.table and (each.dataset != version.dataset or registry.closed(name) is not None):
            continue
        try:
            why = next((why for check in checks if (why := check(each, current)) is not None), None)
        except (SourceError, EngineError):
            if name == version.table:
                raise
            why = f"It could not be checked when {version.table} changed."  # its own files are gone, or changed too
        if why is not None:
            closed[name] = why
    return closed


def _record(before: Version, version: Version, registry: Registry, request: RefreshRequest) -> dict[str, Any]:
    """The entry: what the files are now, and the limits that stay. The policy is the one before."""
    return {
        "table": version.table,
        "dataset": version.dataset,
        "data_version": version.data_version,
        "fingerprint": version.fingerprint.to_dict(),
        "epoch": version.epoch,
        "limits": limits.left_by(before, version, registry),
        "reason": request.reason,
    }


def _counted(before: Fingerprint, after: Fingerprint) -> dict[str, int]:
    # The footer of a large file may stay the same; its time of writing then tells.
    old, new = (
        {file.path: (file.hash, file.mtime_ns if file.method == "footer" else 0) for file in each.files}
        for each in (before, after)
    )
    return {
        "added": len(new.keys() - old.keys()),
        "removed": len(old.keys() - new.keys()),
        "rewritten": sum(old[path] != new[path] for path in old.keys() & new.keys()),
    }


def _priced(done: Refreshed, request: RefreshRequest, registry: Registry, ledger: Ledger) -> Refreshed:
    """With what finding limits will cost: where the owner wants them anew, or where none were found yet."""
    if done.version.table in done.closed:
        return done
    if not request.find_limits and _limits(done.version, registry) is not None:
        return replace(done, limits=_limits(done.version, registry))
    (priced,) = limits.price([_as_protected(done)], registry, ledger, anew=request.find_limits)
    return replace(done, search=priced.search)


def _limits(version: Version, registry: Registry) -> Mapping[str, Any] | None:
    """Those that will be in force."""
    return limits.left_by(registry.current()[version.table], version, registry)


def _completed(
    done: Refreshed,
    request: RefreshRequest,
    registry: Registry,
    ledger: Ledger,
    engines: Engines,
    progress: index.IndexProgress | None,
) -> Refreshed:
    """Index and limits: what is there already is kept."""
    if done.version.table in done.closed:
        return done
    planned = index.prepare([_as_protected(done)], registry, ledger, engines, progress)
    try:
        (found,) = limits.find(planned, registry, ledger, engines, anew=request.find_limits)
    except BudgetError as error:
        error.fix += " The refresh itself is recorded." if done.recorded else ""
        raise
    return replace(done, search=found.search, limits=found.limits, index=found.index)


def _as_protected(done: Refreshed) -> Protected:
    return Protected(done.version, "unchanged", (), ())
