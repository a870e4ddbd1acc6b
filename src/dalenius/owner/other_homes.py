"""A file has one home: in a second one, the same people would have a second budget.

Which homes there are is not written down anywhere: such a list would tell one project of another, and name homes long
after they are gone. So homes are looked for where one would find them by oneself: `.dalenius` in the folder of a source
or above it, the home in whose `data` it lies, the one that DALENIUS_HOME names, and the nearest from the working folder
upwards. What such a home has ever protected is read from its history. A home that was deleted stops nobody; one that
lies elsewhere, belongs to another user than this one and root, or may not be read is not known (docs/sharp-edges.md).

There is no way around by `--yes`: nobody who says yes could take back what a second budget would tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.errors import HomeMissingError, OtherHomeError
from dalenius.ledger.database import NAME
from dalenius.ledger.elsewhere import actions_of
from dalenius.ledger.home import FOLDER, find_home
from dalenius.tables.sources.fingerprint import file_fingerprint

if TYPE_CHECKING:
    from dalenius.tables.registry import Registry, Version
    from dalenius.tables.sources.fingerprint import SourceFile

_DEMO = "DEMO"  # a demo's home: its people are made up, and it is laid anew at each run
_KINDS = ("policy", "refresh")


def check_first_home(version: Version, registry: Registry, home: Path | None) -> None:
    """Refuses files of another home: a content or a path that it has had, and this one has not.

    What both have had is let pass: to stop now takes nothing back. A path that both have had is no leave to fill it
    with what only the other has had, nor is a known content one to follow the other's path.

    Args:
        version: What is to be protected.
        registry: All that this home has ever protected.
        home: This home; None where it is not there yet.
    """
    found, known = version.fingerprint.files, _ever_protected(registry)
    paths = {file.path for file in found} - {file.path for file in known}
    hashes = {file.hash for file in found} - {file.hash for file in known}
    if not paths and not hashes:
        return
    for other in _homes_around(version.fingerprint.paths):
        if home is not None and os.path.exists(home) and os.path.samefile(other, home):  # noqa: PTH110, PTH121
            continue
        theirs = {named for record in actions_of(other, _KINDS) for named in _files_of(record)}
        if _is_demo(other, [path for path, _ in theirs]):
            continue
        if any(path in paths or content in hashes for path, content in theirs):
            raise OtherHomeError(
                f"The source of {version.table!r} is protected in another home.",
                why="Each home has its own budgets: the same people would get a second one.",
                fix="Use that home. There another table of these files joins its data set: "
                "write dataset = … in [table], without [budget].",
                home=other,
            )


def check_unprotected_elsewhere(paths: Iterable[Path], home: Path | None) -> None:
    """Refuses rows of files that a home around them protects, and this one does not: they would leave off its record.

    Args:
        paths: The files, each followed to its end.
        home: This home, which was asked before; None where there is none.
    """
    files = [path.resolve() for path in paths]
    for other in _homes_around(files):
        if home is not None and os.path.samefile(other, home):  # noqa: PTH121
            continue
        theirs = {named for record in actions_of(other, _KINDS) for named in _files_of(record)}
        hashes = {content for _, content in theirs}
        if any(each in {path for path, _ in theirs} for each in map(str, files)) or any(
            file_fingerprint(each).files[0].hash in hashes for each in (files if hashes else ())
        ):
            raise OtherHomeError(
                "These rows are protected in another home.",
                why="What leaves of them must be on record there.",
                fix="Name that home with --home.",
                home=other,
            )


def _ever_protected(registry: Registry) -> list[SourceFile]:
    return [file for versions in registry.versions().values() for each in versions for file in each.fingerprint.files]


def _files_of(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and hash of each file that a record names, whatever else a later release writes of it."""
    fingerprint = record.get("fingerprint")
    files = fingerprint.get("files") if isinstance(fingerprint, Mapping) else None
    for file in files if isinstance(files, list) else ():
        if isinstance(file, Mapping):
            yield str(file.get("path", "")), str(file.get("hash", ""))


def _is_demo(home: Path, paths: Iterable[str]) -> bool:
    """Whether it is a demo's home, and has protected nothing but what lies in it: no mark frees other people's data."""
    if not os.path.exists(home / _DEMO):  # noqa: PTH110
        return False
    return all(Path(each).is_relative_to(home) for each in paths)


def _homes_around(files: Iterable[Path]) -> list[Path]:
    """The homes that can be known, each once."""
    found: dict[Path, None] = {}
    for each in _candidates(files):
        if os.path.isfile(each / NAME):  # noqa: PTH113
            found.setdefault(each.resolve())
    return list(found)


def _candidates(files: Iterable[Path]) -> Iterator[Path]:
    folders = dict.fromkeys(folder for file in files for folder in file.parents)
    for folder in folders:
        yield folder / FOLDER
        yield folder
    with suppress(HomeMissingError):
        yield find_home()
