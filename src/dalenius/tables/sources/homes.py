"""No file of a home is a source, and none is written over: one check, wherever a file is named.

A home holds the keys that sign receipts, the ledger, and an index of every protected table. Named as a key list or a
public table, any of them could be read by every analyst. So whatever a person or a request calls a source (a table's,
a public table's, a code list, a draft's, metadata), and whatever is to be written, is looked at here first: its path is
followed to its end, and no folder on the way may be a home, this one or another. What the folders do not tell, since
hard links and mounts have paths of their own, the numbers of device and file do, for the homes that this process has
to do with.

The folder `data` in a home is left out: nothing of ours is ever written there, and the demo keeps its tables in it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from weakref import WeakKeyDictionary

from dalenius.errors import NotAllowedError

DATA = "data"
NAME = ".dalenius"
# By any of these a folder is a home, whatever it is called: a ledger, the anchor of one, or its keys.
MARKS = ("ledger.sqlite", "ledger.anchor", "keys/chain.key", "keys/signing.key")
_Number = tuple[int, int]  # of device and file
_KNOWN: WeakKeyDictionary[object, Path] = WeakKeyDictionary()


def know(home: Path, whose: object) -> None:
    """Remembers a home as long as ``whose`` lives: its files are recognised by whatever path they are named."""
    _KNOWN[whose] = home.resolve()


def check_sources(paths: Iterable[Path]) -> None:
    """Refuses files of a home as something to read.

    Raises:
        NotAllowedError: One of them lies in a home, or is one of its files under another name.
    """
    if any_of_home(paths):
        raise _no_source()


def check_outside(paths: Iterable[Path]) -> None:
    """The same by their paths alone, for each question: one `stat` or so per folder.

    Raises:
        NotAllowedError: One of them lies in a home.
    """
    if any(map(recogniser(links=False), paths)):
        raise _no_source()


def check_output(path: Path) -> None:
    """Refuses to write into a home, or over a file of one.

    Raises:
        NotAllowedError: It would be.
    """
    try:
        refused = any_of_home([path])
    except (OSError, ValueError, RuntimeError):
        return  # it cannot be written either, as whoever tries will say
    if refused:
        raise NotAllowedError(
            f"{path.name} would lie in a home.",
            why="A home holds the ledger and its keys; nothing else is written there.",
            fix="Name a file in another folder.",
        )


def any_of_home(paths: Iterable[Path]) -> bool:
    """Whether one of them belongs to a home: by its path, or as a file of a known home under another path."""
    return any(map(recogniser(), paths))


def recogniser(*homes: Path, links: bool = True) -> Callable[[Path], bool]:
    """Tells of many paths whether they belong to a home; looks at each folder once.

    Args:
        homes: Homes beside those that are known, or that look so.
        links: Whether files of known homes are also known under other paths, which takes a look at all of them.
    """
    own = {*_KNOWN.values(), *(home.resolve() for home in homes)}
    known = {number for home in own if (number := _number(home)) is not None}
    files = {number for home in own for number in _files(home)} if links else set()
    seen: dict[Path, bool] = {}

    def belongs(path: Path) -> bool:
        resolved = Path(path).resolve()
        folder = resolved if resolved.is_dir() else resolved.parent
        if folder not in seen:
            seen[folder] = _inside(folder, known)
        return seen[folder] or _number(resolved) in files

    return belongs


def _no_source() -> NotAllowedError:
    return NotAllowedError(
        "This names a file of a home.",
        why="A home holds the ledger, its keys and what was prepared from protected tables: never a source.",
        fix="Keep data, code lists and public tables in folders outside of every home.",
    )


def _inside(folder: Path, known: set[_Number]) -> bool:
    below: Path | None = None
    for each in (folder, *folder.parents):
        own = below is None or below.name != DATA  # in its folder for data nothing is the home's
        if own and (_looks_so(each) or _number(each) in known):
            return True
        below = each
    return False


def _looks_so(folder: Path) -> bool:
    return folder.name.casefold() == NAME or any(_is_there(folder / mark) for mark in MARKS)


def _is_there(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except (OSError, ValueError):
        return False


def _number(path: Path) -> _Number | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _files(home: Path) -> Iterator[_Number]:
    """The numbers of all of its files."""
    for folder, folders, files in os.walk(home):
        if Path(folder) == home and DATA in folders:
            folders.remove(DATA)
        for name in files:
            try:
                status = os.stat(Path(folder) / name, follow_symlinks=False)  # noqa: PTH116
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield status.st_dev, status.st_ino
