"""The demo's own home: laid anew at each run, and nothing else is ever deleted."""

from __future__ import annotations

import shutil
from pathlib import Path

from dalenius.errors import InputError

NAME, MARK = ".dalenius-demo", "DEMO"


def lay_anew(folder: Path) -> Path:
    """An empty demo home in ``folder``."""
    home = folder / NAME
    if home.is_symlink() or (home.exists() and not (home / MARK).is_file()):
        raise InputError(
            f"{NAME} is not a demo home.",
            why=f"It has no file {MARK}, so it may hold something of yours.",
            fix="Move it away, or run the demo in another folder.",
        )
    if home.exists():
        shutil.rmtree(home)
    home.mkdir(mode=0o700)
    (home / MARK).write_text("Made by 'dalenius demo', which deletes and remakes this folder at each run.\n")
    return home
