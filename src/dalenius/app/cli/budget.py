"""`dalenius budget`: what is left, and what it buys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli import server_option
from dalenius.app.cli.frame import Frame, framed
from dalenius.app.views.balances import Total, balances_json, print_totals, totals, totals_of

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("budget")(budget)


@framed
def budget(
    frame: Frame,
    analyst: Annotated[str | None, typer.Option("--analyst", metavar="A", help="This analyst's allotment.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw what was left over time (png or svg).")
    ] = None,
    server: server_option.Server = None,
    token_file: server_option.TokenFile = None,
) -> None:
    """Shows what every data set has left, and what that buys.

    Example: dalenius budget --analyst ana
    """
    remote = server_option.server_of(frame, server, token_file, analyst)
    if remote is not None:
        server_option.refuse("--plot", plot, "It draws the whole history, which only the owner has.")
        with remote:
            found = server_option.read(remote, remote.budgets(), totals_of)
        _emit(frame, found)
        return
    if plot is not None:
        from dalenius.releasing.targets import PLOT, check_target

        check_target(plot, PLOT)
    ledger = frame.open_ledger()
    found = totals(ledger, analyst)
    if analyst is not None and not any(each.analyst for each in found):
        from dalenius.errors import NotAllowedError

        raise NotAllowedError(
            f"Analyst {analyst!r} has no allotment.",
            why="Who may ask, and how much, is the owner's decision.",
            fix="Ask the owner for an allotment, or check the name.",
        )
    if plot is not None:
        from dalenius.app.views.burn_down import draw_burn_down

        draw_burn_down(ledger, plot, analyst or "")
        frame.note(f"Drew {plot}.")
    _emit(frame, found)


def _emit(frame: Frame, found: list[Total]) -> None:
    def human(console: Console) -> None:
        print_totals(console, found)
        if not found:
            console.print("No data set has a budget yet.")

    frame.emit({"datasets": balances_json(found)}, human)
