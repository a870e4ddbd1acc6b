"""`protect`, thought through before anything is written: what would change, whether it may, what it needs.

Order of writing, so that a crash never leaves a policy in force without its budget: budgets, allotments, policies, then
the copies in `tables/`. Each step is left out when the ledger already says so, hence `protect` again completes it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from dalenius.errors import InputError, LedgerUnavailableError, NotAllowedError, PolicyInvalidError
from dalenius.ledger.budgets import Accounting, Budget
from dalenius.ledger.chain import Entry
from dalenius.ledger.ledger import Ledger
from dalenius.measuring.engines.sources import Columns, check_decodes, schema
from dalenius.owner.other_homes import check_first_home
from dalenius.owner.paths import check_paths, check_units
from dalenius.owner.public_files import check_public, find_beside, inspect_lists, inspect_public, public_changes
from dalenius.tables.compatibility import check_columns
from dalenius.tables.difference import Change, difference
from dalenius.tables.mistakes import invalid
from dalenius.tables.policy import JOINT, Policy
from dalenius.tables.registry import Registry, Version
from dalenius.tables.sources.compressed import check_compressed
from dalenius.tables.sources.fingerprint import Fingerprint, check_unchanged, expand, fingerprint

FOLDER = "tables"
_NOTE = "# The policy in force, written by dalenius; the ledger holds every version.\n"
_NOTE += "# To change it, edit your own file and run 'dalenius protect' again.\n\n"


@dataclass(frozen=True)
class Protected:
    """What `protect` did with one policy, or would do.

    Attributes:
        version: The table's version, in force if `recorded`.
        state: "new", "changed" or "unchanged".
        difference: What changed against the version in force.
        needs: What is missing before it can be recorded: "yes", "reason".
        beside: Code lists and public tables that lie where protected data lie, in words; the owner is asked about them.
        recorded: Whether it is in force now.
        search: What finding the limits that are not declared costs the data set, once: ε, ρ and part of the budget.
        limits: The limits that were found.
        index: How the contribution index fares: "state" is "built", "kept", "none" (CSV files have none) or "failed".
    """

    version: Version
    state: str
    difference: tuple[Change, ...]
    needs: tuple[str, ...]
    recorded: bool = False
    search: Mapping[str, float | None] | None = None
    limits: Mapping[str, Any] | None = None
    index: Mapping[str, Any] | None = None
    beside: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "table": self.version.table,
            "dataset": self.version.dataset,
            "version": self.version.version,
            "data_version": self.version.data_version,
            "state": self.state,
            "difference": [change.to_dict() for change in self.difference],
            "needs": list(self.needs),
            "beside": list(self.beside),
            "recorded": self.recorded,
            "search": self.search,
            "limits": self.limits,
            "index": self.index,
        }


def inspect(policy: Policy) -> Fingerprint:
    """Looks at the source: it is there, its columns are those of the policy, and every value in them can be read."""
    check_compressed(expand(policy.source))  # before anybody reads to their end
    found = fingerprint(policy.source)

    def read(columns: Columns) -> list[str]:
        check_columns(policy, columns)
        return list(dict.fromkeys((*policy.owner, *policy.columns)))

    check_decodes(found, read)
    return found


def plan(policies: Sequence[Policy], registry: Registry, ledger: Ledger | None, reason: str) -> list[Protected]:
    """What protecting them would do; raises for whatever may not be done."""
    names = [policy.name.lower() for policy in policies]
    if len(set(names)) < len(names):
        raise InputError(
            "Two of the policies are for the same table.", why="A table has one policy.", fix="Give one of them."
        )
    current = registry.current()
    # Tables that carry the budget of their data set come first: the others need it to be there.
    ordered = sorted(policies, key=lambda policy: policy.budget is None)
    _check_datasets(ordered, current, ledger)
    planned = [_planned(policy, registry, current, ledger, reason) for policy in ordered]
    for one, other in combinations((each.version for each in planned), 2):
        if one.dataset != other.dataset and one.fingerprint.shares(other.fingerprint):
            _check_source(one, other)
    check_public([each.version for each in planned], registry)
    versions = current | {each.version.table: each.version for each in planned}
    planned = [_asked_about(each, current.get(each.version.table), versions) for each in planned]
    changed = {each.version.table for each in planned if each.state != "unchanged"}
    check_units(versions, changed)
    check_paths(versions, changed)
    return planned


def _asked_about(each: Protected, before: Version | None, versions: Mapping[str, Version]) -> Protected:
    """With what the owner must be asked about, besides what changes."""
    found = find_beside(each.version, before, versions) if each.state != "unchanged" else ()
    if not found:
        return each
    return replace(each, beside=found, needs=tuple(dict.fromkeys(("yes", *each.needs))))


def budget_of(policy: Policy) -> Budget | None:
    """The budget that a policy asks for, in the ledger's terms."""
    spec = policy.budget
    if spec is None:
        return None
    return Budget(
        spec.epsilon,
        spec.delta,
        Accounting(spec.accounting),
        ", ".join(policy.unit),
        policy.neighbors,
        spec.period.every if spec.period else None,
        spec.selection,
    )


