"""Files that a policy makes known to all who may ask, at `protect`: its code lists and its public tables.

Whatever is in them can be read for nothing. So none of them may be a file of a protected table, now or ever, by name,
by content or by another link to it, and none of them may be protected later. A file that merely lies where protected
data lie, or where a protected source's pattern looks, may be anything: a code list, or the data of people under a name
that was mistyped. About those the owner is asked, once.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.errors import NotAllowedError
from dalenius.tables.sources.fingerprint import Fingerprint, fingerprint_of

if TYPE_CHECKING:
    from dalenius.tables.policy import Policy
    from dalenius.tables.registry import Registry, Version


def inspect_lists(policy: Policy, before: Version | None = None) -> dict[str, Fingerprint]:
    """What the code lists are that a policy's keys were read from, by column.

    A policy that was spelled out names none; where its keys are those of before, so are their lists.
    """
    found = {name: fingerprint_of(Path(file)) for name, file in policy.key_files.items()}
    if before is not None:
        for name, known in before.lists.items():
            same = name in policy.columns and policy.columns[name].keys == before.policy.columns[name].keys
            if same and name not in found:
                found[name] = known
    return found


def is_same(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether they have a file in common: by path, by content, or as one file under two names."""
    return one.shares(other) or not _numbers(one).isdisjoint(_numbers(other))


def check_lists(planned: Sequence[Version], registry: Registry) -> None:
    """Refuses code lists that are protected files, and protected files that are or were code lists.

    Raises:
        NotAllowedError: One is.
    """
    ever = [version for known in registry.versions().values() for version in known]
    asked = {version.table for version in planned}
    in_force = [*planned, *(each for name, each in registry.current().items() if name not in asked)]
    for version in planned:
        for column, found in version.lists.items():
            for other in (*ever, *planned):
                if is_same(found, other.fingerprint):
                    raise NotAllowedError(
                        f"The keys of {column!r} come from a file of the protected table {other.table!r}.",
                        why="Everyone who may ask sees the keys; what was promised would not hold.",
                        fix="List the values that can exist, from a file in which nobody's data are.",
                    )
        for other in in_force:
            for column, found in other.lists.items():
                if is_same(found, version.fingerprint):
                    raise _is_list(version, other, column, "is")
        for other in ever:
            for column, found in other.lists.items():
                if found.holds_of(version.fingerprint):
                    raise _is_list(version, other, column, "was")


def beside(version: Version, before: Version | None, versions: Mapping[str, Version]) -> tuple[str, ...]:
    """What the owner is asked about: files that all may read and that lie where protected data lie, in words.

    Args:
        version: The version that is planned.
        before: The one in force; what it says already was asked about then.
        versions: All versions as they will be in force.
    """
    known = {} if before is None else dict(_told(before))
    fresh = [(use, found) for use, found in _told(version) if use not in known or not _covers(known[use], found)]
    moved = before is None or before.policy.source != version.policy.source
    words: list[str] = []
    for other in versions.values():
        words += _words(version, fresh, other)
        if moved and other.table != version.table:
            words += _words(other, list(_told(other)), version)
    return tuple(dict.fromkeys(words))


def _covers(known: Fingerprint, found: Fingerprint) -> bool:
    """Whether all files of one are those of the other, and where they were."""
    return {(file.path, file.hash) for file in found.files} <= {(file.path, file.hash) for file in known.files}


def _told(version: Version) -> Iterator[tuple[str, Fingerprint]]:
    for name, found in version.public.items():
        yield f"public table {name}", found
    for column, found in version.lists.items():
        yield f"keys of {column}", found


def _words(whose: Version, told: Sequence[tuple[str, Fingerprint]], protected: Version) -> Iterator[str]:
    if not told:
        return
    folders = {path.parent for path in protected.fingerprint.paths}
    matched = _matched(protected.policy.source)
    for use, found in told:
        for path in found.paths:
            if path.parent in folders or path in matched:
                yield f"{path.name} ({use} in {whose.table}) lies where the data of {protected.table} lie"


def _matched(source: Iterable[str]) -> set[Path]:
    return {Path(each).resolve() for pattern in source for each in glob.iglob(pattern, recursive=True)}  # noqa: PTH207


def _numbers(found: Fingerprint) -> set[tuple[int, int]]:
    """Device and number of its files, as far as they are there."""
    numbers = set()
    for path in found.paths:
        try:
            status = path.stat()
        except OSError:
            continue
        numbers.add((status.st_dev, status.st_ino))
    return numbers


def _is_list(version: Version, other: Version, column: str, verb: str) -> NotAllowedError:
    return NotAllowedError(
        f"The source of {version.table!r} {verb} the code list of {column!r} in {other.table!r}.",
        why="Everyone who may ask there has seen what is in it, which no budget takes back.",
        fix="Protect data that never was a code list; in a home of its own if you know that nobody has asked.",
    )
