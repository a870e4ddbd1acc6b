"""Every balance that a person may see, with what it buys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from dalenius._fields import Fields
from dalenius.accounting.guarantees import ZCDP, PureDP
from dalenius.accounting.orders import SampledLoss
from dalenius.accounting.units import whole_units
from dalenius.app.views import NO_BOUND, readable
from dalenius.ledger.publications import warning

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.ledger.budgets import Balance, Budget
    from dalenius.ledger.ledger import Ledger

_SHOWN_PERIODS = 6  # on a terminal, the newest
USUAL = (0.05, 0.2, 0.5)  # sizes of question in which the rest is counted
RHO_ADDS_UP = (
    "What is spent and what is left do not add up to the budget in ε: losses are added up in ρ, where many small "
    "questions cost less than the sum of their ε."
)


class SpentFilter(NamedTuple):
    """A filter, as its cap and what is spent of it: in whole units, and on sampled noise."""

    epsilon: float
    units: tuple[int, int]
    sampled: tuple[SampledLoss, ...] = ()


@dataclass(frozen=True)
class Total:
    """What one data set, or one analyst in it, has left in one period, and every filter that a question must pass."""

    dataset: str
    analyst: str  # '' is the whole data set
    balance: Balance
    filters: tuple[SpentFilter, ...]
    published: str = ""  # that rows of it were published, and ε no longer bounds what can be learned

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
        published = warning(ledger.published(dataset))
        allotted = [each for each in ledger.allotments(dataset) if analyst in {None, each}]
        for period in ledger.periods(dataset):
            for who in ("", *allotted):
                balance = ledger.balance(dataset, who, period)
                found.append(Total(dataset, who, balance, _filters_of(ledger, dataset, who, balance), published))
    return found


def visible_totals(ledger: Ledger, analyst: str | None) -> list[Total]:
    """What somebody may see: all; or, as an ``analyst``, the own totals and those of data sets with an allotment."""
    found = totals(ledger, analyst)
    if analyst is None:
        return found
    open_ = {each.dataset for each in found if each.analyst}
    return [each for each in found if each.dataset in open_]


def balances_json(found: Iterable[Total]) -> dict[str, Any]:
    """For `--json`: by data set, then by period where the budget has them."""
    datasets: dict[str, Any] = {}
    for each in found:
        place, balance = datasets.setdefault(each.dataset, {"published": each.published or None}), each.balance
        if balance.budget.period is not None or balance.period:
            place = place.setdefault("periods", {}).setdefault(balance.period, {})
        if each.analyst:
            place["analysts"][each.analyst] = _balance_json(each)
        else:
            place.update({"dataset": _balance_json(each), "analysts": {}})
    return datasets


def _balance_json(total: Total) -> dict[str, Any]:
    """A balance, with how many questions it would let find their keys; null where none may."""
    counts = finding_keys(total)
    listed = [{"epsilon": size, "questions": count} for size, count in counts.items()]
    return total.balance.to_dict() | {"finding_keys": listed or None}


def totals_of(datasets: Mapping[str, Any]) -> list[Total]:
    """The totals that `balances_json` wrote.

    Where what was spent has more digits than a double, it counts as the next larger one: what is left may then buy one
    question less than at the ledger, never one more.

    Raises:
        InputError: They are of another form.
    """
    from dalenius.ledger.budgets import Balance

    found = []
    for dataset, data in datasets.items():
        place = Fields(data, "balance")
        published = place.text("published") if data.get("published") else ""
        for each in place.mapping("periods").values() if "periods" in place else [data]:
            level = Fields(each, "balance")
            whole = Balance.from_dict(level.mapping("dataset"))
            found.append(Total(dataset, "", whole, (_filter_of(whole),), published))
            for analyst, own in level.mapping("analysts").items():
                balance = Balance.from_dict(own)
                found.append(Total(dataset, analyst, balance, (_filter_of(whole), _filter_of(balance)), published))
    return found


def share_spent(balance: Balance) -> float:
    """How much of the budget is gone, in the currency that adds up (ρ, or ε for pure budgets)."""
    cap = balance.budget.filter(balance.epsilon).price(balance.epsilon)
    return min(1.0, _loss(balance.spent) / _loss(cap))


def what_it_buys(budget: Budget, filters: Sequence[SpentFilter]) -> dict[float, int]:
    """How many more questions of each usual size every filter would let pass, one after the other.

    >>> from dalenius.ledger.budgets import Accounting, Budget
    >>> pure = Budget(3.0, accounting=Accounting.PURE)
    >>> what_it_buys(pure, [SpentFilter(3.0, units=(0, 0))])
    {0.05: 59, 0.2: 14, 0.5: 6}
    """
    return {size: min(_count(budget, each, size) for each in filters) for size in USUAL}


def finding_keys(total: Total) -> dict[float, int]:
    """About how many more questions of each usual size could find their keys, each with the δ that it takes by itself.

    Nothing under pure accounting, where keys are never found. An approximation: others may ask too, or type a δ.
    """
    from dalenius.ledger.key_delta import Left, count_questions

    budget = total.balance.budget
    if budget.delta == 0:
        return {}
    whole = budget.filter(*total.filters[0])  # that of the data set comes first
    left = Left(whole.remaining_epsilon, total.balance.remaining_delta)
    buys = what_it_buys(budget, total.filters)
    return {size: count_questions(budget, size, left, most) for size, most in buys.items()}


def keys_words(total: Total) -> str:
    """The same in words; "" under pure accounting."""
    from dalenius.ledger.key_delta import shortened

    if total.balance.budget.delta == 0:
        return ""
    counts = [f"{count:,} of ε = {size:g}" for size, count in finding_keys(total).items() if count]
    left = f"δ ≤ {shortened(total.balance.remaining_delta):g} is left for them"
    if not counts:
        return f"no more questions of usual size that find their keys ({left})"
    return f"of questions that find their keys, about {', or '.join(counts)} ({left})"


def _count(budget: Budget, so_far: SpentFilter, epsilon: float) -> int:
    """The largest n such that the filter, after n - 1 such charges, admits one more: by halving, in whole units.

    Not by division: 0.05 as a double is a little more than 0.05, so that a pure budget of 3 buys 59 of them.
    """
    roomy = budget.filter(2 * epsilon)
    price = roomy.price(epsilon)
    roomy.charge(price)
    loss, delta = roomy.units

    def passes(n: int) -> bool:
        spent = (so_far.units[0] + (n - 1) * loss, so_far.units[1] + (n - 1) * delta)
        return budget.filter(so_far.epsilon, spent, so_far.sampled).admits(price)

    above = 1
    while passes(above):
        above *= 2
    below = above // 2  # passes, or is 0
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if passes(middle) else (below, middle)
    return below


def print_totals(console: Console, found: Iterable[Total]) -> None:
    """Every balance; of many periods the last few."""
    from rich.text import Text

    shown_totals = list(found)
    for dataset, group in groupby(shown_totals, lambda each: each.dataset):
        of_dataset = list(group)
        periods = list(dict.fromkeys(each.balance.period for each in of_dataset))
        shown = periods[-_SHOWN_PERIODS:]
        if left_out := len(periods) - len(shown):
            words = f"{readable(dataset)}: the last {len(shown)} of {len(periods)} periods; --json has the other"
            console.print(Text(f"{words} {left_out} too.", "dim"))
        for each in of_dataset:
            if each.balance.period in shown:
                _print_total(console, each)
        if of_dataset[0].published:
            console.print(Text(readable(of_dataset[0].published), "bold yellow"))
    if words := adding_up(shown_totals):
        console.print(Text(words, "dim"))


def adding_up(found: Iterable[Total]) -> str:
    """Why what is spent and what is left do not add up to the budget, where they do not; else ""."""
    spent = (each.balance.spent for each in found)
    return RHO_ADDS_UP if any(isinstance(each, ZCDP) and each.rho > 0 for each in spent) else ""


def _print_total(console: Console, total: Total) -> None:
    """One balance: a bar, what is left, what it buys, and what the loss means for groups."""
    from rich.padding import Padding
    from rich.text import Text

    from dalenius.ledger.budgets import GROUPS, rounded_down

    def detail(words: str) -> None:
        console.print(Padding(Text(words, "dim"), (0, 0, 0, 4), expand=False))

    balance = total.balance
    gone = balance.spent_guarantee
    filled = round(24 * share_spent(balance))
    bar = Text.assemble(("█" * filled, "red" if filled > 21 else "cyan"), ("░" * (24 - filled), "dim"))
    about = readable(f"   (unit: {balance.budget.unit}, {balance.budget.neighbors.value})")
    console.print(
        Text.assemble(
            (f"{total.name}  ", "bold"), bar, f"  ε = {gone.epsilon:.3g} of {balance.epsilon:g}", (about, "dim")
        )
    )
    left = rounded_down(balance.remaining_epsilon)  # what is shown must pass when it is typed
    counts = what_it_buys(balance.budget, total.filters)
    buys = "".join(f", or {count:,} of ε = {each:g}" for each, count in counts.items() if count)
    detail(f"left: one question of ε ≤ {left:g}{buys}" if left > 0 else "nothing is left")
    if left > 0 and (words := keys_words(total)):
        detail(words)
    if gone.epsilon > 0:
        promises = ((size, balance.group(size)) for size in GROUPS)
        groups = [f"{size}: " + (f"ε = {each.epsilon:.3g}" if each.delta < 1 else NO_BOUND) for size, each in promises]
        nothing = f" ({NO_BOUND}: nothing is promised to so many together)" if groups[-1].endswith(NO_BOUND) else ""
        detail(f"what was spent means for groups of {', '.join(groups)}{nothing}")


def _filters_of(ledger: Ledger, dataset: str, analyst: str, balance: Balance) -> tuple[SpentFilter, ...]:
    """The filters that a question of that analyst must pass: the data set's and the own."""
    caps = {"": balance.budget.epsilon, analyst: balance.epsilon}
    return tuple(SpentFilter(cap, *ledger.spent(dataset, balance.period, who)) for who, cap in caps.items())


def _filter_of(balance: Balance) -> SpentFilter:
    spent = balance.spent
    units = (spent.epsilon, 0.0) if isinstance(spent, PureDP) else (spent.rho, spent.delta)
    return SpentFilter(balance.epsilon, (whole_units(units[0]), whole_units(units[1])))


def _loss(price: PureDP | ZCDP) -> float:
    return price.epsilon if isinstance(price, PureDP) else price.rho
