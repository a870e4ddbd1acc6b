"""The history, read from its first entry to its last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from dalenius.app.report.accounts import MALFORMED, Accounts
from dalenius.app.report.model import (
    Action,
    Alarm,
    Changed,
    DataVersion,
    Epoch,
    Failure,
    PolicyVersion,
    Promise,
    Questions,
)
from dalenius.ledger.budgets import Budget
from dalenius.tables.difference import difference
from dalenius.tables.registry import Version

if TYPE_CHECKING:
    from dalenius.ledger.chain import Entry

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
_KEPT = ("dataset", "analyst", "epsilon", "epoch", "periods", "units", "shares")


@dataclass
class Story:
    """What the entries so far say; what cannot be read is skipped, and its number kept."""

    accounts: Accounts
    begun: str = ""
    versions: dict[str, Version] = field(default_factory=dict)
    charges: dict[int, dict[str, Any]] = field(default_factory=dict)
    answered: int = 0
    granted: int = 0
    failures: list[Failure] = field(default_factory=list)
    policies: list[PolicyVersion] = field(default_factory=list)
    data: list[DataVersion] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    publications: list[Action] = field(default_factory=list)
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
        charged, failed = len(self.charges), len(self.failures)
        shared = sum("shares" in each for each in self.charges.values())
        still = max(0, charged - self.answered - failed)
        return Questions(charged, self.answered, failed, still, self.granted, shared)

    def promises(self) -> Iterator[Promise]:
        """The budget of each data set, with the tables that are in it now."""
        tables: dict[str, list[str]] = {}
        for name, version in self.versions.items():
            tables.setdefault(version.dataset, []).append(name)
        return self.accounts.promises(tables)

    def _add(self, entry: Entry, data: dict[str, Any]) -> None:
        match entry.kind:
            case "ledger":
                self.begun = entry.time
            case "charge":
                self._charge(entry, data)
            case "answer":
                self.answered += 1
            case "failure":
                charge = self.charges[data["charge"]]
                self.failures.append(
                    Failure(data["charge"], entry.time, charge["dataset"], charge["analyst"], charge["epsilon"])
                )
            case "grant":
                self.granted += 1
                self.accounts.grant(self.charges[data["charge"]], data["analyst"])
            case "policy" | "refresh":
                self._version(entry, data)
            case "epoch":
                self.accounts.epochs[data["dataset"]] = data["epoch"]
                self.epochs.append(
                    Epoch(data["dataset"], data["epoch"], entry.number, entry.time, data.get("by", ""), data["reason"])
                )
            case "note" if "alarm" in data:
                self.alarms.append(
                    Alarm(entry.number, entry.time, data.get("dataset", ""), str(data["alarm"]), data.get("charge"))
                )
            case "publication":
                self.publications.append(_action(entry, _listed(data), data))
            case _:
                self.actions.append(_action(entry, self._told(entry, data), data))

    def _charge(self, entry: Entry, data: dict[str, Any]) -> None:
        self.accounts.charge(data, entry.time)
        self.charges[entry.number] = {name: data[name] for name in _KEPT if name in data}
        counts: dict[str, int] = {}
        for kind, times in _mechanisms(data["event"]["event"]):
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

    def _told(self, entry: Entry, data: dict[str, Any]) -> str:
        """What the owner did, in words."""
        match entry.kind:
            case "budget":
                dataset, budget = data["dataset"], Budget.from_dict(data["budget"])
                before = self.accounts.set_budget(dataset, budget, entry.time)
                if before is None:
                    return f"{dataset} gets a budget of ε = {budget.epsilon:g}"
                return f"the budget of {dataset} goes from ε = {before.epsilon:g} to {budget.epsilon:g}"
            case "allotment":
                dataset, analyst = data["dataset"], data["analyst"]
                old = self.accounts.set_allotment(dataset, analyst, data["epsilon"])
                if data["epsilon"] == 0:
                    return f"{analyst} may spend no more of {dataset}"
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
        return _listed(data)


def _mechanisms(event: dict[str, Any], times: int = 1) -> Iterator[tuple[str, int]]:
    """The mechanisms in an event, as it stands in a charge, and how often each was used."""
    times *= int(event.get("times", 1))
    parts = event.get("events") or ([event["event"]] if "event" in event else [])
    if not parts or event["kind"] in {"poisson-sampled", "sampled-without-replacement"}:
        yield event["kind"], times
    for each in parts:
        yield from _mechanisms(each, times)


def _listed(data: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in data.items() if name not in {"reason", "by"})


def _action(entry: Entry, what: str, data: dict[str, Any]) -> Action:
    return Action(entry.number, entry.time, entry.kind, what, str(data.get("reason", "")), str(data.get("by", "")))
