"""Which rows, and who is who in them: a protected table, a policy file, or a file and the options that say the rest."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli.frame import Frame, stderr
from dalenius.errors import HomeMissingError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dalenius.anonymity.options import Options, Progress
    from dalenius.anonymity.sources import Rows
    from dalenius.curator import Curator

_DATA = (".csv", ".parquet", ".pq")
_PANEL = "Who is who in the rows"

Target = Annotated[
    str, typer.Argument(metavar="TABLE|P.toml|FILE", help="A protected table, a policy file, or a CSV or Parquet file.")
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="P.toml", help="Its section anonymity has the roles.", rich_help_panel=_PANEL),
]
Quasi = Annotated[
    str | None,
    typer.Option("--quasi", metavar="C,C", help="Columns that others may know people by.", rich_help_panel=_PANEL),
]
Sensitive = Annotated[
    str | None, typer.Option("--sensitive", metavar="C,C", help="Columns that are secret.", rich_help_panel=_PANEL)
]
Identifiers = Annotated[
    str | None, typer.Option("--identifiers", metavar="C,C", help="Columns that name people.", rich_help_panel=_PANEL)
]


def rows_of(
    frame: Frame,
    target: str,
    policy: Path | None,
    *,
    quasi: str | None = None,
    sensitive: str | None = None,
    identifiers: str | None = None,
    needs: str | None = "quasi",
    leaves: bool = False,
    options: Options | None = None,
) -> tuple[Rows, Curator | None]:
    """The rows that were named, and the curator of the home, if there is one.

    Args:
        frame: The global options.
        target: What was named.
        policy: A policy file that has the roles.
        quasi: Columns; they replace what a policy says.
        sensitive: The same.
        identifiers: The same.
        needs: The role without which nothing can be done; None: a file alone will do.
        leaves: Rows are to leave: not those that another home protects, nor with a protected table's cells beside.
        options: What is asked of rows that leave.
    """
    from dalenius.anonymity.sources import files_rows, table_rows
    from dalenius.tables.anonymity import read_unprotected

    curator = _curator(frame)
    registry = None if curator is None else curator.registry
    section: dict[str, Any] = {} if policy is None else read_unprotected(policy)[2]
    given = {"quasi": quasi, "sensitive": sensitive, "identifiers": identifiers}
    typed = {name: _names(name, value) for name, value in given.items() if value is not None}
    path = Path(target)
    if path.suffix.lower() == ".toml":
        name, source, own = read_unprotected(path)
        found = files_rows(name, source, _section(own, section, typed), registry)
    elif path.suffix.lower() in _DATA or path.exists() or len(path.parts) > 1:
        section = _section({}, section, typed)
        if needs is not None and not section.get(needs):
            raise InputError(
                "Nobody said which columns could give people away."
                if needs == "quasi"
                else f"Nobody said which columns are {needs}.",
                why="A file alone does not say who is who in it.",
                fix=f"Name a policy file with [anonymity] (--policy P.toml), or the columns (--{needs} age,zip).",
            )
        found = files_rows(path.stem, [_literal(path)], section, registry)
    else:
        if registry is None:
            frame.require_home()  # says where it looked
            raise InputError(f"There is no table {target!r}.", why="The home has no ledger.", fix="Protect it first.")
        version = registry.history(target)[-1]
        found = table_rows(target, registry, _section(dict(version.policy.anonymity), section, typed))
    if leaves:
        from dalenius.anonymity.places import check_leaving

        check_leaving(found, options, registry, None if curator is None else curator.home)
    return found, curator


def _curator(frame: Frame) -> Curator | None:
    """The curator of the home; None where there is none, which is as good unless one was named."""
    from dalenius.curator import Curator
    from dalenius.ledger.database import NAME

    try:
        home = frame.require_home()
    except HomeMissingError:
        if frame.home is not None:
            raise
        return None
    return Curator(frame.home) if (home / NAME).exists() else None


def _section(own: dict[str, Any], policy: dict[str, Any], typed: dict[str, list[str]]) -> dict[str, Any]:
    """Roles: as typed, else of --policy, else the table's own; hierarchies go with their column."""
    found: dict[str, Any] = {**(policy or own), **typed}
    if typed and (policy or own):
        kept = {*found.get("quasi", ()), *found.get("sensitive", ())}
        for part in ("hierarchies", "weights"):
            found[part] = {name: each for name, each in found.get(part, {}).items() if name in kept}
    return found


def _names(option: str, value: str) -> list[str]:
    names = [each.strip() for each in value.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise InputError(
            f"--{option} cannot be read.",
            why="It is a list of different columns with commas between them.",
            fix=f"Write --{option} age,zip.",
        )
    return names


def _literal(path: Path) -> str:
    """A path as a source: a file of that very name, not a pattern."""
    from glob import escape

    return escape(str(path.absolute()))


def policy_of(target: str) -> list[Path]:
    """The policy file that was named in the place of a table."""
    return [Path(target)] if target.lower().endswith(".toml") else []


def check_place(output: Path, rows: Rows, *more: str | Path | None, endings: tuple[str, ...] = _DATA) -> None:
    """Refuses an output that could not be written, or that is one of the files that are read."""
    from dalenius.anonymity.places import check_apart
    from dalenius.releasing.targets import check_target

    check_target(output, endings)
    check_apart([*rows.inputs(), *(Path(each) for each in more if each is not None)], [output], None)


@contextmanager
def working(frame: Frame, words: str) -> Iterator[Progress | None]:
    """A bar on stderr for work that takes a while; none for scripts. Who ends it leaves nothing half written."""
    with stoppable():
        if frame.json or frame.quiet:
            yield None
            return
        import rich.progress
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[part]}"),
            TimeElapsedColumn(),
        )
        with rich.progress.Progress(*columns, console=stderr(), transient=True) as bar:
            task = bar.add_task(words, total=1.0, part="")

            def told(share: float, part: str) -> None:
                bar.update(task, completed=min(1.0, max(0.0, share)), part=part)

            yield told


@contextmanager
def stoppable() -> Iterator[None]:
    """Whoever is told to end ends as by Ctrl-C: temporary files are removed on the way out."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
