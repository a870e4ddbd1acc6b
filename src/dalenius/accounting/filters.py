"""Filters say whether the next charge may happen; odometers say how much is gone.

Both stay valid when the analyst chooses every next question *and its price* after seeing the answers before it. That
is more than `account` promises: a filter by PLD is not valid in that sense (docs/explanation/filters.md).

Sums are kept in whole units (`units`), so that no rounding error is ever in the spender's favour, and a decision costs
the same after 100,000 charges as after one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from dalenius.accounting import conversions, orders, parameters
from dalenius.accounting.guarantees import ZCDP, ApproxDP, PureDP
from dalenius.accounting.neighbors import Neighbors, common_neighbors
from dalenius.accounting.orders import SampledLoss
from dalenius.accounting.units import BITS, down, floor, floor_difference, up, whole_units
from dalenius.errors import BudgetError, Charge, Fits, InputError


class PureFilter:
    """Σε ≤ ε. Valid with adaptive prices: Rogers, Roth, Ullman & Vadhan (2016), Thm. 3.2.

    >>> budget = PureFilter(1.0)
    >>> budget.charge(PureDP(0.75)); budget.remaining
    0.25
    >>> budget.admits(PureDP(0.5))
    False
    """

    def __init__(
        self, epsilon: float, neighbors: Neighbors = Neighbors.ADD_REMOVE, *, units: tuple[int, int] = (0, 0)
    ) -> None:
        self.epsilon = parameters.epsilon(epsilon)
        self.neighbors = neighbors
        self._cap = floor(self.epsilon)
        self._spent = units[0]

    @property
    def units(self) -> tuple[int, int]:
        """What is spent, in whole units (ε, and 0 for δ): give it to a new filter to go on from here."""
        return self._spent, 0

    def price(self, epsilon: float, delta: float = 0.0) -> PureDP:
        """What a question typed with ``epsilon`` is charged: just that. A δ has no place here."""
        if parameters.delta(delta) > 0:
            raise InputError(
                "A pure budget cannot pay for a δ.",
                why="Its promise has no probability of failure.",
                fix="Ask over declared keys, or have the owner choose accounting = zcdp.",
            )
        return PureDP(parameters.epsilon(epsilon), self.neighbors)

    def admits(self, cost: PureDP | SampledLoss) -> bool:
        """Whether the charge would pass. Nothing is changed."""
        if isinstance(cost, SampledLoss):
            raise unbounded()
        common_neighbors([self.neighbors, cost.neighbors])
        return self._spent + whole_units(cost.epsilon) <= self._cap

    def charge(self, cost: PureDP | SampledLoss) -> None:
        """Spends, or refuses with what would fit."""
        if isinstance(cost, SampledLoss):
            raise unbounded()
        if not self.admits(cost):
            raise _refusal(cost.epsilon, self.remaining)
        self._spent += whole_units(cost.epsilon)

    @property
    def sampled(self) -> tuple[SampledLoss, ...]:
        """There is no sampled noise to pay for."""
        return ()

    @property
    def order(self) -> Fraction:
        """Nor an order to pay for it at."""
        raise unbounded()

    @property
    def remaining(self) -> float:
        """The largest ε that would still pass."""
        return down(max(0, self._cap - self._spent))

    @property
    def remaining_epsilon(self) -> float:
        """The same, under the name that all filters share."""
        return self.remaining

    @property
    def remaining_delta(self) -> float:
        """There is no δ to spend."""
        return 0.0

    @property
    def spent(self) -> PureDP:
        """The odometer: exact and valid at every moment."""
        return PureDP(up(self._spent), self.neighbors)

    @property
    def spent_epsilon(self) -> float:
        """The same, under the name that all filters share."""
        return self.spent.epsilon


class ZCDPFilter:
    """Approximate zCDP: Σρ ≤ ρ(ε, (1 − s)δ) and Σδ ≤ sδ keep the whole interaction (ε, δ)-DP.

    One part of δ pays for turning Σρ into ε; the part s, ``selection`` (half of it, if nothing is said), caps the δ of
    approximate parts: key selection and the like. The two never add up to more than δ, also in their last digits. The
    theorem is about caps that are fixed before the first charge: s is never changed afterwards.

    Sampled noise has no ρ. It costs d(α*)/α* in units of ρ, α* being the order at which the cap is tight (`order`): the
    filter is then one of Rényi divergences at that order, with the same cap, and ρ costs what it did. A filter made
    anew with another cap has another order, so what was sampled is handed over as it was (``sampled``), not as a sum.

    References:
        Whitehouse, Ramdas, Rogers & Wu, Fully-Adaptive Composition in Differential Privacy (2023), Thm. 1.
        Feldman & Zrnic, Individual Privacy Accounting via a Rényi Filter (2021), Thm. 3.1.

    >>> budget = ZCDPFilter(3.0, 1e-6)
    >>> for _ in range(7):
    ...     budget.charge(budget.price(1.0))
    >>> budget.admits(budget.price(1.0)), budget.admits(budget.price(budget.remaining_epsilon))
    (False, True)
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
        *,
        selection: float = parameters.SELECTION,
        units: tuple[int, int] = (0, 0),
        sampled: Iterable[SampledLoss] = (),
    ) -> None:
        self.epsilon = parameters.epsilon(epsilon)
        self.delta = parameters.delta(delta)
        self.neighbors = neighbors
        self.conversion_delta = conversion_delta(self.delta, selection)
        self._cap_rho = floor(conversions.zcdp_rho(self.epsilon, self.conversion_delta) if self.delta else 0.0)
        self._cap_delta = floor_difference(self.delta, self.conversion_delta)
        self._rho, self._delta = units
        self._sampled: list[SampledLoss] = []
        self._sampled_rho = 0
        for each in sampled:
            self._add(each)

    @property
    def units(self) -> tuple[int, int]:
        """What is spent beside sampled noise, in whole units of ρ and δ: give it to a new filter to go on from here."""
        return self._rho, self._delta

    @property
    def sampled(self) -> tuple[SampledLoss, ...]:
        """What is spent on sampled noise. Its δ is in `units`."""
        return tuple(self._sampled)

    @property
    def order(self) -> Fraction:
        """α*, at which sampled noise is paid for."""
        return self._tight.order

    def price(self, epsilon: float, delta: float = 0.0) -> ZCDP:
        """What a question typed with ``epsilon`` is charged: ρ(ε) by the budget's own conversion."""
        return ZCDP(
            conversions.zcdp_rho(parameters.epsilon(epsilon), self.conversion_delta),
            parameters.delta(delta),
            self.neighbors,
        )

    def admits(self, cost: ZCDP | SampledLoss) -> bool:
        """Whether the charge would pass. Nothing is changed."""
        common_neighbors([self.neighbors, cost.neighbors])
        cap = self._cap_at_order if isinstance(cost, SampledLoss) else self._cap_rho
        return self._spent + self._loss(cost) <= cap and self._delta + whole_units(cost.delta) <= self._cap_delta

    def charge(self, cost: ZCDP | SampledLoss) -> None:
        """Spends ρ (or what sampled noise costs at the filter's order) and δ, or refuses with the ε that would fit."""
        if not self.admits(cost):
            fits = self.remaining_epsilon if self._delta + whole_units(cost.delta) <= self._cap_delta else 0.0
            raise _refusal(conversions.zcdp_epsilon(up(self._loss(cost)), self.conversion_delta), fits)
        self._delta += whole_units(cost.delta)
        if isinstance(cost, SampledLoss):
            self._add(cost)
        else:
            self._rho += whole_units(cost.rho)

    def _loss(self, cost: ZCDP | SampledLoss) -> int:
        return cost.units(self.order) if isinstance(cost, SampledLoss) else whole_units(cost.rho)

    def _add(self, cost: SampledLoss) -> None:
        """From here on the sum is one of divergences at one order, and the cap no more than what that order allows."""
        self._sampled.append(cost)
        self._sampled_rho += cost.units(self.order)
        self._cap_rho = self._cap_at_order

    @property
    def _cap_at_order(self) -> int:
        return min(self._cap_rho, floor(self._tight.rho))

    @property
    def _tight(self) -> orders.Tight:
        if self.delta == 0:
            raise unbounded()
        return orders.tight(self.epsilon, self.conversion_delta)

    @property
    def _spent(self) -> int:
        return self._rho + self._sampled_rho

    @property
    def remaining(self) -> ZCDP:
        """The ρ and δ that are left."""
        left = max(0, self._cap_rho - self._spent), max(0, self._cap_delta - self._delta)
        return ZCDP(down(left[0]), down(left[1]), self.neighbors)

    @property
    def remaining_delta(self) -> float:
        """The δ that approximate parts may still use."""
        return self.remaining.delta

    @property
    def remaining_epsilon(self) -> float:
        """The largest ε that one more question may type; typing it passes."""
        left = self._cap_rho - self._spent
        if left <= 0:
            return 0.0
        if self._spent == 0:
            return self.epsilon
        # ρ(ε) and ε(ρ) are found by search, so they are inverse but for the last digits: a round number that fits is
        # taken (an untouched budget of 3 has 3 left), else step down until its own price fits.
        epsilon = conversions.zcdp_epsilon(down(left), self.conversion_delta)
        rounded = round(epsilon, 9)
        if self._fits(rounded, left):
            return rounded
        while epsilon > 0 and not self._fits(epsilon, left):
            epsilon *= 1 - 1e-12
        return epsilon

    def _fits(self, epsilon: float, left: int) -> bool:
        return epsilon > 0 and whole_units(conversions.zcdp_rho(epsilon, self.conversion_delta)) <= left

    @property
    def spent(self) -> ZCDP:
        """Σρ and Σδ so far, sampled noise at the filter's order."""
        return ZCDP(up(self._spent), up(self._delta), self.neighbors)

    @property
    def spent_epsilon(self) -> float:
        """The ε of what is spent, at the part of δ that is for it.

        The ρ that was spent costs the same at every order; sampled noise is taken at the order that is best for both.
        """
        if not self._sampled:
            return conversions.zcdp_epsilon(up(self._rho), self.conversion_delta)
        events = tuple(each.event for each in self._sampled)
        return orders.epsilon_of(Fraction(self._rho, 1 << BITS), events, self.conversion_delta, self.order)


