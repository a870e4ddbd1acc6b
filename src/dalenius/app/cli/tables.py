"""`dalenius tables`: what may be asked."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli.frame import Frame, framed
from dalenius.errors import InputError, SourceError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.tables.registry import Version


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
) -> None:
    """Shows which tables there are and what may be asked about them.

    Example: dalenius tables visits --fake 100 -o practice.csv
    """
    from dalenius.curator import Curator

    curator = Curator(frame.home)
    if (fake is None) != (output is None) or (fake is not None and table is None):
        raise InputError(
            "Practice rows need a table, a number and a file.",
            why="--fake and -o go together, after the table's name.",
            fix="Run: dalenius tables TABLE --fake 100 -o practice.csv",
        )
    if table is None:
        versions = curator.tables()
        closed = {each.table: curator.registry.closed(each.table) for each in versions}
        shown = [summary(each, curator.registry.limits(each), closed[each.table]) for each in versions]
        frame.emit({"tables": shown}, lambda console: _print_all(console, versions, closed))
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
    limits, shut = curator.registry.limits(version), curator.registry.closed(version.table)
    frame.emit({"tables": [summary(version, limits, shut)]}, lambda console: _print_one(console, version, limits, shut))


def summary(version: Version, limits: Mapping[str, Any] | None = None, closed: str | None = None) -> dict[str, Any]:
    """What analysts may know of a table: not where the data is, nor who else may ask. Found limits are public."""
    tree = version.policy.to_dict()
    return {
        "name": version.table,
        "dataset": version.dataset,
        "unit": list(version.policy.unit),
        "path": version.policy.whose if version.policy.path else None,
        "neighbors": version.policy.neighbors.value,
        "columns": tree.get("columns", {}),
        "contribution": tree.get("contribution", {}),
        "limits": limits,
        "public": public_of(version),
        "version": version.version,
        "data_version": version.data_version,
        "closed": closed,
    }


def public_of(version: Version) -> dict[str, dict[str, Any]]:
    """The public tables beside a table: what is unique in them, and columns with types; none where files changed."""
    from dalenius.queries.public import public_table
    from dalenius.tables.public import check_public_unchanged

    found = {}
    for name, spec in version.policy.public.items():
        try:
            check_public_unchanged(version, [name])
            columns = dict(public_table(spec, version.public[name]).types)
        except SourceError:  # asking will tell
            columns = None
        found[name] = {"key": list(spec.key), "columns": columns}
    return found


def _print_all(console: Console, versions: list[Version], closed: Mapping[str, str | None]) -> None:
    from rich.table import Table
    from rich.text import Text

    if not versions:
        console.print("No table is protected yet. 'dalenius protect P.toml' does it.", markup=False)
        return
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for title in ("table", "data set", "unit", "columns"):
        table.add_column(title, overflow="fold")
    for version in versions:
        policy = version.policy
        cells = (version.table, version.dataset, policy.whose, ", ".join(policy.columns))
        table.add_row(*map(Text, cells))
    console.print(table)
    public = sorted({name for version in versions for name in version.public})
    if public:
        console.print(Text(f"public, read exactly and for nothing: {', '.join(public)}", "dim"))
    for name, why in closed.items():
        _print_closed(console, name, why)


def _print_closed(console: Console, name: str, why: str | None) -> None:
    if why is not None:
        console.print(f"{name} is closed to everyone: {why}", style="yellow", markup=False, highlight=False)


def _print_one(console: Console, version: Version, limits: Mapping[str, Any] | None, closed: str | None) -> None:
    from dalenius.app.cli.policy import print_policy

    console.print(f"[bold]{version.table}[/]", highlight=False)
    _print_closed(console, version.table, closed)
    print_policy(console, version.policy)
    for line in limit_lines(limits or {}):
        console.print(f"    {line}", style="dim", markup=False, highlight=False)
    for name, found in public_of(version).items():
        known = found["columns"] or {"its files changed": ""}
        columns = ", ".join(f"{column} {type_}".rstrip() for column, type_ in known.items())
        key = f"; unique: {', '.join(found['key'])}" if found["key"] else ""
        console.print(f"    public {name}: {columns}{key}", style="dim", markup=False, highlight=False)


def limit_lines(found: Mapping[str, Any]) -> list[str]:
    """The limits that were found, with what lies beyond them, for people."""
    if not found:
        return []
    clipped = found.get("clipped", {})
    lines = [f"limits: {found['rows']:,} rows a unit" + _beyond(clipped.get("rows"), "rows") + left(found)]
    for name, total in found["totals"].items():
        beyond = _beyond(clipped.get(f"total {name}"), f"total of {name}")
        lines.append(f"limits: {float(Fraction(total)):,.10g} of {name} a unit" + beyond)
    return lines


def left(found: Mapping[str, Any]) -> str:
    """Says so of limits, units and rows that a refresh left as they were found for earlier data."""
    return f", in data version {found['data_version']}" if "data_version" in found else ""


def _beyond(share: float | None, what: str) -> str:
    """Says it only where it was estimated; an estimate of nothing means that the noise hides it."""
    if share is None:
        return ""
    about = f"about {100 * share:.2g}%" if share >= 0.001 else "less than 0.1%"
    return f"; {about} of the {what} {'lie' if what == 'rows' else 'lies'} beyond"
