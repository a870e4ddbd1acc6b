"""`dalenius anonymize`: tables of rows for publication; how one is made. What it is worth is in `anonymize_looks`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli.anonymity_options import (
    MAKING,
    MODELS,
    Beta,
    C,
    K,
    L,
    LKind,
    Plot,
    Population,
    Presence,
    T,
    TDistance,
    plot_endings,
    presence_of,
    share_of,
)
from dalenius.app.cli.anonymize_looks import check, pseudonymize, risk
from dalenius.app.cli.frame import Frame, framed, group
from dalenius.app.cli.rows_option import (
    Identifiers,
    PolicyFile,
    Quasi,
    Sensitive,
    Target,
    check_place,
    policy_of,
    rows_of,
    working,
)
from dalenius.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.anonymity.options import Made, Options
    from dalenius.anonymity.publishing import Published
    from dalenius.anonymity.sources import Rows
    from dalenius.curator import Curator
    from dalenius.ledger.publications import PublishedRows


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = group("Makes tables of rows for publication, without a guarantee; checks them and what they risk.")
    commands.command("run")(run)
    commands.command("check")(check)
    commands.command("risk")(risk)
    commands.command("pseudonymize")(pseudonymize)
    app.add_typer(commands, name="anonymize")


@framed
def run(
    frame: Frame,
    target: Target,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="OUT", help="Write the rows there (csv or parquet).")
    ] = None,
    k: K = None,
    l: L = None,  # noqa: E741
    l_kind: LKind = None,
    c: C = None,
    t: T = None,
    t_distance: TDistance = None,
    beta: Beta = None,
    presence: Presence = None,
    population: Population = None,
    m: Annotated[
        int | None,
        typer.Option("--m", metavar="M", help="m-invariance, over releases that follow.", rich_help_panel=MODELS),
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option("--previous", metavar="STATE", help="Remembers earlier releases.", rich_help_panel=MODELS),
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Whose a row is, for --m.", rich_help_panel=MODELS)
    ] = None,
    suppress: Annotated[
        str, typer.Option("--suppress", metavar="5%", help="So many rows may be suppressed.", rich_help_panel=MAKING)
    ] = "0%",
    loss: Annotated[
        str,
        typer.Option(
            "--loss", metavar="LOSS", help="ncp, discernibility, class-size or entropy.", rich_help_panel=MAKING
        ),
    ] = "ncp",
    time: Annotated[
        float | None,
        typer.Option("--time", metavar="S", help="After so many seconds the best so far.", rich_help_panel=MAKING),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="M",
            help="optimal, mondrian, mondrian-relaxed, local or greedy.",
            rich_help_panel=MAKING,
        ),
    ] = "optimal",
    policy: PolicyFile = None,
    quasi: Quasi = None,
    sensitive: Sensitive = None,
    identifiers: Identifiers = None,
    plot: Plot = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Loss, risk, attacks and what noise would cost (html or json)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would be like, write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Publish rows of a protected table.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the history.")] = "",
) -> None:
    """Makes rows alike until the models hold, and writes them. Of a protected table, that is put on record first.

    Example: dalenius anonymize run people.toml --k 10 --l 3 --suppress 5% -o published.csv
    """
    from dalenius.anonymity.options import Options
    from dalenius.anonymity.places import check_apart

    options = Options(
        k=k,
        l=l,
        l_kind=l_kind,
        c=c,
        t=t,
        t_distance=t_distance,
        beta=beta,
        presence=presence_of(presence),
        population=None if population is None else str(population.absolute()),
        m=m,
        previous=None if previous is None else str(previous.absolute()),
        id=id_,
        suppress=share_of(suppress, "--suppress"),
        loss=loss,
        time=time,
        method=method,
    )
    options.check()
    rows, curator = rows_of(
        frame,
        target,
        policy,
        quasi=quasi,
        sensitive=sensitive,
        identifiers=identifiers,
        leaves=True,
        options=options,
    )
    if output is None and not dry_run:
        raise InputError(
            "--output is missing.", why="Rows are written to a file.", fix="Give -o OUT.csv, or --dry-run."
        )
    written = [each for each in (output, plot, report) if each is not None]
    for file, endings in ((output, (".csv", ".parquet")), (plot, plot_endings()), (report, (".html", ".json"))):
        if file is not None:
            check_place(file, rows, endings=endings)
    files = [*rows.inputs(), *options.reads(), *([] if policy is None else [policy]), *policy_of(target)]
    check_apart(files, [*written, *options.writes()], None if curator is None else curator.registry)
    for file in written:
        _check_free(file, overwrite=overwrite)
    if not dry_run and rows.version is not None and not yes:
        _confirm(frame, rows)
    with working(frame, "Making rows alike") as progress:
        done = _done(curator, rows, options, output, dry_run=dry_run, reason=reason, progress=progress)
        original = rows.read() if (plot or report) else None
        made = done.made
        if original is not None and made is None:  # on record before: its rows are in the file
            made = _read_made(done)
        if plot is not None and original is not None and made is not None:
            from dalenius.app.views.publications import draw_publication

            draw_publication(plot, original, made, rows, options)
        if report is not None and original is not None and made is not None:
            from dalenius.app.report.rows import write_report

            write_report(report, original, made, rows, options, curator)
    for file in (plot, report):
        if file is not None:
            file.chmod(0o600)  # computed from the rows, for the owner
            frame.note(f"Wrote {file}.")
    data = {**done.to_dict(), "output": None if dry_run else str(output)}

    def human(console: Console) -> None:
        from dalenius.app.views.publications import print_publication

        beside = [each for each in (plot, report) if each is not None]
        print_publication(console, done, output if not dry_run else None, beside)

    frame.emit(data, human)


def _done(
    curator: Curator | None,
    rows: Rows,
    options: Options,
    output: Path | None,
    *,
    dry_run: bool,
    reason: str,
    progress: Any,
) -> Published:
    """Makes the rows and hands them over; of a protected table, once that is on record."""
    from dalenius.anonymity import publishing

    if dry_run or output is None:
        before: Sequence[PublishedRows] = ()
        if rows.version is not None and curator is not None:
            before = curator.ledger.published(rows.version.dataset)
        return publishing.preview(rows, options, progress=progress, before=before)
    if rows.version is None or curator is None:
        found = publishing.preview(rows, options, progress=progress)
        if found.made is not None:
            publishing.keep_state(found.made, options)  # first: a series never forgets what left
        found.write(output)
        return found
    form = output.suffix.lower()
    wanted = publishing.Wanted(rows.name, options, form, yes=True, reason=reason)
    found = publishing.publish(curator.ledger, rows, wanted, progress=progress)
    found.write(output)
    return found


def _read_made(done: Published) -> Made | None:
    from dalenius.anonymity.options import Made
    from dalenius.anonymity.table import read_table

    return None if done.file is None else Made(read_table(done.file), dict(done.facts))


def _check_free(file: Path, *, overwrite: bool) -> None:
    """Refuses to overwrite a file without a word; --yes is about publishing, and says nothing of files."""
    if file.exists() and not overwrite:
        raise InputError(
            f"{file.name} is there already.", why="It may be yours.", fix="Name another, or give --overwrite."
        )


def _confirm(frame: Frame, rows: Rows) -> None:
    """Asks; who cannot be asked must say so with --yes."""
    from dalenius.anonymity.publishing import WHY

    name = "" if rows.version is None else rows.version.table
    if frame.json or not sys.stdin.isatty():
        raise InputError(
            f"{name} is protected: publishing its rows cannot be undone.",
            why=WHY,
            fix="If that is meant, run this again with --yes. With --dry-run you see what it would be like.",
        )
    typer.confirm(f"{name} is protected. {WHY} Publish?", abort=True, err=True)
