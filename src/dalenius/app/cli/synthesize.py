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
from dalenius.errors import Charge, DaleniusError, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.analyst import Asking
    from dalenius.synthesis.preview import SyntheticPreview
    from dalenius.synthesis.release import SyntheticTable

Table = Annotated[str, typer.Argument(metavar="TABLE", help="A protected table.")]
Epsilon = Annotated[float, typer.Option("--epsilon", metavar="E", help="The price of all of it.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the rows (csv or parquet).")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be modelled and how noisy it would be. Charges nothing.")
]
MethodName = Annotated[str, typer.Option("--method", metavar="M", help="The generator; auto takes the best there is.")]
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
Seconds = Annotated[
    float | None,
    typer.Option("--time", metavar="S", help="The best that about S seconds of work give, by public sizes alone."),
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
    dry_run: DryRun = False,
    server: server_option.Server = None,
    token_file: server_option.TokenFile = None,
) -> None:
    """Writes made-up rows that are like a table's. Charged once, before the data is looked at; more rows are free.

    Example: dalenius synthesize visits --analyst ana --epsilon 1 -o visits-synthetic.csv
    """
    from dalenius.releasing.targets import check_target
    from dalenius.synthesis.release import FILES
    from dalenius.synthesis.stored import check_rows

    # Whatever can be wrong with the file or the number of rows is found before anything is charged.
    if rows is not None:
        check_rows(rows)
    chosen = names_of(columns)
    if output is None:
        if not dry_run:
            raise InputError("Where to?", why="The rows are written to a file.", fix="Give -o FILE.csv, or --dry-run.")
    else:
        check_target(output, FILES)
    asker = analyst_of(frame, analyst, server, token_file)
    asked: dict[str, Any] = {
        "epsilon": epsilon,
        "method": method,
        "columns": chosen,
        "target": target,
        "rows_per_unit": rows_per_unit,
        "time": work,
    }
    if dry_run or output is None:
        expected = asker.preview_synthetic(table, **asked)
        frame.emit(expected.to_dict(), lambda console: _print_preview(console, expected))
        return
    began = time.monotonic()
    with _expected(frame, asker, table, asked):
        found = asker.synthesize(table, **asked)
    written = _write(found, output, rows, seed)
    seconds = time.monotonic() - began
    frame.note(f"Wrote {written:,} rows in {output}.")

    def human(console: Console) -> None:
        from dalenius.app.views.synthetic import print_synthetic

        print_synthetic(console, found)

    data = {name: each for name, each in found.to_dict().items() if name != "model"}
    frame.emit({**data, "written": written, "output": str(output), "seconds": round(seconds, 3)}, human)


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


def names_of(columns: str | None) -> list[str]:
    """The columns of an option."""
    if columns is None:
        return []
    names = [each.strip() for each in columns.split(",")]
    if not all(names):
        raise InputError(
            "--columns cannot be read.",
            why="It is a list of columns with commas between them.",
            fix="Write for example --columns age,region.",
        )
    return names


def _write(found: SyntheticTable, output: Path, rows: int | None, seed: int | None) -> int:
    try:
        return found.write(output, rows, seed=seed)
    except DaleniusError as error:
        error.charge = Charge(found.charge["epsilon"], found.charge["delta"])
        error.why += " The model was made, and is stored."
        error.fix += " Then ask the same again: it is free now."
        raise
