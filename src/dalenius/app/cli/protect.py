"""`dalenius protect`: puts policies in force. `dalenius refresh`: the data behind a table's name changed."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli.frame import Frame, framed, stderr
from dalenius.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console
    from rich.progress import TaskID

    from dalenius.owner.index import IndexProgress
    from dalenius.owner.protect import Protected
    from dalenius.owner.refresh import Refreshed


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("protect")(protect)
    app.command("refresh")(refresh)


@framed
def protect(
    frame: Frame,
    files: Annotated[list[Path], typer.Argument(metavar="P.toml...", help="Policies; those of one data set together.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Record a change without asking.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the history.")] = "",
) -> None:
    """Records policies; again with a changed file: shows the difference, asks, records.

    Example: dalenius protect visits.toml --dry-run
    """
    from dalenius.curator import Curator
    from dalenius.errors import HomeMissingError
    from dalenius.ledger.home import future_home, is_above, shown_home

    curator = Curator(frame.home)
    try:
        before = curator.home
        if is_above(before, frame.home):
            frame.note(f"Using the home of a folder above: {shown_home(frame.home)}.")
    except HomeMissingError:
        before = None
        if dry_run:
            frame.note(f"There is no home yet; 'dalenius protect' will make {future_home(frame.home)}.")
    with _index_progress(frame) as progress:
        done = curator.protect(*files, dry_run=dry_run, yes=yes, reason=reason, progress=progress)
    if not dry_run and any(each.needs for each in done):
        reason = _confirm_change(frame, done, reason)
        with _index_progress(frame) as progress:
            done = curator.protect(*files, yes=True, reason=reason, progress=progress)
    _note_missing_index(frame, *done)
    if before is None and not dry_run:
        frame.note(f"Made a home in {curator.home}. Back it up: it holds the ledger and its keys.")
    data = {
        "dry_run": dry_run,
        "tables": [each.to_dict() for each in done],
        "home": None if dry_run and before is None else str(curator.home),
    }
    frame.emit(data, lambda console: _print_protected(console, done, dry_run))


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
    from dalenius.curator import Curator

    curator = Curator(frame.home)
    frame.require_home()

    def done_with(yes: bool, reason: str) -> Refreshed:
        with _index_progress(frame) as progress:
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
        done = done_with(True, _confirm_new_people(frame, done, reason))
    _note_missing_index(frame, done)
    frame.emit({"dry_run": dry_run, **done.to_dict()}, lambda console: _print_refreshed(console, done, dry_run))


@contextmanager
def _index_progress(frame: Frame) -> Iterator[IndexProgress | None]:
    """A bar on stderr while the contribution index is built; none for scripts."""
    if frame.json or frame.quiet:
        yield None
        return
    import rich.progress
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[part]}"), TimeElapsedColumn())
    with rich.progress.Progress(*columns, console=stderr(), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def told(table: str, done: int, of: int, part: str) -> None:
            if table not in tasks:
                tasks[table] = bar.add_task(f"Index of {table}", total=of, part=part)
            bar.update(tasks[table], completed=done, part=part)

        yield told


def _note_missing_index(frame: Frame, *done: Protected | Refreshed) -> None:
    for each in done:
        if each.index is not None and each.index["state"] == "failed":
            frame.note(f"No contribution index of {each.version.table}: questions are slower. {each.index['why']}")


def _confirm_change(frame: Frame, planned: Sequence[Protected], reason: str) -> str:
    """Shows what would change and asks; who cannot be asked must say so with --yes."""
    from dalenius.ledger.home import shown_home

    changed, home = [each for each in planned if each.needs], shown_home(frame.home)
    names = ", ".join(repr(each.version.table) for each in changed)
    near = [words for each in changed for words in each.beside]
    if frame.json or not sys.stdin.isatty():
        if near:
            raise InputError(
                f"{near[0]}.",
                why="Code lists and public tables can be read by everyone who may ask; this one could be about people.",
                fix="If it is not, run this again with --yes, or keep such files in a folder of their own.",
            )
        raise InputError(
            f"The policy of {names} changes what is in force in the home {home}.",
            why="A change is recorded only when the owner has seen it.",
            fix="See 'dalenius policy diff P.toml', then run this again with --yes"
            + (" and --reason TEXT." if any("reason" in each.needs for each in changed) else "."),
        )
    from dalenius.app.cli.policy import print_difference

    for each in changed:
        if each.state != "new":
            print_difference(stderr(), each.version.table, each.difference)
    for words in near:
        stderr().print(f"    {words}", style="yellow", markup=False, highlight=False)
    words = "Everyone who may ask can read such files. Is nobody's data in them, and shall it be recorded?"
    typer.confirm(words if near else f"Record this in the home {home}?", abort=True, err=True)
    if any("reason" in each.needs for each in changed):
        return str(typer.prompt("More ε widens what was promised. Why", err=True))
    return reason


def _print_protected(console: Console, done: Sequence[Protected], dry_run: bool) -> None:
    from dalenius.app.cli.policy import print_difference

    for each in done:
        version, policy = each.version, each.version.policy
        words = {"new": "new", "changed": "changed", "unchanged": "unchanged"}[each.state]
        verb = "Would protect" if dry_run else "Protected"
        if each.state == "unchanged":
            verb = "Already protected:"
        console.print(f"{verb} [bold]{version.table}[/] ({words}, version {version.version[:12]})", highlight=False)
        unit = ", ".join(policy.unit)
        budget = policy.budget
        if budget is not None:
            about = f"    ε = {budget.epsilon:g}, δ = {budget.delta:g} for each {unit}, {policy.neighbors.value}"
            console.print(about, style="dim", highlight=False)
        else:
            console.print(f"    on the budget of {policy.dataset}", style="dim", highlight=False)
        _print_search(console, each, dry_run)
        if each.difference:
            print_difference(console, version.table, each.difference)
        for words in each.beside:
            console.print(f"    {words}", style="yellow", markup=False, highlight=False)
        if each.needs:
            console.print(f"    needs --{' and --'.join(each.needs)}", style="yellow", highlight=False)
    if not dry_run:
        console.print("Next: [bold]dalenius tables[/] shows what may be asked.", highlight=False)


def _print_search(console: Console, each: Protected | Refreshed, dry_run: bool) -> None:
    """What was found for limits that are not declared, or what finding them will cost."""
    from dalenius.app.views.tables import found_words, limit_lines, search_words
    from dalenius.tables.draft import FEW

    unit = each.version.policy.unit
    if each.search is not None:
        words = search_words(each.search, done=each.recorded and not dry_run)
        console.print(f"    {words}", style="dim", markup=False, highlight=False)
    if each.limits is not None:
        found = each.limits
        for line in (found_words(found, unit), *limit_lines(found, unit)):
            console.print(f"    {line}", style="dim", markup=False, highlight=False)
        if found["units"] < FEW:
            words = "    that is too few to see much: declare \\[contribution] rows, and protect again"
            console.print(words, style="yellow", highlight=False)


def _confirm_new_people(frame: Frame, planned: Refreshed, reason: str) -> str:
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


def _print_refreshed(console: Console, done: Refreshed, dry_run: bool) -> None:
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
    _print_search(console, done, dry_run)
    for name, why in done.closed.items():
        say(f"    {name} is closed to everyone: {why}", "yellow")
    if done.needs:
        say(f"    needs --{' and --'.join(done.needs)}", "yellow")
