"""The tables that are protected, as the ledger's history tells them: every version, and every file ever named."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol

from dalenius.errors import SourceChangedError, UnknownTableError
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import Policy
from dalenius.tables.reading import read_text
from dalenius.tables.sources.fingerprint import Fingerprint, unchanged
from dalenius.tables.sources.homes import check_outside

KINDS = ("policy", "refresh", "limits", "closed", "epoch")


class Record(Protocol):
    """What is needed of an entry of the history."""

    @property
    def number(self) -> int:
        """Its number."""

    @property
    def kind(self) -> str:
        """What it is."""

    @property
    def time(self) -> str:
        """When it was written."""

    @property
    def data(self) -> dict[str, Any]:
        """Its content."""


class History(Protocol):
    """What is needed of a ledger."""

    def records(self, kinds: Sequence[str], after: int = 0) -> Iterator[Record]:
        """The entries of some kinds past a number, in order."""


# Paths in the history are absolute: the text says all. Many versions have the same, and each process reads them again
# and again as the history grows.
@lru_cache(maxsize=32)
def _read(text: str) -> Policy:
    return read_text(text, recorded=True)


@dataclass(frozen=True)
class Version:
    """One version of a table: its policy, and the data that it is about; what its public tables and code lists are.

    ``epoch`` counts how often the people of the data set had been declared to be new ones when these files came.
    """

    table: str
    dataset: str
    text: str
    version: str
    data_version: int
    fingerprint: Fingerprint
    reason: str = ""
    entry: int = 0
    time: str = ""
    public: Mapping[str, Fingerprint] = field(default_factory=dict)
    epoch: int = 0
    lists: Mapping[str, Fingerprint] = field(default_factory=dict)
    by: str = field(default="", compare=False)

    @cached_property
    def policy(self) -> Policy:
        """The policy, read."""
        return _read(self.text)

    def to_record(self) -> dict[str, Any]:
        """As it stands in the ledger, in an entry of kind "policy"."""
        return {
            "table": self.table,
            "dataset": self.dataset,
            "version": self.version,
            "policy": self.text,
            "data_version": self.data_version,
            "fingerprint": self.fingerprint.to_dict(),
            "reason": self.reason,
            "epoch": self.epoch,
            **({"public": {name: each.to_dict() for name, each in self.public.items()}} if self.public else {}),
            **({"lists": {name: each.to_dict() for name, each in self.lists.items()}} if self.lists else {}),
        }

    @classmethod
    def from_record(cls, record: Record, before: Version | None = None) -> Version:
        """As `to_record` wrote it; an entry of kind "refresh" leaves the policy as it was before."""
        data: Mapping[str, Any] = record.data if before is None else {**before.to_record(), "reason": "", **record.data}
        return cls(
            data["table"],
            data["dataset"],
            data["policy"],
            data["version"],
            data["data_version"],
            Fingerprint.from_dict(data["fingerprint"]),
            data.get("reason", ""),
            record.number,
            record.time,
            {name: Fingerprint.from_dict(each) for name, each in data.get("public", {}).items()},
            data.get("epoch", 0),
            {name: Fingerprint.from_dict(each) for name, each in data.get("lists", {}).items()},
            str(record.data.get("by", "")),
        )


def check_public_unchanged(version: Version, names: Iterable[str]) -> None:
    """Refuses public tables of a version whose files are no longer those that were recorded with it.

    Costs one `stat` per file as long as nothing changed.
    """
    for name in names:
        check_outside(version.public[name].paths)  # however it once came to be declared
        if not unchanged(version.public[name], version.policy.public[name].source):
            raise SourceChangedError(
                f"The public table {name!r} changed since it was declared.",
                why="Files were added, removed or rewritten; stored answers belong to them as they were.",
                fix="Put the files back, or run 'dalenius protect' again with the policies that name it.",
            )


class Registry:
    """All versions of all tables. Reads on from where it stopped, so it is never out of date and never slow."""

    def __init__(self, history: History | None) -> None:
        self._history = history
        self._lock = threading.RLock()
        self._after = 0
        self._versions: dict[str, list[Version]] = {}
        self._limits: dict[tuple[str, str, int], dict[str, Any]] = {}
        self._closed: dict[str, str] = {}
        self._epochs: dict[str, int] = {}

    def versions(self) -> dict[str, list[Version]]:
        """By table, oldest first."""
        if self._history is not None:
            with self._lock:  # two threads would add the same entries twice
                for record in self._history.records(KINDS, self._after):
                    self._add(record, record.data)
                    self._after = record.number
        return self._versions

    def _add(self, record: Record, data: dict[str, Any]) -> None:
        match record.kind:
            case "limits":
                self._limits[data["table"], data["version"], data["data_version"]] = data["found"]
            case "epoch":
                self._epochs[data["dataset"]] = data["epoch"]
            case "closed":
                self._closed[data["table"]] = data["why"]
            case kind:
                known = self._versions.setdefault(data["table"], [])
                known.append(version := Version.from_record(record, known[-1] if kind == "refresh" else None))
                self._closed.pop(version.table, None)
                if data.get("limits"):  # a refresh leaves them as they were
                    place = version.table, version.version, version.data_version
                    self._limits.setdefault(place, data["limits"])

    @property
    def place(self) -> int:
        """The last entry that has been read, all there are now: what is thought out from here on knows of it."""
        self.versions()
        return self._after

    def current(self) -> dict[str, Version]:
        """The version in force of each table."""
        return {name: known[-1] for name, known in self.versions().items()}

    def limits(self, version: Version, *, reads_on: bool = True) -> dict[str, Any] | None:
        """The limits that were found for a version, as they stand in the ledger.

        Where they were found for earlier data and a refresh left them, "data_version" says for which. Who has just
        looked the version up need not read on once more.
        """
        if reads_on:
            self.versions()
        return self._limits.get((version.table, version.version, version.data_version))

    def limits_of_data(self, table: str, data_version: int) -> list[tuple[Version, dict[str, Any]]]:
        """The limits that were found for the same data under any version of a table's policy, oldest first."""
        known = {each.version: each for each in self.versions().get(table, ()) if each.data_version == data_version}
        return [
            (known[version], limits)
            for (name, version, data), limits in self._limits.items()
            if (name, data) == (table, data_version) and version in known
        ]

    def epoch(self, dataset: str) -> int:
        """How often the people of a data set were declared to be new ones."""
        self.versions()
        return self._epochs.get(dataset, 0)

    def closed(self, name: str) -> str | None:
        """Why nobody may ask about a table, for now; None: it is open."""
        version = self.versions()[name][-1]
        if version.epoch < self._epochs.get(version.dataset, 0):
            return f"The people of data set {version.dataset!r} are new ones; this table still holds those before."
        return self._closed.get(name)

    def history(self, name: str) -> list[Version]:
        """All versions of one table."""
        versions = self.versions()
        spelled = {each.lower(): each for each in versions}
        if name.lower() not in spelled:
            meant = nearest(name, versions)
            raise UnknownTableError(
                f"There is no table {name!r}.",
                why=f"Protected are: {', '.join(sorted(versions))}." if versions else "No table is protected yet.",
                fix=f"Did you mean {meant!r}?" if meant else "See 'dalenius tables'.",
            )
        return list(versions[spelled[name.lower()]])

    def known_as(self, found: Fingerprint, dataset: str) -> Version | None:
        """A table of another data set that names one of these files, now or at any time before."""
        for known in self.versions().values():
            for version in known:
                if version.dataset != dataset and version.fingerprint.shares(found):
                    return version
        return None

    def earlier_people(self, found: Fingerprint, version: Version) -> Version | None:
        """A version of the same data set, with the people of an earlier epoch, that had one of these files."""
        for known in self.versions().values():
            for each in known:
                same = each.dataset == version.dataset and each.epoch < version.epoch
                if same and each.fingerprint.holds_of(found):
                    return each
        return None
