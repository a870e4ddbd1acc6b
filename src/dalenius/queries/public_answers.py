"""Where a question over public tables only is recognised and answered: nothing of it comes near the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalenius.measuring.public import public_table
from dalenius.queries.public_questions import PublicQuestion, answered, previewed, public_question
from dalenius.tables.registry import check_public_unchanged

if TYPE_CHECKING:
    from dalenius.measuring.public import PublicTable
    from dalenius.queries.preview import Preview
    from dalenius.queries.release import Release
    from dalenius.tables.registry import Version


def public_release(text: str, versions: Sequence[Version]) -> Release | None:
    """The answer to a question whose tables are all public ones of these versions; None: it is another question."""
    found = _found(text, versions)
    if found is None:
        return None
    question, tables = found
    release = answered(question, tables)
    _check(question, versions)  # what was read is what was declared
    return release


def is_public(text: str, versions: Sequence[Version]) -> bool:
    """Whether it is such a question; nothing is read."""
    known = _known(versions)
    return bool(known) and public_question(text, known) is not None


def public_preview(text: str, versions: Sequence[Version], confidence: float) -> Preview | None:
    """The same for `preview`."""
    found = _found(text, versions)
    return None if found is None else previewed(*found, confidence)


def _found(text: str, versions: Sequence[Version]) -> tuple[PublicQuestion, list[PublicTable]] | None:
    known = _known(versions)
    question = public_question(text, known) if known else None
    if question is None:
        return None
    _check(question, versions)
    declared = (known[name] for name in sorted(question.tables))
    return question, [public_table(version.policy.public[name], version.public[name]) for version, name in declared]


def _check(question: PublicQuestion, versions: Sequence[Version]) -> None:
    known = _known(versions)
    for name in question.tables:
        version, spelled = known[name]
        check_public_unchanged(version, [spelled])


def _known(versions: Sequence[Version]) -> dict[str, tuple[Version, str]]:
    """All public tables by their names in lower case. Where several versions declare one, all mean the same."""
    return {name.lower(): (version, name) for version in versions for name in version.public}
