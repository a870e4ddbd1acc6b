"""`dalenius refresh`: the data behind a table's name changed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli.frame import Frame, framed
from dalenius.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.owner.refresh import Refreshed


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("refresh")(refresh)


@framed
def refresh(
    frame: Frame,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table.")],
    new_people: Annotated[
        bool, typer.Option("--new-people", help="Nobody in the new data was there before: the budget starts afresh.")
    ] = False,
    find_limits: Annotated[
        bool, typer.Option("--find-limits", help="Find the limits again, charged to the data set.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Declare new people without being asked.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the history.")] = "",
) -> None:
    """Records that the data behind a table's name changed: rows were added, files were replaced.

    Example: dalenius refresh visits --reason "October arrived"
    """
    from dalenius.app.cli.protect import index_progress
    from dalenius.curator import Curator

    curator = Curator(frame.home)
    frame.require_home()

    def done_with(yes: bool, reason: str) -> Refreshed:
        with index_progress(frame) as progress:
            return curator.refresh(
                table,
                new_people=new_people,
                find_limits=find_limits,
                yes=yes,
                dry_run=dry_run,
                reason=reason,
                progress=progress,
            )

    done = done_with(yes, reason)
    if done.needs and not dry_run:
        done = done_with(True, _confirmed(frame, done, reason))
    if done.index is not None and done.index["state"] == "failed":
        frame.note(f"No contribution index of {done.version.table}: questions are slower. {done.index['why']}")
    frame.emit({"dry_run": dry_run, **done.to_dict()}, lambda console: _print(console, done, dry_run))


def _confirmed(frame: Frame, planned: Refreshed, reason: str) -> str:
    """Asks whether these are new people; who cannot be asked must say so with --yes."""
    dataset = planned.version.dataset
    if frame.json or not sys.stdin.isatty():
        raise InputError(
            f"The budget of {dataset!r} would start afresh.",
            why="That is sound only if nobody in the new data was in the data set before; nothing can check it.",
            fix="If so, run this again with --yes" + (" and --reason TEXT." if "reason" in planned.needs else "."),
        )
    words = f"Is nobody in the new data of {planned.version.table} in {dataset} before? Its budget then starts afresh."
    typer.confirm(words, abort=True, err=True)
    return str(typer.prompt("Why are they new", err=True)) if "reason" in planned.needs else reason


def _print(console: Console, done: Refreshed, dry_run: bool) -> None:
    from dalenius.app.cli.protect import print_search

    version = done.version

    def say(words: str, style: str = "dim") -> None:
        console.print(words, style=style, markup=False, highlight=False)

    if done.state == "unchanged":
        words = "is open again" if done.reopened else "is as it was; nothing to do"
        console.print(f"[bold]{version.table}[/] {words} (data version {version.data_version})", highlight=False)
    else:
        verb = "Would refresh" if dry_run or not done.recorded else "Refreshed"
        console.print(f"{verb} [bold]{version.table}[/]: data version {version.data_version}", highlight=False)
        say("    files: " + ", ".join(f"{number} {what}" for what, number in done.files.items() if number))
    if done.new_people:
        say(f"    NEW PEOPLE: the budget of {version.dataset} and all allotments in it start afresh", "bold red")
    if done.state == "changed":
        say("    stored answers belong to the data before: the same question is a new one, charged anew")
        if not done.new_people:
            say("    the budget goes on: it covers all data versions together")
    elif done.state == "moved":
        say("    the same files elsewhere: stored answers stay good")
    print_search(console, done, dry_run)
    for name, why in done.closed.items():
        say(f"    {name} is closed to everyone: {why}", "yellow")
    if done.needs:
        say(f"    needs --{' and --'.join(done.needs)}", "yellow")
