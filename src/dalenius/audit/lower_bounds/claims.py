"""What something claims to be: the ε of its event at a δ, and the trade-off curve that follows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dalenius.accounting.accountant import account
from dalenius.accounting.costs import fixed_delta, pure_epsilon, zcdp

if TYPE_CHECKING:
    from dalenius.accounting.events import Event
    from dalenius.audit.lower_bounds.confidence import Floats

_DELTAS = (1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.4)
_SEEN = 0.01  # beside a pure ε, a smaller δ says the same


@dataclass(frozen=True)
class Claim:
    """The promise of an event.

    ``said_at``: the δ at which it is said, where a budget has one.

    >>> from dalenius.accounting import events
    >>> Claim(events.Pure(1)).base_delta, Claim(events.Pure(1)).epsilon(0.0)
    (0.0, 1.0)
    >>> round(Claim(events.Gaussian(2)).epsilon(1e-5), 2)
    1.99
    """

    event: Event
    said_at: float | None = None

    @property
    def pure(self) -> float | None:
        """ε, where it is promised at δ = 0."""
        return pure_epsilon(self.event)

    @property
    def base_delta(self) -> float:
        """The δ at which it is usually said: 0 where that is possible, its own δ, else 10⁻⁵."""
        if self.pure is not None:
            return 0.0
        if self.said_at is not None:
            return self.said_at
        rho = zcdp(self.event)
        own = fixed_delta(self.event)
        if rho is not None and own and account(self.event, own).epsilon == math.inf:
            return min(0.5, 2 * own)  # ρ needs some δ beside its own
        return own or 1e-5

    @property
    def deltas(self) -> tuple[float, ...]:
        """Where else it is looked at: every δ gives an ε."""
        return tuple(each for each in _DELTAS if each > self.base_delta and (self.pure is None or each >= _SEEN))

    def epsilon(self, delta: float) -> float:
        """The ε that is claimed at δ."""
        if delta == 0:
            return math.inf if self.pure is None else self.pure
        return _epsilon(self.event, delta)

    @property
    def words(self) -> str:
        """For people."""
        if self.pure is not None:
            return f"ε = {self.pure:.4g}"
        rho = zcdp(self.event)
        known = f", from ρ = {rho.rho:.4g}" if rho is not None else ""
        return f"ε = {self.epsilon(self.base_delta):.4g} at δ = {self.base_delta:g}{known}"

    def trade_off(self, alpha: Floats) -> Floats:
        """The least type II error that any test of the two sides can have at type I error α.

        Of (ε, δ)-DP it is f(α) = max(0, 1 − δ − e^ε·α, e^(−ε)·(1 − δ − α)) [Kairouz, Oh & Viswanath (2015); Dong, Roth
        & Su (2022), Prop. 3]; of a promise that holds at several δ, the largest of these.

        >>> from dalenius.accounting import events
        >>> [round(float(each), 3) for each in Claim(events.Pure(1)).trade_off(np.array([0.0, 0.1, 1.0]))]
        [1.0, 0.728, 0.0]
        """
        found = np.zeros_like(alpha)
        for delta in (self.base_delta, *self.deltas):
            ratio = math.exp(min(self.epsilon(delta), 700.0))
            found = np.maximum(found, np.maximum(1 - delta - ratio * alpha, (1 - delta - alpha) / ratio))
        return found


@lru_cache(maxsize=512)
def _epsilon(event: Event, delta: float) -> float:
    return account(event, delta).epsilon


def broken(measured: Sequence[tuple[float, float]]) -> bool:
    """Whether any measured ε̂ is above what is claimed at its δ; rounding of the claim does not count."""
    return any(found > claimed * (1 + 1e-9) for found, claimed in measured)
