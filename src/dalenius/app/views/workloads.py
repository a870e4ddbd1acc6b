"""Workloads on a terminal. Names and keys are text from outside: shown, never obeyed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dalenius.app.views.answers import print_release
from dalenius.queries.preview import KNOWN
from dalenius.queries.release import shown, shown_error

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.queries.workloads.release import Expected, WorkloadPreview, WorkloadRelease

_LINE = 4000  # characters of a question


def print_workload_preview(console: Console, preview: WorkloadPreview) -> None:
    """The expected error of every answer, beside that of asking one by one; and what is measured."""
    from dalenius.ledger.budgets import rounded_down

    expected = preview.expected
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("question", justify="right")
    table.add_column("column", overflow="fold")
    table.add_column("groups", justify="right")
    table.add_column("together", justify="right")
    table.add_column("one by one", justify="right", style="dim")
    for number, each in enumerate(expected.questions, 1):
        first = True
        for name, error, alone in zip(each.columns, each.noise_error, each.one_by_one, strict=True):
            if error is None:
                continue
            groups = "found" if each.groups is None else f"{each.groups:,}"
            table.add_row(
                str(number) if first else "",
                Text(shown(name)),
                groups if first else "",
                f"± {shown_error(error)}",
                "–" if alone is None else f"± {shown_error(alone)}",
            )
            first = False
        if first:
            table.add_row(str(number), Text(", ".join(map(shown, each.columns))), "", "–", "–")
    console.print(table)
    left = {who: rounded_down(each["epsilon"]) for who, each in preview.remaining.items()}
    about = f"{expected.confidence * 100:.10g}% of answers are at most so far off, from the noise alone"
    known = f" · {KNOWN}" if preview.known else ""
    rest = f"left: you ε ≤ {left['analyst']:g}, data set ε ≤ {left['dataset']:g}"
    for line in (f"ε = {expected.epsilon:g} for all{known} · {about} · {rest}", *_measured(expected)):
        console.print(Text(line, "dim"))
    for note in preview.notes:
        console.print(Text(shown(note, _LINE), "bold yellow"))


def print_workload(console: Console, release: WorkloadRelease) -> None:
    """Every answer below its question."""
    for number, each in enumerate(release.releases, 1):
        console.print(Text(f"{number}: {shown(' '.join(each.question.split()), _LINE)}", "bold"), soft_wrap=True)
        print_release(console, each, chart=console.is_terminal)
        console.print()
    for line in _measured(release.expected):
        console.print(Text(line, "dim"))


def _measured(expected: Expected) -> list[str]:
    lines = [f"Measured: {shown(expected.strategy, _LINE)}", *(shown(each, _LINE) for each in expected.lines())]
    for number, each in enumerate(expected.questions, 1):
        if each.beside:
            lines.append(f"Question {number} is asked as it is, at its part of the price: {each.beside}.")
    return lines