def next_budget(policy: Policy, old: Policy | None, ledger: Ledger | None) -> Budget | None:
    """The budget of the data set once a policy is recorded; None: another table carries it, and it is not there yet.

    What the file did not change is left as the ledger has it: others may have changed it there since.
    """
    in_force = ledger.budget(policy.dataset) if ledger and policy.dataset in ledger.datasets() else None
    asked = budget_of(policy)
    changes = asked is not None and (old is None or old.budget != policy.budget)
    return asked if changes or in_force is None else in_force


def record(planned: Sequence[Protected], registry: Registry, ledger: Ledger, since: int) -> list[Protected]:
    """Writes it down, in the order that a crash can interrupt anywhere; ``since``: `Registry.place` when planned."""
    current = registry.current()
    for each in planned:
        if each.state != "unchanged":
            _record_spending(each.version, current.get(each.version.table), ledger)
    changed = [each.version for each in planned if each.state != "unchanged"]
    records = [("policy", version.to_record()) for version in changed]
    if records and ledger.record_all(records, since=since, overtaken=lambda on: concerns(changed, on)) is None:
        raise overtaken()
    now = registry.current()
    for each in planned:
        _write_copy(ledger.home, now[each.version.table])
    return [replace(each, version=now[each.version.table], recorded=True) for each in planned]


def concerns(planned: Sequence[Version], others: Sequence[Entry]) -> bool:
    """Whether what others wrote meanwhile is about the same data sets, or the same files, protected or public."""
    datasets = {version.dataset for version in planned}
    mine = [
        files
        for version in planned
        for files in (version.fingerprint, *version.public.values(), *version.lists.values())
    ]
    for other in others:
        data = other.data
        theirs = [*([data["fingerprint"]] if "fingerprint" in data else []), *data.get("public", {}).values()]
        theirs += data.get("lists", {}).values()
        found = [Fingerprint.from_dict(each) for each in theirs]
        if data.get("dataset") in datasets or any(one.shares(each) for one in mine for each in found):
            return True
    return False


def overtaken() -> LedgerUnavailableError:
    """Somebody else changed the same."""
    return LedgerUnavailableError(
        "Somebody else changed this data set, or named its files, at the same time.",
        why="What was checked and shown is no longer what is in force.",
        fix="Run it again.",
    )


def _write_copy(home: Path, version: Version) -> None:
    """The policy in force as a file that people can read; the ledger remains the truth."""
    folder = home / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    file, text = folder / f"{version.table}.toml", _NOTE + version.text
    if file.is_file() and file.read_text(encoding="utf-8") == text:
        return
    fresh = folder / f".{version.table}.{os.getpid()}"
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    fresh.replace(file)


def _planned(
    policy: Policy, registry: Registry, current: dict[str, Version], ledger: Ledger | None, reason: str
) -> Protected:
    found = inspect(policy)
    before = current.get(policy.name)
    known = registry.known_as(found, policy.dataset)
    epoch, public = registry.epoch(policy.dataset), inspect_public(policy, before)
    version = Version(
        policy.name, policy.dataset, policy.text, policy.version, 1, found, reason, public=public, epoch=epoch
    )
    version = replace(version, lists=inspect_lists(policy, before))
    _check_source(version, known)
    check_first_home(version, registry, None if ledger is None else ledger.home)
    if before is None:
        check_people(version, registry)
        return Protected(version, "new", (), _needs(policy, None, ledger, reason))
    version = replace(version, data_version=before.data_version, epoch=before.epoch)
    if before.policy.source == policy.source and _still_fits(before.policy, found):
        check_unchanged(policy.name, before.fingerprint, policy.source)
        version = replace(version, fingerprint=before.fingerprint)
    elif not before.fingerprint.same_content(found):
        check_not_behind(before, registry)
        version = replace(version, data_version=before.data_version + 1)
    check_people(version, registry)
    if before.version == policy.version and before.public == public:
        return Protected(before, "unchanged", (), ())
    _check_fixed(before.policy, policy)
    changes = (*difference(before.policy, policy), *public_changes(before, version))
    return Protected(version, "changed", changes, _needs(policy, before, ledger, reason))


def _still_fits(policy: Policy, found: Fingerprint) -> bool:
    """Whether files have the columns of a policy; where not, `refresh` cannot help, and another policy must."""
    try:
        check_columns(policy, schema(found.paths, found.form))
    except PolicyInvalidError:
        return False
    return True


