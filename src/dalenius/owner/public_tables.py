"""Public tables at `protect`: their files can be read, their keys are unique, their names and files are nobody else's.

What is declared public can be read exactly and for nothing. So a file that is or was protected cannot be declared
public, and what is public cannot be protected: no promise could be kept about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dalenius.errors import NotAllowedError, PolicyInvalidError
from dalenius.measuring.engines.sources import check_decodes
from dalenius.measuring.public import public_table
from dalenius.owner.beside import check_lists, is_same
from dalenius.tables.difference import Change
from dalenius.tables.mistakes import invalid, nearest
from dalenius.tables.policy import Policy, PublicSpec
from dalenius.tables.registry import Registry, Version
from dalenius.tables.sources.compressed import check_compressed
from dalenius.tables.sources.fingerprint import Fingerprint, expand, fingerprint, unchanged

_SHOWN = 12  # digits of a hash


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
