"""Verifies a history, and reads it from its first entry to its last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from dalenius._version import __version__
from dalenius.app.report.model import (
    Action,
    Alarm,
    Changed,
    DataVersion,
    Epoch,
    Failure,
    PolicyVersion,
    Questions,
    Report,
    Use,
    Verification,
)
from dalenius.app.report.sums import MALFORMED, Sums
from dalenius.app.views.accounts import Accounts
from dalenius.app.views.history import details
from dalenius.errors import LedgerCorruptError
from dalenius.ledger.publications import PublishedRows, read_entry
from dalenius.ledger.verification import Verified, verify
from dalenius.tables.difference import difference
from dalenius.tables.registry import Version

if TYPE_CHECKING:
    from dalenius.ledger.chain import Entry
    from dalenius.ledger.ledger import Ledger

# What an entry may hold that was not changed by hand; the rest is only ever shown.
_FORMS: dict[str, type | tuple[type, ...]] = {
    "dataset": str,
    "table": str,
    "analyst": str,
    "reason": str,
    "by": str,
    "epsilon": (int, float),
    "epoch": int,
    "data_version": int,
    "version": str,
    "id": str,
    "charge": int,
}


def report(ledger: Ledger, now: datetime | None = None) -> Report:
    """Verifies the history, reads it, and tells it.

    A history that does not hold is told as far as it can be read, and said not to hold.
    """
    now = now or datetime.now(UTC)
    try:
        checked = _holds(verify(ledger))
    except LedgerCorruptError as error:
        checked = _broken(ledger, error)
    history = _History()
    for entry in ledger.entries() if checked.holds else ledger.unproved():
        if checked.holds and entry.number > checked.entries:
            break  # written after the verification
        history.add(entry)
    sums = Sums(history.accounts, holds=checked.holds)
    return Report(
        made=now.isoformat(timespec="seconds"),
        program=f"dalenius {__version__}",
        verification=checked,
        begun=history.begun,
        promises=tuple(sums.promises(history.tables(), history.published)),
        spending=tuple(sums.spending()),
        questions=history.questions(),
        failures=tuple(history.failures),
        policies=tuple(history.policies),
        data=tuple(history.data),
        epochs=tuple(history.epochs),
        actions=tuple(history.actions),
        publications=tuple(history.publications),
        alarms=tuple(history.alarms),
        mechanisms=tuple(Use(name, *counts) for name, counts in sorted(history.uses.items())),
        unreadable=tuple(history.unreadable),
    )


def _holds(found: Verified) -> Verification:
    return Verification(True, found.entries, found.head, found.charges, found.releases)


def _broken(ledger: Ledger, error: LedgerCorruptError) -> Verification:
    count, head = 0, ""
    for entry in ledger.unproved():
        hashed: object = entry.hash  # of any type, in a file that was changed
        count, head = entry.number, hashed.hex() if isinstance(hashed, bytes) else ""
    return Verification(False, count, head, message=error.message, why=error.why, fix=error.fix)


@dataclass
class _History:
    """What the entries so far say; what cannot be read is skipped, and its number kept."""

    accounts: Accounts = field(default_factory=Accounts)
    begun: str = ""
    versions: dict[str, Version] = field(default_factory=dict)
    answered: int = 0
    granted: int = 0
    failures: list[Failure] = field(default_factory=list)
    policies: list[PolicyVersion] = field(default_factory=list)
    data: list[DataVersion] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    publications: list[Action] = field(default_factory=list)
    published: list[PublishedRows] = field(default_factory=list)  # those that name a data set
    alarms: list[Alarm] = field(default_factory=list)
    uses: dict[str, tuple[int, int]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    unreadable: list[int] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """The next entry."""
        try:
            data = entry.data
            datetime.fromisoformat(entry.time)
            for name, form in _FORMS.items():
                if name in data and not isinstance(data[name], form):
                    raise TypeError(name)
            if not isfinite(data.get("epsilon", 0)):
                raise ValueError("epsilon")
            self._add(entry, data)
        except MALFORMED:
            self.unreadable.append(entry.number)

    def questions(self) -> Questions:
        """How questions ended."""
        charges, failed = self.accounts.charges, len(self.failures)
        charged, shared = len(charges), sum(each.alone for each in charges.values())
        still = max(0, charged - self.answered - failed)
        return Questions(charged, self.answered, failed, still, self.granted, shared)

    def tables(self) -> dict[str, list[str]]:
        """The tables that are in each data set now."""
        found: dict[str, list[str]] = {}
        for name, version in self.versions.items():
            found.setdefault(version.dataset, []).append(name)
        return found

    def _add(self, entry: Entry, data: dict[str, Any]) -> None:
        match entry.kind:
            case "ledger":
                self.begun = entry.time
            case "charge":
                self.accounts.add(entry, data)
                self._count(data)
            case "answer":
                self.answered += 1
            case "failure":
                charge = self.accounts.charges[data["charge"]]
                self.failures.append(Failure(charge.number, entry.time, charge.dataset, charge.analyst, charge.epsilon))
            case "grant":
                self.granted += 1
                self.accounts.add(entry, data)
            case "policy" | "refresh":
                self._version(entry, data)
            case "epoch":
                self.accounts.add(entry, data)
                self.epochs.append(
                    Epoch(data["dataset"], data["epoch"], entry.number, entry.time, data.get("by", ""), data["reason"])
                )
            case "note" if "alarm" in data:
                self.alarms.append(
                    Alarm(entry.number, entry.time, data.get("dataset", ""), str(data["alarm"]), data.get("charge"))
                )
            case "publication":
                found = read_entry(entry)
                what = details(entry) if found is not None else _list_members(data)
                self.publications.append(_action(entry, what, data))
                self.published += [found] if found is not None else []
            case _:
                what = self._tell(entry, data)
                self.accounts.add(entry, data)
                self.actions.append(_action(entry, what, data))

    def _count(self, charge: dict[str, Any]) -> None:
        """The mechanisms of a charge."""
        counts: dict[str, int] = {}
        for kind, times in _mechanisms(charge["event"]["event"]):
            counts[kind] = counts.get(kind, 0) + times
        for kind, times in counts.items():
            charges, before = self.uses.get(kind, (0, 0))
            self.uses[kind] = charges + 1, before + times

    def _version(self, entry: Entry, data: dict[str, Any]) -> None:
        before = self.versions.get(data["table"])
        version = Version.from_record(entry, before if entry.kind == "refresh" else None)
        changes = () if before is None else difference(before.policy, version.policy)
        self.versions[version.table] = version
        same_data = before is not None and (before.data_version, before.epoch) == (version.data_version, version.epoch)
        if not same_data:
            self.data.append(
                DataVersion(
                    version.table,
                    version.dataset,
                    version.data_version,
                    version.epoch,
                    len(version.fingerprint.files),
                    entry.number,
                    entry.time,
                    data.get("by", ""),
                    version.reason,
                )
            )
        if entry.kind == "policy" or changes:
            self.policies.append(
                PolicyVersion(
                    version.table,
                    version.dataset,
                    version.version,
                    entry.number,
                    entry.time,
                    version.reason,
                    before is None,
                    tuple(Changed(each.place, str(each)[len(each.place) + 2 :], each.note) for each in changes),
                    data.get("by", ""),
                )
            )

    def _tell(self, entry: Entry, data: dict[str, Any]) -> str:
        """What the owner did, in words; what was in force before, the accounts still say."""
        match entry.kind:
            case "budget":
                dataset, epsilon = data["dataset"], data["budget"]["epsilon"]
                if dataset not in self.accounts.datasets:
                    return f"{dataset} gets a budget of ε = {epsilon:g}"
                before = self.accounts.datasets[dataset].budget.epsilon
                return f"the budget of {dataset} goes from ε = {before:g} to {epsilon:g}"
            case "allotment":
                dataset, analyst = data["dataset"], data["analyst"]
                if data["epsilon"] == 0:
                    return f"{analyst} may spend no more of {dataset}"
                old = self.accounts.datasets[dataset].allotments.get(analyst)
                was = f" (before: {old:g})" if old is not None else ""
                return f"{analyst} may spend up to ε = {data['epsilon']:g} of {dataset}{was}"
            case "token" if data["action"] == "revoke":
                return f"token {data['id']}{self.tokens.get(data['id'], '')} is revoked"
            case "token":
                whose = f"analyst {data['analyst']}" if data["analyst"] else f"the {data['role']}"
                self.tokens[data["id"]] = f" of {whose}"
                also = "; answers leave when they are ready, not at a fixed time" if data.get("trusted") else ""
                note = f" ({data['note']})" if data.get("note") else ""
                return f"token {data['id']} is given to {whose}{note}, good until {data['expires'][:10]}{also}"
            case "limits":
                return f"limits of {data['table']} were found privately for data version {data['data_version']}"
            case "suspension":
                who = f"analyst {data['analyst']}" if "analyst" in data else f"data set {data['dataset']}"
                return f"{who} is suspended" if data["action"] == "suspend" else f"{who} may go on"
            case "closed":
                return f"table {data['table']} is closed to everyone: {data['why']}"
        return _list_members(data)


def _mechanisms(event: dict[str, Any], times: int = 1) -> Iterator[tuple[str, int]]:
    """The mechanisms in an event, as it stands in a charge, and how often each was used."""
    times *= int(event.get("times", 1)) * int(event.get("steps", 1))
    parts = event.get("events") or ([event["event"]] if "event" in event else [])
    if not parts or event["kind"] in {"poisson-sampled", "sampled-without-replacement"}:
        yield event["kind"], times
    for each in parts:
        yield from _mechanisms(each, times)


def _list_members(data: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in data.items() if name not in {"reason", "by"})


def _action(entry: Entry, what: str, data: dict[str, Any]) -> Action:
    return Action(entry.number, entry.time, entry.kind, what, str(data.get("reason", "")), str(data.get("by", "")))
