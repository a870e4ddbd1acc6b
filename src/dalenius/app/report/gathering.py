"""Verifies a history, and has its story told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dalenius._version import __version__
from dalenius.app.report.accounts import Accounts
from dalenius.app.report.model import Report, Use, Verification
from dalenius.app.report.story import Story
from dalenius.errors import LedgerCorruptError
from dalenius.ledger.verification import Verified, verify

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger


def report(ledger: Ledger, now: datetime | None = None) -> Report:
    """Verifies the history, reads it, and tells it.

    A history that does not hold is told as far as it can be read, and said not to hold.
    """
    now = now or datetime.now(UTC)
    try:
        checked = _holds(verify(ledger))
    except LedgerCorruptError as error:
        checked = _broken(ledger, error)
    story = Story(Accounts(checked.holds))
    for entry in ledger.entries() if checked.holds else ledger.unproved():
        if checked.holds and entry.number > checked.entries:
            break  # written after the verification
        story.add(entry)
    return Report(
        made=now.isoformat(timespec="seconds"),
        program=f"dalenius {__version__}",
        verification=checked,
        begun=story.begun,
        promises=tuple(story.promises()),
        spending=tuple(story.accounts.spending()),
        questions=story.questions(),
        failures=tuple(story.failures),
        policies=tuple(story.policies),
        data=tuple(story.data),
        epochs=tuple(story.epochs),
        actions=tuple(story.actions),
        publications=tuple(story.publications),
        alarms=tuple(story.alarms),
        mechanisms=tuple(Use(name, *counts) for name, counts in sorted(story.uses.items())),
        unreadable=tuple(story.unreadable),
    )


def _holds(found: Verified) -> Verification:
    return Verification(True, found.entries, found.head, found.charges, found.releases)


def _broken(ledger: Ledger, error: LedgerCorruptError) -> Verification:
    count, head = 0, ""
    for entry in ledger.unproved():
        hashed: object = entry.hash  # of any type, in a file that was changed
        count, head = entry.number, hashed.hex() if isinstance(hashed, bytes) else ""
    return Verification(False, count, head, message=error.message, why=error.why, fix=error.fix)
