"""Several questions at one price: what UNION ALL, or a join of two aggregated SELECTs, asks for.

They are planned first, all of them; one that is refused refuses the whole, for nothing. Then they are one release: one
charge, one look at one snapshot of one data set, one receipt. Each part gets the same share of the price.

Guarantee:
    Every share of a part's price is divided by the number k of parts: a measure that would be ρᵢ-zCDP (εᵢ-DP) for the
    whole ε is ρᵢ/k-zCDP (εᵢ/k-DP). Within a part the ρᵢ sum to ρ(ε), so all parts together sum to ρ(ε) (to ε), and δ is
    divided among the parts that find keys. Neighbouring tables are those of the data set; the parts see the same rows,
    so they compose by addition. The event is the composition of theirs, and the ledger compares it with the price.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.accounting.events import Composed
from dalenius.errors import NotAllowedError
from dalenius.ledger.key_delta import Left, default_delta
from dalenius.ledger.requests import QUESTION
from dalenius.measuring import pace
from dalenius.measuring.pace import Times
from dalenius.queries.rules.price import Priced, price_plan
from dalenius.releasing.leaving import Leaving
from dalenius.releasing.pacing import Pace
from dalenius.releasing.snapshot import Snapshot

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan
    from dalenius.queries.planning import Planned
    from dalenius.releasing.leaving import Asker, Look

FORMAT = "joint"


def share_equally(planned: Planned, parts: int, finding: int) -> Planned:
    """A question as one of so many at one price: its noise, and what is expected of it.

    ``finding``: how many of them find keys, and share δ.
    """
    plan, part = planned.plan, Fraction(1, parts)
    statistics = tuple(
        replace(
            each,
            measures=tuple(replace(one, share=one.share * part, search=one.search * part) for one in each.measures),
        )
        for each in plan.statistics
    )
    selection = plan.selection and replace(plan.selection, share=plan.selection.share * part)
    plan = replace(plan, statistics=statistics, selection=selection)
    expectations = planned.expectations and replace(planned.expectations, plan=plan, prices={}, finding=finding)
    return replace(planned, plan=plan, expectations=expectations)


def joint_leaving(
    asker: Asker,
    parts: Sequence[Planned],
    question: str,
    epsilon: float,
    delta: float | None,
    shown: Any,
    fresh: str = "",
) -> Leaving:
    """What leaves when several questions are asked together.

    Args:
        asker: Who asks.
        parts: The questions, each with its share of the price (`share_equally`).
        question: As it was asked.
        epsilon: The price of all.
        delta: For finding keys, where it was typed.
        shown: What shows it later.
        fresh: What tells it from all that was paid for before; "" where that may serve.
    """
    snapshot, plans = together(parts), [each.plan for each in parts]
    periods = tuple(sorted({period for plan in plans for period in plan.periods}))
    chosen = delta is None and any(plan.selection is not None for plan in plans)
    if chosen:
        left = Left.of(asker.remaining(snapshot.dataset, periods))
        delta = default_delta(plans[0].table.budget, epsilon, left)
    prices = _prices(plans, epsilon, delta or 0.0)

    def look(charged: Look) -> bytes:
        from dalenius.queries.answering import measure_plan
        from dalenius.queries.known.sources import FRESH, sealed_with

        paid = _prices(plans, charged.epsilon, charged.delta)
        measured = [
            measure_plan(
                each.plan,
                price,
                each.snapshot.engine(asker.engines),
                charged.salt,
                charged.seconds,
                sealed_with(asker, each.plan, each.snapshot.data_version),
            )
            for each, price in zip(parts, paid, strict=True)
        ]
        content: dict[str, Any] = {"format": FORMAT, "epsilon": charged.epsilon, "delta": _delta(paid)}
        content |= {"rho": paid[0].rho, "parts": [json.loads(each) for each in measured]}
        content |= {FRESH: fresh} if fresh else {}
        return json.dumps(content, separators=(",", ":")).encode()

    def times(speed: float) -> Times:
        own = [pace.times(plan, speed) for plan in plans]
        return Times(sum(each.answer for each in own), sum(each.cap for each in own))

    from dalenius.queries.known.sources import fresh_key

    keys = [each.plan.key(each.snapshot.data_version) for each in parts]
    return Leaving(
        QUESTION,
        snapshot,
        fresh_key(joint_key(keys), fresh),
        epsilon,
        Composed(tuple(each.event for each in prices)),
        Pace(times, sum(map(pace.cap, plans)), min(map(pace.latest, plans))),
        look,
        _delta(prices),
        question,
        periods,
        plan=shown,
        delta_chosen=chosen,
    )


def joint_key(keys: Sequence[str]) -> str:
    """The key of several questions together, by the keys that they have alone."""
    return hashlib.sha256("\0".join((FORMAT, *keys)).encode()).hexdigest()


def parts_of(content: bytes) -> list[bytes]:
    """The stored answers of the parts."""
    data: Mapping[str, Any] = json.loads(content)
    return [json.dumps(each, separators=(",", ":")).encode() for each in data["parts"]]


def check_ready(asker: Asker, parts: Sequence[Planned]) -> None:
    """Refuses where an engine of a part cannot begin, before anything is charged."""
    for each in parts:
        each.snapshot.engine(asker.engines).ready()


def _prices(plans: Sequence[Plan], epsilon: float, delta: float) -> list[Priced]:
    finding = sum(plan.selection is not None for plan in plans)
    return [price_plan(plan, epsilon, delta / finding if plan.selection is not None else None) for plan in plans]


def _delta(prices: Sequence[Priced]) -> float:
    return sum(each.delta for each in prices)


def together(parts: Sequence[Planned]) -> Snapshot:
    """All tables of the parts, as they are."""
    datasets = sorted({each.snapshot.dataset for each in parts})
    if len(datasets) > 1:
        raise NotAllowedError(
            f"The parts read different data sets: {', '.join(datasets)}.",
            why="Each has a budget of its own, and a question is charged to one.",
            fix="Ask them one by one.",
        )
    versions = {version.table: version for each in parts for version in each.snapshot.versions}
    publics = {public.name: public for each in parts for public in each.snapshot.publics}
    return Snapshot(parts[0].snapshot.table, tuple(versions.values()), tuple(publics.values()))