def _needs(policy: Policy, before: Version | None, ledger: Ledger | None, reason: str) -> tuple[str, ...]:
    budget = budget_of(policy)
    known = ledger is not None and policy.dataset in ledger.datasets()
    raised = False
    if budget is not None and ledger is not None and known:
        in_force = ledger.budget(policy.dataset)
        in_force.check_change(budget)
        asked_before = before.policy.budget.epsilon if before and before.policy.budget else None
        raised = budget.epsilon != asked_before and budget.epsilon > in_force.epsilon
    if raised:
        return ("yes",) if reason else ("yes", "reason")
    return ("yes",) if before is not None else ()


def _record_spending(version: Version, before: Version | None, ledger: Ledger) -> None:
    policy, old = version.policy, before.policy if before else None
    dataset, budget = policy.dataset, next_budget(policy, old, ledger)
    if budget is not None and (dataset not in ledger.datasets() or budget != ledger.budget(dataset)):
        ledger.set_budget(dataset, budget, version.reason)
    allotted, said = ledger.allotments(dataset), _spenders(old)
    for analyst, epsilon in _spenders(policy).items():
        if said.get(analyst) != epsilon and allotted.get(analyst) != epsilon:
            ledger.set_allotment(dataset, analyst, epsilon)
    for analyst in said:
        if analyst not in _spenders(policy):
            ledger.end_allotment(dataset, analyst)


def _spenders(policy: Policy | None) -> dict[str, float]:
    """Whom a policy allots something: its analysts, and its partners in joint questions together."""
    if policy is None:
        return {}
    return {**policy.analysts, **({} if policy.joint is None else {JOINT: policy.joint.epsilon})}


def _check_datasets(policies: Sequence[Policy], current: dict[str, Version], ledger: Ledger | None) -> None:
    """One budget per data set, one relation, one kind of unit; and names that SQL can tell apart."""
    asked = {policy.name for policy in policies}
    others = [version.policy for name, version in current.items() if name not in asked]
    with_budget = set(ledger.datasets()) if ledger else set()
    for place, policy in enumerate(policies):
        for other in [*others, *policies[:place]]:
            if other.name.lower() == policy.name.lower():
                raise invalid(
                    "table.name",
                    f"there is a table {other.name!r}.",
                    why="SQL cannot tell them apart.",
                    fix="Rename it.",
                )
            if other.dataset == policy.dataset:
                _check_together(policy, other)
        if policy.budget is None and policy.dataset not in with_budget:
            raise invalid(
                "budget",
                f"the data set {policy.dataset!r} has none yet.",
                why="One of its tables must carry it.",
                fix="Protect that table first, or both at once.",
            )
        with_budget.add(policy.dataset)


def _check_together(policy: Policy, other: Policy) -> None:
    if policy.budget is not None and other.budget is not None:
        raise invalid(
            "budget",
            f"the budget of data set {policy.dataset!r} stands in table {other.name!r}.",
            why="Tables with the same people share one budget.",
            fix="Remove it here, or name another data set if these are other people.",
        )
    if (other.neighbors, len(other.unit)) != (policy.neighbors, len(policy.unit)):
        raise invalid(
            "table.unit",
            f"table {other.name!r} of data set {policy.dataset!r} has another unit or relation.",
            why="One budget makes one promise: the same neighbors, and units named by as many columns.",
            fix="Bring them in line.",
        )


def _check_fixed(before: Policy, after: Policy) -> None:
    for place, one, other in (
        ("dataset", before.dataset, after.dataset),
        ("unit", (before.unit, before.path), (after.unit, after.path)),
        ("neighbors", before.neighbors, after.neighbors),
        ("period", before.budget and before.budget.period, after.budget and after.budget.period),
    ):
        if one != other:
            raise NotAllowedError(
                f"The {place} of table {before.name!r} cannot be changed.",
                why="What was charged so far was promised under it.",
                fix="Keep it.",
            )


def _check_source(version: Version, known: Version | None) -> None:
    if known is not None:
        raise NotAllowedError(
            f"The source of {version.table!r} is known as table {known.table!r}.",
            why="The same people would get a second budget.",
            fix=f'Join its data set: write dataset = "{known.dataset}" in [table], without [budget].',
        )


def check_people(version: Version, registry: Registry) -> None:
    """Refuses files of people who were declared to be gone: they would be read on the budget of others."""
    if registry.earlier_people(version.fingerprint, version) is not None:
        raise NotAllowedError(
            f"The source of {version.table!r} holds a file of the people before.",
            why=f"The people of data set {version.dataset!r} were declared to be new; those before had their budget.",
            fix="Take that file out of the source.",
        )


def check_not_behind(before: Version, registry: Registry) -> None:
    """Refuses other data for a table that still holds the people before, unless these are declared to be new too."""
    if before.epoch < registry.epoch(before.dataset):
        raise NotAllowedError(
            f"Table {before.table!r} still holds the people before.",
            why=f"The people of data set {before.dataset!r} were declared to be new ones, and these must be the same.",
            fix=f"If they are, put the files where the policy in force says, and run "
            f"'dalenius refresh {before.table} --new-people --yes --reason TEXT'.",
        )
