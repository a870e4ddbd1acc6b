"""`dalenius preview`: price and expected error, for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli import asking, serving
from dalenius.app.cli.frame import Frame, framed

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("preview")(preview)


@framed
def preview(
    frame: Frame,
    sql: asking.Sql,
    analyst: asking.Who = None,
    epsilon: asking.Epsilon = None,
    error: asking.Errors = None,
    confidence: asking.Confidence = 0.95,
    delta: asking.Delta = None,
    rows: asking.Rows = None,
    groups: asking.Groups = None,
    total: asking.Totals = None,
    units: asking.Units = None,
    find_limits: asking.Search = None,
    server: serving.Server = None,
    token_file: serving.TokenFile = None,
    plan: Annotated[bool, typer.Option("--plan", help="Show every step with its sensitivity and price.")] = False,
) -> None:
    """Shows what a question would cost and how noisy it would be. Charges nothing, never touches the data.

    Example: dalenius preview "SELECT region, COUNT(*) FROM visits GROUP BY region" --analyst ana --plan
    """
    from dalenius.app.answers import print_preview

    question, limits = asking.text_of(sql), asking.limits_of(rows, groups, total, units, find_limits)
    found = asking.analyst_of(frame, analyst, server, token_file).preview(
        question,
        epsilon=epsilon,
        error=asking.error_of(error),
        confidence=confidence,
        delta=delta,
        limits=limits,
    )

    def human(console: Console) -> None:
        if plan:
            console.print(found.plan, markup=False, highlight=False, soft_wrap=True)
            console.print()
        print_preview(console, found)

    frame.emit({"question": question, **found.to_dict(), **({"plan": found.plan} if plan else {})}, human)
