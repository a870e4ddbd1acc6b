"""`dalenius ask`: charges, then looks, then answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli import asking, serving
from dalenius.app.cli.frame import Frame, framed
from dalenius.errors import Charge, DaleniusError, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.queries.preview import Preview
    from dalenius.queries.release import Release


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("ask")(ask)


@framed
def ask(
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
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the answer (csv, parquet or json).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw it with error bars (png or svg).")
    ] = None,
) -> None:
    """Asks a question. It is charged before the data is looked at; the same question again is free.

    Example: dalenius ask "SELECT region, COUNT(*) AS n FROM visits GROUP BY region" --analyst ana --epsilon 0.2
    """
    from dalenius.queries.rules.clause import settle_price

    # Whatever can be wrong with the files is found before anything is charged.
    if output is not None:
        from dalenius.queries.files import check_target

        check_target(output)
    if plot is not None:
        from dalenius.app.plots import check_target as check_plot

        check_plot(plot)
    question, limits = asking.text_of(sql), asking.limits_of(rows, groups, total, units, find_limits)
    epsilon, delta = settle_price(question, epsilon, delta)
    wanted = asking.error_of(error)
    asker = asking.analyst_of(frame, analyst, server, token_file)
    if epsilon is None and wanted is None:
        found = asker.preview(question, confidence=confidence, delta=delta, limits=limits)
        if not found.public:
            _emit_unpriced(frame, question, found)
            return
    release = asker.ask(question, epsilon=epsilon, error=wanted, confidence=confidence, delta=delta, limits=limits)
    for target, written, done in ((output, release.write, "Wrote"), (plot, release.plot, "Drew")):
        if target is not None:
            _put(frame, release, target, written, done)

    def human(console: Console) -> None:
        from dalenius.app.answers import print_release

        print_release(console, release, chart=console.is_terminal)

    frame.emit({"question": question, **release.to_dict()}, human)


def _put(frame: Frame, release: Release, target: Path, written: Callable[[Path], object], done: str) -> None:
    with _after_the_charge(release):
        written(target)
    frame.note(f"{done} {target}.")


@contextmanager
def _after_the_charge(release: Release) -> Iterator[None]:
    """A failure in here is told with what the question has cost; the answer itself is stored and free from now on."""
    try:
        yield
    except DaleniusError as error:
        error.charge = Charge(release.charge["epsilon"], release.charge["delta"])
        error.why += " The question was answered, and its answer is stored."
        error.fix += " Then ask the same again: it is free now."
        raise


def _emit_unpriced(frame: Frame, question: str, found: Preview) -> None:
    """The usual three prices to choose from, as an error: nothing was asked yet."""
    choices = " ".join(str(found).split())
    error = InputError(
        "The question has no price yet.",
        why=f"It would give {choices}",
        fix="Ask again with --epsilon or --error.",
    )

    def human(console: Console) -> None:
        from dalenius.app.answers import print_preview
        from dalenius.app.cli.output import print_error

        print_preview(console, found)
        print_error(InputError(error.message, why="Above is what three prices would give.", fix=error.fix))

    data = {**error.to_dict(), "preview": {"question": question, **found.to_dict()}}
    frame.emit(data, human, error.exit_code)
