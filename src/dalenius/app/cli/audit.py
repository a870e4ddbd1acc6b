"""`dalenius audit`: looks for a break of the promise."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli.frame import Frame, framed, group
from dalenius.app.cli.output import stderr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console

    from dalenius.audit.fuzz import Report, Violation
    from dalenius.audit.joined import JoinedViolation

FOUND = 6  # a check failed


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = group("Looks for a break of the promise: made-up tables, hostile rows, exact integers.")
    commands.command("fuzz")(fuzz)
    app.add_typer(commands, name="audit")


@framed
def fuzz(
    frame: Frame,
    minutes: Annotated[float | None, typer.Option("--minutes", metavar="M", help="How long.")] = None,
    cases: Annotated[int | None, typer.Option("--cases", metavar="N", help="How many questions.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="S", help="Draw the cases of an earlier run.")] = None,
    joins: Annotated[bool, typer.Option("--joins", help="Several tables, paths, public tables, joins.")] = False,
) -> None:
    """Runs made-up questions on made-up neighbouring tables without noise, and compares the integers.

    Exits with 6 when they differ by more than the plan claims, and prints a small case that shows it. No home, no
    budget and no data of yours are touched.

    Example: dalenius audit fuzz --minutes 1
    """
    from dalenius.audit.fuzz import fuzz as one_table
    from dalenius.audit.joined import fuzz_joined

    run = fuzz_joined if joins else one_table
    with _bar(frame, cases, minutes) as update:
        report = run(cases=cases, minutes=minutes, seed=seed, progress=update)
    frame.emit(report.to_dict(), lambda console: _print(console, report), FOUND if report.violations else 0)


@contextmanager
def _bar(frame: Frame, cases: int | None, minutes: float | None) -> Iterator[Callable[[Report], None]]:
    """A bar on stderr that fills with the cases, or with the time."""
    if frame.quiet or frame.json:
        yield lambda _: None
        return
    from rich.progress import Progress

    with Progress(console=stderr(), transient=True) as progress:
        task = progress.add_task("fuzzing", total=cases or (minutes or 0) * 60)

        def update(report: Report) -> None:
            done = report.cases if cases is not None else report.seconds
            progress.update(task, completed=done, description=f"{report.cases:,} cases")

        yield update


def _print(console: Console, report: Report) -> None:
    from rich.table import Table

    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column(overflow="fold")
    refused = sum(report.refused.values())
    rows.add_row("cases", f"{report.cases:,} in {report.seconds:.1f} s")
    rows.add_row("compared", f"{report.compared:,}")
    rows.add_row("refused", f"{refused:,} ({refused / max(1, report.cases):.0%}), {_counted(report.refused)}")
    rows.add_row("drawn", _counted(report.drawn))
    rows.add_row("seed", str(report.seed))
    console.print(rows, highlight=False)
    if not report.violations:
        console.print("[bold green]No violation.[/] Every difference is within what its plan claims.", highlight=False)
    for each in report.violations:
        _print_violation(console, each)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def _print_violation(console: Console, violation: Violation | JoinedViolation) -> None:
    def say(text: str = "", style: str | None = None) -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    say(f"Violation ({violation.kind}) in case {violation.case} of seed {violation.seed}", "bold red")
    say(f"claimed at most {violation.claimed}, seen {violation.seen}")
    say(f"in {violation.measure}", "dim")
    say("\nquestion", "bold")
    say(violation.sql)
    say("\npolicy", "bold")
    if not isinstance(violation.first, dict):
        say(violation.policy)
        for title, rows in (("one table", violation.first), ("its neighbour", violation.second)):
            say(title, "bold")
            _print_rows(console, violation.columns, rows)
        return
    for policy in violation.policies:
        say(policy)
    both = (("one data set", violation.first), ("its neighbour", violation.second), ("public", violation.publics))
    for title, tables in both:
        for name, rows in tables.items():
            say(f"{title}: {name}", "bold")
            _print_rows(console, violation.columns[name], rows)


def _print_rows(console: Console, columns: dict[str, str], rows: Sequence[Sequence[str | None]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2), header_style="dim")
    for name, kind in columns.items():
        table.add_column(Text(f"{name} {kind}"), overflow="fold")
    for row in rows:
        table.add_row(*(Text("NULL", style="dim") if each is None else Text(repr(each)[:200]) for each in row))
    console.print(table)
