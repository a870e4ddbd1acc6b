"""The ε that a question's answers show, on the owner's real table.

Neighbours: the table, and the table without one unit; under substitution, the table without one unit and the table
without another, which differ in one exchanged for the other. Several units are tried, those with most rows and some at
random; the one that moves the question's integers most is sampled. Which one it was is never said.

What is charged: nothing, because nothing leaves. The outputs, each of them as private as its price says, are looked at
in this process and dropped; together they would show the exact integers, so they are not kept, and no way leads there.

What ε̂ itself tells. It is a function of the raw table, by way of its most visible unit, and no noise is added to it. An
ε̂ near the claim says that somebody reaches the limits of the question; one near 0 that nobody does, or that the
question's condition excludes all who were tried. Asked again with other conditions it would be an oracle about single
people: so it is for the owner, who can read the rows anyway, on the owner's terminal. It is not in the ledger, in no
report and in no response of a server; do not pass it on. The ledger notes that an audit ran, by whom and about which
tables, before anything is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.accounting import events, parameters
from dalenius.accounting.neighbors import Neighbors
from dalenius.audit.lower_bounds.bounding import LowerBound, check_sampling, lower_bound
from dalenius.audit.lower_bounds.claims import Claim
from dalenius.audit.questions.neighbours import Place, WithoutUnit
from dalenius.audit.questions.sampling import Samples
from dalenius.errors import NotAllowedError
from dalenius.ledger.requests import OWNER
from dalenius.measuring.engines.duckdb.connections import DuckDB
from dalenius.queries.ask import Ask
from dalenius.queries.planning import OpenTables, plan_ask
from dalenius.queries.rules.price import price_plan
from dalenius.releasing.leaving import Asker

if TYPE_CHECKING:
    from dalenius.curator import Curator
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Plan
    from dalenius.queries.rules.price import Priced

SAMPLES = 20_000
_HEAVY, _RANDOM = 6, 6  # units that are tried
_SECONDS = 600.0  # the owner waits


@dataclass(frozen=True)
class QuestionAudit:
    """What may be said of it: the claim and the bound, no event, no unit, no integer."""

    bound: LowerBound
    tables: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For `--json` on the owner's terminal."""
        main = self.bound.worst
        return {
            "tables": list(self.tables),
            "claim": self.bound.claim.words,
            "claimed": main.claimed,
            "epsilon": main.epsilon,
            "delta": main.delta,
            "confidence": self.bound.confidence,
            "samples": self.bound.samples,
            "broken": self.bound.broken,
        }


def audit_question(
    curator: Curator,
    ask: Ask,
    *,
    samples: int = SAMPLES,
    confidence: float = 0.999,
    progress: Callable[[int, int], None] | None = None,
) -> QuestionAudit:
    """Samples a question on the real table and on a neighbour of it. For owners; see this module.

    Args:
        curator: Of the home.
        ask: The question, with its ε.
        samples: Runs on each side.
        confidence: Of the bound.
        progress: Called with the runs done, of how many.
    """
    check_sampling(samples, confidence)
    owner = Asker(OWNER, curator.ledger, curator.registry, curator.engines)
    planned = plan_ask(owner, ask, among=OpenTables.of_owner(owner))
    plan, snapshot = planned.plan, planned.snapshot
    _check_plain(plan)
    priced = price_plan(plan, parameters.epsilon(ask.epsilon), ask.delta)
    snapshot.check_unchanged()
    before, tables = snapshot.state(), plan.table.reads
    curator.ledger.record("note", {"audit": "question", "tables": list(tables), "samples": samples})
    engine, salt = snapshot.engine(owner.engines), owner.salt(snapshot.dataset)
    chosen = max(
        (Samples(plan, priced, sides, salt, _SECONDS) for sides in _pairs(plan, engine, salt)),
        key=lambda each: each.distance,
    )
    found = lower_bound(chosen.draw, _charged(priced, plan), samples=samples, confidence=confidence, progress=progress)
    snapshot.check_kept(before)
    return QuestionAudit(found, tables)


def _charged(priced: Priced, plan: Plan) -> Claim:
    """What the ledger would be charged for: not what the mechanisms say of themselves, which may be wrong with them.

    It is said at the δ at which the budget turns ρ into the ε that was typed, and that of keys.
    """
    if priced.rho is None:
        return Claim(events.Pure(priced.epsilon, plan.neighbors))
    said_at = plan.table.budget.conversion_delta + priced.delta
    return Claim(events.Zcdp(priced.rho, priced.delta, plan.neighbors), said_at)


def _check_plain(plan: Plan) -> None:
    """Refuses what has no simple neighbour here, by the plan alone."""
    wrong = ""
    if not plan.table.direct:
        wrong = "It reads several tables: a neighbour would lack a unit's rows in each of them."
    elif plan.periods != ("",):
        wrong = "Its budget is per period: a neighbour would lack a unit's rows in one period alone."
    if wrong:
        raise NotAllowedError(
            "This question cannot be audited on its own table yet.",
            why=wrong,
            fix="Audit a question over one table, or run 'dalenius audit fuzz --what transcript --joins'.",
        )


def _pairs(plan: Plan, engine: Engine, salt: str) -> list[tuple[Engine, Engine]]:
    """Neighbours: with somebody and without; or without one and without another, where units are exchanged."""
    if not isinstance(engine, DuckDB):
        raise TypeError("A table by itself has an engine of its own.")
    order = hashlib.sha256(f"audit {salt}".encode()).hexdigest()
    places = [
        *(Place(heavy=True, at=at) for at in range(_HEAVY)),
        *(Place(heavy=False, at=at) for at in range(_RANDOM)),
    ]
    without: list[Any] = [WithoutUnit(engine, plan.table, each, order) for each in places]
    if plan.neighbors is Neighbors.ADD_REMOVE:
        return [(engine, each) for each in without]
    return [(one, other) for at, one in enumerate(without) for other in without[at + 1 :]]
