"""`dalenius budget`: what is left, and what it buys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.accounting.guarantees import ZCDP, PureDP
from dalenius.app.cli.frame import Frame, framed

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.ledger.budgets import Balance


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
    balances: dict[str, dict[str, Balance]] = {}
    for dataset in ledger.datasets():
        for period in ledger.periods(dataset):
            place = balances.setdefault(f"{dataset} {period}".strip(), {"": ledger.balance(dataset, period=period)})
            names = [analyst] if analyst else list(ledger.allotments(dataset))
            place |= {
                name: ledger.balance(dataset, name, period) for name in names if name in ledger.allotments(dataset)
            }
    if analyst and not any(analyst in each for each in balances.values()):
        from dalenius.errors import NotAllowedError

        raise NotAllowedError(
            f"Analyst {analyst!r} has no allotment.",
            why="Who may ask, and how much, is the owner's decision.",
            fix="Ask the owner for an allotment, or check the name.",
        )
    if plot is not None:
        from dalenius.app.burn_down import draw

        draw(ledger, plot)
        frame.note(f"Drew {plot}.")
    data = {
        "datasets": {
            name: {
                "dataset": each[""].to_dict(),
                "analysts": {who: balance.to_dict() for who, balance in each.items() if who},
            }
            for name, each in balances.items()
        }
    }

    def human(console: Console) -> None:
        for name, each in balances.items():
            for who, balance in each.items():
                print_balance(console, f"{name}, {who}" if who else name, balance)
        if not balances:
            console.print("No data set has a budget yet.")

    frame.emit(data, human)


def print_balance(console: Console, name: str, balance: Balance) -> None:
    """One balance: a bar, what is left, what it buys, and what the loss means for groups."""
    from rich.text import Text

    from dalenius.ledger.budgets import GROUPS

    gone = balance.spent_guarantee
    filled = round(24 * share_spent(balance))
    bar = Text.assemble(("█" * filled, "red" if filled > 21 else "cyan"), ("░" * (24 - filled), "dim"))
    about = f"   (unit: {balance.budget.unit}, {balance.budget.neighbors.value})"
    console.print(
        Text.assemble((f"{name}  ", "bold"), bar, f"  ε = {gone.epsilon:.3g} of {balance.epsilon:g}", (about, "dim"))
    )
    buys = ", or ".join(f"{count:,} of ε = {each:g}" for each, count in what_it_buys(balance) if count)
    left = f"    left: one question of ε ≤ {balance.remaining_epsilon:.4g}" + (f", or {buys}" if buys else "")
    console.print(Text(left if balance.remaining_epsilon > 0 else "    nothing is left", "dim"))
    if gone.epsilon > 0:
        promises = ((size, balance.group(size)) for size in GROUPS)
        groups = (f"{size}: " + (f"ε = {each.epsilon:.3g}" if each.delta < 1 else "none") for size, each in promises)
        console.print(Text(f"    what was spent means for groups of {', '.join(groups)}", "dim"))


def share_spent(balance: Balance) -> float:
    """How much of the budget is gone, in the currency that adds up (ρ, or ε for pure budgets)."""
    guard = balance.budget.filter(balance.epsilon)
    left = _loss(guard.price(balance.remaining_epsilon)) if balance.remaining_epsilon > 0 else 0.0
    return min(1.0, max(0.0, 1 - left / _loss(guard.price(balance.epsilon))))


def what_it_buys(balance: Balance) -> list[tuple[float, int]]:
    """How many questions of a usual size the rest pays for."""
    guard = balance.budget.filter(balance.epsilon)
    if balance.remaining_epsilon <= 0:
        return []
    left = _loss(guard.price(balance.remaining_epsilon))
    return [(each, int(left / _loss(guard.price(each)))) for each in (0.05, 0.2, 0.5)]


def _loss(price: PureDP | ZCDP) -> float:
    return price.epsilon if isinstance(price, PureDP) else price.rho