def conversion_delta(delta: float, selection: float = parameters.SELECTION) -> float:
    """The part of δ that turns Σρ into ε: what finding keys leaves of it.

    >>> conversion_delta(1e-6), conversion_delta(1e-6, selection=0.75)
    (5e-07, 2.5e-07)
    """
    return delta * (1 - parameters.selection(selection))


class ZCDPOdometer:
    """How much is gone, without a cap set beforehand.

    With probability at least 1 − δ, at *every* moment the realised privacy loss is at most the ε reported then. Plain
    conversion of Σρ would promise that for one moment fixed beforehand only; so the ladder of caps 2^(j/4)·ρ₀ is
    watched by one filter per rung, rung j at δ_j = 6δ/(π²(j+1)²), and the report is that of the lowest rung not passed.

    Guarantee:
        P(∃ time: loss > reported ε) ≤ Σδ_j ≤ δ, plus the δ of approximate parts. A rung's filter bounds the loss by
        P(L > ρ + 2√(ρ ln 1/δ_j)) ≤ δ_j (Bun & Steinke 2016, Lemma 3.5), at any stopping time within its cap.

    References:
        Lécuyer, Practical Privacy Filters and Odometers with Rényi Differential Privacy (2021);
        Feldman & Zrnic, Individual Privacy Accounting via a Rényi Filter (2021).

    >>> gone = ZCDPOdometer(1e-6)
    >>> gone.add(ZCDP(0.02)); 0.9 < gone.spent.epsilon < 1.7
    True
    """

    LOWEST = 1e-6  # ρ₀: the first rung, ε ≈ 0.008

    def __init__(self, delta: float, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> None:
        self.delta = parameters.delta(delta)
        if self.delta == 0:
            raise InputError(
                "An odometer needs a δ above 0.", why="ρ bounds a loss on average.", fix="Give 1e-6 or so."
            )
        self.neighbors = neighbors
        self._rho = 0
        self._delta = 0

    def add(self, cost: ZCDP) -> None:
        """Records a charge."""
        common_neighbors([self.neighbors, cost.neighbors])
        self._rho += whole_units(cost.rho)
        self._delta += whole_units(cost.delta)

    @property
    def spent(self) -> ApproxDP:
        """The guarantee that holds now, for all moments at once."""
        if self._rho == 0:
            return ApproxDP(0.0, up(self._delta), self.neighbors)
        rho = up(self._rho)
        rung = max(0, math.ceil(4 * math.log2(rho / self.LOWEST) - 1e-9))
        while self.LOWEST * 2 ** (rung / 4) < rho:
            rung += 1
        share = 6 * self.delta / (math.pi * (rung + 1)) ** 2
        epsilon = conversions.zcdp_epsilon_standard(self.LOWEST * 2 ** (rung / 4), share)
        return ApproxDP(epsilon, min(1.0, self.delta + up(self._delta)), self.neighbors)


def rounded_down(epsilon: float, digits: int = 4) -> float:
    """To so many digits, never up: a number that is shown as left must pass when it is typed.

    >>> rounded_down(0.55589), rounded_down(0.049999999999999996)
    (0.5558, 0.04999)
    """
    if epsilon < 1e-12:
        return 0.0
    place = digits - 1 - math.floor(math.log10(epsilon))
    rounded = float(f"{epsilon:.{digits}g}")
    while rounded > epsilon:
        rounded = float(f"{rounded - 10.0**-place:.{digits}g}")
    return rounded


def rounded_up(epsilon: float, digits: int = 4) -> float:
    """To so many digits, never down: a price that is shown must suffice when it is typed.

    >>> rounded_up(0.55581), rounded_up(26.3412), rounded_up(0.2), rounded_up(999.99)
    (0.5559, 26.35, 0.2, 1000.0)
    """
    place = digits - 1 - math.floor(math.log10(epsilon))
    rounded = float(f"{epsilon:.{digits}g}")
    return rounded if rounded >= epsilon else float(f"{rounded + 10.0**-place:.{digits}g}")


def _refusal(asked: float, fits: float) -> BudgetError:
    shown = rounded_down(fits)
    return BudgetError(
        f"The budget does not cover ε = {asked:.4g}.",
        why=f"ε ≤ {shown:g} would pass." if shown > 0 else "There is not enough left, of ε or of δ.",
        fix=f"Ask with ε ≤ {shown:g}." if shown > 0 else "Ask for less, or ask the owner for more.",
        charge=Charge(),
        fits=Fits(fits) if fits > 0 else None,
    )


def unbounded() -> InputError:
    """Refuses sampled noise under pure accounting."""
    return InputError(
        "A pure budget cannot pay for sampled noise.",
        why="Gaussian noise has no bound on its loss, only a small probability to lose much.",
        fix='Use a method of pure noise, such as "output", or have the owner choose accounting = zcdp.',
    )
