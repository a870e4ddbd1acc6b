"""What `preview` and `ask` share: the question, who asks, and the options that bound it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli import serving
from dalenius.errors import InputError, SourceUnavailableError

if TYPE_CHECKING:
    from dalenius.analyst import Analyst
    from dalenius.app.cli.frame import Frame
    from dalenius.measuring.plan import Limits
    from dalenius.remote import RemoteAnalyst

_DECIMAL = re.compile(r"\d{1,30}(\.\d{1,30})?")

Sql = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; - reads stdin, @FILE a file.")]
Who = Annotated[str | None, typer.Option("--analyst", metavar="A", help="Whose allotment pays.")]
Epsilon = Annotated[float | None, typer.Option("--epsilon", metavar="E", help="The price of the whole question.")]
Errors = Annotated[
    list[str] | None,
    typer.Option("--error", metavar="X|COL=X", help="Pay for a noise error of X instead: of all columns, or of COL."),
]
Confidence = Annotated[float, typer.Option("--confidence", help="Of the noise errors.")]
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


def text_of(sql: str) -> str:
    """The question: the argument itself, stdin for ``-``, a file for ``@FILE``."""
    if sql != "-" and not sql.startswith("@"):
        return sql
    try:
        # with stdin closed, Python has none
        data = (sys.stdin.buffer.read() if sys.stdin else b"") if sql == "-" else Path(sql[1:]).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise SourceUnavailableError(
            f"{sql[1:] or 'The question'} cannot be read.",
            why=f"{reason or type(error).__name__}.",
            fix="Write the SQL itself, @FILE for a file with it, or - to read it from stdin.",
        ) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("The question is not text.", why="It must be UTF-8.", fix="Save it as UTF-8.") from None


def analyst_of(
    frame: Frame, name: str | None, server: str | None = None, token_file: Path | None = None
) -> Analyst | RemoteAnalyst:
    """Who asks: whose token it is, the one that was named, or the only one there is."""
    remote = serving.server_of(frame, server, token_file, name)
    if remote is not None:
        return remote

    from dalenius.curator import Curator

    curator = Curator(frame.home)
    if name is None:
        ledger = curator.ledger
        names = {each for dataset in ledger.datasets() for each in ledger.allotments(dataset)}
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


def error_of(given: Sequence[str] | None) -> float | dict[str, float] | None:
    """The noise error that is good enough: one for all columns, or one per column."""
    if not given:
        return None
    pairs = [each.rpartition("=") for each in given]
    names = [name for name, _, _ in pairs]
    if not all(_DECIMAL.fullmatch(value) for _, _, value in pairs) or len(set(names)) < len(names):
        raise InputError(
            "--error cannot be read.",
            why="It is X, or COL=X once for each column, with X a decimal number.",
            fix="Write for example --error 200, or --error people=200.",
        )
    if names == [""]:
        return float(pairs[0][2])
    if "" in names:
        raise InputError("--error is given for all columns and for one.", why="Which holds?", fix="Give one of them.")
    return {name: float(value) for name, _, value in pairs}


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
