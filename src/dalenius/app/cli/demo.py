"""`dalenius demo`: a tour on made-up data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dalenius.app.cli.frame import Frame, framed

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.app.tour.questions import Shown, Tour
    from dalenius.app.tour.spending import Spending

EPSILON, DELTA = 1.0, 1e-6
LAST = 6  # entries
# What works as it is printed, with the home between.
NEXT = (
    ("preview", '--analyst ana "SELECT region, SUM(amount) FROM visits GROUP BY region"'),
    ("ask", "--analyst ana \"SELECT COUNT(*) FROM students WHERE gender = 'x'\" --epsilon 0.1"),
    ("tables", "visits"),
    ("budget", "--analyst ana"),
    ("ledger", ""),
)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo")(demo)


@framed
def demo(frame: Frame) -> None:
    """Protects two made-up tables and asks about them: a tour of one minute.

    Example: dalenius demo
    """
    from dalenius.app.tour.questions import toured
    from dalenius.app.tour.spending import spending

    frame.note("Making up two tables, protecting them, and asking …")
    tour = toured(Path.cwd())
    spent = spending(EPSILON, DELTA)

    def human(console: Console) -> None:
        _print_tables(console, tour)
        for number, shown in enumerate(tour.shown, 1):
            _print_question(console, number, shown)
        _print_ledger(console, tour)
        _print_spending(console, spent)
        _print_next(console, tour)

    frame.emit(tour.to_dict() | {"spending": spent.to_dict()}, human)


def _print_tables(console: Console, tour: Tour) -> None:
    console.rule("[bold]Two tables, protected", style="dim")
    students, people = tour.people
    whole = {name: balance.epsilon for name, (_, balance) in tour.balances.items()}
    console.print(
        f"[bold]students[/]: {students:,} students, one row each; whatever is asked by whomever, no student's part may "
        f"show by more than ε = {whole['students']:g} in all.\n"
        f"[bold]visits[/]: {people:,} people, some with very many visits; ε = {whole['visits']:g} for each person.\n"
        f"The policies are in {tour.home.name}/data. Analyst ana, whom nobody trusts, asks in SQL. Each question is "
        "charged to the ledger before the table is looked at. [cyan]True[/] values stand beside the private ones only "
        "because everybody here is made up; ana never sees them.",
        highlight=False,
    )


def _print_question(console: Console, number: int, shown: Shown) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from dalenius.app.answers import print_release

    question = shown.question
    console.print()
    console.print(Text.assemble((f"{number}. {question.why}", "bold"), f"   ε = {question.epsilon:g}"))
    console.print(Padding(Text(question.sql, "green"), (0, 0, 0, 3), expand=False))
    if shown.release is not None:
        print_release(console, shown.release, chart=question.chart, true=shown.true)
    elif shown.refusal is not None:
        refusal = shown.refusal
        console.print(Text.assemble(("refused: ", "bold yellow"), f"{refusal.message} {refusal.why} {refusal.fix}"))
        console.print(Text(refusal.cost, "dim"))


def _print_ledger(console: Console, tour: Tour) -> None:
    from rich.table import Table
    from rich.text import Text

    from dalenius.app.cli.budget import readable
    from dalenius.app.cli.ledger import details
    from dalenius.ledger.budgets import rounded_down
    from dalenius.ledger.ledger import Ledger

    console.print()
    console.rule("[bold]What the ledger remembers", style="dim")
    table = Table.grid(padding=(0, 2))
    for entry in Ledger.open(tour.home).entries(after=max(0, tour.history.entries - LAST)):
        table.add_row(Text(str(entry.number), "dim"), entry.kind, Text(readable(details(entry))))
    console.print(table)
    console.print(
        f"[bold green]The history holds[/]: {tour.history.entries} entries, head {tour.history.head[:16]}…",
        highlight=False,
    )
    for name, (own, whole) in tour.balances.items():
        console.print(
            f"left of [bold]{name}[/]: ana ε ≤ {rounded_down(own.remaining_epsilon):g} of {own.epsilon:g}, "
            f"everybody together ε ≤ {rounded_down(whole.remaining_epsilon):g} of {whole.epsilon:g}",
            highlight=False,
        )


def _print_spending(console: Console, spent: Spending) -> None:
    from rich.table import Table

    console.print()
    console.rule("[bold]How far does a budget go?", style="dim")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("error of each, if added up by")
    for counts in spent.counts:
        table.add_column(f"{counts:,} count{'s' if counts > 1 else ''}", justify="right")
    for method, errors in spent.errors.items():
        best = [error == min(each[place] for each in spent.errors.values()) for place, error in enumerate(errors)]
        cells = (f"[bold green]± {e:,.1f}[/]" if b else f"± {e:,.1f}" for e, b in zip(errors, best, strict=True))
        table.add_row(spent.words[method], *cells)
    console.print(table)
    console.print(
        f"All of them keep the same promise (ε = {spent.epsilon:g}, δ = {spent.delta:g} in all). The ledger adds up by "
        f"zCDP: it stays valid when each next question is chosen after the last answer.",
        highlight=False,
    )


def _print_next(console: Console, tour: Tour) -> None:
    console.print()
    console.rule("[bold]Try next", style="dim")
    home = f"--home {tour.home.name}"
    for command, rest in NEXT:
        console.print(
            f"dalenius {command} {home} {rest}".rstrip(), style="bold", highlight=False, markup=False, soft_wrap=True
        )
