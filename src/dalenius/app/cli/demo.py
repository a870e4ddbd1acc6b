"""`dalenius demo`: a tour on made-up data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dalenius.app.cli.frame import Frame, framed

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.app.tour.spending import Spending
    from dalenius.app.tour.students import Visit

EPSILON, DELTA = 1.0, 1e-6


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo")(demo)


@framed
def demo(frame: Frame) -> None:
    """Shows what a budget buys and how it is spent: a tour of one minute.

    Example: dalenius demo
    """
    from dalenius.app.tour.spending import spending
    from dalenius.app.tour.students import visit

    frame.note("Asking about 2,000 made-up students, and working out what a budget buys …")
    visited = visit(Path.cwd())
    spent = spending(EPSILON, DELTA)

    def human(console: Console) -> None:
        _print_visit(console, visited)
        _print_history(console, visited)
        _print_spending(console, spent)
        console.print(
            f"\nNext: [bold]dalenius ledger --home {visited.home.name}[/] shows the history of this tour, "
            f"[bold]dalenius budget --home {visited.home.name}[/] what is left, "
            "and [bold]dalenius account --help[/] adds up a list of your own.",
            highlight=False,
        )

    frame.emit({"students": visited.to_dict(), "spending": spent.to_dict()}, human)


def _print_visit(console: Console, visited: Visit) -> None:
    from rich.table import Table

    from dalenius.app.charts import Bar, bars
    from dalenius.app.tour.students import ALLOTMENT, BUDGET

    console.rule("[bold]Asking about students", style="dim")
    console.print(
        f"2,000 made-up students are protected: whatever is asked, no student's part in it may show by more than "
        f"ε = {BUDGET.epsilon:g} (δ = {BUDGET.delta:g}) in all. Analyst ana may spend ε = {ALLOTMENT:g} of that. Each "
        "answer is charged to the ledger first, then gets exact noise.\n",
        highlight=False,
    )
    table = Table(title="what ana sees (the true values are shown because nobody here is real)", title_style="dim")
    for column in ("question", "ε", "true", "private", "noise error (95%)"):
        table.add_column(column, justify="left" if column == "question" else "right")
    for shown in visited.answers:
        for place, cell in enumerate(shown.question.cells):
            first = place == 0
            words = shown.question.words if not cell else f"{shown.question.words}: {cell}" if first else f"… {cell}"
            price = f"{shown.question.epsilon:g}" if first else ""
            table.add_row(
                words,
                price,
                f"{shown.true[place]:,}",
                f"[bold]{shown.private[place]:,}[/]",
                f"± {shown.noise_error:,}",
            )
    console.print(table)
    histogram = visited.answers[-1]
    console.print("\nstudents by editor: [cyan]true[/] and [green]private[/]", style="dim", highlight=False)
    rows = []
    for cell, true, private in zip(histogram.question.cells, histogram.true, histogram.private, strict=True):
        rows += [Bar(cell, true, digits=0), Bar("", private, style="green", digits=0)]
    console.print(bars(rows))


def _print_history(console: Console, visited: Visit) -> None:
    repeat, refusal = visited.repeat, visited.refusal
    console.print(
        f"\nAsked again “{repeat.question.words}”: [bold]{repeat.private[0]:,}[/], the same answer, for nothing.\n"
        f"Asked one more with ε = {visited.refused:.2g}: [bold]refused[/]. {refusal.message} {refusal.why}\n"
        f"The history of all this holds: {visited.history.entries} entries, head {visited.history.head[:16]}…\n",
        highlight=False,
    )


def _print_spending(console: Console, spent: Spending) -> None:
    from rich.table import Table

    from dalenius.app.charts import Bar, bars

    console.rule("[bold]How far does a budget go?", style="dim")
    console.print(
        f"A table's owner allows ε = {spent.epsilon:g} in all (δ = {spent.delta:g}). An analyst wants many counts from "
        "it. How much noise each gets depends on how the privacy loss of all of them is added up.\n",
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
        f"[bold]{spent.gain:.0f} times[/] more precise than if their ε were simply summed. The ledger adds up by zCDP: "
        "it stays valid when the analyst chooses each next question, and its price, after seeing the last answer.",
        highlight=False,
    )
