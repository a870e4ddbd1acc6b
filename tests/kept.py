"""Folders that are laid once and then put back as they were: to protect one table, DuckDB starts twice.

A protected home names its sources by their whole paths, so what was laid at a place can be put back at that place only:
the fixture `place` is the same for all tests of a process, and empty. What is put back has other inodes and times than
what was protected; the content decides, as after a backup.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from dalenius.curator import Curator


def laid(place: Path, key: str, lay: Callable[[Path], Curator]) -> Curator:
    """A curator of what ``lay`` makes in a place. What it made under this key before is put back instead.

    Args:
        place: The fixture of this name.
        key: Whose work it is, and all that it depends on.
        lay: Writes and protects tables there, under a home in the same folder.
    """
    saved = place.with_name(f"laid {hashlib.sha256(key.encode()).hexdigest()}")
    if not saved.exists():
        curator = lay(place)
        name = curator.home.name
        curator.engines.close()
        curator.ledger.database.close()
        shutil.copytree(place, saved / "files")
        (saved / "home").write_text(name)
    shutil.copytree(saved / "files", place, dirs_exist_ok=True)
    return Curator(place / (saved / "home").read_text())
