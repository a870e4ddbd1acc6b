"""What was promised and what was spent, as sums over the accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from dalenius.accounting.guarantees import ApproxDP
from dalenius.app.report.model import ANALYST, EVERYBODY, OWNER, Group, Promise, Spending
from dalenius.app.views.accounts import Account, Accounts, Spent, Sum
from dalenius.app.views.balances import share_spent
from dalenius.errors import DaleniusError
from dalenius.ledger.budgets import GROUPS, Balance, Budget
from dalenius.ledger.publications import PublishedRows, warning

# What entries that were changed by hand may cause.
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, DaleniusError)
_FINEST = 240  # points of a line; more could not be told apart
_Place = tuple[str, int, str, str, str]  # data set, epoch, period, role and analyst


class Sums:
    """What was spent of all data sets.

    Args:
        accounts: What happened.
        holds: Whether the history does; if not, what cannot be computed is left out.
    """

    def __init__(self, accounts: Accounts, *, holds: bool) -> None:
        self._accounts, self._holds = accounts.datasets, holds
        self._sums: dict[_Place, Sum] = {}
        for account in self._accounts.values():
            for each in account.spent:
                for period in each.periods:
                    for role, name in _spenders(each):
                        place = each.dataset, each.epoch, period, role, name
                        self._sums[place] = self._sums.get(place, Sum()).plus(each)

    def promises(self, tables: Mapping[str, Iterable[str]], rows: Iterable[PublishedRows] = ()) -> Iterator[Promise]:
        """The budget of each data set, with the ``tables`` in it, and what was published of their ``rows``."""
        published = list(rows)
        for dataset, account in sorted(self._accounts.items()):
            budget = account.budget
            caps = tuple(
                (each.time, each.epsilon) for each in account.caps if not each.analyst and each.epsilon is not None
            )
            yield Promise(
                dataset,
                tuple(sorted(tables.get(dataset, ()))),
                budget.unit,
                budget.neighbors.value,
                budget.accounting.value,
                budget.period,
                account.epoch,
                budget.epsilon,
                budget.delta,
                caps[0][0],
                tuple(self._line(account)),
                caps,
                _groups(ApproxDP(budget.epsilon, budget.delta, budget.neighbors).group),
                warning(tuple(e for e in published if (e.dataset, e.epoch) == (dataset, account.epoch))),
            )

    def spending(self) -> Iterator[Spending]:
        """Everybody before the owner before the analysts, of each data set, epoch and period."""
        places = set(self._sums)
        for dataset, account in self._accounts.items():
            periods = {place[2] for place in self._sums if place[:2] == (dataset, account.epoch)} or {""}
            for period in periods:
                places.add((dataset, account.epoch, period, EVERYBODY, ""))
                places.update((dataset, account.epoch, period, ANALYST, name) for name in account.allotments)
        order = (EVERYBODY, OWNER, ANALYST)
        for place in sorted(places, key=lambda each: (*each[:3], order.index(each[3]), each[4])):
            try:
                yield self._spending(place)
            except MALFORMED:
                if self._holds:
                    raise

    def _line(self, account: Account) -> Iterator[tuple[str, float]]:
        """When, and the ε spent from then on, by everybody; for budgets without periods."""
        if account.budget.period is not None:
            return
        steps = [each for each in account.spent if not each.alone and each.epoch == account.epoch]
        stride, total = -(-len(steps) // _FINEST), Sum()
        for place, step in enumerate(steps, 1):
            total = total.plus(step)
            if place % stride == 0 or place == len(steps):
                try:
                    yield step.time, _balance(account.budget, total).spent_guarantee.epsilon
                except MALFORMED:
                    if self._holds:
                        raise

    def _spending(self, place: _Place) -> Spending:
        dataset, epoch, period, role, analyst = place
        account, found = self._accounts[dataset], self._sums.get(place, Sum())
        budget, current = account.budget, epoch == account.epoch
        balance = _balance(budget, found)
        gone = balance.spent_guarantee
        cap = {EVERYBODY: budget.epsilon, OWNER: None, ANALYST: account.allotments.get(analyst)}[role]
        left = None
        if current and cap is not None:
            whole = self._sums.get((dataset, epoch, period, EVERYBODY, ""), Sum())
            # an allotment never buys more than there is
            guards = (
                budget.filter(cap, found.units, found.sampled),
                budget.filter(units=whole.units, sampled=whole.sampled),
            )
            left = min(each.remaining_epsilon for each in guards)
        return Spending(
            dataset,
            epoch,
            period,
            role,
            analyst,
            found.charges,
            gone.epsilon,
            gone.delta,
            getattr(balance.spent, "rho", None),
            share_spent(balance),
            cap if current else None,
            left,
            _groups(balance.group) if role == EVERYBODY and found.charges else (),
        )


def _spenders(spent: Spent) -> tuple[tuple[str, str], ...]:
    """By role and name, in whose sums it counts."""
    own = (ANALYST, spent.analyst) if spent.analyst else (OWNER, "")
    return (own,) if spent.alone else ((EVERYBODY, ""), own)


def _groups(of: Callable[[int], ApproxDP]) -> tuple[Group, ...]:
    """A guarantee for groups; with a δ of 1 or more nothing is promised."""
    return tuple(Group(size, each.epsilon, each.delta) for size in GROUPS if (each := of(size)).delta < 1)


def _balance(budget: Budget, spent: Sum) -> Balance:
    """So much spent of a whole budget."""
    guard = budget.filter(units=spent.units, sampled=spent.sampled)
    sampled_epsilon = guard.spent_epsilon if spent.sampled else None
    return Balance(budget, budget.epsilon, guard.spent, 0.0, 0.0, 0, sampled_epsilon=sampled_epsilon)
