"""A file has one home: in a second one, the same people would have a second budget.

Which homes there are is not written down anywhere: such a list would tell one project of another, and name homes long
after they are gone. So homes are looked for where one would find them by oneself: `.dalenius` in the folder of a source
or above it, the home in whose `data` it lies, the one that DALENIUS_HOME names, and the nearest from the working folder
upwards. What such a home has ever protected is read from its history. A home that was deleted stops nobody; one that
lies elsewhere, or that this user may not read, is not known (docs/sharp-edges.md).

There is no way around by `--yes`: nobody who says yes could take back what a second budget would tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.errors import HomeMissingError, NotAllowedError
from dalenius.ledger.database import NAME
from dalenius.ledger.elsewhere import actions_of
from dalenius.ledger.home import FOLDER, find_home
from dalenius.tables.sources.fingerprint import Fingerprint

if TYPE_CHECKING:
    from dalenius.tables.registry import Registry, Version

_DEMO = "DEMO"  # a demo's home: its people are made up, and it is laid anew at each run
_KINDS = ("policy", "refresh")


def check_first_home(version: Version, registry: Registry, home: Path | None) -> None:
    """Refuses files that another home has protected, unless this one has had them as well.

    Args:
        version: What is to be protected.
        registry: All that this home has ever protected.
        home: This home; None where it is not there yet.
    """
    found = _new_here(version.fingerprint, registry)
    if not found.files:
        return
    for other in _homes_around(found.paths):
        if home is not None and os.path.exists(home) and os.path.samefile(other, home):  # noqa: PTH110, PTH121
            continue
        for record in actions_of(other, _KINDS):
            if _names_one_of(record, found):
                raise NotAllowedError(
                    f"The source of {version.table!r} is protected in another home, as table {record.get('table')!r}.",
                    why="Each home has its own budgets: the same people would get a second one.",
                    fix=f"Use that home: --home {other}. There another table of these files joins its data set: "
                    f'write dataset = "{record.get("dataset")}" in [table], without [budget].',
                )


def _new_here(found: Fingerprint, registry: Registry) -> Fingerprint:
    """The files that this home never had. The others it had first, or both have: to stop now takes nothing back."""
    known = [file for versions in registry.versions().values() for each in versions for file in each.fingerprint.files]
    had = {file.path for file in known} | {file.hash for file in known}
    return replace(found, files=tuple(file for file in found.files if not had & {file.path, file.hash}))


def _names_one_of(record: Mapping[str, Any], found: Fingerprint) -> bool:
    try:
        return Fingerprint.from_dict(record["fingerprint"]).shares(found)
    except (KeyError, TypeError):
        return False  # of a release that records more, or less


def _homes_around(files: Iterable[Path]) -> list[Path]:
    """The homes that can be known, each once."""
    found: dict[Path, None] = {}
    for each in _candidates(files):
        if os.path.isfile(each / NAME) and not os.path.exists(each / _DEMO):  # noqa: PTH110, PTH113
            found.setdefault(each.resolve())
    return list(found)


def _candidates(files: Iterable[Path]) -> Iterator[Path]:
    folders = dict.fromkeys(folder for file in files for folder in file.parents)
    for folder in folders:
        yield folder / FOLDER
        yield folder
    with suppress(HomeMissingError):
        yield find_home()
