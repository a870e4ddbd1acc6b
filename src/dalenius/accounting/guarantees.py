"""What a guarantee is: PureDP(ε), ApproxDP(ε, δ), ZCDP(ρ), an RDP curve. The fifth, PLD, is in `pld`.

Guarantees of one kind add up (`a + b` is sequential composition, adaptive choice of questions included),
stretch to groups (`.group(k)`), join over disjoint data (`a | b`), and convert:

    PureDP ──► ZCDP ──► RDP ──► ApproxDP          weaker kinds further right
       └──────────────────────────►

Conversions to the left exist only where a theorem gives them: `ZCDP.largest(ε, δ)` is the inverse of
`ZCDP.epsilon(δ)`. Each guarantee carries its neighbouring relation; different relations never add.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self, TypeVar

from dalenius.accounting import conversions, parameters
from dalenius.accounting.neighbors import Neighbors, common_neighbors
from dalenius.errors import InputError


@dataclass(frozen=True, slots=True)
class PureDP:
    """ε-differential privacy: P(M(D) ∈ S) ≤ e^ε P(M(D′) ∈ S) for all neighbours and all S.

    References:
        Dwork, McSherry, Nissim & Smith (2006); group privacy and composition: Dwork & Roth (2014), Thm. 2.2, 3.14.

    >>> (PureDP(0.5) + PureDP(0.25)).group(2)
    PureDP(epsilon=1.5, neighbors=<Neighbors.ADD_REMOVE: 'add-remove'>)
    """

    epsilon: float
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        _non_negative(self.epsilon, "epsilon")

    def __add__(self, other: PureDP) -> PureDP:
        return PureDP(_sum(self.epsilon, _same(self, other).epsilon), self.neighbors)

    def __or__(self, other: PureDP) -> PureDP:
        """Both ran, on disjoint units: the larger of the two, see `parallel`."""
        return parallel([self, other])

    def group(self, size: int) -> PureDP:
        """Groups of k units: kε."""
        return PureDP(_times(parameters.count(size, "size"), self.epsilon), self.neighbors)

    def delta(self, epsilon: float) -> float:
        """δ(ε′): 0 from ε on, below it the profile of randomized response, (e^ε − e^ε′)/(e^ε + 1)."""
        if epsilon < 0:  # by symmetry of randomized response
            return 1 - math.exp(epsilon) + math.exp(epsilon) * self.delta(-epsilon)
        if epsilon >= self.epsilon:
            return 0.0
        return -math.expm1(epsilon - self.epsilon) / (1 + math.exp(-self.epsilon))

    def to_approx(self, delta: float = 0.0) -> ApproxDP:
        """The same promise at a δ: any ε′ with δ(ε′) ≤ δ, so ε or a little less."""
        delta = parameters.delta(delta)
        # (e^ε − x)/(e^ε + 1) = δ at x = e^ε − δ(e^ε + 1)
        remaining = 1 - delta * (1 + math.exp(-self.epsilon))
        epsilon = self.epsilon + math.log(remaining) if remaining > 0 else 0.0
        return ApproxDP(max(0.0, epsilon) if delta else self.epsilon, delta, self.neighbors)

    def to_zcdp(self) -> ZCDP:
        """ρ = min(ε²/2, ε)."""
        return ZCDP(conversions.pure_rho(self.epsilon), 0.0, self.neighbors)


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """(ε, δ)-differential privacy: P(M(D) ∈ S) ≤ e^ε P(M(D′) ∈ S) + δ.

    References:
        Dwork et al. (2006b); group privacy: Vadhan (2017), Lemma 2.2.

    >>> ApproxDP(1.0, 1e-6).group(2).delta > 2e-6
    True
    """

    epsilon: float
    delta: float
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        _non_negative(self.epsilon, "epsilon")
        _non_negative(self.delta, "delta")
        if self.delta > 1:
            raise InputError("delta must be at most 1.", why="It is a probability.", fix="Check delta.")

    def __add__(self, other: ApproxDP) -> ApproxDP:
        other = _same(self, other)
        delta = min(1.0, _sum(self.delta, other.delta))
        return ApproxDP(_sum(self.epsilon, other.epsilon), delta, self.neighbors)

    def __or__(self, other: ApproxDP) -> ApproxDP:
        """Both ran, on disjoint units."""
        return parallel([self, other])

    def group(self, size: int) -> ApproxDP:
        """Groups of k units: (kε, δ(e^{kε}−1)/(e^ε−1))."""
        parameters.count(size, "size")
        delta = conversions.group_delta(self.epsilon, self.delta, size)
        return ApproxDP(_times(size, self.epsilon), delta, self.neighbors)


@dataclass(frozen=True, slots=True)
class ZCDP:
    """δ-approximate ρ-zCDP: but for an event of probability δ, D_α(M(D)‖M(D′)) ≤ ρα for all α > 1.

    δ = 0 is plain zCDP; the ledger adds ρ and δ.

    References:
        Bun & Steinke (2016), Def. 1.1, 8.1, Lemma 8.2 (composition), Prop. 1.9 (groups: k²ρ).

    >>> round(ZCDP(0.02).epsilon(1e-6), 3)
    0.9
    """

    rho: float
    delta: float = 0.0
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        _non_negative(self.rho, "rho")
        _non_negative(self.delta, "delta")

    @classmethod
    def largest(cls, epsilon: float, delta: float, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> ZCDP:
        """ρ(ε, δ): the most ρ that still gives (ε, δ)-DP by the tight conversion."""
        return cls(conversions.zcdp_rho(parameters.epsilon(epsilon), _above_zero(delta)), 0.0, neighbors)

    def __add__(self, other: ZCDP) -> ZCDP:
        other = _same(self, other)
        return ZCDP(_sum(self.rho, other.rho), _sum(self.delta, other.delta), self.neighbors)

    def __or__(self, other: ZCDP) -> ZCDP:
        """Both ran, on disjoint units."""
        return parallel([self, other])

    def group(self, size: int) -> ZCDP:
        """Groups of k units: k²ρ. With δ > 0 there is no such rule; convert to ApproxDP first."""
        parameters.count(size, "size")
        if self.delta > 0 and size > 1:
            raise InputError(
                "Approximate zCDP has no group rule of its own.",
                why="The failure probability grows with ε, which zCDP does not fix.",
                fix="Use .to_approx(delta).group(size).",
            )
        return replace(self, rho=_times(size * size, self.rho))

    def epsilon(self, delta: float) -> float:
        """The ε of this guarantee at a total δ, tight."""
        left = _above_zero(delta) - self.delta
        return conversions.zcdp_epsilon(self.rho, left) if left > 0 else (0.0 if self.rho == left == 0 else math.inf)

    def to_approx(self, delta: float) -> ApproxDP:
        """(ε(δ), δ)-DP."""
        return ApproxDP(self.epsilon(delta), delta, self.neighbors)

    def to_rdp(self, orders: Iterable[float] | None = None) -> RDP:
        """The curve α ↦ ρα, for δ = 0."""
        if self.delta > 0:
            raise InputError(
                "Approximate zCDP is not an RDP curve.",
                why="RDP has no failure probability.",
                fix="Use .to_approx(delta).",
            )
        return RDP.of(lambda order: self.rho * order, self.neighbors, orders)


# From barely above 1 (large ε) to 10^6 (tiny ρ): 40 per factor of ten of α − 1.
DEFAULT_ORDERS = tuple(1 + 10 ** (step / 40) for step in range(-120, 241))


@dataclass(frozen=True)
class RDP:
    """Rényi differential privacy on a set of orders: D_α(M(D)‖M(D′)) ≤ d(α).

    References:
        Mironov (2017): composition Prop. 1, groups Prop. 2; conversion: Canonne, Kamath & Steinke (2020), Prop. 12.

    >>> round(ZCDP(0.02).to_rdp().epsilon(1e-6), 3)
    0.9
    """

    orders: tuple[float, ...]
    divergences: tuple[float, ...]
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        if len(self.orders) != len(self.divergences) or not self.orders or min(self.orders) <= 1:
            raise InputError(
                "An RDP curve needs one divergence for each order, and orders above 1.",
                why="Rényi divergences of order α are used for α > 1.",
                fix="Give two sequences of the same length.",
            )
        for value in self.divergences:
            _non_negative(value, "divergence", infinite=True)

    @classmethod
    def of(
        cls,
        curve: Callable[[float], float],
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
        orders: Iterable[float] | None = None,
    ) -> Self:
        """The curve of a function of the order."""
        chosen = tuple(DEFAULT_ORDERS if orders is None else orders)
        return cls(chosen, tuple(curve(order) for order in chosen), neighbors)

    def __add__(self, other: RDP) -> RDP:
        other = _same(self, other)
        if self.orders != other.orders:
            raise InputError(
                "RDP curves on different orders do not add up.",
                why="Divergences add order by order.",
                fix="Compute both on the same orders.",
            )
        total = tuple(_sum(a, b) for a, b in zip(self.divergences, other.divergences, strict=True))
        return RDP(self.orders, total, self.neighbors)

    def group(self, size: int) -> RDP:
        """Groups of k ≤ 2^c units: order α/2^c at 3^c·d(α), for α ≥ 2^(c+1) [Mironov, Prop. 2]."""
        doublings = math.ceil(math.log2(parameters.count(size, "size")))
        kept = [
            (order / 2**doublings, _times(3**doublings, d))
            for order, d in zip(self.orders, self.divergences, strict=True)
            if doublings == 0 or order >= 2 ** (doublings + 1)
        ]
        if not kept:
            raise InputError(
                f"The curve has no order large enough for groups of {size}.",
                why=f"It needs orders of at least {2 ** (doublings + 1)}.",
                fix="Compute the curve on larger orders, or use ZCDP.group where the mechanism has a ρ.",
            )
        return RDP(tuple(order for order, _ in kept), tuple(d for _, d in kept), self.neighbors)

    def epsilon(self, delta: float) -> float:
        """The ε at δ, by the best order."""
        return self.best(delta)[0]

    def best(self, delta: float) -> tuple[float, float]:
        """(ε, order) of the best order at δ."""
        delta = _above_zero(delta)
        return min(
            (conversions.rdp_epsilon_at(order, d, delta), order)
            for order, d in zip(self.orders, self.divergences, strict=True)
        )

    def delta(self, epsilon: float) -> float:
        """δ(ε), by the best order."""
        pairs = zip(self.orders, self.divergences, strict=True)
        best = min(conversions.rdp_log_delta(order, d, epsilon) for order, d in pairs)
        return math.exp(min(0.0, best))

    def to_approx(self, delta: float) -> ApproxDP:
        """(ε(δ), δ)-DP."""
        return ApproxDP(self.epsilon(delta), delta, self.neighbors)

    @cached_property
    def rho(self) -> float:
        """The least ρ for which d(α) ≤ ρα on the orders given (a summary, not a zCDP guarantee)."""
        return max(d / order for order, d in zip(self.orders, self.divergences, strict=True))


G = TypeVar("G", PureDP, ApproxDP, ZCDP)
S = TypeVar("S", PureDP, ApproxDP, ZCDP, RDP)


def parallel(guarantees: Iterable[G]) -> G:
    """Mechanisms on disjoint sets of units, where each unit's own value says which set it is in.

    Adding or removing a unit touches one part, so the largest guarantee holds for all together. Substituting a
    unit may take it out of one part and put it into another: each part then sees a removal or an addition,
    about which a guarantee under substitution says nothing. So that relation is refused.

    References:
        McSherry (2009), Thm. 4.

    >>> parallel([PureDP(0.5), PureDP(1.0)]).epsilon
    1.0
    """
    items = list(guarantees)
    if not items:
        raise InputError("Nothing to join.", why="Parallel composition needs a guarantee.", fix="Give at least one.")
    if common_neighbors(item.neighbors for item in items) is Neighbors.SUBSTITUTE and len(items) > 1:
        raise InputError(
            "Parallel composition does not hold under substitution.",
            why="A substituted unit may leave one part and enter another.",
            fix="State the parts under add-remove, join them, then use .group(2): a substitution is one of each.",
        )
    first = max(items, key=_size)
    if isinstance(first, PureDP):
        return first
    # the largest ε (or ρ) and the largest δ may belong to different parts
    return replace(first, delta=max(item.delta for item in items))


def _size(guarantee: PureDP | ApproxDP | ZCDP) -> tuple[float, float]:
    if isinstance(guarantee, PureDP):
        return guarantee.epsilon, 0.0
    if isinstance(guarantee, ZCDP):
        return guarantee.rho, guarantee.delta
    return guarantee.epsilon, guarantee.delta


def _same(left: S, right: S) -> S:
    if type(left) is not type(right):
        raise InputError(
            f"{type(left).__name__} and {type(right).__name__} do not add up.",
            why="Guarantees of one kind are added.",
            fix="Convert both to the same kind first.",
        )
    common_neighbors([left.neighbors, right.neighbors])
    return right


def _sum(left: float, right: float) -> float:
    """left + right, rounded up: a sum rounded to nearest may be below the true one."""
    total = left + right
    if not math.isfinite(total):
        return total
    part = total - left
    error = (left - (total - part)) + (right - part)  # Knuth's exact rounding error
    return math.nextafter(total, math.inf) if error > 0 else total


def _times(factor: int, value: float) -> float:
    """factor · value, rounded up."""
    product = factor * value
    if not math.isfinite(product):
        return product
    return math.nextafter(product, math.inf) if Fraction(product) < factor * Fraction(value) else product


def _non_negative(value: object, name: str, *, infinite: bool = False) -> None:
    if infinite and value == math.inf:
        return
    if parameters.real(value, name) < 0:
        raise InputError(f"{name} must not be negative.", why="A loss below zero does not exist.", fix=f"Check {name}.")


def _above_zero(delta: float) -> float:
    checked = parameters.delta(delta)
    if checked == 0:
        raise InputError(
            "This conversion needs a δ above 0.",
            why="zCDP and RDP bound the loss on average, not always.",
            fix="Give a δ such as 1e-6.",
        )
    return checked
