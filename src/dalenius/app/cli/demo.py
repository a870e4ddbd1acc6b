"""`dalenius demo`: a tour on made-up data."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius._extras import require_extra
from dalenius.app.cli.frame import Frame, framed
from dalenius.app.views import readable
from dalenius.errors import ExtraMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from dalenius.app.tour import CountErrors, Tour, TourAnswer

EPSILON, DELTA = 1.0, 1e-6
LAST = 6  # entries
_LIFE = timedelta(days=1)  # of the tokens
_NEEDED = ("fastapi", "nicegui", "prometheus_client", "uvicorn")
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
def demo(
    frame: Frame,
    serve: Annotated[
        bool | None,
        typer.Option(
            "--serve/--no-serve", help="Then serve the tables until Ctrl-C; without either, if a terminal asks."
        ),
    ] = None,
) -> None:
    """Protects two made-up tables and asks about them: a tour of one minute. Then the console, in a terminal.

    Example: dalenius demo
    """
    from dalenius.app.tour import errors_of_counts, take_tour

    if serve:
        require_extra("serve", *_NEEDED)
    elif serve is None:
        serve = _somebody_waits(frame)
    frame.note("Making up two tables, protecting them, and asking …")
    tour = take_tour(Path.cwd())
    spent = errors_of_counts(EPSILON, DELTA)

    def human(console: Console) -> None:
        _print_tables(console, tour)
        for number, shown in enumerate(tour.shown, 1):
            _print_question(console, number, shown)
        _print_ledger(console, tour)
        _print_spending(console, spent)
        _print_next(console, tour)

    data = tour.to_dict() | {"spending": spent.to_dict()}
    if serve:
        _serve(frame, tour, data, human)
    else:
        frame.emit(data, human)


def _somebody_waits(frame: Frame) -> bool:
    """Whether somebody sits there who can read an address and press Ctrl-C, and a server can be had."""
    if frame.json or frame.quiet or sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty():
        return False
    try:
        require_extra("serve", *_NEEDED)
    except ExtraMissingError as error:
        frame.note(f"There is no console: {error.fix}")
        return False
    return True


def _serve(frame: Frame, tour: Tour, data: Mapping[str, object], human: Callable[[Console], None]) -> None:
    """The console on the demo's tables, until SIGINT or SIGTERM, with a token for each role."""
    from dalenius.app.http.monitoring import start_log
    from dalenius.app.http.server import address, listen
    from dalenius.app.http.server import serve as run
    from dalenius.app.http.settings import Settings
    from dalenius.app.tour import ANALYST
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.tokens import Role, Tokens

    given = Tokens(Ledger.open(tour.home))
    whose = {Role.ANALYST: ANALYST}
    tokens = {
        role: given.create(role, whose.get(role, ""), expires=_LIFE, note="demo")[0]
        for role in (Role.ANALYST, Role.OWNER, Role.AUDITOR)
    }
    settings = Settings(data_dir=(tour.home / "data").absolute())
    start_log(quiet=True)
    listening = listen(settings)
    where = address(settings, listening)

    def shown(console: Console) -> None:
        console.print()
        console.rule("[bold]In a browser", style="dim")
        console.print(f"[bold]{where}[/]   sign in with a token; they are good for a day:", highlight=False)
        for role, token in tokens.items():
            name = whose.get(role, role)
            console.print(f"{name:8} {token}", highlight=False, markup=False, soft_wrap=True)
        console.print("Stop with Ctrl-C.", style="dim")

    def ready() -> None:
        frame.emit_now({**data, "url": where, "tokens": tokens}, shown)

    if not frame.json:  # which is one object
        frame.emit_now(data, human)
    run(tour.home, settings, listening, ready)
    frame.note("Stopped. The next demo lays its home anew.")


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


def _print_question(console: Console, number: int, shown: TourAnswer) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from dalenius.app.views.answers import print_release

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

    from dalenius.app.views.history import details
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


def _print_spending(console: Console, spent: CountErrors) -> None:
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
