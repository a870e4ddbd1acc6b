"""Kinds of release: what each is called, and how its bytes are read back.

Everything that leaves is a release of some kind: an answer to a question, the limits that `protect` finds, and more to
come. Charging, pacing, storing, receipts, jobs and the history are the same for all of them (`leaving`), and know a
kind by its name alone, which stands in its charge.

A new kind is one module with a subclass of `Kind`, and a line in `_MODULES`: whoever reads a history must find the
kind of a release in it without having asked for one.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from dalenius.errors import InputError

if TYPE_CHECKING:
    from dalenius.ledger.requests import Answered
    from dalenius.releasing.leaving import Asker, Leaving

# Where each kind is defined, as `KIND`, and its verb. They lie above this package, so they are imported when one is
# looked up; a history needs the verb alone.
_MODULES = {
    "question": ("dalenius.queries.kind", "asked"),
    "limits": ("dalenius.owner.limits", "found limits of"),
    "workload": ("dalenius.queries.workloads.kind", "asked a workload of"),
    "synthetic": ("dalenius.synthesis.kind", "made a synthetic table of"),
    "related": ("dalenius.synthesis.related_kind", "made synthetic tables of"),
    "comparison": ("dalenius.synthesis.comparison_kind", "compared a synthetic table with"),
    "model": ("dalenius.learning.kind", "trained a model on"),
    "score": ("dalenius.learning.score_kind", "scored a model on"),
    "joint": ("dalenius.queries.jointly.kind", "took part in a joint question about"),
    "publication": ("dalenius.anonymity.publishing", "published rows of"),
}
_MADE: dict[str, Kind] = {}


class Shown(Protocol):
    """What the asker gets: a release, as people and programs read it."""

    def to_dict(self) -> dict[str, Any]:
        """For `--json` and HTTP."""
        ...


class Kind(ABC):
    """One kind of release.

    Attributes:
        name: On record, in `--json` and in paths of HTTP; one word.
        verb: What somebody did who got one, for histories: "eve asked visits with ε = 1".
    """

    name: ClassVar[str]
    verb: ClassVar[str]

    @abstractmethod
    def prepare(self, asker: Asker, request: Any) -> Leaving | Shown:
        """What would leave, planned and priced without the data; or what is free and at hand.

        Args:
            asker: Who asks.
            request: What is asked for, as JSON has it; or as a value that the kind knows.

        Raises:
            DaleniusError: It cannot be asked, or may not be. Nothing is charged.
        """

    @abstractmethod
    def show(self, asker: Asker, request: Any, leaving: Leaving, answered: Answered) -> Shown:
        """What left, for who asked. Post-processing: it looks at the stored bytes and at what is public."""

    @abstractmethod
    def read(self, content: bytes) -> dict[str, Any]:
        """The stored bytes as JSON has them, for who comes back to a release without asking for it again."""

    def body(self, request: Any) -> str:
        """All that is asked for as one text, by which a request that is sent again is known."""
        return json.dumps([self.name, request], sort_keys=True)

    def echo(self, request: Any) -> dict[str, Any]:
        """What a program that sent it is told beside the release, to know it by."""
        return {"kind": self.name, "request": request}


def kind_of(name: str) -> Kind:
    """The kind of this name."""
    if name not in _MADE:
        if name not in _MODULES:
            raise InputError(
                f"There is no kind of release {name!r}.",
                why="A newer dalenius may have written it.",
                fix=f"Known are {', '.join(names())}.",
            )
        _MADE[name] = import_module(_MODULES[name][0]).KIND
    return _MADE[name]


def names() -> list[str]:
    """Of all kinds there are."""
    return sorted({*_MODULES, *_MADE})


def verb_of(name: str) -> str:
    """What was done, for a history, which may know kinds that this program does not."""
    if name in _MODULES:
        return _MODULES[name][1]
    return _MADE[name].verb if name in _MADE else f"got a release ({name}) of"


@contextmanager
def known(kind: Kind) -> Iterator[None]:
    """One more kind for a while: for tests, and for trying one out."""
    if kind.name in names():
        raise InputError(f"There is a kind {kind.name!r}.", why="Names are on record.", fix="Choose another name.")
    _MADE[kind.name] = kind
    try:
        yield
    finally:
        del _MADE[kind.name]
