"""Files that a policy makes known to all who may ask, at `protect`: its code lists and its public tables.

Whatever is in them can be read exactly and for nothing. So none of them may be a file of a protected table, now or
ever, by name, by content or by another link to it, and none of them may be protected later: no promise could be kept
about it. A file that merely lies where protected data lie, or where a protected source's pattern looks, may be
anything: a code list, or the data of people under a name that was mistyped. About those the owner is asked, once.

Public tables can be read, have unique keys, and share their names with nobody.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from dalenius.errors import NotAllowedError, PolicyInvalidError
from dalenius.measuring.engines.sources import check_decodes
from dalenius.measuring.public import public_table
from dalenius.tables.difference import Change
from dalenius.tables.mistakes import invalid, nearest
from dalenius.tables.policy import Policy, PublicSpec
from dalenius.tables.registry import Registry, Version
from dalenius.tables.sources.compressed import check_compressed
from dalenius.tables.sources.fingerprint import Fingerprint, expand, fingerprint, fingerprint_of, unchanged

_SHOWN = 12  # digits of a hash


# --- code lists


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


def check_lists(planned: Sequence[Version], registry: Registry) -> None:
    """Refuses code lists that are protected files, and protected files that are or were code lists.

    Raises:
        NotAllowedError: One is.
    """
    ever = list(_all(registry))
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


def _is_list(version: Version, other: Version, column: str, verb: str) -> NotAllowedError:
    return NotAllowedError(
        f"The source of {version.table!r} {verb} the code list of {column!r} in {other.table!r}.",
        why="Everyone who may ask there has seen what is in it, which no budget takes back.",
        fix="Protect data that never was a code list; in a home of its own if you know that nobody has asked.",
    )


# --- public tables


def inspect_public(policy: Policy, before: Version | None = None) -> dict[str, Fingerprint]:
    """What the files of its public tables are. All of them are looked at; those known from before only by `stat`."""
    found = {}
    for name, spec in policy.public.items():
        known = before.public.get(name) if before is not None else None
        same = known is not None and before is not None and before.policy.public[name].source == spec.source
        if known is None or not same or not unchanged(known, spec.source):
            check_compressed(expand(spec.source))
            known = fingerprint(spec.source)
        found[name] = known
        _check_table(spec, known)
    return found


def public_changes(before: Version, after: Version) -> tuple[Change, ...]:
    """The public tables that hold something else than before."""
    return tuple(
        Change(
            f"public.tables.{name}.content",
            before.public[name].content[:_SHOWN],
            found.content[:_SHOWN],
            "its files hold something else; stored answers that read it no longer fit",
        )
        for name, found in after.public.items()
        if name in before.public and before.public[name].content != found.content
    )


def check_public(planned: Sequence[Version], registry: Registry) -> None:
    """Refuses names and files that a public and another table share, or code lists and tables, in the whole home."""
    check_lists(planned, registry)
    asked = {version.table for version in planned}
    others = [version for name, version in registry.current().items() if name not in asked]
    for place, version in enumerate(planned):
        rest = [*others, *planned[:place]]
        for name, found in version.public.items():
            _check_name(name, [version, *others, *planned])
            _check_meaning(name, found, rest)
            _check_not_protected(name, found, [*_all(registry), *planned])
        for other in rest:
            for name in other.public:
                _check_name(name, [version])
        _check_not_public(version, [*others, *planned], registry)


def _all(registry: Registry) -> Iterator[Version]:
    for known in registry.versions().values():
        yield from known


def _check_table(spec: PublicSpec, found: Fingerprint) -> None:
    table, place = public_table(spec, found), f"public.tables.{spec.name}.key"
    check_decodes(found, lambda _: list(table.types))
    for name in spec.key:
        if name not in table.types:
            raise _missing(place, name, table.types)
    if spec.key and table.multiplicity(spec.key) > 1:
        raise invalid(
            place,
            "this is not unique.",
            why=f"Two rows of {spec.name!r} have the same {', '.join(spec.key)}.",
            fix="Name columns that tell all rows apart, or leave the key out.",
        )


def _missing(place: str, name: str, types: Mapping[str, str]) -> PolicyInvalidError:
    meant = nearest(name, types)
    return invalid(
        place,
        f"the public table has no column {name!r}.",
        why="Names are compared letter by letter.",
        fix=f"Did you mean {meant!r}?" if meant else "Correct the name, or the source.",
    )


def _check_name(name: str, versions: Iterable[Version]) -> None:
    for version in versions:
        if version.table.lower() == name.lower():
            raise invalid(
                f"public.tables.{name}",
                f"there is a protected table {version.table!r}.",
                why="SQL cannot tell them apart.",
                fix="Rename one of them.",
            )


def _check_meaning(name: str, found: Fingerprint, versions: Iterable[Version]) -> None:
    for version in versions:
        for other, meant in version.public.items():
            if other.lower() == name.lower() and meant.content != found.content:
                raise invalid(
                    f"public.tables.{name}",
                    f"table {version.table!r} means other files by {other!r}.",
                    why="A name means one thing to everyone who asks.",
                    fix="Use the same files in both policies and protect them at once, or rename one.",
                )


def _check_not_protected(name: str, found: Fingerprint, versions: Iterable[Version]) -> None:
    for version in versions:
        if is_same(version.fingerprint, found):
            raise NotAllowedError(
                f"The public table {name!r} shares a file with the protected table {version.table!r}.",
                why="A public table can be read exactly and for nothing; what was promised would not hold.",
                fix="Name files in which nobody's data are.",
            )


def _check_not_public(version: Version, in_force: Iterable[Version], registry: Registry) -> None:
    hashes = {file.hash for file in version.fingerprint.files}
    for other in in_force:
        for name, found in other.public.items():
            if is_same(found, version.fingerprint):
                raise NotAllowedError(
                    f"The source of {version.table!r} is the public table {name!r} of {other.table!r}.",
                    why="What can be read exactly and for nothing cannot be protected.",
                    fix="Remove it from the public tables if it is about people.",
                )
    for other in _all(registry):
        for name, found in other.public.items():
            if any(file.hash in hashes for file in found.files):
                raise NotAllowedError(
                    f"The source of {version.table!r} was the public table {name!r} of {other.table!r}.",
                    why="It could be read exactly and for nothing, which no budget takes back.",
                    fix="Protect data that was never public; in a home of its own if you know that nobody has asked.",
                )


# --- files that lie where protected data lie


def find_beside(version: Version, before: Version | None, versions: Mapping[str, Version]) -> tuple[str, ...]:
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


# --- the same file


def is_same(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether they have a file in common: by path, by content, or as one file under two names."""
    return one.shares(other) or not _numbers(one).isdisjoint(_numbers(other))


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
