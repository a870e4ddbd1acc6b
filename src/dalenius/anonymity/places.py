"""Which files may be read beside the rows, and which may be written: no protected table under another name.

A hierarchy's labels are published, and so would be the cells of a protected table that is named as one; a population or
a state is read as well. So every such file is looked for among all that this home has ever protected, and the homes
around it. What is written is another file than all that is read, and than each other, by where the paths lead.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.errors import InputError, NotAllowedError
from dalenius.tables.sources.fingerprint import file_fingerprint
from dalenius.tables.sources.homes import check_output

if TYPE_CHECKING:
    from dalenius.anonymity.options import Options
    from dalenius.anonymity.sources import Rows
    from dalenius.tables.registry import Registry


def check_leaving(rows: Rows, options: Options | None, registry: Registry | None, home: Path | None) -> None:
    """Refuses rows, and files beside them, that would leave off the record of who protects them.

    Args:
        rows: What is to leave.
        options: What is asked of it; None: nothing that names a file.
        registry: All that this home has ever protected; None where there is no home.
        home: This home.

    Raises:
        NotAllowedError: A file beside the rows is a protected table's, or the state would lie in a home.
        OtherHomeError: Another home protects one of the files.
    """
    from dalenius.owner.other_homes import check_unprotected_elsewhere

    beside = [each for each in rows.beside() if each.exists()]
    if options is not None:
        beside += options.files()
        if options.previous is not None:
            check_output(Path(options.previous))
    known = {} if registry is None else registry.versions()
    for path in beside if known else ():
        found = file_fingerprint(path)
        if any(each.fingerprint.shares(found) for versions in known.values() for each in versions):
            raise NotAllowedError(
                f"{path.name} is a protected table's file.",
                why="What a hierarchy, a population or a state says shows in the rows that are published; "
                "a protected table's cells would leave without a word in the ledger.",
                fix="Name a file that is no protected table.",
            )
    # A file that this home protects is on record here; all others are looked for in the homes around them.
    check_unprotected_elsewhere([*(rows.paths if rows.version is None else ()), *beside], home)


def check_apart(read: Sequence[Path], written: Sequence[Path], registry: Registry | None) -> None:
    """Refuses outputs that are files that are read, each other, or known to the home, by whatever path.

    Raises:
        InputError: One would replace another.
    """
    inputs = {each.resolve() for each in read}
    for output in written:
        if output.resolve() in inputs or any(_same(output, each) for each in read):
            raise InputError(
                f"{output.name} is one of the files that are read.",
                why="What is published never replaces what it was made from.",
                fix="Name another file with -o.",
            )
    for one, two in combinations(written, 2):
        if one.resolve() == two.resolve() or _same(one, two):
            raise InputError(
                f"{one.name} is named for two things.", why="One would replace the other.", fix="Name two files."
            )
    for output in written if registry is not None else ():
        if _known(output, registry):
            raise InputError(
                f"{output.name} is a file of a protected table.",
                why="What is published never replaces what is protected, nor what its policy names.",
                fix="Name another file.",
            )


def _known(output: Path, registry: Registry | None) -> bool:
    place = str(output.resolve())
    versions = () if registry is None else registry.versions().values()
    for each in (each for history in versions for each in history):
        for found in (each.fingerprint, *each.public.values(), *each.lists.values()):
            if any(file.path == place or _same(output, Path(file.path)) for file in found.files):
                return True
    return False


def _same(one: Path, two: Path) -> bool:
    """Whether both are there, and one file: hard links have paths of their own."""
    try:
        return one.samefile(two)
    except OSError:
        return False
