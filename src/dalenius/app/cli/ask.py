"""`dalenius preview`: price and expected error, for nothing. `dalenius ask`: charges, then looks, then answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli import server_option
from dalenius.app.cli.frame import Frame, framed, print_error, read_input
from dalenius.errors import Charge, DaleniusError, InputError
from dalenius.tables.policy import JOINT

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.analyst import Analyst
    from dalenius.measuring.plan import Limits
    from dalenius.queries.preview import Preview
    from dalenius.queries.release import Release
    from dalenius.remote import RemoteAnalyst

_DECIMAL = re.compile(r"\d{1,30}(\.\d{1,30})?")
_AMOUNT = re.compile(r"\d{1,30}(\.\d{1,30})?%?")

Sql = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; - reads stdin, @FILE a file.")]
Who = Annotated[str | None, typer.Option("--analyst", metavar="A", help="Whose allotment pays.")]
Epsilon = Annotated[
    float | None,
    typer.Option("--epsilon", metavar="E", help="The price of the whole question; beside --error, the most to pay."),
]
Errors = Annotated[
    list[str] | None,
    typer.Option(
        "--error",
        metavar="X|X%|COL=X",
        help="Pay for an error of X, or of X% of each group, instead: in all columns, or in COL. "
        "Without --epsilon at most a quarter of what is left is paid.",
    ),
]
Confidence = Annotated[float, typer.Option("--confidence", help="Of the errors.")]
Delta = Annotated[float | None, typer.Option("--delta", metavar="D", help="For finding keys that are not public.")]
Rows = Annotated[int | None, typer.Option("--rows", metavar="N", help="Of one unit count at most so many rows.")]
Groups = Annotated[int | None, typer.Option("--groups", metavar="N", help="One unit counts in at most so many groups.")]
Units = Annotated[
    int | None,
    typer.Option("--units", metavar="N", help="A group whose key had to be found has at least so many units."),
]
Totals = Annotated[
    list[str] | None, typer.Option("--total", metavar="COL=X", help="One unit's total of a column, at most.")
]
Search = Annotated[
    float | None,
    typer.Option(
        "--find-limits",
        metavar="SHARE",
        help="Find this question's own limits with that share of its price; 0: do not. By default 0.1 where it pays.",
    ),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Pay for it though it follows from answers that you have paid for.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("preview")(preview)
    app.command("ask")(ask)


@framed
def preview(
    frame: Frame,
    sql: Sql,
    analyst: Who = None,
    epsilon: Epsilon = None,
    error: Errors = None,
    confidence: Confidence = 0.95,
    delta: Delta = None,
    rows: Rows = None,
    groups: Groups = None,
    total: Totals = None,
    units: Units = None,
    find_limits: Search = None,
    fresh: Fresh = False,
    server: server_option.Server = None,
    token_file: server_option.TokenFile = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show how it was understood, and every step with its price.")
    ] = False,
) -> None:
    """Shows what a question would cost and how noisy it would be. Charges nothing, never touches the data.

    Example: dalenius preview "SELECT region, COUNT(*) FROM visits GROUP BY region" --analyst ana --plan
    """
    from dalenius.app.views.answers import print_explanation, print_preview

    question, limits = text_of(sql), limits_of(rows, groups, total, units, find_limits)
    found = analyst_of(frame, analyst, server, token_file).preview(
        question,
        epsilon=epsilon,
        error=error_of(error),
        confidence=confidence,
        delta=delta,
        limits=limits,
        fresh=fresh,
    )

    def human(console: Console) -> None:
        if plan:
            if found.explanation is not None:
                print_explanation(console, found.explanation)
                console.print()
            console.print(found.plan, markup=False, highlight=False, soft_wrap=True)
            console.print()
        print_preview(console, found)

    frame.emit({"question": question, **found.to_dict(), **(found.described() if plan else {})}, human)


@framed
def ask(
    frame: Frame,
    sql: Sql,
    analyst: Who = None,
    epsilon: Epsilon = None,
    error: Errors = None,
    confidence: Confidence = 0.95,
    delta: Delta = None,
    rows: Rows = None,
    groups: Groups = None,
    total: Totals = None,
    units: Units = None,
    find_limits: Search = None,
    fresh: Fresh = False,
    server: server_option.Server = None,
    token_file: server_option.TokenFile = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the answer (csv, parquet or json).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw it with error bars (png or svg).")
    ] = None,
) -> None:
    """Asks a question. It is charged before the data is looked at; the same question again is free.

    So is one that follows from answers that you have paid for, if it is as exact as what you would pay for.

    Example: dalenius ask "SELECT region, COUNT(*) AS n FROM visits GROUP BY region" --analyst ana --epsilon 0.2
    """
    from dalenius.queries.rules.clause import settle_price

    # Whatever can be wrong with the files is found before anything is charged.
    if output is not None:
        from dalenius.releasing.targets import check_target

        check_target(output)
    if plot is not None:
        from dalenius.releasing.targets import PLOT, check_target

        check_target(plot, PLOT)
    question, limits = text_of(sql), limits_of(rows, groups, total, units, find_limits)
    epsilon, delta = settle_price(question, epsilon, delta)
    wanted = error_of(error)
    asker = analyst_of(frame, analyst, server, token_file)
    if epsilon is None and wanted is None:
        found = asker.preview(question, confidence=confidence, delta=delta, limits=limits, fresh=fresh)
        if not found.public:
            _emit_unpriced(frame, question, found)
            return
    release = asker.ask(
        question, epsilon=epsilon, error=wanted, confidence=confidence, delta=delta, limits=limits, fresh=fresh
    )
    for target, written, done in ((output, release.write, "Wrote"), (plot, release.plot, "Drew")):
        if target is not None:
            _put(frame, release, target, written, done)

    def human(console: Console) -> None:
        from dalenius.app.views.answers import print_release

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
        from dalenius.app.views.answers import print_preview

        print_preview(console, found)
        print_error(InputError(error.message, why="Above is what three prices would give.", fix=error.fix))

    data = {**error.to_dict(), "preview": {"question": question, **found.to_dict()}}
    frame.emit(data, human, error.exit_code)


def text_of(sql: str) -> str:
    """The question: the argument itself, stdin for ``-``, a file for ``@FILE``."""
    if sql != "-" and not sql.startswith("@"):
        return sql
    fix = "Write the SQL itself, @FILE for a file with it, or - to read it from stdin."
    return read_input(None if sql == "-" else sql[1:], "The question", fix)


def analyst_of(
    frame: Frame, name: str | None, server: str | None = None, token_file: Path | None = None
) -> Analyst | RemoteAnalyst:
    """Who asks: whose token it is, the one that was named, or the only one there is."""
    remote = server_option.server_of(frame, server, token_file, name)
    if remote is not None:
        return remote

    from dalenius.curator import Curator

    curator = Curator(frame.home)
    if name is None:
        ledger = curator.ledger
        names = {each for dataset in ledger.datasets() for each in ledger.allotments(dataset)} - {JOINT}
        if len(names) != 1:
            raise InputError(
                "Who asks?" if names else "Nobody may ask yet.",
                why=f"{len(names)} analysts have an allotment." if names else "No analyst has an allotment.",
                fix="Give --analyst NAME; 'dalenius budget' lists them."
                if names
                else "The owner writes [analysts.NAME] with an epsilon into a policy, and runs 'dalenius protect'.",
            )
        (name,) = names
        frame.note(f"Asking as {name}, the only analyst.")
    return curator.analyst(name)


def error_of(given: Sequence[str] | None) -> float | str | dict[str, float | str] | None:
    """The error that is good enough: one for all columns, or one per column; per cent stay texts."""
    if not given:
        return None
    pairs = [each.rpartition("=") for each in given]
    names = [name for name, _, _ in pairs]
    if not all(_AMOUNT.fullmatch(value) for _, _, value in pairs) or len(set(names)) < len(names):
        raise InputError(
            "--error cannot be read.",
            why="It is X, or COL=X once for each column, with X a decimal number or per cent.",
            fix="Write for example --error 200, --error 2%, or --error people=200.",
        )
    if names == [""]:
        return _amount(pairs[0][2])
    if "" in names:
        raise InputError("--error is given for all columns and for one.", why="Which holds?", fix="Give one of them.")
    return {name: _amount(value) for name, _, value in pairs}


def _amount(text: str) -> float | str:
    return text if text.endswith("%") else float(text)


def limits_of(
    rows: int | None,
    groups: int | None,
    totals: Sequence[str] | None,
    units: int | None = None,
    search: float | None = None,
) -> Limits:
    """The limits for this question; they can only tighten the policy's."""
    from dalenius.measuring.plan import Limits

    found: dict[str, Fraction] = {}
    for given in totals or ():
        column, _, limit = given.rpartition("=")
        if not column or not _DECIMAL.fullmatch(limit) or column in found:
            raise InputError(
                "--total names a column twice." if column in found else "--total cannot be read.",
                why="It is COL=X, with X a decimal number, once for each column.",
                fix="Write for example --total amount=500.",
            )
        found[column] = Fraction(limit)
    return Limits(rows, groups, found, units, search)
