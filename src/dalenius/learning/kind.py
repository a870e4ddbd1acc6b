"""Models, as a kind of release: one price, one charge, one look, one receipt; what is predicted is free.

What is charged is the event of the recipe: sampled discrete Gaussian noise, calibrated so that it costs at most the ρ
of the typed ε at every filter that pays, or noise that is added once. Another analyst pays for a model of the own:
weights were found by steps that followed from one another, so that noise cannot simply be added to what another has.
A training that broke off goes on where it was, under the same charge (`releasing.keeping`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dalenius.accounting import costs
from dalenius.errors import InputError
from dalenius.learning import training
from dalenius.learning.planned import Planned
from dalenius.learning.request import ModelAsk
from dalenius.learning.stored import StoredModel
from dalenius.releasing.kinds import Kind
from dalenius.releasing.leaving import Leaving
from dalenius.releasing.opened import Opened, check_open
from dalenius.releasing.pacing import Pace
from dalenius.releasing.snapshot import Snapshot
from dalenius.releasing.whole_table import NOTHING_PAID, Paid, guarantee_of, paid_release, table_named

if TYPE_CHECKING:
    from dalenius.learning.release import TrainedModel
    from dalenius.ledger.requests import Answered
    from dalenius.releasing.leaving import Asker

MODEL = "model"
_MOST_SECONDS = 24 * 3600  # that one request may keep the curator at work


class ModelKind(Kind):
    """Trained models."""

    name: ClassVar[str] = MODEL
    verb: ClassVar[str] = "trained a model on"

    def prepare(self, asker: Asker, request: Any) -> Leaving:
        """What would be learned, and how, from the policy alone."""
        ask = ModelAsk.of(request)
        with asker.own_work():
            return leaving_of(asker, ask)

    def show(self, asker: Asker, request: Any, leaving: Leaving, answered: Answered) -> TrainedModel:  # noqa: ARG002
        """The stored model."""
        from dalenius.learning.release import TrainedModel

        planned: Planned = leaving.plan
        stored, dataset = StoredModel.read(answered.content), answered.receipt.dataset
        return TrainedModel(
            stored,
            planned.left_out,
            planned.guarantee(stored.epsilon),
            dict(NOTHING_PAID) if answered.free else dict(answered.receipt.charge),
            asker.remaining(dataset, leaving.periods),
            answered.free,
            answered.receipt.to_dict(),
            (*planned.notes, *asker.warnings(dataset)),
        )

    def read(self, content: bytes) -> dict[str, Any]:
        """The model."""
        return StoredModel.read(content).to_json()

    def body(self, request: Any) -> str:
        """All of it as one text."""
        return json.dumps([self.name, ModelAsk.of(request).to_json()], sort_keys=True)

    def echo(self, request: Any) -> dict[str, Any]:
        """What was asked for."""
        return {"kind": self.name, "request": ModelAsk.of(request).to_json()}


KIND = ModelKind()


@dataclass(frozen=True)
class PaidModel(Paid):
    """A model that was paid for, and what its bytes are."""

    stored: StoredModel


def model_of(asker: Asker, release: str) -> PaidModel:
    """A model that this asker has paid for, by the number of its release (`paid_release`)."""
    found = paid_release(asker, release, MODEL, "model")
    return PaidModel(found.content, found.receipt, found.periods, StoredModel.read(found.content))


def again(asker: Asker, release: str) -> TrainedModel:
    """A model that this asker has paid for, by the number of its release. Nothing is charged."""
    from dalenius.learning.release import TrainedModel

    found = model_of(asker, release)
    dataset = found.receipt.dataset
    budget = asker.ledger.budget(dataset)
    return TrainedModel(
        found.stored,
        {},
        guarantee_of(budget, budget.unit, found.stored.epsilon),
        dict(NOTHING_PAID),
        asker.remaining(dataset, found.periods),
        True,
        found.receipt.to_dict(),
        asker.warnings(dataset),
    )


def leaving_of(asker: Asker, ask: ModelAsk) -> Leaving:
    """What is about to leave, planned and priced without the data."""
    opened = Opened.of(asker)
    table = table_named(asker, ask.table, opened)
    snapshot = Snapshot.of(table, opened.versions)
    allotment = asker.ledger.allotments(snapshot.dataset).get(asker.name, table.budget.epsilon)
    planned = Planned.of(table, ask, allotment)
    check_open(asker, *table.reads)
    epsilon = float(ask.epsilon)
    event = planned.event(epsilon)
    _check_time(planned)
    return Leaving(
        MODEL,
        snapshot,
        planned.key(snapshot.data_version),
        epsilon,
        event,
        Pace(planned.times, planned.times(1.0).cap, planned.late),
        lambda look: training.look(planned, look),
        asked=f"A {ask.model} model of {ask.target} in {ask.table}",
        delta=costs.fixed_delta(event),
        delta_chosen=True,
        periods=planned.paying,
        plan=planned,
        goes_on=True,
    )


def _check_time(planned: Planned) -> None:
    if planned.times(1.0).answer > _MOST_SECONDS:
        raise InputError(
            "This training would take more than a day.",
            why="Its time follows from the numbers of units, rows, columns and steps.",
            fix="Choose fewer features (--features), fewer --rows-per-unit or fewer --steps.",
        )
