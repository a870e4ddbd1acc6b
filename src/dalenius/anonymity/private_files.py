"""Files that only their owner reads (0600): keys of pseudonyms, and who had which signature in earlier releases.

What others may read is refused rather than used: whoever read it can undo what it was made for.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from dalenius.errors import InputError, SourceUnavailableError


def read_private(file: Path) -> str:
    """The text of a file that only its owner may read."""
    try:
        with file.open(encoding="utf-8") as source:
            mode = os.fstat(source.fileno()).st_mode
            if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
                raise InputError(
                    f"Others may read {file.name} (mode {stat.S_IMODE(mode):04o}).",
                    why="Whoever reads it can tell who is who in what was published.",
                    fix=f"Run chmod 600 {file.name}; if somebody may have read it, take a new one.",
                )
            return source.read()
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(file, error, "read") from None


def write_private(file: Path, text: str, *, replace: bool) -> None:
    """Writes a file of mode 0600, whole or not at all."""
    if not replace and file.exists():
        raise InputError(
            f"{file.name} is there already.",
            why="A new one would replace what an earlier publication was made with.",
            fix="Name another file, or use the one that is there.",
        )
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        if replace:
            part.replace(file)
        else:
            os.link(part, file)  # fails where somebody else was first
            part.unlink()
    except OSError as error:
        part.unlink(missing_ok=True)
        raise _unusable(file, error, "written") from None


def _unusable(file: Path, error: Exception, what: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"{file.name} cannot be {what} ({type(error).__name__}).",
        why="What tells who is who is kept in a file that only you can read.",
        fix="Name a file in a folder of yours.",
    )
