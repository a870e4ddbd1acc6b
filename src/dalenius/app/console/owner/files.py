"""The files below the server's data folder: which there are, what columns they have, and how new ones come in."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import AsyncIterable, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from dalenius.app.http.places import check_inside
from dalenius.errors import InputError, SourceUnavailableError
from dalenius.queries.engines.schema import schema
from dalenius.tables.fingerprint import FORMS, expand, form_of

MOST = 1000  # files in the list
_LONGEST = 100
_PATTERN = re.compile(r"[*?\[]")  # such names cannot be protected


def listed(root: Path, home: Path) -> list[str]:
    """Names, relative to the root, of files that a table can be made of; no links, nothing hidden, not the home."""
    root, home, found = root.resolve(), home.resolve(), []
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(each for each in folders if not each.startswith(".") and here / each != home)
        for name in sorted(files):
            file = here / name
            if name.startswith(".") or not name.lower().endswith(tuple(FORMS)) or _PATTERN.search(name):
                continue
            if file.is_file() and not file.is_symlink():
                found.append(file.relative_to(root).as_posix())
            if len(found) == MOST:
                return found
    return found


def columns_of(name: str, root: Path) -> tuple[tuple[str, str], ...]:
    """Names and types of a file's columns; the file must lie below the root."""
    root = root.resolve()
    check_inside(name, root)
    paths = expand([str(root / name)])
    return schema(paths, form_of(paths), guess=True)


def safe_name(given: str) -> str:
    """A plain name for a file that comes in: letters, digits, `.`, `_` and `-`, and an ending that is known.

    >>> safe_name("../My visits (1).CSV")
    'My_visits_1.csv'
    """
    last = re.split(r"[/\\]", given)[-1]
    end = next((each for each in sorted(FORMS, key=len, reverse=True) if last.lower().endswith(each)), "")
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", last[: len(last) - len(end)]).strip("_-")[:_LONGEST]
    if not end or not stem:
        raise InputError(
            "This file cannot be taken.",
            why=f"It has no plain name that ends in one of {', '.join(FORMS)}.",
            fix="Rename it, or write it as CSV or Parquet.",
        )
    return stem + end


async def take_in(
    pieces: AsyncIterable[bytes],
    given: str,
    root: Path,
    run: Callable[[Callable[[], Any]], Awaitable[Any]],
) -> str:
    """Writes a file that comes in piece by piece; its name below the root. It is there as a whole or not at all.

    Args:
        pieces: Its content.
        given: Its name, as the browser says.
        root: The data folder.
        run: Does something in a thread.
    """
    name = safe_name(given)
    part, file = root / f".{secrets.token_hex(8)}.part", root / name
    if await run(lambda: os.path.lexists(file)):
        raise _there()
    try:
        descriptor = await run(lambda: os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            size = 0
            async for piece in pieces:
                size += len(piece)
                await run(partial(_write, descriptor, piece))
            if not size:
                raise InputError("The file is empty.", why="Nothing came in.", fix="Choose another.")
            await run(lambda: os.fsync(descriptor))
        finally:
            os.close(descriptor)
        await run(lambda: os.link(part, file))  # which, unlike a rename, replaces nothing
    except FileExistsError:
        raise _there() from None
    except OSError:
        raise SourceUnavailableError(
            "The file could not be written.",
            why="The data folder is missing, full, or not the server's.",
            fix="Free space, or put the file there yourself.",
        ) from None
    finally:
        await run(lambda: part.unlink(missing_ok=True))
    return name


def _write(descriptor: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _there() -> InputError:
    return InputError(
        "A file of this name is there already.", why="Files are never replaced from here.", fix="Rename yours."
    )
