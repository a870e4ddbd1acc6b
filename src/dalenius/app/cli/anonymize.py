"""`dalenius anonymize`: tables of rows for publication, whether one is what it should be, and what it risks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli.frame import Frame, check_free, framed, group
from dalenius.app.cli.rows_option import (
    Identifiers,
    PolicyFile,
    Quasi,
    Sensitive,
    Target,
    check_place,
    rows_of,
    working,
)
from dalenius.errors import InputError, LedgerCorruptError, NotAllowedError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.anonymity.options import Made, Options
    from dalenius.anonymity.publishing import Published
    from dalenius.anonymity.sources import Rows
    from dalenius.anonymity.table import Table
    from dalenius.curator import Curator
    from dalenius.ledger.publications import PublishedRows

FAILED = LedgerCorruptError.exit_code  # 6: a check that ran well, and failed
_MODELS, _MAKING = "What is asked of the rows", "How they are made"

K = Annotated[
    int | None, typer.Option("--k", metavar="K", help="So many rows look alike, at least.", rich_help_panel=_MODELS)
]
L = Annotated[
    float | None,
    typer.Option("--l", metavar="L", help="So many sensitive values in each class.", rich_help_panel=_MODELS),
]
LKind = Annotated[
    str | None,
    typer.Option(
        "--l-kind", metavar="KIND", help="distinct, probabilistic, entropy or recursive.", rich_help_panel=_MODELS
    ),
]
C = Annotated[
    float | None, typer.Option("--c", metavar="C", help="Of recursive (c,l)-diversity.", rich_help_panel=_MODELS)
]
T = Annotated[
    float | None,
    typer.Option("--t", metavar="T", help="A class is at most so far from the table.", rich_help_panel=_MODELS),
]
TDistance = Annotated[
    str | None,
    typer.Option("--t-distance", metavar="D", help="ordered, equal or hierarchy.", rich_help_panel=_MODELS),
]
Beta = Annotated[
    float | None,
    typer.Option("--beta", metavar="B", help="No value is 1+B times likelier in a class.", rich_help_panel=_MODELS),
]
Presence = Annotated[
    str | None,
    typer.Option("--presence", metavar="MIN,MAX", help="How sure one is in the table.", rich_help_panel=_MODELS),
]
Population = Annotated[
    Path | None,
    typer.Option("--population", metavar="FILE", help="Everybody who could be in it.", rich_help_panel=_MODELS),
]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw class sizes, and loss by k (png or svg).")
]


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
        typer.Option("--m", metavar="M", help="m-invariance, over releases that follow.", rich_help_panel=_MODELS),
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option("--previous", metavar="STATE", help="Remembers earlier releases.", rich_help_panel=_MODELS),
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Whose a row is, for --m.", rich_help_panel=_MODELS)
    ] = None,
    suppress: Annotated[
        str, typer.Option("--suppress", metavar="5%", help="So many rows may be suppressed.", rich_help_panel=_MAKING)
    ] = "0%",
    loss: Annotated[
        str,
        typer.Option(
            "--loss", metavar="LOSS", help="ncp, discernibility, class-size or entropy.", rich_help_panel=_MAKING
        ),
    ] = "ncp",
    time: Annotated[
        float | None,
        typer.Option("--time", metavar="S", help="After so many seconds the best so far.", rich_help_panel=_MAKING),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="M",
            help="optimal, mondrian, mondrian-relaxed, local or greedy.",
            rich_help_panel=_MAKING,
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
        presence=_presence(presence),
        population=None if population is None else str(population.absolute()),
        m=m,
        previous=None if previous is None else str(previous.absolute()),
        id=id_,
        suppress=_share(suppress, "--suppress"),
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
        raise InputError("Where to?", why="Rows are written to a file.", fix="Give -o OUT.csv, or --dry-run.")
    written = [each for each in (output, plot, report) if each is not None]
    for file, endings in ((output, (".csv", ".parquet")), (plot, _plots()), (report, (".html", ".json"))):
        if file is not None:
            check_place(file, rows, endings=endings)
    files = [*rows.inputs(), *options.reads(), *([] if policy is None else [policy]), *_policy_of(target)]
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


def _policy_of(target: str) -> list[Path]:
    """The policy file that was named in the place of a table."""
    return [Path(target)] if target.lower().endswith(".toml") else []


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


@framed
def check(
    frame: Frame,
    target: Target,
    k: K = None,
    l: L = None,  # noqa: E741
    l_kind: LKind = None,
    c: C = None,
    t: T = None,
    t_distance: TDistance = None,
    beta: Beta = None,
    presence: Presence = None,
    population: Population = None,
    policy: PolicyFile = None,
    quasi: Quasi = None,
    sensitive: Sensitive = None,
    plot: Plot = None,
) -> None:
    """Checks whether a table satisfies the models; without any, says what it reaches. Exits with 6 if it does not.

    Example: dalenius anonymize check published.csv --policy people.toml --k 10 --l 3
    """
    from dalenius.anonymity.checking import check as checked
    from dalenius.anonymity.checking import profile
    from dalenius.anonymity.options import Options

    options = Options(
        k=k,
        l=l,
        l_kind=l_kind,
        c=c,
        t=t,
        t_distance=t_distance,
        beta=beta,
        presence=_presence(presence),
        population=None if population is None else str(population.absolute()),
    )
    options.check()
    rows, _ = rows_of(frame, target, policy, quasi=quasi, sensitive=sensitive)
    if plot is not None:
        check_place(plot, rows, policy, population, endings=_plots())
    roles, table = rows.roles, rows.read()
    roles.check(table)
    if plot is not None:
        _draw_classes(frame, plot, table, roles.quasi)
    if not options.to_json():
        reached = profile(table, roles)

        def tell(console: Console) -> None:
            from dalenius.app.views.publications import print_profile

            print_profile(console, reached)

        frame.emit(reached, tell)
        return
    found = checked(table, roles, options.models())

    def human(console: Console) -> None:
        from dalenius.app.views.publications import print_check

        print_check(console, found)

    frame.emit(found.to_dict(), human, 0 if found.met else FAILED)


@framed
def risk(
    frame: Frame,
    target: Target,
    population: Annotated[
        Path | None,
        typer.Option("--population", metavar="FILE", help="Everybody who could be in it, generalised alike."),
    ] = None,
    share: Annotated[
        str | None, typer.Option("--share", metavar="10%", help="Which share of everybody is in it; for an estimate.")
    ] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="P", help="Rows above this risk are counted.")
    ] = 0.2,
    person: Annotated[
        str | None, typer.Option("--person", metavar="COLUMN", help="Of events: whose one is. Tells unicity.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="C,C", help="Of events: where and when; columns of a point.")
    ] = None,
    points: Annotated[int, typer.Option("--points", metavar="N", help="So many points are known of somebody.")] = 4,
    policy: PolicyFile = None,
    quasi: Quasi = None,
    plot: Plot = None,
) -> None:
    """Says how likely somebody in a table is found again: by who knows them to be in it, and by who does not.

    Example: dalenius anonymize risk published.csv --policy people.toml --share 10%
    """
    if (person is None) != (at is None):
        raise InputError(
            "--person and --at belong together.",
            why="Events are points of people.",
            fix="Give --person COLUMN --at COLUMN,COLUMN.",
        )
    rows, _ = rows_of(frame, target, policy, quasi=quasi, needs=None if person else "quasi")
    if plot is not None:
        check_place(plot, rows, policy, population, endings=_plots())
    if person is not None and at is not None:
        from dalenius.anonymity.unicity import unicity

        events = unicity(rows.read(), person, [each.strip() for each in at.split(",")], known=points)

        def tell(console: Console) -> None:
            from dalenius.app.views.publications import print_unicity

            print_unicity(console, events)

        frame.emit(events.to_dict(), tell)
        return
    from dalenius.anonymity.risk import risk as risked
    from dalenius.anonymity.sources import read_files

    roles, table = rows.roles, rows.read()
    roles.check(table)
    people = None if population is None else read_files([population])
    part = None if share is None else _share(share, "--share")
    found = risked(table, roles.quasi, population=people, share=part, threshold=threshold)
    if plot is not None:
        _draw_classes(frame, plot, table, roles.quasi)

    def human(console: Console) -> None:
        from dalenius.app.views.publications import print_risk

        print_risk(console, found)

    frame.emit(found.to_dict(), human)


@framed
def pseudonymize(
    frame: Frame,
    target: Target,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT", help="Write the rows there (csv or parquet).")
    ],
    secret: Annotated[
        Path, typer.Option("--secret", metavar="FILE", help="The key, or the lookup table; made if it is not there.")
    ],
    column: Annotated[
        list[str] | None, typer.Option("--column", metavar="C", help="Replace it; by default all identifiers.")
    ] = None,
    method: Annotated[str, typer.Option("--method", metavar="M", help="keyed, lookup or tokens.")] = "keyed",
    policy: PolicyFile = None,
    yes: Annotated[bool, typer.Option("--yes", help="Overwrite OUT.")] = False,
) -> None:
    """Replaces what names people by pseudonyms, and says what that does not do. The key stays in a file of yours.

    Example: dalenius anonymize pseudonymize people.csv --column name --secret names.key -o coded.csv
    """
    from dalenius.anonymity.places import check_apart
    from dalenius.anonymity.pseudonyms import pseudonymize as replaced
    from dalenius.anonymity.table import write_table
    from dalenius.tables.sources.homes import check_output

    rows, curator = rows_of(frame, target, policy, needs=None if column else "identifiers", leaves=True)
    if rows.version is not None:
        raise NotAllowedError(
            f"{rows.version.table} is protected, and pseudonyms publish it as it is.",
            why="Everything but the names would leave, row by row; that is no way to publish a protected table.",
            fix="Use 'dalenius anonymize run' with a model, or ask questions.",
        )
    check_place(output, rows, endings=(".csv", ".parquet"))
    check_output(secret)
    read = [*rows.inputs(), *([] if policy is None else [policy]), *_policy_of(target)]
    check_apart(read, [output, secret], None if curator is None else curator.registry)
    check_free(output, yes=yes)
    columns = column or list(rows.section.get("identifiers", []))
    new = not secret.exists()
    with working(frame, "Replacing names"):
        found = replaced(rows.read(), columns, method=method, secret=secret)
        write_table(found.table, output)
    if new:
        frame.note(f"Made {secret}, readable by you alone. Who has it can undo the pseudonyms; who loses it cannot.")
    data = {**found.to_dict(), "output": str(output), "secret": str(secret)}

    def human(console: Console) -> None:
        from dalenius.app.views.publications import print_pseudonyms

        print_pseudonyms(console, found, output, secret)

    frame.emit(data, human)


def _draw_classes(frame: Frame, plot: Path, table: Table, quasi: tuple[str, ...]) -> None:
    from dalenius.app.views.publications import draw_classes

    draw_classes(plot, table, quasi)
    frame.note(f"Drew {plot}.")


def _plots() -> tuple[str, ...]:
    from dalenius.releasing.targets import PLOT

    return PLOT


def _share(text: str, option: str) -> float:
    """A share, as 5% or 0.05."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(
            f"{option} cannot be read.", why="It is a share from 0% to 100%.", fix=f"Write {option} 5%, or 0.05."
        )
    return value


def _presence(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(each) for each in text.split(","))
    except ValueError:
        raise InputError(
            "--presence cannot be read.", why="It is MIN,MAX: two probabilities.", fix="Write --presence 0,0.5."
        ) from None
    return low, high
