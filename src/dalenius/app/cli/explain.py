"""`dalenius explain`: what a question was understood to mean, in plain words, for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius.app.cli import server_option
from dalenius.app.cli.ask import (
    Delta,
    Epsilon,
    Groups,
    Rows,
    Search,
    Sql,
    Totals,
    Units,
    Who,
    analyst_of,
    limits_of,
    text_of,
)
from dalenius.app.cli.frame import Frame, framed

if TYPE_CHECKING:
    import typer
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("explain")(explain)


@framed
def explain(
    frame: Frame,
    sql: Sql,
    analyst: Who = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rows: Rows = None,
    groups: Groups = None,
    total: Totals = None,
    units: Units = None,
    find_limits: Search = None,
    server: server_option.Server = None,
    token_file: server_option.TokenFile = None,
) -> None:
    """Shows what a question was understood to mean. Charges nothing, never touches the data.

    Example: dalenius explain "SELECT region, AVG(age) FROM visits WHERE age > 17 GROUP BY region" --analyst ana
    """
    from dalenius.app.views.answers import print_explanation

    question, limits = text_of(sql), limits_of(rows, groups, total, units, find_limits)
    asker = analyst_of(frame, analyst, server, token_file)
    found = asker.explain(question, epsilon=epsilon, delta=delta, limits=limits)

    def human(console: Console) -> None:
        print_explanation(console, found)

    frame.emit({"question": question, **found.to_dict()}, human)
