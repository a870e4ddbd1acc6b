"""Whether a price covers what is done for it: what an event costs, and what a stored release says it was made at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dalenius.accounting import costs
from dalenius.accounting.events import Event
from dalenius.accounting.guarantees import ZCDP, PureDP

# For the rounding of a ρ that is computed in two ways, or by another machine's logarithm; a millionth is no rounding.
TOLERANCE = 1 + 1e-9


def covers(price: PureDP | ZCDP, event: Event) -> bool:
    """Whether an event costs no more than a price."""
    if isinstance(price, ZCDP):
        cost = costs.zcdp(event)
        return cost is not None and cost.rho <= price.rho * TOLERANCE and cost.delta <= price.delta * TOLERANCE
    epsilon = costs.pure_epsilon(event)
    return epsilon is not None and epsilon <= price.epsilon * TOLERANCE


def made_within(content: bytes, charged: Mapping[str, float | None]) -> bool:
    """Whether a release was made at no more than was charged: each of ε, δ and ρ that it names itself.

    A release that names none (it is not a JSON object, or of a kind that keeps no price) says nothing against it.
    """
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return True
    if not isinstance(data, dict):
        return True
    return all(_within(data.get(name), paid) for name, paid in charged.items())


def _within(made: Any, paid: float | None) -> bool:
    if made is None:
        return True
    if isinstance(made, bool) or not isinstance(made, int | float):
        return False
    return paid is not None and made <= paid * TOLERANCE
