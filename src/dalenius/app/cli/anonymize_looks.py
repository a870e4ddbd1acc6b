"""`dalenius anonymize check|risk|pseudonymize`: what a table of rows reaches and risks, and other names in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli.anonymity_options import (
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
from dalenius.app.cli.frame import Frame, check_free, framed
from dalenius.app.cli.rows_option import (
    PolicyFile,
    Quasi,
    Sensitive,
    Target,
    check_place,
    policy_of,
    rows_of,
    working,
)
from dalenius.errors import InputError, LedgerCorruptError, NotAllowedError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.anonymity.table import Table

FAILED = LedgerCorruptError.exit_code  # 6: a check that ran well, and failed


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
    m: Annotated[
        int | None,
        typer.Option("--m", metavar="M", help="m-invariance, of this one release.", rich_help_panel=MODELS),
    ] = None,
    id_: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="With the number of the class, for --m.", rich_help_panel=MODELS),
    ] = None,
    policy: PolicyFile = None,
    quasi: Quasi = None,
    sensitive: Sensitive = None,
    plot: Plot = None,
) -> None:
    """Checks whether a table satisfies the models; without any, says what it reaches. Exits with 6 if it does not.

    Example: dalenius anonymize check published.csv --policy people.toml --k 10 --l 3
    """
    from dalenius.anonymity.checking import check as checked
    from dalenius.anonymity.checking import check_release, profile
    from dalenius.anonymity.options import Options

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
        id=id_,
    )
    options.check()
    rows, _ = rows_of(frame, target, policy, quasi=quasi, sensitive=sensitive)
    if plot is not None:
        check_place(plot, rows, policy, population, endings=plot_endings())
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
    if m is not None and id_ is not None:
        found = check_release(table, roles, m, group=id_)
    else:
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
        check_place(plot, rows, policy, population, endings=plot_endings())
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
    part = None if share is None else share_of(share, "--share")
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
    read = [*rows.inputs(), *([] if policy is None else [policy]), *policy_of(target)]
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
