"""Files that people name: whether one can be written, before anything is charged for what would stand in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dalenius._extras import require_extra
from dalenius.errors import InputError, SourceUnavailableError
from dalenius.tables.sources.homes import check_output

ANSWER, PLOT = (".csv", ".parquet", ".json"), (".png", ".svg")


def check_target(target: Path, endings: Sequence[str] = ANSWER) -> None:
    """Refuses a file that could not be written, before anything is charged or drawn.

    Args:
        target: The file.
        endings: `ANSWER` or `PLOT`.
    """
    what, why = ("A plot", "A plot is a file.") if endings is PLOT else ("This", "It is written to a file.")
    if endings is ANSWER:
        what, why = "An answer", "An answer is written to a file."
    if target.suffix.lower() not in endings:
        raise InputError(
            f"{what} cannot be written as {target.suffix or 'a file without ending'}.",
            why="The ending says which format is meant.",
            fix=f"Name a file that ends in {', '.join(endings[:-1])} or {endings[-1]}.",
        )
    check_output(target)
    try:
        place = target.resolve()
        folder, missing = place.is_dir(), not place.parent.is_dir()
        writable = os.access(place if place.exists() else place.parent, os.W_OK)
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        raise unwritable(target, error) from None
    if folder or missing:
        raise SourceUnavailableError(
            f"{target.name} is a folder." if folder else f"The folder of {target.name} does not exist.",
            why=why,
            fix="Name a file in a folder that exists.",
        )
    if not writable:
        raise unwritable(target, PermissionError(13, "Permission denied"))
    if endings is PLOT:
        require_extra("plot", "matplotlib")


def unwritable(target: Path, error: Exception) -> SourceUnavailableError:
    """Says why a file cannot be written."""
    reason = error.strerror if isinstance(error, OSError) else None
    return SourceUnavailableError(
        f"{target.name} cannot be written.",
        why=f"{reason or type(error).__name__}.",
        fix="Name a file in a folder of yours, on a disk with room.",
    )
