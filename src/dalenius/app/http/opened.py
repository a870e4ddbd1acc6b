"""Where rows lie that the owner opens over the network: in a folder of their own, below the server's data folder."""

from __future__ import annotations

import re
from pathlib import Path

from dalenius.app.http.files import check_inside
from dalenius.errors import InputError, NotAllowedError, SourceUnavailableError

FOLDER = "synthetic"
_NAME = re.compile(r"[0-9A-Za-z_-]{1,200}")


def new_file(root: Path | None, name: str) -> Path:
    """A file that is not there yet; the folder is made if it is missing."""
    if root is None:
        raise NotAllowedError(
            "This server keeps no files.", why="It was given no data_dir.", fix="Start it with --data-dir."
        )
    if not _NAME.fullmatch(name):
        raise InputError(
            "This is no name of a table.", why="It names a file, too.", fix="Take letters, digits and underscores."
        )
    root = root.resolve()
    check_inside(FOLDER, root)
    folder = root / FOLDER
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise SourceUnavailableError(
            "The rows could not be written.",
            why=f"{error.strerror or type(error).__name__}.",
            fix="Make the data folder the server's, or open the rows on its machine: dalenius synthesize --public.",
        ) from None
    numbers = ("", *(f"-{each}" for each in range(2, 1000)))
    return next(each for each in (folder / f"{name}{number}.parquet" for number in numbers) if not each.exists())
