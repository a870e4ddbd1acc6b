"""Where ledger and policies lie: `--home`, else `DALENIUS_HOME`, else the nearest `.dalenius` upwards."""

from __future__ import annotations

import os
from pathlib import Path

from dalenius.errors import HomeMissingError

FOLDER = ".dalenius"
VARIABLE = "DALENIUS_HOME"


def find_home(given: Path | None = None, start: Path | None = None) -> Path:
    """Finds the home folder.

    A home that was named, by option or variable, is taken at its word: if it is missing we do not search
    on, since charging another ledger than the one that was meant would be worse than stopping.

    Args:
        given: The value of `--home`.
        start: Where the search upwards begins; the working directory by default.

    Raises:
        HomeMissingError: There is none; names the folders that were tried.
    """
    named = given if given is not None else _from_environment()
    if named is not None:
        if named.is_dir():
            return named.resolve()
        source = "--home" if given is not None else VARIABLE
        raise HomeMissingError(
            f"There is no home folder at {named}.",
            why=f"{source} names it, so nothing else was tried.",
            fix=f"Correct {source}, or create the home with 'dalenius protect'.",
            looked_in=(str(named),),
        )

    start = Path.cwd() if start is None else start.resolve()
    candidates = tuple(folder / FOLDER for folder in (start, *start.parents))
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise HomeMissingError(
        "No home folder was found.",
        why=f"Looked for {', '.join(map(str, candidates))}.",
        fix=f"Create one with 'dalenius protect', or name one with --home or {VARIABLE}.",
        looked_in=tuple(map(str, candidates)),
    )


def future_home(given: Path | None = None) -> Path:
    """Where a home would be made: the one that was named, else `.dalenius` in the working directory."""
    return (given or _from_environment() or Path.cwd() / FOLDER).absolute()


def _from_environment() -> Path | None:
    value = os.environ.get(VARIABLE, "")
    return Path(value) if value else None
