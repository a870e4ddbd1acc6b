"""The demo's own home: laid anew at each run, and nothing else is ever deleted."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from dalenius.errors import InputError, SourceUnavailableError

NAME, MARK = ".dalenius-demo", "DEMO"


def lay_anew(folder: Path) -> Path:
    """An empty demo home in ``folder``, readable by its owner only."""
    home = folder / NAME
    try:
        if not _is_ours(home):
            raise InputError(
                f"{NAME} is not a demo home.",
                why=f"It has no file {MARK}, so it may hold something of yours.",
                fix="Move it away, or run the demo in another folder.",
            )
        _replace(home)
    except OSError as error:
        raise SourceUnavailableError(
            "The demo home cannot be made here.",
            why=f"{error.strerror or type(error).__name__}.",
            fix="Run the demo in a folder of yours.",
        ) from None
    return home


def _is_ours(home: Path) -> bool:
    """Missing, marked as a demo home, or an empty folder."""
    if home.is_symlink():
        return False
    if not home.exists() or (home / MARK).is_file():
        return True
    return home.is_dir() and not any(home.iterdir())


def _replace(home: Path) -> None:
    """Made complete beside its place, then moved there: a run that is killed leaves no home without its mark."""
    work = Path(tempfile.mkdtemp(prefix=f"{NAME}-", dir=home.parent))
    try:
        work.chmod(0o700)  # whatever the umask
        new = work / "new"
        new.mkdir()
        new.chmod(0o700)
        mark = new / MARK
        mark.touch()
        mark.chmod(0o600)
        mark.write_text("Made by 'dalenius demo', which deletes and remakes this folder at each run.\n")
        if home.exists():
            home.rename(work / "old")
        new.rename(home)
    finally:
        shutil.rmtree(work)
