"""Joint answers, as a kind of release: charged here, measured here, opened only as the noisy sum of all parties.

Guarantee:
    ρ(ε)-zCDP for the units of this data set, towards every other party, any ``threshold`` of them together, and who
    reads the answer (`mechanisms.summed_gaussian`), if they follow the protocol. The charge is on disk before this
    party says so, and no party looks before it has such a statement from every other. What leaves this party are
    shares of its integers with its own noise in them, written down before the first of them leaves: whatever breaks,
    the same bytes leave again, or none. Bytes that were lost are never made anew for the same charge.

One person's rows at several parties are one person's: noise is made for all of them (`planning`), and every ledger
pays for it in full.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from dalenius.errors import InputError
from dalenius.measuring import pace
from dalenius.measuring._exact import exact
from dalenius.mechanisms import noise
from dalenius.queries.answering import FORMAT, Answer, law_to_json
from dalenius.queries.jointly.planning import JointPlan
from dalenius.queries.release import Release
from dalenius.releasing.kinds import Kind
from dalenius.releasing.leaving import Leaving
from dalenius.releasing.pacing import Pace

if TYPE_CHECKING:
    from dalenius.ledger.requests import Answered
    from dalenius.releasing.leaving import Asker, Look

NAME = "joint"


class Round(Protocol):
    """The parties of one run, as the look sees them."""

    def add_up(self, charge: int, inputs: Callable[[], Sequence[int]]) -> Sequence[int]:
        """Says that it is charged, waits for all others to say so, and opens the sum of all parties' inputs.

        Args:
            charge: The number of the entry that charged it.
            inputs: Gives what this party brings, noise and all; called once in the life of a run, and only after all
                others have shown their charge.
        """
        ...


@dataclass(frozen=True)
class JointRequest:
    """A question that was planned, with the parties that have met for it.

    Attributes:
        planned: The plan.
        key: What tells this run from all others: a run is charged once, and never twice.
        together: The parties.
    """

    planned: JointPlan
    key: str
    together: Round


class JointKind(Kind):
    """Answers that several parties make together."""

    name: ClassVar[str] = NAME
    verb: ClassVar[str] = "took part in a joint question about"

    def prepare(self, asker: Asker, request: Any) -> Leaving:  # noqa: ARG002
        """What leaves: the noisy sum."""
        if not isinstance(request, JointRequest):
            raise InputError(
                "A joint question needs its parties.",
                why="They must meet first, each as a process of its own.",
                fix="Ask with 'dalenius joint ask SQL --with A,B --epsilon E'.",
            )
        planned, plan = request.planned, request.planned.plan
        return Leaving(
            NAME,
            planned.snapshot,
            request.key,
            planned.ask.epsilon,
            planned.event,
            Pace(partial(pace.times, plan), pace.cap(plan), pace.latest(plan)),
            partial(look, planned, request.together),
            asked=planned.ask.question,
            periods=plan.periods,
            plan=planned,
        )

    def show(self, asker: Asker, request: Any, leaving: Leaving, answered: Answered) -> Release:  # noqa: ARG002
        """The answer, in the terms of the question."""
        return shown(asker, leaving.plan, answered)

    def read(self, content: bytes) -> dict[str, Any]:
        """The noisy integers with the laws of their noise."""
        found: dict[str, Any] = json.loads(content)
        return found


KIND = JointKind()


def look(planned: JointPlan, together: Round, charged: Look) -> bytes:
    """Adds up with all others: exact integers, own noise, one opening. Once the charge is on disk, and only then."""
    plan = planned.plan

    def inputs() -> Sequence[int]:
        began = time.monotonic()
        found = measured(planned, exact(plan, charged.engine, charged.salt, seconds=charged.seconds))
        # how long it took tells of rows: shares leave at a time that is fixed beforehand
        time.sleep(max(0.0, began + pace.times(plan).answer - time.monotonic()))
        return found

    opened = list(together.add_up(charged.charge, inputs))
    content: dict[str, Any] = {"format": FORMAT, "epsilon": charged.epsilon, "delta": 0.0, "rho": planned.rho}
    content |= {"parties": list(planned.ask.parties), "threshold": planned.ask.threshold, "overlap": planned.overlap}
    content["measures"] = []
    for measure, mechanism in zip(plan.measures, planned.mechanisms, strict=True):
        values, opened = opened[: mechanism.dimension], opened[mechanism.dimension :]
        law = law_to_json(mechanism.noise)
        content["measures"].append({"law": law, "values": [str(each) for each in values], "bits": measure.bits})
    return json.dumps(content, separators=(",", ":")).encode()


def measured(planned: JointPlan, integers: Sequence[Sequence[int]]) -> list[int]:
    """What this party brings: its exact integers, none beyond the room that there is, each with this party's noise.

    Cutting off at ± room moves no two values further apart, so that the sensitivity stays.
    """
    noise.fresh_key()
    found: list[int] = []
    for vector, mechanism, room in zip(integers, planned.mechanisms, planned.room, strict=True):
        drawn = mechanism.own.draw(mechanism.dimension).tolist()
        found += [max(-room, min(room, int(value))) + int(own) for value, own in zip(vector, drawn, strict=True)]
    return found


def shown(asker: Asker, planned: JointPlan, answered: Answered) -> Release:
    """A stored joint answer, in the terms of the question."""
    plan, ask = planned.plan, planned.ask
    answer = Answer.read(plan, answered.content, ask.confidence)
    table, budget = answer.table(), plan.table.budget
    nothing = {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}
    return Release(
        columns=table.columns,
        keys=table.keys,
        rows=table.rows,
        noise_error=table.noise_error,
        interval=table.interval,
        total_interval=table.total_interval,
        clipping=table.clipping,
        confidence=answer.confidence,
        guarantee={
            "kind": "approx",
            "epsilon": answer.epsilon,
            "delta": budget.delta,
            "unit": ", ".join([*plan.table.unit, *([budget.period] if budget.period else [])]),
            "neighbors": budget.neighbors.value,
        },
        charge=nothing if answered.free else dict(answered.receipt.charge),
        remaining=asker.remaining(answered.receipt.dataset, plan.periods),
        free=answered.free,
        receipt=answered.receipt.to_dict(),
        question=ask.question,
        notes=(*answer.notes, *_notes(planned), *asker.warnings(answered.receipt.dataset)),
    )


def _notes(planned: JointPlan) -> tuple[str, ...]:
    parties, most = planned.ask.parties, planned.overlap
    others = len(parties) - planned.ask.threshold
    many = "all of them" if most == len(parties) else f"{most} of them"
    told = (
        f"Added up over {', '.join(parties)}; each charged its own ledger. The noise of any {others} of them is enough "
        f"for the guarantee, and hides one person who is at {many}."
    )
    return (told,)
