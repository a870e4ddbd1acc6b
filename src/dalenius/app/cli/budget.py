"""`dalenius budget`: what is left, and what it buys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dalenius.accounting.guarantees import ZCDP, PureDP
from dalenius.app.cli.frame import Frame, framed

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.ledger.budgets import Balance, Budget
    from dalenius.ledger.ledger import Ledger

USUAL = (0.05, 0.2, 0.5)  # sizes of question in which the rest is counted
SHOWN_PERIODS = 6


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


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("budget")(budget)


@framed
def budget(
    frame: Frame,
    analyst: Annotated[str | None, typer.Option("--analyst", metavar="A", help="This analyst's allotment.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw what was left over time (png or svg).")
    ] = None,
) -> None:
    """Shows what every data set has left, and what that buys.

    Example: dalenius budget --analyst ana
    """
    from dalenius.ledger.ledger import Ledger

    if plot is not None:
        from dalenius.app.plots import check_target

        check_target(plot)
    ledger = Ledger.open(frame.require_home())
    found = totals(ledger, analyst)
    if analyst is not None and not any(each.analyst for each in found):
        from dalenius.errors import NotAllowedError

        raise NotAllowedError(
            f"Analyst {analyst!r} has no allotment.",
            why="Who may ask, and how much, is the owner's decision.",
            fix="Ask the owner for an allotment, or check the name.",
        )
    if plot is not None:
        from dalenius.app.burn_down import draw

        draw(ledger, plot, analyst or "")
        frame.note(f"Drew {plot}.")

    def human(console: Console) -> None:
        print_totals(console, found)
        if not found:
            console.print("No data set has a budget yet.")

    frame.emit({"datasets": written(found)}, human)


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


def print_totals(console: Console, found: Iterable[Total]) -> None:
    """Every balance; of many periods the last few."""
    from rich.text import Text

    for dataset, group in groupby(found, lambda each: each.dataset):
        of_dataset = list(group)
        periods = list(dict.fromkeys(each.balance.period for each in of_dataset))
        shown = periods[-SHOWN_PERIODS:]
        if left_out := len(periods) - len(shown):
            words = f"{readable(dataset)}: the last {len(shown)} of {len(periods)} periods; --json has the other"
            console.print(Text(f"{words} {left_out} too.", "dim"))
        for each in of_dataset:
            if each.balance.period in shown:
                _print_total(console, each)


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
    counts = what_it_buys(balance.budget, total.guards)
    buys = "".join(f", or {count:,} of ε = {each:g}" for each, count in counts.items() if count)
    detail(f"left: one question of ε ≤ {left:g}{buys}" if left > 0 else "nothing is left")
    if gone.epsilon > 0:
        promises = ((size, balance.group(size)) for size in GROUPS)
        groups = (f"{size}: " + (f"ε = {each.epsilon:.3g}" if each.delta < 1 else "none") for size, each in promises)
        detail(f"what was spent means for groups of {', '.join(groups)}")


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
    from dalenius.ledger import charging

    budget, period = balance.budget, balance.period
    caps = {"": budget.epsilon, analyst: balance.epsilon}
    with ledger.database.reading() as connection:
        return tuple(
            Guard(cap, charging.filter_of(connection, budget, dataset, period, who, cap).units)
            for who, cap in caps.items()
        )


def _loss(price: PureDP | ZCDP) -> float:
    return price.epsilon if isinstance(price, PureDP) else price.rho
