"""`dalenius demo`: a tour on made-up data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from dalenius.app.cli.frame import Frame, framed

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.app.tour import Spending

EPSILON, DELTA = 1.0, 1e-6


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo")(demo)


@framed
def demo(frame: Frame) -> None:
    """Shows what a budget buys: a tour of one minute.

    Example: dalenius demo
    """
    from dalenius.app.tour import spending

    frame.note("Working out what a budget of ε = 1 buys …")
    spent = spending(EPSILON, DELTA)
    frame.emit({"spending": spent.to_dict()}, lambda console: _print(console, spent))


def _print(console: Console, spent: Spending) -> None:
    from rich.table import Table

    from dalenius.app.charts import Bar, bars

    console.rule("[bold]How far does a budget go?", style="dim")
    console.print(
        f"A table's owner allows ε = {spent.epsilon:g} in all (δ = {spent.delta:g}). An analyst wants many counts from "
        "it. Every count gets noise; how much, depends on how the privacy loss of all of them is added up.\n",
        highlight=False,
    )
    table = Table(title="noise error of each count (95% of answers are at most this far off)", title_style="dim")
    table.add_column("added up by")
    for counts in spent.counts:
        table.add_column(f"{counts:,} count{'s' if counts > 1 else ''}", justify="right")
    for method, errors in spent.errors.items():
        best = [error == min(each[place] for each in spent.errors.values()) for place, error in enumerate(errors)]
        cells = (f"[bold green]±{e:,.1f}[/]" if b else f"±{e:,.1f}" for e, b in zip(errors, best, strict=True))
        table.add_row(spent.words[method], *cells)
    console.print(table)
    console.print(f"\n{spent.counts[-1]:,} counts, noise error of each (shorter is better):", style="dim")
    console.print(bars([Bar(spent.words[method], errors[-1], "±") for method, errors in spent.errors.items()]))
    console.print(
        f"\nWith the same promise to the people in the table, {spent.counts[-1]:,} counts come out "
        f"[bold]{spent.gain:.0f} times[/] more precise than if their ε were simply summed. "
        "The ledger will add up by zCDP: it stays valid when the analyst chooses each next question, and its price, "
        "after seeing the last answer.",
        highlight=False,
    )
    console.print("\nNext: [bold]dalenius account --help[/] adds up a list of your own.", highlight=False)
