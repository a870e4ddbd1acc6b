"""What a republication has to remember: who was ever published, with which signature.

It goes from release to release in a file of mode 0600: it says of everybody in the data which values they may have. It
is kept also of people who left: who comes back must have the same signature as before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dalenius.anonymity.private_files import read_private, write_private
from dalenius.anonymity.transformers.buckets import Signature
from dalenius.errors import InputError

_FORMAT = "dalenius-m-invariance-1"


@dataclass(frozen=True, slots=True)
class State:
    """After some releases.

    Attributes:
        m: Of all of them.
        person: The column that says who.
        sensitive: The column whose values signatures are made of.
        releases: How many there were.
        signatures: Of everybody who was in one.
    """

    m: int
    person: str
    sensitive: str
    releases: int = 0
    signatures: Mapping[str, Signature] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> State:
        """What a file keeps.

        Raises:
            InputError: It is no such file, or others may read it.
            SourceUnavailableError: It cannot be read.
        """
        try:
            return cls._of(json.loads(read_private(file)))
        except (ValueError, TypeError, KeyError, AttributeError, IndexError):
            raise InputError(
                f"{file.name} is no state of a republication.",
                why="It is the file that the last release of this series wrote.",
                fix="Name that file; for the first release name none.",
            ) from None

    @classmethod
    def _of(cls, data: dict[str, Any]) -> State:
        if data["format"] != _FORMAT:
            raise ValueError(data["format"])
        sets = [tuple(each) for each in data["signatures"]]
        people = {str(who): sets[int(at)] for who, at in data["people"].items()}
        return cls(int(data["m"]), str(data["person"]), str(data["sensitive"]), int(data["releases"]), people)

    def write(self, file: Path) -> None:
        """Keeps it, whole or not at all."""
        sets: dict[Signature, int] = {}
        people = {who: sets.setdefault(each, len(sets)) for who, each in self.signatures.items()}
        data = {
            "format": _FORMAT,
            "m": self.m,
            "person": self.person,
            "sensitive": self.sensitive,
            "releases": self.releases,
            "signatures": list(sets),
            "people": people,
        }
        write_private(file, json.dumps(data), replace=True)
