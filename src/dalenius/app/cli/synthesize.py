"""`dalenius synthesize`: a table of made-up rows that is like a protected one, for anybody to have."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli import server_option
from dalenius.app.cli.ask import Who, analyst_of
from dalenius.app.cli.frame import Frame, framed
from dalenius.app.cli.synthesize_compare import compare_with_real
from dalenius.app.cli.synthesize_files import (
    Wanted,
    check_apart,
    check_condition,
    check_files,
    check_public,
    home_of,
    write_report,
    write_rows,
)
from dalenius.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.analyst import Asking
    from dalenius.synthesis.preview import SyntheticPreview

Table = Annotated[str, typer.Argument(metavar="TABLE", help="A protected table.")]
Epsilon = Annotated[float, typer.Option("--epsilon", metavar="E", help="The price of all of it.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the rows (csv or parquet).")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be modelled and how noisy it would be. Charges nothing.")
]
MethodName = Annotated[
    str,
    typer.Option(
        "--method", metavar="M", help="auto (the best), adaptive, tree, histogram, marginals, mst, privbayes."
    ),
]
Rows = Annotated[
    int | None, typer.Option("--rows", metavar="N", help="So many rows; as many as there are, by noisy count.")
]
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="C,C", help="Those to model; all whose values are declared.")
]
Target = Annotated[
    str | None, typer.Option("--target", metavar="C", help="A column that will be predicted: measured more exactly.")
]
PerUnit = Annotated[
    int | None,
    typer.Option("--rows-per-unit", metavar="N", help="So many rows of one unit count in full; the table's limit."),
]
Report = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="What the rows are worth (html or json): private, as they are."),
]
Compare = Annotated[
    bool,
    typer.Option("--compare", help="Release how far the table that you have made is from the real one. E pays that."),
]
Predict = Annotated[
    str | None,
    typer.Option(
        "--predict", metavar="C", help="With --compare: how well C is predicted by who learned from the rows."
    ),
]
Public = Annotated[
    str | None,
    typer.Option("--public", metavar="NAME", help="Open the rows as a public table: questions on NAME are free."),
]
Seconds = Annotated[
    float | None,
    typer.Option("--time", metavar="S", help="The best that about S seconds of work give, by public sizes alone."),
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="CONDITION", help="Only rows like this: \"age >= 60 AND sex = 'f'\". Free."),
]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", help="The same rows of the same model again. Nothing is less safe.")
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("synthesize")(synthesize)


@framed
def synthesize(
    frame: Frame,
    table: Table,
    epsilon: Epsilon,
    output: Output = None,
    analyst: Who = None,
    method: MethodName = "auto",
    rows: Rows = None,
    columns: Columns = None,
    target: Target = None,
    rows_per_unit: PerUnit = None,
    work: Seconds = None,
    seed: Seed = None,
    where: Where = None,
    compare: Compare = False,
    predict: Predict = None,
    report: Report = None,
    public: Public = None,
    dry_run: DryRun = False,
    server: server_option.Server = None,
    token_file: server_option.TokenFile = None,
) -> None:
    """Writes made-up rows that are like a table's. Charged once, before the data is looked at; more rows are free.

    Example: dalenius synthesize visits --analyst ana --epsilon 1 -o visits-synthetic.csv
    """
    from dalenius.synthesis.stored import check_rows

    # Whatever can be wrong with the files or the number of rows is found before anything is charged.
    if rows is not None:
        check_rows(rows)
    _check_together(output, rows, seed, where, predict, public, compare=compare, dry_run=dry_run)
    check_files(output, report)
    asked: dict[str, Any] = {
        "epsilon": epsilon,
        "method": method,
        "columns": names_of(columns),
        "target": target,
        "rows_per_unit": rows_per_unit,
        "time": work,
    }
    asker = analyst_of(frame, analyst, server, token_file)
    curator = home_of(frame, asker)
    check_apart([output, report], curator)
    check_public(public, table, output, curator)
    if compare:
        compare_with_real(frame, asker, table, asked, predict or target, report, dry_run=dry_run)
        return
    if where is not None:
        check_condition(where, asker.preview_synthetic(table, **asked))
    if dry_run or output is None:
        expected = asker.preview_synthetic(table, **asked)
        frame.emit(expected.to_dict(), lambda console: _print_preview(console, expected))
        return
    began = time.monotonic()
    opened = None if curator is None or public is None else (curator, public)
    with _expected(frame, asker, table, asked):
        found = asker.synthesize(table, **asked)
    written = write_rows(frame, found, output, Wanted(rows, seed, where), opened)
    if report is not None:
        compared = asker.comparisons(found)
        write_report(frame, report, found, compared[0] if compared else None)
    seconds = time.monotonic() - began

    def human(console: Console) -> None:
        from dalenius.app.views.synthetic import print_synthetic

        print_synthetic(console, found)

    data = {name: each for name, each in found.to_dict().items() if name != "model"}
    beside = {"written": written, "output": str(output), "report": None if report is None else str(report)}
    beside |= {"public": public, "where": where}
    frame.emit({**data, **beside, "seconds": round(seconds, 3)}, human)


def _check_together(
    output: Path | None,
    rows: int | None,
    seed: int | None,
    where: str | None,
    predict: str | None,
    public: str | None,
    *,
    compare: bool,
    dry_run: bool,
) -> None:
    """Options that mean nothing together are refused, not passed over."""
    if compare and not all(each is None for each in (output, rows, seed, where, public)):
        raise InputError(
            "--compare writes no rows.",
            why="It says how far a synthetic table is from the real one.",
            fix="Leave out -o, --rows, --seed, --where and --public: for rows, ask again without --compare.",
        )
    if predict is not None and not compare:
        raise InputError(
            "--predict goes with --compare.",
            why="How well a column is predicted is counted on real rows.",
            fix="Add --compare; or give --target, for a model that is made to predict it.",
        )
    if output is None and not compare and not dry_run:
        raise InputError(
            "--output is missing.", why="The rows are written to a file.", fix="Give -o FILE.csv, or --dry-run."
        )


def _expected(frame: Frame, asker: Asking, table: str, asked: dict[str, Any]) -> AbstractContextManager[None]:
    """What it takes, said before it is charged, and a bar for as long; a server says itself how long it takes."""
    from dalenius.analyst import Analyst
    from dalenius.app.cli.clock_bar import clock_bar
    from dalenius.app.views.synthetic import work_in_words
    from dalenius.releasing.pacing import probe

    if not isinstance(asker, Analyst):
        frame.note("Charged first, then the rows are read and the model is fitted: it may take a while.")
        return nullcontext()
    expected = asker.preview_synthetic(table, **asked)
    if expected.known:
        return nullcontext()
    seconds = expected.work * probe()
    frame.note(f"Charged first, then the rows are read and the model is fitted: {work_in_words(expected, seconds)}.")
    return clock_bar(frame, "Making the model", seconds)


def _print_preview(console: Console, expected: SyntheticPreview) -> None:
    from dalenius.app.views.synthetic import print_synthetic_preview

    print_synthetic_preview(console, expected)


def names_of(columns: str | None, option: str = "--columns") -> list[str]:
    """The columns of an option."""
    if columns is None:
        return []
    names = [each.strip() for each in columns.split(",")]
    if not all(names):
        raise InputError(
            f"{option} cannot be read.",
            why="It is a list of columns with commas between them.",
            fix=f"Write for example {option} age,region.",
        )
    return names
