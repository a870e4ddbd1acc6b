"""How much of a budget's δ a question takes for finding its keys, where nobody typed it; and how many such fit.

A tenth of the δ hides only a few keys more (`mechanisms.key_selection`: the threshold grows with √ln(1/δ)), so δ is
spent no faster than ρ: a question that spends one per cent of the ρ that the data set has left takes half a per cent
of the δ that is left. Were all questions such ones, ρ would be gone first. The other half is a reserve: for who types
a δ, and for an owner who raises ε, with which δ does not grow.

Privacy does not rest on any of this: the ledger's filter admits the sum of what was charged, whoever chose it. What a
question takes by itself depends on its ε and on what `remaining` has shown to its asker already, so it tells nothing
more about what others asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context

from dalenius.accounting.guarantees import ZCDP
from dalenius.ledger.budgets import Budget

MOST, LEAST = 1 / 20, 1 / 2000  # of all the δ that there is for finding keys
_STEPS = 200  # in which questions are counted; up to so many, one by one
_PACE = 1 / 2  # the part of δ that goes, as a part of the part of ρ that goes
_SHORT = Context(prec=3, rounding=ROUND_DOWN)  # as it is shown, so that what is shown can be typed


@dataclass(frozen=True, slots=True)
class Left:
    """What an asker can see: the largest ε that the data set has left, and the δ that the asker may still use."""

    epsilon: float
    delta: float

    @classmethod
    def of(cls, remaining: Mapping[str, Mapping[str, float]]) -> Left:
        """From what releases and previews show as `remaining`."""
        return cls(remaining["dataset"]["epsilon"], remaining["analyst"]["delta"])


def default_delta(budget: Budget, epsilon: float, left: Left | None = None) -> float:
    """The δ of a question of this ε; ``left`` of the budget, or all of it. 0 where a budget has none.

    >>> budget = Budget(3.0, 1e-6)
    >>> default_delta(budget, 1.0), default_delta(budget, 0.2), default_delta(budget, 0.05)
    (2.5e-08, 1.56e-09, 2.5e-10)
    """
    pool = budget.filter().remaining_delta
    if left is None:
        left = Left(budget.epsilon, pool)
    return _default(pool, left.delta, _rho(budget, epsilon), _rho(budget, left.epsilon))


def count_questions(budget: Budget, epsilon: float, left: Left, most: int) -> int:
    """How many questions of this ε could find their keys, one after the other; by ρ alone there are at most ``most``.

    As if nobody else asked, and nobody typed a δ. Many are gone through several at a time, so that of a thousand it
    may be off by a few.
    """
    pool = budget.filter().remaining_delta
    rho, rho_left, delta_left = _rho(budget, epsilon), _rho(budget, left.epsilon), left.delta
    stride, done = 1 + min(most, round(1 / LEAST)) // _STEPS, 0
    while done < most:
        takes = _default(pool, delta_left, rho, rho_left)
        at_once = min(stride, most - done, int(delta_left / takes) if takes else 0)
        if at_once == 0:
            break
        rho_left, delta_left, done = rho_left - at_once * rho, delta_left - at_once * takes, done + at_once
    return done


def shortened(delta: float) -> float:
    """To the three digits that are shown, never up: a δ that is shown as left must pass when it is typed.

    >>> shortened(2.5e-08), shortened(1.0079e-20)
    (2.5e-08, 1e-20)
    """
    return float(_SHORT.create_decimal(repr(delta)))


def _default(pool: float, delta_left: float, rho: float, rho_left: float) -> float:
    """Half the part of δ that ρ is of what is left of it; within bounds that no state moves, to three digits."""
    part = rho / rho_left if rho < rho_left else 1.0
    takes = min(max(delta_left * part * _PACE, pool * LEAST), pool * MOST)
    return shortened(takes)


def _rho(budget: Budget, epsilon: float) -> float:
    """The ρ of an ε; 0 of nothing, and where ρ is not what is added up."""
    price = budget.filter().price(epsilon) if epsilon > 0 else None
    return price.rho if isinstance(price, ZCDP) else 0.0
