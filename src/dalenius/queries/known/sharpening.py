"""An answer that was paid for, made more exact by what its asker had paid for before.

Stored bytes never change; what is shown of them is combined, by least squares, with own answers about the same rows
that were charged before this one. So whoever comes back to it sees the same numbers again, whatever was asked since.

Answers are combined only where limits took about the same from them: they are to the same question, or next to nothing
was cut off from either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalenius._numbers import count_of
from dalenius.queries.known.answers import KnownAnswer, epsilon_together
from dalenius.queries.known.deriving import derive, releases_of
from dalenius.queries.known.sources import own_sources, paid_measures
from dalenius.queries.total_intervals import Clipped
from dalenius.queries.workloads.linear import why_not_linear
from dalenius.releasing.leaving import own_releases

if TYPE_CHECKING:
    from dalenius.ledger.requests import Answered
    from dalenius.queries.answering import Answer
    from dalenius.queries.known.sources import PaidMeasure
    from dalenius.queries.postprocess import ReleasedTable
    from dalenius.releasing.leaving import Asker
    from dalenius.releasing.snapshot import Snapshot

_WORTH = 0.9  # of the variance: less than that is gained, and nothing is said
_SMALL = 0.25  # of a deviation of the noise: what limits took does not matter beside it
_MOST_CELLS = 2**12  # groups of a question that others are combined with


@dataclass(frozen=True)
class Sharpened:
    """What is shown in place of an answer alone, the words about it, and the ε of all that it is made of."""

    table: ReleasedTable
    note: str
    epsilon: float


def sharpen(asker: Asker, snapshot: Snapshot, answer: Answer, answered: Answered) -> Sharpened | None:
    """An answer combined with own earlier ones; None where that changes little. Never touches the data."""
    plan = answer.plan
    if answer.coarsened or answer.scaled or why_not_linear(plan) is not None or len(plan.cells) > _MOST_CELLS:
        return None
    sources = own_sources(asker, snapshot.dataset, snapshot.epoch, answered.receipt.entry)
    if len(sources) < 2 or sources[0].charge.answer != answered.receipt.entry or sources[0].fresh:
        return None
    paid = list(paid_measures(sources, plan, snapshot, answer.confidence))
    own = [each for each in paid if each.charge == sources[0].charge.number]
    if len(own) != len(plan.measures):
        return None
    beside = [each for each in paid if each not in own and any(_fits(each, mine) for mine in own)]
    numbers = derive(plan, [*own, *beside]) if beside else None
    if numbers is None:
        return None
    before = [float(np.mean(np.square(each.deviations))) for each in own]
    if all(each.noise >= _WORTH * alone for each, alone in zip(numbers, before, strict=True)):
        return None
    others = [each.charge for each in sources[1:] if each.charge.number in releases_of(numbers)]
    known = KnownAnswer(plan, numbers, answer.confidence)
    if any(isinstance(each, Clipped) and one not in known.clipped for one, each in answer.clipped.items()):
        return None  # it would say less about what limits took
    earlier = "an earlier answer" if len(others) == 1 else count_of(len(others), "earlier answer")
    note = f"It was combined with {earlier} of yours: the margin is smaller than what ε alone buys."
    rhos = [each.receipt.charge["rho"] for each in own_releases(asker, [sources[0].charge, *others])]
    epsilons = [sources[0].charge.epsilon, *(each.epsilon for each in others)]
    return Sharpened(known.table, note, epsilon_together(epsilons, rhos, plan.table.budget.conversion_delta))


def _fits(other: PaidMeasure, own: PaidMeasure) -> bool:
    """Whether limits took about the same from two measures of the same thing."""
    if other.summed != own.summed or not other.combines:
        return False
    if other.limit == own.limit and other.atoms == own.atoms and other.cells == own.cells:
        return True
    least = min(float(each.deviations.min(initial=np.inf)) for each in (own, other))
    return all(each.reach is not None and float(each.reach.max(initial=0.0)) <= _SMALL * least for each in (own, other))
