"""`--server` and `--token-file`: the same commands, asked of a server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from dalenius.errors import AuthMissingError, InputError, SourceUnavailableError
from dalenius.ledger.home import VARIABLE as HOME

if TYPE_CHECKING:
    from dalenius.app.cli.frame import Frame
    from dalenius.remote import RemoteAnalyst

T = TypeVar("T")

SERVER = "DALENIUS_SERVER"
TOKEN = "DALENIUS_TOKEN"  # noqa: S105 (the variable's name)
_LONGEST = 10_000  # bytes of a token file

Server = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help=f"Ask a server, instead of a home here; or ${SERVER}."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help=f"Holds the token for the server; or ${TOKEN} is it."),
]


def server_of(
    frame: Frame, server: str | None, token_file: Path | None, analyst: str | None = None
) -> RemoteAnalyst | None:
    """The server to ask; None: a home on this machine.

    An option counts for more than a variable. Where both a server and a home are meant, nothing is guessed: charging
    another ledger than the one that was meant would be worse than stopping.
    """
    url = server or (os.environ.get(SERVER) if frame.home is None else None)
    if not url:
        if token_file is not None:
            raise InputError(
                "There is a token, but no server.",
                why="A token is for a server.",
                fix=f"Give --server URL too, or set {SERVER}.",
            )
        return None
    named = "--server" if server else SERVER
    homes = [("--home", frame.home is not None), (HOME, not server and bool(os.environ.get(HOME)))]
    for other, given in homes:
        if given:
            raise InputError(
                f"{named} and {other} are both given.",
                why="A server has its own home; which ledger is meant?",
                fix="Give one of them.",
            )
    if analyst is not None:
        raise InputError(
            f"--analyst does not go with {named}.",
            why="Whose allotment pays is told by the token.",
            fix="Leave --analyst out, or use that analyst's token.",
        )
    from dalenius.remote import connect

    told = False

    def progress(share: float, text: str) -> None:
        nonlocal told
        if not told and share < 1:
            told = True
            frame.note(f"The question takes its time: {text}.")

    return connect(url, _token(frame, token_file), progress=progress)


def refuse(option: str, value: object, why: str) -> None:
    """Refuses an option that a server cannot serve."""
    if value is not None:
        raise InputError(f"{option} does not go with a server.", why=why, fix="Leave it out, or ask the owner.")


def read(remote: RemoteAnalyst, data: Any, reader: Callable[[Any], T]) -> T:
    """What a server sent, as what it should be."""
    try:
        return reader(data)
    except InputError as error:
        raise SourceUnavailableError(
            f"{remote!r} does not answer as a dalenius server.", why=error.why, fix="Check the address."
        ) from None


def _token(frame: Frame, file: Path | None) -> str:
    if file is None:
        token = os.environ.get(TOKEN, "").strip()
        if token:
            return token
        raise AuthMissingError(
            "There is no token.",
            why="The server must know who asks. A token is never an argument: others could see it there.",
            fix=f"Give --token-file FILE, or set {TOKEN}; the owner hands tokens out.",
        )
    try:
        with file.open("rb") as source:
            mode = os.fstat(source.fileno()).st_mode
            token = source.read(_LONGEST).decode("ascii").strip()
    except OSError as error:
        raise SourceUnavailableError(
            f"{file} cannot be read.", why=f"{error.strerror or type(error).__name__}.", fix="Name the token's file."
        ) from None
    except UnicodeDecodeError:
        token = ""
    if not token:
        raise InputError(f"{file} holds no token.", why="It is one line of text.", fix="Save the token in it.")
    if mode & 0o077:
        frame.note(f"Others on this machine can read {file}. Run: chmod 600 {file}")
    return token
