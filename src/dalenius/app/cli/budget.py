"""`dalenius budget`: what is left, and what it buys."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.balances import (
    Guard,
    Total,
    readable,
    share_spent,
    totals,
    totals_of,
    what_it_buys,
    written,
)
from dalenius.app.cli import serving
from dalenius.app.cli.frame import Frame, framed

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Guard", "Total", "budget", "print_totals", "readable", "totals", "what_it_buys", "written"]

SHOWN_PERIODS = 6


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
    server: serving.Server = None,
    token_file: serving.TokenFile = None,
) -> None:
    """Shows what every data set has left, and what that buys.

    Example: dalenius budget --analyst ana
    """
    from dalenius.ledger.ledger import Ledger

    remote = serving.server_of(frame, server, token_file, analyst)
    if remote is not None:
        serving.refuse("--plot", plot, "It draws the whole history, which only the owner has.")
        with remote:
            found = serving.read(remote, remote.budgets(), totals_of)
        _emit(frame, found)
        return
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
    _emit(frame, found)


def _emit(frame: Frame, found: list[Total]) -> None:
    def human(console: Console) -> None:
        print_totals(console, found)
        if not found:
            console.print("No data set has a budget yet.")

    frame.emit({"datasets": written(found)}, human)


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
