"""Budgets and allotments, the filters that guard them, and whether a price covers what is done for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from dalenius._fields import Fields
from dalenius.accounting import conversions, costs, parameters
from dalenius.accounting.events import Event, check_sampling
from dalenius.accounting.filters import (
    PureFilter,
    ZCDPFilter,
    conversion_delta,
    rounded_down,
    rounded_up,
    unbounded,
)
from dalenius.accounting.guarantees import ZCDP, ApproxDP, PureDP
from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.orders import SampledLoss, is_sampled, loss, tight
from dalenius.errors import InputError, NotAllowedError

GROUPS = (2, 5, 10)
# For the rounding of a ρ that is computed in two ways, or by another machine's logarithm; a millionth is no rounding.
TOLERANCE = 1 + 1e-9

__all__ = [
    "GROUPS",
    "TOLERANCE",
    "Accounting",
    "Balance",
    "Budget",
    "Filter",
    "covers",
    "losses",
    "made_within",
    "rounded_down",
    "rounded_up",
]


class Filter(Protocol):
    """What the ledger needs of a filter, pure or zCDP. A cost is whatever its own `price` returned."""

    @property
    def units(self) -> tuple[int, int]:
        """What is spent beside sampled noise, in whole units."""

    @property
    def sampled(self) -> tuple[SampledLoss, ...]:
        """What is spent on sampled noise."""

    @property
    def order(self) -> Fraction:
        """The order at which it is spent."""

    @property
    def remaining_epsilon(self) -> float:
        """The largest ε that one more question may type."""

    @property
    def remaining_delta(self) -> float:
        """The δ that is left."""

    @property
    def spent(self) -> PureDP | ZCDP:
        """What is spent, as a guarantee."""

    @property
    def spent_epsilon(self) -> float:
        """The ε of what is spent."""

    def price(self, epsilon: float, delta: float = 0.0) -> Any:
        """What a question costs."""

    def admits(self, cost: Any) -> bool:
        """Whether it would pass."""

    def charge(self, cost: Any) -> None:
        """Spends it."""


class Accounting(Enum):
    """How a budget's losses are added up."""

    ZCDP = "zcdp"
    PURE = "pure"


