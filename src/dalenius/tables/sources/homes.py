"""No file of a home is a source, and none is written over: one check, wherever a file is named.

A home holds the keys that sign receipts, the ledger, and an index of every protected table. Named as a key list or a
public table, any of them could be read by every analyst. So whatever a person or a request calls a source (a table's,
a public table's, a code list, a draft's, metadata), and whatever is to be written, is looked at here first: its path is
followed to its end, and no folder on the way may be a home, this one or another. What the folders do not tell, since
hard links and mounts have paths of their own, the numbers of device and file do, for the homes that this process has
to do with. What such a home keeps elsewhere by a link (an index on a larger disk, keys on a smaller one) is as much of
it as the rest: all below a folder that a link in it leads to, and each file.

The folder `data` in a home is left out: nothing of ours is ever written there, and the demo keeps its tables in it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary

from dalenius.errors import NotAllowedError

DATA = "data"
NAME = ".dalenius"
# By any of these a folder is a home, whatever it is called: a ledger, the anchor of one, or its keys, which may lie
# elsewhere, where only a link leads to them.
MARKS = ("ledger.sqlite", "ledger.anchor", "keys/chain.key", "keys/signing.key", "chain.key")
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite writes beside a ledger: where the file is, not where its link is
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
    """The same by their paths and what stands at the top of a home, for each question: some tens of `stat`.

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
        links: Whether files of known homes are also known under other paths, and links below the top of them followed,
            which takes a look at all of them.
    """
    own = {*_KNOWN.values(), *(home.resolve() for home in homes)}

    @cache
    def parts(*, whole: bool) -> _Parts:
        return _parts_of(own, whole=whole)

    @cache
    def inside(folder: Path, *, whole: bool) -> bool:
        return _inside(folder, parts(whole=whole))

    def belongs(path: Path) -> bool:
        resolved = Path(path).resolve()
        folder = resolved if resolved.is_dir() else resolved.parent
        # All of a home is looked at only where its top does not tell.
        looks = (False, True) if links else (False,)
        return any(inside(folder, whole=each) or parts(whole=each).has(resolved) for each in looks)

    return belongs


@dataclass
class _Parts:
    """What belongs to the known homes.

    Attributes:
        homes: The folders that they are.
        linked: Folders elsewhere that a link in one of them leads to, and all that is in those.
        places: Where links in them lead, also to what is not there yet.
        files: Their files, wherever those are.
    """

    homes: set[_Number] = field(default_factory=set)
    linked: set[_Number] = field(default_factory=set)
    places: set[Path] = field(default_factory=set)
    files: set[_Number] = field(default_factory=set)

    def has(self, path: Path) -> bool:
        """Whether a path, followed to its end, is one of their files."""
        return path in self.places or _number(path) in self.files


def _parts_of(own: Iterable[Path], *, whole: bool) -> _Parts:
    """Looks at the top of each home, or at the whole of it, through every link."""
    parts, seen = _Parts(), set[_Number]()
    left = [(home, True) for home in own]
    while left:
        folder, top = left.pop()
        number = _number(folder)
        if number is None or (number in seen and not top):
            continue
        seen.add(number)
        if top:
            parts.homes.add(number)
        for path, link in _entries(folder):
            if top and path.name == DATA:
                continue
            if link:
                _add_link(parts, path)
            status = _status(path)
            if status is not None and stat.S_ISREG(status.st_mode):
                parts.files.add((status.st_dev, status.st_ino))
            elif whole and status is not None and stat.S_ISDIR(status.st_mode):
                left.append((path, False))
    return parts


def _add_link(parts: _Parts, link: Path) -> None:
    try:
        end = link.resolve()
    except (OSError, RuntimeError, ValueError):
        return  # it leads round in a circle
    parts.places |= {end, *(end.with_name(end.name + each) for each in _BESIDE)}
    if end.is_dir() and (number := _number(end)) is not None:
        parts.linked.add(number)


def _entries(folder: Path) -> list[tuple[Path, bool]]:
    """All that is in a folder, and whether it is a link."""
    try:
        with os.scandir(folder) as found:
            return [(Path(each.path), each.is_symlink()) for each in found]
    except OSError:
        return []


def _no_source() -> NotAllowedError:
    return NotAllowedError(
        "This names a file of a home.",
        why="A home holds the ledger, its keys and what was prepared from protected tables: never a source.",
        fix="Keep data, code lists and public tables in folders outside of every home.",
    )


def _inside(folder: Path, parts: _Parts) -> bool:
    below: Path | None = None
    for each in (folder, *folder.parents):
        number = _number(each)
        if each in parts.places or number in parts.linked:
            return True
        own = below is None or below.name != DATA  # in its folder for data nothing is the home's
        if own and (_looks_so(each) or number in parts.homes):
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
    status = _status(path)
    return None if status is None else (status.st_dev, status.st_ino)


def _status(path: Path) -> os.stat_result | None:
    """Of what stands at the end of all links."""
    try:
        return path.stat()
    except (OSError, RuntimeError, ValueError):
        return None
