"""The tables that are protected, as the ledger's history tells them: every version, and every file ever named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from dalenius.errors import UnknownTableError
from dalenius.tables.fingerprint import Fingerprint
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import Policy
from dalenius.tables.reading import read_text

KINDS = ("policy", "refresh", "limits")


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


@dataclass(frozen=True)
class Version:
    """One version of a table: its policy, and the data that it is about; of its public tables, what their files are."""

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

    @cached_property
    def policy(self) -> Policy:
        """The policy, read."""
        return read_text(self.text)

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
            **({"public": {name: each.to_dict() for name, each in self.public.items()}} if self.public else {}),
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
        )


class Registry:
    """All versions of all tables. Reads on from where it stopped, so it is never out of date and never slow."""

    def __init__(self, history: History | None) -> None:
        self._history = history
        self._after = 0
        self._versions: dict[str, list[Version]] = {}
        self._limits: dict[tuple[str, str, int], dict[str, Any]] = {}

    def versions(self) -> dict[str, list[Version]]:
        """By table, oldest first."""
        for record in self._history.records(KINDS, self._after) if self._history else ():
            if record.kind == "limits":
                data = record.data
                self._limits[data["table"], data["version"], data["data_version"]] = data["found"]
                self._after = record.number
                continue
            known = self._versions.setdefault(record.data["table"], [])
            known.append(Version.from_record(record, known[-1] if record.kind == "refresh" else None))
            self._after = record.number
        return self._versions

    def current(self) -> dict[str, Version]:
        """The version in force of each table."""
        return {name: known[-1] for name, known in self.versions().items()}

    def limits(self, version: Version) -> dict[str, Any] | None:
        """The limits that were found for a version, as they stand in the ledger."""
        self.versions()
        return self._limits.get((version.table, version.version, version.data_version))

    def found(self, table: str, data_version: int) -> list[tuple[Version, dict[str, Any]]]:
        """The limits that were found for the same data under any version of a table's policy, oldest first."""
        known = {each.version: each for each in self.versions().get(table, ()) if each.data_version == data_version}
        return [
            (known[version], limits)
            for (name, version, data), limits in self._limits.items()
            if (name, data) == (table, data_version) and version in known
        ]

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
