"""`dalenius policy`: draft, check and compare policies."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli.frame import Frame, check_free, framed, group
from dalenius.app.views import to_second
from dalenius.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from dalenius.tables.difference import Change
    from dalenius.tables.policy import Policy


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = group("Drafts, checks and compares policies: who is protected, what may be asked, how much.")
    for command in (draft, check, diff, show, history):
        commands.command(command.__name__)(command)
    app.add_typer(commands, name="policy")


PolicyFile = Annotated[Path, typer.Argument(metavar="P.toml", help="A policy.")]
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="A protected table.")]


@framed
def draft(
    frame: Frame,
    source: Annotated[
        str | None,
        typer.Argument(metavar="SOURCE", help="Parquet or CSV; a path or a glob. With --from: if known."),
    ] = None,
    metadata: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="SmartNoise's metadata (YAML), to draft it from.")
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="T", help="Which table of the metadata, where it has several.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it there.")] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="COL", help="The column that says whose a row is.")
    ] = None,
    keys: Annotated[
        list[str] | None, typer.Option("--keys", metavar="COL=FILE:COLUMN", help="A column's keys, from a code list.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Overwrite the file.")] = False,
) -> None:
    """Drafts a policy from names and types of a source's columns, or from SmartNoise's metadata.

    Only the types of a CSV's columns are guessed, from its first rows; nothing else comes from a row.

    Example: dalenius policy draft visits.parquet -o visits.toml --keys region=codes.csv:code
    """
    from dalenius.curator import Curator
    from dalenius.tables import draft as drafting
    from dalenius.tables.sources.homes import check_output, check_sources

    curator = Curator(frame.home)  # whose home is then known, if there is one
    if output is not None:
        check_output(output)
    check_sources(Path(_parts(each)[1]) for each in keys or [])
    if output is not None:
        check_free(output, yes=yes)
    file = output.name if output else "policy.toml"
    if metadata is not None:
        if unit or keys:
            why = "The metadata says whose a row is; keys are added to the draft."
            raise InputError("--from takes neither --unit nor --keys.", why=why, fix="Leave them out.")
        from dalenius.tables import smartnoise

        found = smartnoise.read_metadata(metadata, table)
        where = None if source is None else _relative(source, output)
        text = smartnoise.draft_from_metadata(found, where, None if source is None else _schema(source), file=file)
    elif source is None or table is not None:
        raise InputError(
            "Which table?" if source is None else "--table is for --from.",
            why="A draft is made from a source's schema, or from metadata.",
            fix="Name a Parquet or CSV file, or give --from FILE.",
        )
    else:
        lists = dict(_code_list(each, output) for each in keys or [])
        text = drafting.draft_policy(_relative(source, output), _schema(source), file=file, unit=unit, keys=lists)
    if output is not None:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError:
            raise InputError(
                f"{output.name} cannot be written.", why="Its folder is missing or not yours.", fix="Name another file."
            ) from None

    def human(console: Console) -> None:
        if output is None:
            console.print(text, markup=False, highlight=False, soft_wrap=True, end="")
        else:
            console.print(f"Wrote {output}. Fill in what is marked, then:", highlight=False)
            console.print(f"    dalenius policy check {output}", style="bold", highlight=False)

    frame.emit({"policy": text, "file": str(output) if output else None}, human)
    del curator


@framed
def check(frame: Frame, file: PolicyFile) -> None:
    """Checks a policy, and that its source has the columns it names.

    Example: dalenius policy check visits.toml
    """
    from dalenius.curator import Curator

    policy = Curator(frame.home).check(file)

    def human(console: Console) -> None:
        console.print(f"[bold green]The policy is good[/]: table {policy.name}", highlight=False)
        print_policy(console, policy)

    frame.emit({"valid": True, "version": policy.version, "policy": policy.to_dict()}, human)


@framed
def diff(frame: Frame, file: PolicyFile) -> None:
    """Shows what a policy would change.

    Example: dalenius policy diff visits.toml
    """
    from dalenius.curator import Curator
    from dalenius.tables.difference import difference
    from dalenius.tables.reading import read_file

    policy = read_file(file)
    changes = difference(Curator(frame.home).policy(policy.name), policy)
    data = {"table": policy.name, "difference": [change.to_dict() for change in changes]}
    frame.emit(data, lambda console: print_difference(console, policy.name, changes))


@framed
def show(frame: Frame, table: TableName) -> None:
    """Prints the policy in force, with everything spelled out.

    Example: dalenius policy show visits
    """
    from dalenius.curator import Curator

    version = Curator(frame.home).history(table)[-1]
    data = {
        "table": version.table,
        "version": version.version,
        "data_version": version.data_version,
        "policy": version.policy.to_dict(),
        "text": version.text,
    }
    frame.emit(data, lambda console: console.print(version.text, markup=False, highlight=False, soft_wrap=True, end=""))


@framed
def history(frame: Frame, table: TableName) -> None:
    """Lists every version of a table's policy, and what each changed.

    Example: dalenius policy history visits
    """
    from dalenius.curator import Curator
    from dalenius.tables.difference import difference

    versions = Curator(frame.home).history(table)
    changes = [()] + [difference(one.policy, next_.policy) for one, next_ in pairwise(versions)]
    data = {
        "table": versions[-1].table,
        "versions": [
            {
                "entry": version.entry,
                "time": version.time,
                "version": version.version,
                "data_version": version.data_version,
                "reason": version.reason or None,
                "by": version.by or None,
                "difference": [change.to_dict() for change in changed],
            }
            for version, changed in zip(versions, changes, strict=True)
        ],
    }

    def human(console: Console) -> None:
        for version, changed in zip(versions, changes, strict=True):
            when = to_second(version.time)
            words = ", ".join(each for each in (f"by {version.by}" if version.by else "", version.reason) if each)
            why = f"  ({words})" if words else ""
            console.print(f"{when}  version {version.version[:12]}, data {version.data_version}{why}", markup=False)
            for change in changed:
                console.print(f"    {change}", markup=False, highlight=False)

    frame.emit(data, human)


def print_difference(console: Console, name: str, changes: Sequence[Change]) -> None:
    """What changed, one line each, with what that means."""
    from rich.text import Text

    if not changes:
        console.print(f"{name}: nothing changes.", markup=False, highlight=False)
    for change in changes:
        note = (f"  ({change.note})", "dim") if change.note else ""
        console.print(Text.assemble("    ", str(change), note))


def print_policy(console: Console, policy: Policy) -> None:
    """What may be asked: columns, types, bounds, keys, limits; and that limits will be found, where they will."""
    from dalenius.app.views.tables import print_shape, shape

    print_shape(console, shape(policy))
    if policy.contribution.rows is None:
        words = "without rows, 'protect' finds limits privately; 'protect --dry-run' says what that costs"
        console.print(f"    {words}", style="dim", markup=False, highlight=False)


def _schema(source: str) -> Sequence[tuple[str, str]]:
    """Names and types of a source."""
    from dalenius.measuring.engines.sources import schema
    from dalenius.tables.sources.fingerprint import expand, form_of

    paths = expand([str(Path(source).absolute())])
    return schema(paths, form_of(paths), guess=True)


def _code_list(given: str, output: Path | None) -> tuple[str, tuple[str, str]]:
    column, file, code = _parts(given)
    return column, (_relative(file, output), code)


def _parts(given: str) -> tuple[str, str, str]:
    """Column, file and the file's column."""
    column, equals, rest = given.partition("=")
    file, colon, code = rest.rpartition(":")
    if not (equals and colon and column and file and code):
        raise InputError(
            "--keys cannot be read.", why="It is COL=FILE:COLUMN.", fix="Write --keys region=codes.csv:code."
        )
    return column, file, code


def _relative(path: str, output: Path | None) -> str:
    """A path as the policy must spell it: relative to where the policy will be."""
    if Path(path).is_absolute():
        return path
    folder = output.absolute().parent if output else Path.cwd()
    return Path(os.path.relpath(Path(path).absolute(), folder)).as_posix()
