"""`dalenius token`: who may use a server, as what, and until when."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalenius.app.cli.frame import Frame, framed, group
from dalenius.app.views import readable, to_minute
from dalenius.errors import InputError, SourceUnavailableError, UnknownTokenError

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.ledger.tokens import Token, Tokens

_LIFE = re.compile("([1-9][0-9]{0,5})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = group("Gives and revokes the tokens with which a server is used.")
    commands.command("create")(create)
    commands.command("list")(show)
    commands.command("revoke")(revoke)
    app.add_typer(commands, name="token")


@framed
def create(
    frame: Frame,
    role: Annotated[str, typer.Option("--role", metavar="ROLE", help="owner, analyst or auditor.")],
    analyst: Annotated[str, typer.Option("--analyst", metavar="A", help="Who asks with it.")] = "",
    expires: Annotated[
        str, typer.Option("--expires", metavar="LIFE", help="How long it is good: hours, days or weeks.")
    ] = "30d",
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Answers leave when they are ready, not at a fixed time.")
    ] = False,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="What it is for.")] = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it there, for this user only.")
    ] = None,
) -> None:
    """Makes a token and shows it once; only its hash is kept.

    Example: dalenius token create --role analyst --analyst ana --expires 12h -o ana.token
    """
    from dalenius.ledger.tokens import Tokens

    ledger = frame.open_ledger()
    tokens, life = Tokens(ledger), _life(expires)
    with _file(output) as write:
        text, token = tokens.create(role, analyst, expires=life, trusted=trusted, note=note)
        try:
            write(text)
        except OSError:
            tokens.revoke(token.id)  # nobody has it
            raise SourceUnavailableError(
                f"{output} cannot be written.", why="The token would be lost.", fix="Free disk space; make a new token."
            ) from None
    if token.analyst and not any(token.analyst in ledger.allotments(each) for each in ledger.datasets()):
        frame.note(f"Warning: {token.analyst} has no allotment yet and can ask nothing.")
    about = f"Token {token.id}, {_whose(token)}, is good until {to_minute(token.expires)} UTC."
    if output is None:
        frame.note(f"{about} It is shown this once: only its hash is kept.")
        frame.emit({"token": text, **token.to_dict()}, lambda console: _say(console, text))
    else:
        words = f"{about} It is in {output} and nowhere else: only its hash is kept."
        frame.emit({"file": str(output), **token.to_dict()}, lambda console: _say(console, words))


@framed
def show(frame: Frame) -> None:
    """Lists every token that was given: whose, until when, and whether it was revoked.

    Example: dalenius token list
    """
    from dalenius.ledger.tokens import Tokens

    found = Tokens(frame.open_ledger()).all()

    def human(console: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        if not found:
            console.print("There are no tokens.")
            return
        table = Table(box=None, padding=(0, 2), header_style="dim")
        for column in ("token", "for", "state", "expires (UTC)", "note"):
            table.add_column(column, no_wrap=column != "note", overflow="fold")
        for each in found:
            about = ", ".join(word for word in ("trusted" if each.trusted else "", each.note) if word)
            cells = (each.id, _whose(each), each.state, to_minute(each.expires), about)
            table.add_row(*(Text(readable(cell)) for cell in cells))  # text, never markup: others wrote it
        console.print(table, highlight=False)

    frame.emit({"tokens": [each.to_dict() for each in found]}, human)


@framed
def revoke(
    frame: Frame,
    id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, or how it begins.")],  # noqa: A002
) -> None:
    """Ends a token at once and for good, on every server of this home.

    Example: dalenius token revoke 3f9a
    """
    from dalenius.ledger.tokens import Tokens

    tokens = Tokens(frame.open_ledger())
    before = _find(tokens, id)
    token = tokens.revoke(before.id)
    words = f"Token {token.id}, {_whose(token)}, "
    words += f"was revoked before, {to_minute(token.revoked)} UTC." if before.revoked else "is revoked."
    frame.emit({**token.to_dict(), "revoked_before": bool(before.revoked)}, lambda console: _say(console, words))


def _life(text: str) -> timedelta:
    match = _LIFE.fullmatch(text)
    if match is None:
        raise InputError(
            "--expires is not a time.",
            why="It takes hours, days or weeks, in whole numbers.",
            fix="Write 12h, 30d or 52w.",
        )
    return timedelta(hours=int(match[1]) * _HOURS[match[2]])


def _find(tokens: Tokens, beginning: str) -> Token:
    """The one token whose id begins so."""
    found = [each for each in tokens.all() if beginning and each.id.startswith(beginning)]
    if not found:
        raise UnknownTokenError(
            "There is no such token.", why="No id begins so.", fix="Run 'dalenius token list' for those there are."
        )
    if len(found) > 1:
        raise InputError(
            "Several tokens begin so.",
            why=f"They are {', '.join(each.id for each in found[:5])}{' …' if len(found) > 5 else ''}.",
            fix="Give more of the id.",
        )
    return found[0]


@contextmanager
def _file(output: Path | None) -> Iterator[Callable[[str], None]]:
    """What writes a token to a new file that only this user can read; removed again if it was not written."""
    if output is None:
        yield lambda _: None
        return
    from dalenius.tables.sources.homes import check_output

    check_output(output)
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(
            f"{output} is there already.", why="A file is never replaced by a token.", fix="Name a new file."
        ) from None
    except (OSError, ValueError):
        raise SourceUnavailableError(
            f"{output} cannot be written.", why="Its folder is missing or not yours.", fix="Name a file in another one."
        ) from None
    try:
        with os.fdopen(descriptor, "w") as out:

            def write(text: str) -> None:
                out.write(f"{text}\n")
                out.flush()
                os.fsync(out.fileno())

            yield write
    except BaseException:
        output.unlink(missing_ok=True)
        raise


def _whose(token: Token) -> str:
    return token.analyst or f"the {token.role}"


def _say(console: Console, words: str) -> None:
    from rich.text import Text

    console.print(Text(words), soft_wrap=True)  # one line, whatever the width: it is copied
