"""Builds a hierarchy file for the values that a column has: from intervals, prefixes, or groups that are told by name.

A policy may say intervals and prefixes itself. A file is for what it cannot say: categories, and corrections by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from dalenius.anonymity.hierarchies import SUPPRESSED, Hierarchy, build, spec_of, write_hierarchy
from dalenius.anonymity.table import Column
from dalenius.errors import InputError

Groups = Mapping[str, Iterable[str]]


def hierarchy_file(path: Path, values: Iterable[str | None], written: object) -> Path:
    """Writes a file as ARX has them: one line for each value, with its labels from the finest to `*`.

    Args:
        path: The file; there whole or not at all.
        values: What the column holds, in any order, also with repeats: `table["zip"].values`.
        written: As a policy has it (`{"width": 5, "levels": 4}`, `{"prefix": [4, 2]}`, "suppress"), or groups: one
            mapping for each level, from a label to what it covers of the level below. What no label covers stays.

    Raises:
        InputError: A group covers what is not there, or two cover the same.
        PolicyInvalidError: It is no hierarchy, or does not fit the values.

    >>> from tempfile import mkdtemp
    >>> work = ["Private", "State-gov", "Local-gov", "Federal-gov"]
    >>> government = {"government": ["State-gov", "Local-gov", "Federal-gov"]}
    >>> print(hierarchy_file(Path(mkdtemp()) / "work.csv", work, [government]).read_text(), end="")
    Federal-gov;government;*
    Local-gov;government;*
    Private;Private;*
    State-gov;government;*
    """
    own = Column.of(values).values
    if isinstance(written, list | tuple):
        found = _grouped(own, written)
    else:
        if isinstance(written, str) and written != "suppress":
            raise InputError("A file is no hierarchy to build.", why="It is one already.", fix="Name it in the policy.")
        found = build(spec_of(path.stem, written, path.parent), path.stem, own)
    write_hierarchy(found, path)
    return path


def _grouped(values: Sequence[str | None], levels: Sequence[object]) -> Hierarchy:
    """From groups of labels, level by level."""
    maps, labels = [Column.of(values).codes], [tuple(values)]
    for number, groups in enumerate(levels, 1):
        above = _above(labels[-1], groups, number)
        column = Column.of(above)
        maps.append(column.codes[maps[-1]])
        labels.append(column.values)
    maps.append(0 * maps[0])
    return Hierarchy((*labels, (SUPPRESSED,)), tuple(maps))


def _above(below: Sequence[str | None], groups: object, number: int) -> list[str | None]:
    if not isinstance(groups, Mapping):
        raise InputError(
            f"Level {number} is no groups.",
            why="A level is told by its labels.",
            fix='Write {"north": ["Kiel", "Bremen"]} for each level.',
        )
    label_of: dict[str | None, str] = {}
    for label, members in cast("Groups", groups).items():
        for member in [members] if isinstance(members, str) else members:
            if member not in below or member in label_of:
                raise InputError(
                    f"On level {number} {label!r} covers {member!r}, "
                    + ("which another label covers." if member in label_of else "which is not on the level below."),
                    why="Levels are nested: each label of one lies under one label of the next.",
                    fix="Name each label of the level below once.",
                )
            label_of[member] = label
    kept = [each for each in below if each not in label_of and each in label_of.values()]
    if kept:
        raise InputError(
            f"On level {number} {kept[0]!r} is a label, and stands below as well.",
            why="It would cover itself and others without having been told to.",
            fix="Put it into the group, or name the group otherwise.",
        )
    return [label_of.get(each, each) for each in below]
