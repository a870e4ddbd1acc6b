"""`dalenius analyst`: who may ask, and who is suspended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli.frame import Frame, framed, group
from dalenius.app.views import readable, to_minute
from dalenius.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.suspensions import Standing, Subject

Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="The analyst.")]
Dataset = Annotated[str | None, typer.Option("--dataset", metavar="D", help="A whole data set, for all analysts.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the history.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = group("Shows who may ask, and suspends analysts or lets them go on.")
    commands.command("list")(show)
    commands.command("suspend")(suspend)
    commands.command("resume")(resume)
    app.add_typer(commands, name="analyst")


@framed
def show(frame: Frame) -> None:
    """Lists analysts and data sets: who is suspended, why, and how many answers were late.

    Example: dalenius analyst list
    """
    from dalenius.app.views.history import list_standings

    found = list_standings(frame.open_ledger())

    def human(console: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        if not any(found.values()):
            console.print("There are no analysts.")
            return
        table = Table(box=None, padding=(0, 2), header_style="dim")
        for column in ("who", "state", "late", "since (UTC)", "by", "reason"):
            table.add_column(column, justify="right" if column == "late" else "left", overflow="fold")
        rows = [*((each["analyst"], each) for each in found["analysts"])]
        rows += [(f"data set {each['dataset']}", each) for each in found["datasets"]]
        for who, each in rows:
            since = to_minute(each["since"] or "")
            cells = (who, each["state"], each["late"], since, each["by"] or "", each["reason"] or "")
            table.add_row(*(Text(readable(cell)) for cell in cells))  # text, never markup: others wrote it
        console.print(table, highlight=False)

    frame.emit(found, human)


@framed
def suspend(frame: Frame, name: Name = None, dataset: Dataset = None, reason: Reason = "") -> None:
    """Refuses an analyst's new questions until it is lifted. What was paid for can still be asked again.

    Example: dalenius analyst suspend ana --reason "many late answers; talk to her first"
    """
    from dalenius.ledger import suspensions

    _change(frame, name, dataset, reason, suspensions.suspend)


@framed
def resume(frame: Frame, name: Name = None, dataset: Dataset = None, reason: Reason = "") -> None:
    """Lets a suspended analyst go on; late answers are counted anew.

    Example: dalenius analyst resume ana --reason "her script asked for too much at once"
    """
    from dalenius.ledger import suspensions

    _change(frame, name, dataset, reason, suspensions.resume)


def _change(
    frame: Frame,
    name: str | None,
    dataset: str | None,
    reason: str,
    change: Callable[[Ledger, Subject, str], Standing],
) -> None:
    from dalenius.app.views.history import standing_shown
    from dalenius.ledger.suspensions import ANALYST, DATASET

    if (name is None) == (dataset is None):
        raise InputError(
            "Who is meant?", why="It takes an analyst's name, or --dataset D.", fix="Give one of the two, not both."
        )
    subject = (ANALYST, name) if name is not None else (DATASET, dataset or "")
    standing = change(frame.open_ledger(), subject, reason)

    def human(console: Console) -> None:
        from rich.text import Text

        who = f"Analyst {subject[1]}" if name is not None else f"Data set {subject[1]}"
        words = "is suspended: new questions are refused." if standing.suspended else "may go on."
        console.print(Text(readable(f"{who} {words}")))

    frame.emit(standing_shown(subject, standing), human)
