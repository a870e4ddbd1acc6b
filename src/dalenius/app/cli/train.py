"""`dalenius train`: a model that predicts a column of a protected table, with a card that says what it promises."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli import server_option
from dalenius.app.cli.anonymity_options import share_of
from dalenius.app.cli.ask import Who, analyst_of
from dalenius.app.cli.frame import Frame, framed
from dalenius.app.cli.rows_option import working
from dalenius.app.cli.synthesize import names_of
from dalenius.app.cli.synthesize_files import home_of, told_after
from dalenius.app.cli.train_files import check_public_rows, read_rows
from dalenius.app.cli.train_score import score_held_out
from dalenius.errors import DaleniusError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from dalenius.learning.preview import ModelPreview

Table = Annotated[str, typer.Argument(metavar="TABLE", help="A protected table.")]
Target = Annotated[str, typer.Option("--target", metavar="C", help="The column to predict.")]
Epsilon = Annotated[float, typer.Option("--epsilon", metavar="E", help="The price of all of it.")]
Features = Annotated[
    str | None, typer.Option("--features", metavar="C,C", help="Predict from these; else from all that are declared.")
]
ModelName = Annotated[
    str, typer.Option("--model", metavar="M", help="logistic (two classes or more), svm, linear, poisson.")
]
MethodName = Annotated[
    str, typer.Option("--method", metavar="M", help="auto, sgd (noisy steps), output (noise added once).")
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write the model and its card here.")
]
PerUnit = Annotated[
    int | None, typer.Option("--rows-per-unit", metavar="N", help="Learn from so many rows of one unit at most.")
]
HeldOut = Annotated[
    str | None, typer.Option("--held-out", metavar="20%", help="Learn from the other units; --score counts these.")
]
Batch = Annotated[int | None, typer.Option("--batch", metavar="N", help="Units in a step on average; else by rule.")]
Steps = Annotated[int | None, typer.Option("--steps", metavar="N", help="How many steps; else by rule.")]
Test = Annotated[
    Path | None,
    typer.Option("--test", metavar="FILE", help="Rows that are public, target and all: how well it predicts. Free."),
]
Score = Annotated[
    bool,
    typer.Option("--score", help="Count how well the model that you have trained predicts the units held out. E pays."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show steps, noise and expected loss. Charges nothing.")]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("train")(train)


@framed
def train(
    frame: Frame,
    table: Table,
    target: Target,
    epsilon: Epsilon,
    output: Output = None,
    analyst: Who = None,
    model: ModelName = "logistic",
    features: Features = None,
    method: MethodName = "auto",
    rows_per_unit: PerUnit = None,
    held_out: HeldOut = None,
    batch: Batch = None,
    steps: Steps = None,
    test: Test = None,
    score: Score = False,
    dry_run: DryRun = False,
    server: server_option.Server = None,
    token_file: server_option.TokenFile = None,
) -> None:
    """Trains a model. Charged once, before the data is read; what is done with the model is free.

    Example: dalenius train visits --analyst ana --target smoker --epsilon 1 -o smoker-model
    """
    # Whatever can be wrong with files is found before anything is charged.
    _check_together(output, test, score=score, dry_run=dry_run)
    asked: dict[str, Any] = {
        "epsilon": epsilon,
        "model": model,
        "features": names_of(features, "--features"),
        "method": method,
        "rows_per_unit": rows_per_unit,
        "held_out": 0.0 if held_out is None else share_of(held_out, "--held-out"),
        "batch": batch,
        "steps": steps,
    }
    asker = analyst_of(frame, analyst, server, token_file)
    curator = home_of(frame, asker)
    if output is not None:
        from dalenius.learning.folder import check_folder

        check_folder(output)
    rows = None
    if test is not None:
        check_public_rows(test, curator)
        rows = read_rows(test)
    if score:
        score_held_out(frame, asker, table, target, asked, dry_run=dry_run)
        return
    if dry_run or output is None:
        expected = asker.preview_model(table, target, **asked)
        frame.emit(expected.to_dict(), lambda console: _print_preview(console, expected))
        return
    began = time.monotonic()
    expected = asker.preview_model(table, target, **asked)
    with _training(frame, expected) as progress:
        found = asker.train(table, target, **asked, progress=progress)
    try:
        scored = None if rows is None else found.score(rows)
        found.save(output, scored=scored)
    except DaleniusError as error:
        raise told_after(error, found.charge) from None
    frame.note(f"Wrote {output}: the weights, and a card with guarantee and receipt.")
    seconds = time.monotonic() - began

    def human(console: Console) -> None:
        from dalenius.app.views.models import print_model

        print_model(console, found, scored)

    data = {name: each for name, each in found.to_dict().items() if name != "content"}
    beside = {"score": None if scored is None else scored.to_dict(), "output": str(output)}
    frame.emit({**data, **beside, "seconds": round(seconds, 3)}, human)


def _check_together(output: Path | None, test: Path | None, *, score: bool, dry_run: bool) -> None:
    """Options that mean nothing together are refused, not passed over."""
    if score and (output is not None or test is not None):
        raise InputError(
            "--score writes no model.",
            why="It says how well the model that you have trained predicts units held out.",
            fix="Leave out -o and --test: for files, ask again without --score.",
        )
    if test is not None and output is None:
        raise InputError("--test goes with -o.", why="A model that is trained predicts them.", fix="Give -o DIR too.")
    if output is None and not score and not dry_run:
        raise InputError(
            "--output is missing.", why="The model is written to a folder.", fix="Give -o DIR, or --dry-run."
        )


@contextmanager
def _training(frame: Frame, expected: ModelPreview) -> Iterator[Callable[[int, int], None] | None]:
    """A bar by steps; and what becomes of a training that is stopped."""
    from dalenius.app.views.models import expected_words

    if not expected.known:
        frame.note(f"Charged first, then the rows are read and learned from: {expected_words(expected)}.")
    try:
        with working(frame, "Training") as told:
            if told is None:
                yield None
                return

            def progress(done: int, steps: int) -> None:
                told(done / max(1, steps), f"step {done:,} of {steps:,}" if steps else "")

            yield progress
    except KeyboardInterrupt:
        frame.note("Stopped. If it was charged, it still is: ask the same again, and it goes on where it was.")
        raise


def _print_preview(console: Console, expected: ModelPreview) -> None:
    from dalenius.app.views.models import print_model_preview

    print_model_preview(console, expected)
