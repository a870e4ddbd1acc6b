"""`dalenius tables`: what may be asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli import server_option
from dalenius.app.cli.frame import Frame, framed
from dalenius.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("tables")(tables)


@framed
def tables(
    frame: Frame,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="One table, in full.")] = None,
    fake: Annotated[
        int | None, typer.Option("--fake", metavar="N", help="Make so many practice rows, from the policy alone.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where they go (csv or parquet).")
    ] = None,
    server: server_option.Server = None,
    token_file: server_option.TokenFile = None,
) -> None:
    """Shows which tables there are and what may be asked about them.

    Example: dalenius tables visits --fake 100 -o practice.csv
    """
    from dalenius.app.views.tables import summary_of
    from dalenius.curator import Curator

    remote = server_option.server_of(frame, server, token_file)
    if remote is not None:
        for option, value in (("--fake", fake), ("--output", output)):
            server_option.refuse(option, value, "Practice rows are made from a policy, which stays with the owner.")
        with remote:
            found = remote.tables() if table is None else [remote.table(table)]
        frame.emit(
            {"tables": found},
            lambda console: _print_all(console, found) if table is None else _print_one(console, found[0]),
        )
        return
    curator = Curator(frame.home)
    if (fake is None) != (output is None) or (fake is not None and table is None):
        raise InputError(
            "Practice rows need a table, a number and a file.",
            why="--fake and -o go together, after the table's name.",
            fix="Run: dalenius tables TABLE --fake 100 -o practice.csv",
        )
    if table is None:
        shown = [summary_of(curator, each) for each in curator.tables()]
        frame.emit({"tables": shown}, lambda console: _print_all(console, shown))
        return
    version = curator.history(table)[-1]
    if fake is not None and output is not None:
        from dalenius.tables.practice import practice_rows, write_rows

        write_rows(practice_rows(version.policy, fake), output)
        words = f"Wrote {fake:,} made-up rows to {output}. They come from the policy alone."
        frame.emit(
            {"table": version.table, "rows": fake, "file": str(output)},
            lambda console: console.print(words, markup=False, highlight=False),
        )
        return
    one = summary_of(curator, version)
    frame.emit({"tables": [one]}, lambda console: _print_one(console, one))


def _print_all(console: Console, found: list[dict[str, Any]]) -> None:
    from dalenius.app.views.tables import print_tables

    if not found:
        console.print("No table is protected yet. 'dalenius protect P.toml' does it.", markup=False)
        return
    print_tables(console, found)


def _print_one(console: Console, found: dict[str, Any]) -> None:
    from dalenius.app.views.tables import print_table

    print_table(console, found)
