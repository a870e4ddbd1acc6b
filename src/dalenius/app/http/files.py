"""The files below the server's data folder: which there are, their columns, how new ones come in, who may be named.

A policy that came over the network may name files below that folder, and no others. Every path is followed to its end
first: a link, a glob, `..` or an absolute path that leads out is refused. The file is not opened before that, and the
refusal is the same whether it exists or not.
"""

from __future__ import annotations

import glob
import os
import re
import secrets
import tomllib
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dalenius.app.http.responses import NotFoundError
from dalenius.errors import InputError, NotAllowedError, SourceUnavailableError
from dalenius.measuring.engines.sources import schema
from dalenius.tables.anonymity import files_of
from dalenius.tables.policy import Policy
from dalenius.tables.reading import read_text
from dalenius.tables.sources import homes
from dalenius.tables.sources.fingerprint import FORMS, expand, form_of

MOST = 1000  # files in the list
_LONGEST = 100
_PATTERN = re.compile(r"[*?\[]")  # such names cannot be protected
_NO_TEXT = re.compile(r"[\0-\x1f\x7f\ud800-\udfff]")  # nor be written: control characters, and what is not UTF-8


def list_files(root: Path, home: Path) -> list[str]:
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
    """That a name is one that `list_files` would give; what is refused is not opened.

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


def policy_from(text: str, folder: Path | None) -> Policy:
    """The policy in a text whose relative paths are relative to ``folder``, and whose paths all lie in it."""
    if folder is None:
        raise NotAllowedError(
            "This server takes no policies.",
            why="It was given no data_dir, so no file could be named.",
            fix="The owner starts it with --data-dir, or sets server.data_dir in config.toml.",
        )
    root = folder.resolve()
    for path in paths_in(text):  # before anything is read: a code list is opened with the policy
        check_inside(path, root)
    policy = read_text(text, root)
    for path in (*policy.source, *(each for spec in policy.public.values() for each in spec.source)):
        check_inside(path, root)
    return policy


def check_inside(path: str, root: Path) -> None:
    """That a path or a glob, relative to the root, stays below it, whatever links are on its way."""
    absolute = str(root / path)
    # The words first: no folder outside is even listed.
    inside = ".." not in Path(absolute).parts and _inside([absolute], root)
    if not inside or not _inside(glob.iglob(absolute, recursive=True), root):  # noqa: PTH207 (absolute patterns)
        raise NotAllowedError(
            "This names a file outside the server's data folder.",
            why="What comes over the network may name files below it only.",
            fix="Put the files there, and name them relative to it.",
        )


def _inside(paths: Iterable[str], root: Path) -> bool:
    """Whether all of them end below the root."""
    try:
        return all(Path(each).resolve().is_relative_to(root) for each in paths)
    except (OSError, ValueError, RuntimeError):
        return False


def paths_in(text: str) -> Iterator[str]:
    """Every path that a policy names, as far as it can be read; what cannot, `read_text` refuses."""
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError):
        return
    for holder in (tree.get("table"), *_values(tree.get("public"))):
        if isinstance(holder, Mapping):
            source = holder.get("source")
            yield from (each for each in (source if isinstance(source, list) else [source]) if isinstance(each, str))
    for column in _values(tree.get("columns")):
        keys = column.get("keys") if isinstance(column, Mapping) else None
        if isinstance(keys, Mapping) and isinstance(keys.get("file"), str):
            yield keys["file"]
    anonymity = tree.get("anonymity")
    yield from files_of(anonymity) if isinstance(anonymity, Mapping) else ()


def _values(tree: Any) -> list[Any]:
    return list(tree.values()) if isinstance(tree, Mapping) else []
