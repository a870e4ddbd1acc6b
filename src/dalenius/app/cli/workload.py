"""`dalenius workload`: many questions at one price; what each may be expected to give, and their answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli import server_option
from dalenius.app.cli.ask import Confidence, Delta, Who, analyst_of
from dalenius.app.cli.frame import Frame, framed, group, read_input
from dalenius.errors import Charge, DaleniusError, InputError, SourceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from dalenius.queries.workloads.release import WorkloadRelease

File = Annotated[str, typer.Argument(metavar="FILE", help="SELECTs with ; between them; - reads stdin.")]
Epsilon = Annotated[float, typer.Option("--epsilon", metavar="E", help="The price of all questions together.")]
Weights = Annotated[
    list[str] | None,
    typer.Option("--weight", metavar="N=W", help="An error in question N counts W times; others once."),
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = group("Asks many questions at one price, from what is measured once for all of them.")
    commands.command("preview")(preview)
    commands.command("ask")(ask)
    app.add_typer(commands, name="workload")


@framed
def preview(
    frame: Frame,
    file: File,
    epsilon: Epsilon,
    analyst: Who = None,
    weight: Weights = None,
    confidence: Confidence = 0.95,
    delta: Delta = None,
    server: server_option.Server = None,
    token_file: server_option.TokenFile = None,
) -> None:
    """Shows the error that every answer may be expected to have. Charges nothing, never touches the data.

    Example: dalenius workload preview dashboard.sql --epsilon 1
    """
    questions = _questions(file)
    found = analyst_of(frame, analyst, server, token_file).preview_many(
        questions, epsilon=epsilon, weights=_weights(weight, len(questions)), confidence=confidence, delta=delta
    )

    def human(console: Console) -> None:
        from dalenius.app.views.workloads import print_workload_preview

        print_workload_preview(console, found)

    frame.emit(found.to_dict(), human)


@framed
def ask(
    frame: Frame,
    file: File,
    epsilon: Epsilon,
    analyst: Who = None,
    weight: Weights = None,
    confidence: Confidence = 0.95,
    delta: Delta = None,
    server: server_option.Server = None,
    token_file: server_option.TokenFile = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Write each answer as a csv file in this folder."),
    ] = None,
) -> None:
    """Asks all questions of a file at one price. Charged once, before the data is looked at; the same again is free.

    Example: dalenius workload ask dashboard.sql --analyst ana --epsilon 1 -o answers
    """
    questions = _questions(file)
    names = [f"{number:0{len(str(len(questions)))}}.csv" for number in range(1, len(questions) + 1)]
    if output is not None:  # whatever can be wrong with the files is found before anything is charged
        _check_folder(output, names)
    found = analyst_of(frame, analyst, server, token_file).ask_many(
        questions, epsilon=epsilon, weights=_weights(weight, len(questions)), confidence=confidence, delta=delta
    )
    if output is not None:
        _write(found, output, names)
        frame.note(f"Wrote {len(names):,} files in {output}.")

    def human(console: Console) -> None:
        from dalenius.app.views.workloads import print_workload

        print_workload(console, found)

    frame.emit(found.to_dict(), human)


def _questions(file: str) -> Sequence[Any]:
    from dalenius.queries.workloads.reading import split_questions

    fix = "Name a file with SELECTs and ; between them, or - to read it from stdin."
    return split_questions(read_input(None if file == "-" else file, "The workload", fix))


def _weights(given: Sequence[str] | None, questions: int) -> list[float]:
    if not given:
        return []
    found = [1.0] * questions
    for each in given:
        number, _, weight = each.partition("=")
        try:
            place, value = int(number), float(weight)
        except ValueError:
            place, value = 0, 0.0
        if not 1 <= place <= questions:
            raise InputError(
                "--weight cannot be read.",
                why=f"It is N=W, with N the number of a question from 1 to {questions:,}.",
                fix="Write for example --weight 3=2.",
            )
        found[place - 1] = value
    return found


def _check_folder(folder: Path, names: Sequence[str]) -> None:
    from dalenius.releasing.targets import check_target

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceUnavailableError(
            f"{folder.name} cannot be made.",
            why=f"{error.strerror or type(error).__name__}.",
            fix="Name another folder.",
        ) from None
    for name in names:
        check_target(folder / name)


def _write(found: WorkloadRelease, folder: Path, names: Sequence[str]) -> None:
    try:
        for release, name in zip(found.releases, names, strict=True):
            release.write(folder / name)
    except DaleniusError as error:
        error.charge = Charge(found.charge["epsilon"], found.charge["delta"])
        error.why += " The questions were answered, and their answers are stored."
        error.fix += " Then ask the same again: it is free now."
        raise
