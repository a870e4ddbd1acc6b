"""`dalenius audit`: looks for a break of the promise."""

from __future__ import annotations

from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli.frame import Frame, framed, group, stderr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console

    from dalenius.audit.fuzz import FuzzReport, Violation
    from dalenius.audit.transcripts.lives import LivesReport
    from dalenius.audit.work import WorkReport

FOUND = 6  # a check failed
_KINDS = {
    "ratio": "ratio of times",
    "late": "share of the fixed time",
    "memory": "share of the memory that may differ",
    "engine": "failure",
    "traces": "difference of statements",
}


class What(Enum):
    """What is compared on neighbours."""

    ANSWERS = "answers"
    STATEMENTS = "statements"
    WORK = "work"
    TRANSCRIPT = "transcript"
    LIVES = "lives"
    WORKLOADS = "workloads"


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    from dalenius.app.cli import audit_bounds, audit_synthetic

    commands = group("Looks for a break of the promise: made-up tables, hostile rows, exact integers; samples.")
    commands.command("fuzz")(fuzz)
    audit_bounds.register(commands)
    audit_synthetic.register(commands)
    app.add_typer(commands, name="audit")


@framed
def fuzz(
    frame: Frame,
    minutes: Annotated[float | None, typer.Option("--minutes", metavar="M", help="How long.")] = None,
    cases: Annotated[int | None, typer.Option("--cases", metavar="N", help="How many questions.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="S", help="Draw the cases of an earlier run.")] = None,
    joins: Annotated[bool, typer.Option("--joins", help="Several tables, paths, public tables, joins.")] = False,
    what: Annotated[What, typer.Option("--what", help="What is compared on neighbours.")] = What.ANSWERS,
    busy: Annotated[bool, typer.Option("--busy", help="With --what work: others use this machine too.")] = False,
) -> None:
    """Runs made-up questions on made-up neighbouring tables; compares integers, statements, transcripts, time, memory.

    Exits with 6 when integers differ by more than the plan claims, when a whole release shows more than it is charged,
    when other statements run, or when one person makes a question take far longer; and prints a small case that shows
    it. No home, no budget and no data of yours are touched.

    Example: dalenius audit fuzz --minutes 1
    """
    if what is What.WORK:
        _work(frame, cases, minutes, seed, joins=joins, busy=busy)
        return
    if what is What.LIVES:
        _lives(frame, cases, minutes, seed)
        return
    from dalenius.audit.fuzz import fuzz as run
    from dalenius.audit.fuzzing.checks import Sides

    # Statements are compared in any case; here in tables with an index as often as not.
    indexed = 0.5 if what is What.STATEMENTS else None
    sides, words = Sides, "Every difference is within what its plan claims."
    if what is What.TRANSCRIPT:
        from dalenius.audit.transcripts.sides import TranscriptSides

        sides, words = TranscriptSides, "No release shows more of a unit than it is charged for."
    if what is What.WORKLOADS:
        from dalenius.audit.fuzzing.workloads import WorkloadSides

        sides, words = WorkloadSides, "Whatever is measured for several questions at once is within what is claimed."
    with _bar(frame, cases, minutes) as update:
        report = run(
            cases=cases, minutes=minutes, seed=seed, joins=joins, indexed=indexed, sides=sides, progress=update
        )
    frame.emit(report.to_dict(), lambda console: _print(console, report, words), FOUND if report.violations else 0)


def _work(frame: Frame, cases: int | None, minutes: float | None, seed: int | None, *, joins: bool, busy: bool) -> None:
    from dalenius.audit.work import search_for_work
    from dalenius.errors import InputError

    if joins:
        raise InputError("--joins is no choice here.", why="This search joins anyway.", fix="Leave it out.")
    with _bar(frame, cases, minutes) as update:
        report = search_for_work(cases=cases, minutes=minutes, seed=seed, quiet=not busy, progress=update)
    frame.emit(report.to_dict(), lambda console: _print_work(console, report), FOUND if report.violations else 0)


def _lives(frame: Frame, cases: int | None, minutes: float | None, seed: int | None) -> None:
    from dalenius.audit.transcripts.lives import fuzz_lives

    with _bar(frame, cases, minutes) as update:
        report = fuzz_lives(cases=cases, minutes=minutes, seed=seed, progress=update)

    def human(console: Console) -> None:
        rows = {
            "lives": f"{report.cases:,} in {report.seconds:.1f} s",
            "done": _counted(report.done),
            "seed": str(report.seed),
        }
        _print_facts(console, rows)
        if not report.violations:
            words = "No home shows more of a unit than its ledger has charged."
            console.print(f"[bold green]No violation.[/] {words}", highlight=False)
        for each in report.violations:
            for text, style in (
                (f"Violation ({each.kind}) in life {each.life} of seed {each.seed}", "bold red"),
                (f"claimed at most {each.claimed}, seen {each.seen}", None),
                (", ".join(each.steps), "dim"),
                (each.policy, None),
            ):
                console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    frame.emit(report.to_dict(), human, FOUND if report.violations else 0)


def _print_work(console: Console, report: WorkReport) -> None:
    rows = {
        "asked": f"{report.asked:,} in {report.seconds:.1f} s",
        "refused": f"{sum(report.refused.values()):,}, {_counted(report.refused)}",
        "measured": f"{report.cases:,} on small tables, {report.large:,} of them on large ones too",
        "run again": f"{report.again:,}; memory of {report.weighed:,}",
        "statements compared": f"of {report.traced:,}",
    }
    for kind, each in sorted(report.worst.items()):
        rows[f"largest {_KINDS[kind]}"] = f"{each.value:.2f} (at most {each.limit:g}), {each.victim}"
    _print_facts(console, rows | {"seed": str(report.seed)})
    if not report.violations:
        console.print("[bold green]No violation.[/] No person makes a question take far longer.", highlight=False)
    for found in report.violations:
        unit = "bytes" if found.kind == "memory" else "s"
        for text, style in (
            (f"Violation ({found.kind}): {found.value:.2f}, at most {found.limit:g}", "bold red"),
            (f"{found.first:g} {unit} with the victim ({found.victim}), {found.second:g} {unit} without", None),
            (f"in a table of {found.rows:,} rows", "dim"),
            (found.sql, None),
        ):
            console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _bar(
    frame: Frame, cases: int | None, minutes: float | None
) -> Iterator[Callable[[FuzzReport | WorkReport | LivesReport], None]]:
    """A bar on stderr that fills with the cases, or with the time."""
    if frame.quiet or frame.json:
        yield lambda _: None
        return
    from rich.progress import Progress

    with Progress(console=stderr(), transient=True) as progress:
        task = progress.add_task("fuzzing", total=cases or (minutes or 0) * 60)

        def update(report: FuzzReport | WorkReport | LivesReport) -> None:
            done = report.cases if cases is not None else report.seconds
            progress.update(task, completed=done, description=f"{report.cases:,} cases")

        yield update


def _print(console: Console, report: FuzzReport, words: str) -> None:
    refused = sum(report.refused.values())
    rows = {
        "cases": f"{report.cases:,} in {report.seconds:.1f} s",
        "compared": f"{report.compared:,}",
        "refused": f"{refused:,} ({refused / max(1, report.cases):.0%}), {_counted(report.refused)}",
        "drawn": _counted(report.drawn),
        "seed": str(report.seed),
    }
    _print_facts(console, rows)
    if not report.violations:
        console.print(f"[bold green]No violation.[/] {words}", highlight=False)
    for each in report.violations:
        _print_violation(console, each)


def _print_facts(console: Console, facts: Mapping[str, str]) -> None:
    from rich.table import Table

    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column(overflow="fold")
    for name, fact in facts.items():
        rows.add_row(name, fact)
    console.print(rows, highlight=False)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def _print_violation(console: Console, violation: Violation) -> None:
    def say(text: str = "", style: str | None = None) -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    say(f"Violation ({violation.kind}) in case {violation.case} of seed {violation.seed}", "bold red")
    say(f"claimed at most {violation.claimed}, seen {violation.seen}")
    say(f"in {violation.measure}", "dim")
    say("\nquestion", "bold")
    say(violation.sql)
    say("\npolicy", "bold")
    for policy in violation.policies:
        say(policy)
    single = len(violation.policies) == 1
    for title, tables in (
        ("one table" if single else "one data set", violation.first),
        ("its neighbour", violation.second),
        ("public", violation.publics),
    ):
        for name, rows in tables.items():
            say(title if single else f"{title}: {name}", "bold")
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