@dataclass(frozen=True, slots=True)
class Budget:
    """The cap of one data set: what may ever be learned about one unit.

    With ``period`` (such as "month"), each period has a budget of this size of its own. ``selection`` is the part of δ
    that finding keys may use; the rest turns ρ into ε.
    """

    epsilon: float
    delta: float = 0.0
    accounting: Accounting = Accounting.ZCDP
    unit: str = "unit"
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    period: str | None = None
    selection: float = parameters.SELECTION

    def __post_init__(self) -> None:
        parameters.epsilon(self.epsilon)
        parameters.selection(self.selection)
        if self.accounting is Accounting.ZCDP and parameters.delta(self.delta) == 0:
            raise InputError(
                "A zcdp budget needs a δ above 0.",
                why="A part of it converts ρ into ε.",
                fix='Give a δ such as 1e-6, or accounting = "pure".',
            )
        if self.accounting is Accounting.PURE and self.selection != parameters.SELECTION:
            raise InputError(
                "A pure budget has no δ for finding keys.",
                why="Its promise never fails, and keys that are found may fail it.",
                fix='Leave selection out, or use accounting = "zcdp".',
            )
        if self.accounting is Accounting.PURE and self.delta != 0:
            raise InputError(
                "A pure budget has no δ.",
                why="Its promise never fails.",
                fix='Leave δ out, or use accounting = "zcdp".',
            )

    def filter(
        self,
        epsilon: float | None = None,
        units: tuple[int, int] = (0, 0),
        sampled: Iterable[SampledLoss] = (),
    ) -> Filter:
        """The filter of the budget, or of an allotment of ``epsilon`` inside it, with so much spent."""
        cap = self.epsilon if epsilon is None else epsilon
        if self.accounting is Accounting.PURE:
            return PureFilter(cap, self.neighbors, units=units)
        return ZCDPFilter(cap, self.delta, self.neighbors, selection=self.selection, units=units, sampled=sampled)

    @property
    def conversion_delta(self) -> float:
        """The part of δ that turns ρ into ε."""
        return conversion_delta(self.delta, self.selection)

    def sampling_orders(self, epsilon: float, *caps: float) -> tuple[Fraction, ...]:
        """The orders at which sampled noise of a price must cost no more than that: for `calibrate_sampled`.

        Those of the price itself, of the data set, and of allotments of ``caps``.

        Raises:
            InputError: The budget cannot pay for sampled noise.
        """
        if self.accounting is Accounting.PURE:
            raise unbounded()
        check_sampling(self.neighbors)
        wanted = (parameters.epsilon(epsilon), self.epsilon, *caps)
        return tuple(dict.fromkeys(tight(each, self.conversion_delta).order for each in wanted))

    def check_change(self, after: Budget) -> None:
        """Refuses a change of anything but the size.

        Of ``selection`` too, though ε and δ would stay: the filter's theorem is about caps on ρ and δ that were there
        first. Who moves δ from one cap to the other after seeing answers could let the promise fail in either way,
        each with its own chance, and the two add up to more than δ (docs/decisions/0018-delta-for-found-keys.md).
        """
        fixed = ("accounting", "delta", "neighbors", "unit", "period", "selection")
        changed = [each for each in fixed if getattr(self, each) != getattr(after, each)]
        if changed:
            raise NotAllowedError(
                f"The {changed[0]} of a budget cannot be changed.",
                why="What was charged so far was promised under it.",
                fix="Keep it, or protect the data as a new data set with new people.",
            )

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the history."""
        found = asdict(self) | {"accounting": self.accounting.value, "neighbors": self.neighbors.value}
        if self.selection == parameters.SELECTION:
            del found["selection"]  # as old budgets have it: not said
        return found

    @staticmethod
    @lru_cache(maxsize=256)
    def from_json(text: str) -> Budget:
        """As it stands in the file; the same text gives the same budget."""
        return Budget.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Budget:
        """As `to_dict` wrote it."""
        return cls(
            **dict(data) | {"accounting": Accounting(data["accounting"]), "neighbors": Neighbors.of(data["neighbors"])}
        )


@dataclass(frozen=True, slots=True)
class Balance:
    """What one budget or allotment has spent and has left, in one period."""

    budget: Budget
    epsilon: float  # the cap
    spent: PureDP | ZCDP
    remaining_epsilon: float
    remaining_delta: float
    charges: int
    period: str = ""
    sampled_epsilon: float | None = None  # the ε of what is spent, where some of it is sampled noise: it has no ρ

    @property
    def spent_guarantee(self) -> ApproxDP:
        """What has been spent, as (ε, δ)."""
        if isinstance(self.spent, PureDP):
            return self.spent.to_approx()
        if self.spent.rho == 0:
            return ApproxDP(0.0, self.spent.delta, self.spent.neighbors)
        converts = self.budget.conversion_delta
        epsilon = self.sampled_epsilon
        if epsilon is None:
            epsilon = conversions.zcdp_epsilon(self.spent.rho, converts)
        return ApproxDP(epsilon, converts + self.spent.delta, self.spent.neighbors)

    def group(self, size: int) -> ApproxDP:
        """What has been spent, for groups of units: k²ρ where it is ρ and no δ was spent beside it, else by (ε, δ)."""
        plain = self.sampled_epsilon is None
        if plain and isinstance(self.spent, ZCDP) and self.spent.delta == 0 and self.spent.rho > 0:
            return self.spent.group(size).to_approx(self.budget.conversion_delta)
        return self.spent_guarantee.group(size)

    def untouched(self) -> Balance:
        """The balance of a period of the same budget in which nothing was charged yet."""
        own, whole = self.budget.filter(self.epsilon), self.budget.filter()
        left = min(own.remaining_epsilon, whole.remaining_epsilon)
        left_delta = min(own.remaining_delta, whole.remaining_delta)
        return Balance(self.budget, self.epsilon, own.spent, left, left_delta, 0)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        gone = self.spent_guarantee
        return {
            "epsilon": self.epsilon,
            "delta": self.budget.delta,
            "spent": {
                "epsilon": gone.epsilon,
                "delta": gone.delta,
                "rho": self.spent.rho if isinstance(self.spent, ZCDP) else None,
                "rho_delta": self.spent.delta if isinstance(self.spent, ZCDP) else None,
                **({"sampled": True} if self.sampled_epsilon is not None else {}),
            },
            "remaining": {"epsilon": self.remaining_epsilon, "delta": self.remaining_delta},
            "charges": self.charges,
            "period": self.period or None,
            "groups": {
                str(size): {"epsilon": each.epsilon, "delta": each.delta}
                for size in GROUPS
                if (each := self.group(size)).delta < 1
            },
            "unit": self.budget.unit,
            "neighbors": self.budget.neighbors.value,
            "accounting": self.budget.accounting.value,
            "every": self.budget.period,
            "budget": self.budget.epsilon,
            "selection": self.budget.selection if self.budget.accounting is Accounting.ZCDP else None,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Balance:
        """As `to_dict` wrote it; the two are equal.

        Raises:
            InputError: It is no balance.
        """
        found = Fields(data, "balance")
        if found.text("accounting") not in {each.value for each in Accounting}:
            raise found.wrong("accounting")
        accounting, neighbors = Accounting(found.text("accounting")), Neighbors.of(found.text("neighbors"))
        every = found.text("every") if "every" in found else None
        part = found.number("selection") if "selection" in found else parameters.SELECTION
        size, delta, unit = found.number("budget"), found.number("delta"), found.text("unit")
        budget = Budget(size, delta, accounting, unit, neighbors, every, part)
        gone, left = found.fields("spent"), found.fields("remaining")
        spent: PureDP | ZCDP
        if accounting is Accounting.PURE:
            spent = PureDP(gone.number("epsilon"), neighbors)
        else:
            spent = ZCDP(gone.number("rho"), gone.number("rho_delta"), neighbors)
        return cls(
            budget,
            parameters.epsilon(found.number("epsilon")),
            spent,
            left.number("epsilon"),
            left.number("delta"),
            found.whole("charges"),
            found.text("period") if "period" in found else "",
            gone.number("epsilon") if "sampled" in gone else None,
        )


# --- prices


def covers(price: PureDP | ZCDP, event: Event, at: Iterable[Fraction] = ()) -> bool:
    """Whether an event costs no more than a price.

    Sampled noise must cost no more at any of the orders ``at`` (`Budget.sampling_orders`). Its cost and the price are
    the same numbers everywhere, so nothing is left for rounding.
    """
    if is_sampled(event):
        if isinstance(price, PureDP):
            return False
        found = [loss(event, order) for order in at]
        within = all(each is not None and each <= Fraction(price.rho) for each in found)
        return bool(found) and within and costs.fixed_delta(event) <= price.delta
    if isinstance(price, ZCDP):
        cost = costs.zcdp(event)
        return cost is not None and cost.rho <= price.rho * TOLERANCE and cost.delta <= price.delta * TOLERANCE
    epsilon = costs.pure_epsilon(event)
    return epsilon is not None and epsilon <= price.epsilon * TOLERANCE


def losses(cost: SampledLoss, filters: Mapping[str, Filter]) -> dict[str, dict[str, str]]:
    """What sampled noise costs each filter, by whose it is, as a charge says it: at which order, and how many units."""
    return {whose: {"order": str(each.order), "units": str(cost.units(each.order))} for whose, each in filters.items()}


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
