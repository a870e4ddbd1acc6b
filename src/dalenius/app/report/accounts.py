"""What was promised and spent, as the history tells it: budgets, allotments, epochs, and the sums of charges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dalenius.accounting.guarantees import ApproxDP
from dalenius.app.balances import share_spent
from dalenius.app.report.model import ANALYST, EVERYBODY, OWNER, Group, Promise, Spending
from dalenius.errors import DaleniusError
from dalenius.ledger.budgets import GROUPS, Balance, Budget

# What entries that were changed by hand may cause.
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, DaleniusError)
_FINEST = 240  # points of a line; more could not be told apart


@dataclass
class _Sum:
    loss: int = 0
    delta: int = 0
    count: int = 0

    def add(self, units: tuple[int, int]) -> None:
        self.loss, self.delta, self.count = self.loss + units[0], self.delta + units[1], self.count + 1

    @property
    def units(self) -> tuple[int, int]:
        return self.loss, self.delta


_Place = tuple[str, int, str, str, str]  # data set, epoch, period, role and analyst


@dataclass
class Accounts:
    """The accounts of all data sets. Sums are whole units, as the ledger's filters have them."""

    holds: bool  # whether the history does; if not, what cannot be computed is left out
    budgets: dict[str, Budget] = field(default_factory=dict)
    caps: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    allotments: dict[tuple[str, str], float] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    sums: dict[_Place, _Sum] = field(default_factory=dict)
    steps: dict[tuple[str, int], list[tuple[str, tuple[int, int]]]] = field(default_factory=dict)

    def set_budget(self, dataset: str, budget: Budget, time: str) -> Budget | None:
        """From now on; the budget before."""
        before = self.budgets.get(dataset)
        self.budgets[dataset] = budget
        self.caps.setdefault(dataset, []).append((time, budget.epsilon))
        return before

    def set_allotment(self, dataset: str, analyst: str, epsilon: float) -> float | None:
        """From now on, 0 for none; the allotment before."""
        before = self.allotments.get((dataset, analyst))
        if epsilon == 0:
            self.allotments.pop((dataset, analyst), None)
        else:
            self.allotments[dataset, analyst] = epsilon
        return before

    def charge(self, charge: Mapping[str, Any], time: str) -> None:
        """A question was charged: to the data set and to who asked; if it shares an answer, to who asked alone."""
        who = (ANALYST, charge["analyst"]) if charge["analyst"] else (OWNER, "")
        if "shares" in charge:
            self._spend(charge, who)
            return
        self._spend(charge, (EVERYBODY, ""), who)
        dataset, epoch = charge["dataset"], charge.get("epoch", 0)
        if self.budgets[dataset].period is None:
            total = self.sums[dataset, epoch, "", EVERYBODY, ""]
            self.steps.setdefault((dataset, epoch), []).append((time, total.units))

    def grant(self, charge: Mapping[str, Any], analyst: str) -> None:
        """Of old, an analyst got the answer that another paid for: it counts against the own allotment alone."""
        self._spend(charge, (ANALYST, analyst))

    def _spend(self, charge: Mapping[str, Any], *totals: tuple[str, str]) -> None:
        loss, delta = (int(each) for each in charge["units"])
        for period in charge["periods"]:
            for role, name in totals:
                place = charge["dataset"], charge.get("epoch", 0), period, role, name
                self.sums.setdefault(place, _Sum()).add((loss, delta))

    def promises(self, tables: Mapping[str, Iterable[str]]) -> Iterator[Promise]:
        """The budget of each data set, with the ``tables`` in it."""
        for dataset, budget in sorted(self.budgets.items()):
            epoch = self.epochs.get(dataset, 0)
            yield Promise(
                dataset,
                tuple(sorted(tables.get(dataset, ()))),
                budget.unit,
                budget.neighbors.value,
                budget.accounting.value,
                budget.period,
                epoch,
                budget.epsilon,
                budget.delta,
                self.caps[dataset][0][0],
                tuple(self._line(dataset, budget, epoch)),
                tuple(self.caps[dataset]),
                _groups(ApproxDP(budget.epsilon, budget.delta, budget.neighbors).group),
            )

    def _line(self, dataset: str, budget: Budget, epoch: int) -> Iterator[tuple[str, float]]:
        steps = self.steps.get((dataset, epoch), [])
        stride = -(-len(steps) // _FINEST)
        for place, (time, units) in enumerate(steps, 1):
            if place % stride == 0 or place == len(steps):
                try:
                    yield time, _balance(budget, units).spent_guarantee.epsilon
                except MALFORMED:
                    if self.holds:
                        raise

    def spending(self) -> Iterator[Spending]:
        """Everybody before the owner before the analysts, of each data set, epoch and period."""
        places = set(self.sums)
        for dataset in self.budgets:
            epoch = self.epochs.get(dataset, 0)
            periods = {place[2] for place in self.sums if place[:2] == (dataset, epoch)} or {""}
            allotted = [name for each, name in self.allotments if each == dataset]
            for period in periods:
                places.add((dataset, epoch, period, EVERYBODY, ""))
                places.update((dataset, epoch, period, ANALYST, name) for name in allotted)
        order = (EVERYBODY, OWNER, ANALYST)
        for place in sorted(places, key=lambda each: (*each[:3], order.index(each[3]), each[4])):
            try:
                yield self._spending(place)
            except MALFORMED:
                if self.holds:
                    raise

    def _spending(self, place: _Place) -> Spending:
        dataset, epoch, period, role, analyst = place
        budget, found = self.budgets[dataset], self.sums.get(place, _Sum())
        balance = _balance(budget, found.units)
        gone = balance.spent_guarantee
        current = epoch == self.epochs.get(dataset, 0)
        cap = {EVERYBODY: budget.epsilon, OWNER: None, ANALYST: self.allotments.get((dataset, analyst))}[role]
        left = None
        if current and cap is not None:
            whole = self.sums.get((dataset, epoch, period, EVERYBODY, ""), _Sum())
            # an allotment never buys more than there is
            guards = (budget.filter(cap, found.units), budget.filter(units=whole.units))
            left = min(each.remaining_epsilon for each in guards)
        return Spending(
            dataset,
            epoch,
            period,
            role,
            analyst,
            found.count,
            gone.epsilon,
            gone.delta,
            getattr(balance.spent, "rho", None),
            share_spent(balance),
            cap if current else None,
            left,
            _groups(balance.group) if role == EVERYBODY and found.count else (),
        )


def _groups(of: Callable[[int], ApproxDP]) -> tuple[Group, ...]:
    """A guarantee for groups; with a δ of 1 or more nothing is promised."""
    return tuple(Group(size, each.epsilon, each.delta) for size in GROUPS if (each := of(size)).delta < 1)


def _balance(budget: Budget, units: tuple[int, int]) -> Balance:
    """So much spent of a whole budget."""
    return Balance(budget, budget.epsilon, budget.filter(units=units).spent, 0.0, 0.0, 0)
