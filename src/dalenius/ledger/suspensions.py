"""Who may not ask for now: analysts, and data sets as a whole, suspended by the owner or for answers that were late.

That an answer was late tells one bit about the time its question took (`pacing`). So lateness cannot be asked for again
and again: after so many late answers (`[time] late`) whose own work took longer than their time, an analyst is
suspended until the owner lifts it; after ten times as many over all analysts, the data set is.

Both are entries of the history, written in the transaction that records the late answer. How everybody stands is part
of what the proved entries say (`projection`), looked at inside the transaction that charges. What is bounded: questions
of a suspended analyst that are charged already but wait for a place do not look any more, so at most ``late`` - 1
answers are late, and beside them those that were being looked at when the last of these left: at most a server's
places.

What was paid for stays: own stored answers, previews and balances are free, and tell nothing that is new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError, NotAllowedError
from dalenius.ledger.actions import CURATOR, require_reason

if TYPE_CHECKING:
    from dalenius.ledger.chain import Entry
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.projection import Projection

KIND = "suspension"
LATE = 3  # late answers of one analyst, where the policy does not say
ALL = 10  # times as many, of all analysts of a data set together
ANALYST, DATASET = "analyst", "dataset"
Subject = tuple[str, str]  # ANALYST or DATASET, and its name


@dataclass(frozen=True, slots=True)
class Standing:
    """How an analyst, or a data set, stands.

    Attributes:
        suspended: Whether questions are refused.
        late: Late answers that count, since it was last lifted.
        since: When it was suspended, or lifted; '' if never.
        reason: Why.
        by: Who did it.
    """

    suspended: bool = False
    late: int = 0
    since: str = ""
    reason: str = ""
    by: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "state": "suspended" if self.suspended else "active",
            "late": self.late,
            "since": self.since or None,
            "reason": self.reason or None,
            "by": self.by or None,
        }


def standings(ledger: Ledger) -> dict[Subject, Standing]:
    """Everybody about whom there is something to tell."""
    with ledger.state() as state:
        return dict(state.standings)


def check(state: Projection, analyst: str, dataset: str) -> None:
    """Refuses a question of who is suspended. Inside the transaction that charges, before anything is."""
    found = state.standings
    if found.get((ANALYST, analyst), Standing()).suspended:
        raise NotAllowedError(
            f"Analyst {analyst!r} is suspended.",
            why="Too many answers were not ready in time, or the owner decided so.",
            fix="Ask the owner to lift it. What you have paid for can be asked again, for nothing.",
        )
    if analyst and found.get((DATASET, dataset), Standing()).suspended:
        raise NotAllowedError(
            f"Questions about {dataset!r} are suspended.",
            why="Too many answers were not ready in time, or the owner decided so.",
            fix="Ask the owner to lift it. What you have paid for can be asked again, for nothing.",
        )


def check_now(ledger: Ledger, analyst: str, dataset: str) -> None:
    """The same, outside of any transaction: for a question that was charged and is about to look."""
    with ledger.state() as state:
        check(state, analyst, dataset)


def record_late(ledger: Ledger, *, charge: int, analyst: str, dataset: str, own: bool, most: int) -> None:
    """An answer was late: an alarm, and a suspension if it was one too many; all of it in one transaction.

    Args:
        ledger: The ledger.
        charge: The question's.
        analyst: Who asked.
        dataset: Of what.
        own: Whether the analyst's own work took longer than the fixed time; only then does it count.
        most: After how many an analyst is suspended.
    """
    with ledger.turn() as (view, append):
        about = {"charge": charge, "dataset": dataset, "by": CURATOR}
        note = append("note", {"alarm": "late", "analyst": analyst, "own": own, **about})
        if not own:
            return
        found = dict(view.state.standings)
        follow(found, note)
        for subject, limit in (((ANALYST, analyst), most), ((DATASET, dataset), ALL * most)):
            standing, (kind, name) = found[subject], subject
            if standing.late >= limit and not standing.suspended:
                reason = f"{standing.late} answers were late"
                append(KIND, {"action": "suspend", kind: name, "reason": reason, "by": CURATOR})
                append("note", {"alarm": "suspended", "what": kind, "analyst": analyst, **about})


def suspend(ledger: Ledger, subject: Subject, reason: str) -> Standing:
    """The owner suspends somebody, or a data set; one that is already stays as it is."""
    return _set(ledger, subject, require_reason(reason), suspended=True)


def resume(ledger: Ledger, subject: Subject, reason: str) -> Standing:
    """The owner lifts it; late answers are counted anew from here."""
    return _set(ledger, subject, require_reason(reason), suspended=False)


def _set(ledger: Ledger, subject: Subject, reason: str, *, suspended: bool) -> Standing:
    kind, name = subject
    if subject not in set(known_subjects(ledger)):
        raise InputError(
            f"There is no {'analyst' if kind == ANALYST else 'data set'} {name!r}.",
            why="Nobody of that name was ever allotted anything, or given a token."
            if kind == ANALYST
            else "No budget was ever recorded for it.",
            fix="Run 'dalenius analyst list' for those there are.",
        )
    with ledger.turn() as (view, append):
        found = dict(view.state.standings)
        before = found.get(subject, Standing())
        if before.suspended == suspended and (suspended or not before.late):
            return before  # there is nothing to do
        action = "suspend" if suspended else "resume"
        follow(found, append(KIND, {"action": action, kind: name, "reason": reason}))
    return found[subject]


def known_subjects(ledger: Ledger) -> Iterator[Subject]:
    """Every analyst and every data set that was ever named, each once, by name."""
    analysts = {each.data.get("analyst") for each in ledger.records(("allotment", "token"))}
    yield from ((ANALYST, each) for each in sorted(each for each in analysts if each))
    yield from ((DATASET, each) for each in ledger.datasets())


def follow(found: dict[Subject, Standing], entry: Entry) -> None:
    """The next entry of kind "suspension" or "note"; one that makes no sense changes nothing."""
    data = entry.data
    if entry.kind == KIND:
        kind = ANALYST if ANALYST in data else DATASET
        subject = kind, str(data.get(kind))
        before = found.get(subject, Standing())
        suspended = data.get("action") != "resume"
        late = before.late if suspended else 0
        found[subject] = Standing(suspended, late, entry.time, str(data.get("reason", "")), str(data.get("by", "")))
    elif data.get("alarm") == "late" and data.get("own") is True:
        for subject in ((ANALYST, str(data.get(ANALYST))), (DATASET, str(data.get(DATASET)))):
            before = found.get(subject, Standing())
            found[subject] = replace(before, late=before.late + 1)
