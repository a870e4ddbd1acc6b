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
from dalenius.app.http.problems import NotFoundError
from dalenius.errors import InputError, NotAllowedError, SourceUnavailableError
from dalenius.measuring.engines.sources import schema
from dalenius.tables.sources import homes
from dalenius.tables.sources.fingerprint import FORMS, expand, form_of

MOST = 1000  # files in the list
_LONGEST = 100
_PATTERN = re.compile(r"[*?\[]")  # such names cannot be protected
_NO_TEXT = re.compile(r"[\0-\x1f\x7f\ud800-\udfff]")  # nor be written: control characters, and what is not UTF-8


def listed(root: Path, home: Path) -> list[str]:
    """Names, relative to the root, of files that a table can be made of: no links, nothing hidden or of a home."""
    root = root.resolve()
    found: list[str] = []
    of_home = homes.recogniser(home)
    if of_home(root):
        return found
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(each for each in folders if _plain(each) and not of_home(here / each))
        for name in sorted(files):
            file = here / name
            if not _plain(name) or not name.lower().endswith(tuple(FORMS)):
                continue
            if file.is_file() and not file.is_symlink() and not of_home(file):
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


def check_listed(name: str, root: Path, home: Path) -> None:
    """That a name is one that `listed` would give; what is refused is not opened.

    Raises:
        NotAllowedError: It leads elsewhere, or to a link, something hidden, a pattern or the home.
        NotFoundError: It could be one, and there is no such file.
    """
    root = root.resolve()
    parts = name.split("/")  # not a Path's, which would leave out empty ones and dots
    if not all(map(_plain, parts)) or not name.lower().endswith(tuple(FORMS)):
        raise _not_listed()
    check_inside(name, root)
    file = root.joinpath(*parts)
    if file.resolve() != file or homes.recogniser(home)(file):
        raise _not_listed()
    if not file.is_file():
        raise NotFoundError("There is no such file.", why="Nothing of that name is there.", fix="See /v1/files.")


def check_safe(name: str) -> None:
    """That a file can come in under the very name that is given."""
    safe = safe_name(name)
    if safe != name:
        raise InputError(
            "A file cannot be taken under this name.",
            why="Names are letters, digits, _ and -, up to 100, and a known ending.",
            fix=f"Send it as {safe}.",
        )


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
        given: Its name, as its sender says.
        root: The data folder.
        run: Does something in a thread.
    """
    name = safe_name(given)
    await run(partial(homes.check_output, root / name))
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


def _plain(part: str) -> bool:
    """Whether a name in a path is neither hidden nor a pattern nor anything but text."""
    return bool(part) and not part.startswith(".") and not _PATTERN.search(part) and not _NO_TEXT.search(part)


def _not_listed() -> NotAllowedError:
    return NotAllowedError(
        "This is no file that a table can be made of.",
        why="Names are relative to the data folder; links, hidden files, patterns and the home are left out.",
        fix="See /v1/files for those that are.",
    )


def _write(descriptor: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _there() -> InputError:
    return InputError(
        "A file of this name is there already.", why="Files are never replaced from here.", fix="Rename yours."
    )
