"""Every balance that a person may see, with what it buys; the command line and the server tell the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dalenius._fields import Fields
from dalenius.accounting.filters import whole_units
from dalenius.accounting.guarantees import ZCDP, PureDP

if TYPE_CHECKING:
    from dalenius.ledger.budgets import Balance, Budget
    from dalenius.ledger.ledger import Ledger

USUAL = (0.05, 0.2, 0.5)  # sizes of question in which the rest is counted


class Guard(NamedTuple):
    """A filter, as its cap and what is spent of it in whole units."""

    epsilon: float
    units: tuple[int, int]


@dataclass(frozen=True)
class Total:
    """What one data set, or one analyst in it, has left in one period, and every filter that a question must pass."""

    dataset: str
    analyst: str  # '' is the whole data set
    balance: Balance
    guards: tuple[Guard, ...]

    @property
    def name(self) -> str:
        """For people."""
        every, period = self.balance.budget.period, self.balance.period
        when = f"{every or 'period'} {period}" if period else f"each {every}" if every else ""
        return readable(", ".join(each for each in (self.dataset, when, self.analyst) if each))


def totals(ledger: Ledger, analyst: str | None = None) -> list[Total]:
    """All totals, or with ``analyst`` those of the data sets and of that analyst; each data set before its analysts."""
    found = []
    for dataset in ledger.datasets():
        allotted = [each for each in ledger.allotments(dataset) if analyst in {None, each}]
        for period in ledger.periods(dataset):
            for who in ("", *allotted):
                balance = ledger.balance(dataset, who, period)
                found.append(Total(dataset, who, balance, _guards(ledger, dataset, who, balance)))
    return found


def visible(ledger: Ledger, analyst: str | None) -> list[Total]:
    """What somebody may see: all; or, as an ``analyst``, the own totals and those of data sets with an allotment."""
    found = totals(ledger, analyst)
    if analyst is None:
        return found
    open_ = {each.dataset for each in found if each.analyst}
    return [each for each in found if each.dataset in open_]


def written(found: Iterable[Total]) -> dict[str, Any]:
    """For `--json`: by data set, then by period where the budget has them."""
    datasets: dict[str, Any] = {}
    for each in found:
        place, balance = datasets.setdefault(each.dataset, {}), each.balance
        if balance.budget.period is not None or balance.period:
            place = place.setdefault("periods", {}).setdefault(balance.period, {})
        if each.analyst:
            place["analysts"][each.analyst] = balance.to_dict()
        else:
            place.update({"dataset": balance.to_dict(), "analysts": {}})
    return datasets


def totals_of(datasets: Mapping[str, Any]) -> list[Total]:
    """The totals that `written` wrote.

    Where what was spent has more digits than a double, it counts as the next larger one: what is left may then buy one
    question less than at the ledger, never one more.

    Raises:
        InputError: They are of another form.
    """
    from dalenius.ledger.budgets import Balance

    found = []
    for dataset, data in datasets.items():
        place = Fields(data, "balance")
        for each in place.mapping("periods").values() if "periods" in place else [data]:
            level = Fields(each, "balance")
            whole = Balance.from_dict(level.mapping("dataset"))
            found.append(Total(dataset, "", whole, (_guard(whole),)))
            for analyst, own in level.mapping("analysts").items():
                balance = Balance.from_dict(own)
                found.append(Total(dataset, analyst, balance, (_guard(whole), _guard(balance))))
    return found


def share_spent(balance: Balance) -> float:
    """How much of the budget is gone, in the currency that adds up (ρ, or ε for pure budgets)."""
    cap = balance.budget.filter(balance.epsilon).price(balance.epsilon)
    return min(1.0, _loss(balance.spent) / _loss(cap))


def what_it_buys(budget: Budget, guards: Sequence[Guard]) -> dict[float, int]:
    """How many more questions of each usual size every guard would let pass, one after the other.

    >>> from dalenius.ledger.budgets import Accounting, Budget
    >>> pure = Budget(3.0, accounting=Accounting.PURE)
    >>> what_it_buys(pure, [Guard(3.0, units=(0, 0))])
    {0.05: 59, 0.2: 14, 0.5: 6}
    """
    return {each: min(_count(budget, guard, each) for guard in guards) for each in USUAL}


def _count(budget: Budget, guard: Guard, epsilon: float) -> int:
    """The largest n such that the filter, after n - 1 such charges, admits one more: by halving, in whole units.

    Not by division: 0.05 as a double is a little more than 0.05, so that a pure budget of 3 buys 59 of them.
    """
    roomy = budget.filter(2 * epsilon)
    price = roomy.price(epsilon)
    roomy.charge(price)
    loss, delta = roomy.units

    def passes(n: int) -> bool:
        spent = (guard.units[0] + (n - 1) * loss, guard.units[1] + (n - 1) * delta)
        return budget.filter(guard.epsilon, spent).admits(price)

    above = 1
    while passes(above):
        above *= 2
    below = above // 2  # passes, or is 0
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if passes(middle) else (below, middle)
    return below


def readable(text: object) -> str:
    """Text from entries and receipts, with everything a terminal would obey rather than show made visible as �."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in str(text))


def _guards(ledger: Ledger, dataset: str, analyst: str, balance: Balance) -> tuple[Guard, ...]:
    """The filters that a question of that analyst must pass: the data set's and the own."""
    caps = {"": balance.budget.epsilon, analyst: balance.epsilon}
    return tuple(Guard(cap, ledger.spent(dataset, balance.period, who)) for who, cap in caps.items())


def _guard(balance: Balance) -> Guard:
    spent = balance.spent
    units = (spent.epsilon, 0.0) if isinstance(spent, PureDP) else (spent.rho, spent.delta)
    return Guard(balance.epsilon, (whole_units(units[0]), whole_units(units[1])))


def _loss(price: PureDP | ZCDP) -> float:
    return price.epsilon if isinstance(price, PureDP) else price.rho
