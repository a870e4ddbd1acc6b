"""One party's seat in a joint run: what was planned here, what was charged for it, and what is written down of it."""

from __future__ import annotations

import hashlib
import hmac
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalenius.curator import Curator
from dalenius.errors import DaleniusError, InputError, SourceUnavailableError
from dalenius.joint.run_files import RunFiles
from dalenius.joint.statements import digest_task
from dalenius.ledger.requests import key_stored
from dalenius.queries.jointly.kind import KIND, NAME, JointRequest, shown
from dalenius.queries.jointly.planning import check_left, plan_joint
from dalenius.queries.jointly.terms import terms_of
from dalenius.releasing.leaving import Asker, charges_of_kind, own_releases, release
from dalenius.tables.policy import JOINT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from dalenius.joint.config import Party
    from dalenius.joint.run_files import RunRecord
    from dalenius.queries.jointly.planning import JointAsk, JointPlan
    from dalenius.queries.release import Release


@dataclass(frozen=True)
class Seat:
    """One party's part in one run: who it is, what was planned, and what it is known by.

    Attributes:
        terms: What all parties agreed on, as one hash.
        mark: The same with this party's data version: by it a question is known again here.
    """

    party: Party
    asker: Asker
    files: RunFiles
    planned: JointPlan
    task: Mapping[str, Any]
    terms: str
    mark: str

    @classmethod
    def of(cls, party: Party, ask: JointAsk) -> Seat:
        """Planned from this party's own policies. Never touches the data, and charges nothing."""
        curator = Curator(party.folder.parent)
        asker = Asker(JOINT, curator.ledger, curator.registry, curator.engines)
        key = hmac.new(curator.ledger.keys.chain, b"joint runs", hashlib.sha256).digest()
        planned = plan_joint(asker, ask)
        task = terms_of(planned)
        terms = digest_task(task, ask.parties, ask.threshold)
        mark = hashlib.sha256(f"{terms} {planned.snapshot.data_version}".encode()).hexdigest()
        return cls(party, asker, RunFiles(party.folder, key), planned, task, terms, mark)

    def key(self, run: bytes) -> str:
        """What identifies a run's release: begun with its question, so that the same one is found again."""
        return f"{self.mark} {run.hex()}"

    def charged(self, run: bytes) -> tuple[int, str] | None:
        """The entry that charged a run, and what became of it; None: it never was.

        Charged for another question, or for data that has changed since, it is "other": one run is one look here, or
        what others bring could be opened beside two draws of this party's noise.
        """
        own = key_stored(NAME, self.key(run), self.planned.snapshot.epoch)
        with self.asker.ledger.state() as state:
            found = [each for each in state.questions.values() if each.key.endswith(f" {run.hex()}")]
        if not found:
            return None
        return found[-1].number, found[-1].state if found[-1].key == own else "other"

    def known(self) -> Release | None:
        """The answer, where just that was asked before, of the same parties and people: it is free."""
        found = charges_of_kind(self.asker, NAME, self.planned.snapshot, self.planned.ask.epsilon, 1, self.mark)
        answers = own_releases(self.asker, found)
        return shown(self.asker, self.planned, answers[0]) if answers else None

    def unfinished(self) -> RunRecord | None:
        """A run of this question that this party began and has no answer of yet."""
        found = self.files.unfinished(self.mark, self.party.card.name)
        return next((each for each in found if (self.charged(each.run) or (0, "claimed"))[1] == "claimed"), None)

    def take(self, run: bytes, beginner: str) -> RunRecord:
        """What is written down of a run; for a new one, that it begins.

        Raises:
            DaleniusError: The run is dead, or there is no budget for it. Nothing is charged.
        """
        self.files.sweep()
        record, charged = self.files.find(run), self.charged(run)
        if charged is not None and (record is None or charged[1] not in {"claimed", "answered"}):
            self.end(run)
            raise dead()
        if record is not None and record.terms != self.mark:
            raise InputError(
                "This run was begun about something else.",
                why="The question or a policy changed since.",
                fix="Ask again: that is a new run, and a new charge.",
            )
        if charged is None:  # whatever would stop this party later stops it now, when nobody has paid
            check_left(self.asker, self.planned)
            self.planned.snapshot.check_unchanged()
        return record or self.files.begin(run, self.mark, beginner)

    def end(self, run: bytes) -> None:
        """Puts on record that a charged run is dead. Its charge stays."""
        charged = self.charged(run)
        if charged is not None and charged[1] == "other":  # not for this question to end
            return
        if charged is not None and charged[1] == "claimed":
            leaving = KIND.prepare(self.asker, JointRequest(self.planned, self.key(run), Nobody()))
            with suppress(DaleniusError):
                release(leaving, self.asker, patience=0.0)
        self.files.forget(run)


class Nobody:
    """The parties of a run that cannot be taken up."""

    def add_up(self, charge: int, inputs: Callable[[], Sequence[int]]) -> Sequence[int]:  # noqa: ARG002
        """There is nobody to add up with."""
        raise dead()


def dead() -> SourceUnavailableError:
    """The error about a run of which nothing can be said any more."""
    return SourceUnavailableError(
        "This run cannot be taken up again.",
        why="What was written down of it here is gone, or its time is over. What it cost stays spent.",
        fix="Ask again: that is a new run, and a new charge.",
    )
