"""Who may not ask for now: analysts, and data sets as a whole, suspended by the owner or for answers that were late.

That an answer was late tells one bit about the time its question took (`pacing`). So lateness cannot be asked for again
and again: after so many late answers (`[time] late`) whose own work took longer than their time, an analyst is
suspended until the owner lifts it; after ten times as many over all analysts, the data set is.

Both are entries of the history, written in the transaction that records the late answer. How everybody stands is part
of what the proved entries say (`projection`), looked at inside the transaction that charges. What is bounded: questions
of a suspended analyst that are charged already but wait for a place do not look any more, so at most ``late`` - 1
answers are late, and beside them those that were being looked at when the last of these left: at most a server's
places.

Lateness shows at the fixed time, but whose work it was is known only when the work has ended, which may be a minute
later; a process that is killed in between would take that knowledge along. So an answer that is overdue is noted when
that shows. Until a second note says whose work it was it counts as the analyst's own, for questions that are yet to be
charged: one that never gets its second note was asked of a process that died.

What was paid for stays: own stored answers, previews and balances are free, and tell nothing that is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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


@dataclass
class Standings:
    """How everybody stands, as the entries of kinds "suspension" and "note" tell it.

    Attributes:
        known: By what was recorded to the end.
        overdue: Of each subject and charge of which only that was heard: after how many late ones it is suspended.
    """

    known: dict[Subject, Standing] = field(default_factory=dict)
    overdue: dict[tuple[Subject, int], int] = field(default_factory=dict)

    def copy(self) -> Standings:
        """One that may be led further."""
        return Standings(dict(self.known), dict(self.overdue))

    def recorded(self, subject: Subject) -> Standing:
        """How somebody stands, by what was recorded to the end."""
        return self.known.get(subject, Standing())

    def of(self, subject: Subject) -> Standing:
        """The same, where answers that were overdue, and of which nothing more was heard, count as late."""
        standing = self.recorded(subject)
        for (each, _), most in self.overdue.items():
            if each == subject:
                late = standing.late + 1
                suspended = standing.suspended or late >= most
                reason = standing.reason if standing.suspended or not suspended else f"{late} answers were late"
                standing = replace(standing, late=late, suspended=suspended, reason=reason)
        return standing

    def everybody(self) -> dict[Subject, Standing]:
        """All about whom there is something to tell."""
        return {each: self.of(each) for each in dict.fromkeys((*self.known, *(each for each, _ in self.overdue)))}

    def follow(self, entry: Entry) -> None:
        """The next entry; one that makes no sense changes nothing."""
        data = entry.data
        if entry.kind == KIND:
            kind = ANALYST if ANALYST in data else DATASET
            self._set((kind, str(data.get(kind))), entry, data)
            return
        subjects = (ANALYST, str(data.get(ANALYST))), (DATASET, str(data.get(DATASET)))
        charge, most = data.get("overdue"), data.get("most")
        if isinstance(charge, int) and isinstance(most, int):
            self.overdue |= {(each, charge): most * (1 if each[0] == ANALYST else ALL) for each in subjects}
        elif data.get("alarm") == "late":
            charge = data.get("charge")
            for subject in subjects:
                if isinstance(charge, int):
                    self.overdue.pop((subject, charge), None)
                if data.get("own") is True:
                    before = self.recorded(subject)
                    self.known[subject] = replace(before, late=before.late + 1)

    def _set(self, subject: Subject, entry: Entry, data: Mapping[str, Any]) -> None:
        suspended = data.get("action") != "resume"
        late = self.recorded(subject).late if suspended else 0
        if not suspended:
            self.overdue = {each: most for each, most in self.overdue.items() if each[0] != subject}
        reason, by = str(data.get("reason", "")), str(data.get("by", ""))
        self.known[subject] = Standing(suspended, late, entry.time, reason, by)


def standings(ledger: Ledger) -> dict[Subject, Standing]:
    """Everybody about whom there is something to tell."""
    with ledger.state() as state:
        return state.standings.everybody()


def check(state: Projection, analyst: str, dataset: str) -> None:
    """Refuses a question of who is suspended. Inside the transaction that charges, before anything is."""
    _refuse(state.standings.of, analyst, dataset)


def check_now(ledger: Ledger, analyst: str, dataset: str) -> None:
    """The same for a question that was charged and is about to look; what is only overdue does not count against it."""
    with ledger.state() as state:
        _refuse(state.standings.recorded, analyst, dataset)


def _refuse(standing: Callable[[Subject], Standing], analyst: str, dataset: str) -> None:
    if standing((ANALYST, analyst)).suspended:
        raise NotAllowedError(
            f"Analyst {analyst!r} is suspended.",
            why="Too many answers were not ready in time, or the owner decided so.",
            fix="Ask the owner to lift it. What you have paid for can be asked again, for nothing.",
        )
    if analyst and standing((DATASET, dataset)).suspended:
        raise NotAllowedError(
            f"Questions about {dataset!r} are suspended.",
            why="Too many answers were not ready in time, or the owner decided so.",
            fix="Ask the owner to lift it. What you have paid for can be asked again, for nothing.",
        )


def record_overdue(ledger: Ledger, *, charge: int, analyst: str, dataset: str, most: int) -> None:
    """An answer was not ready at its fixed time, and its work goes on; `record_late` follows when that has ended."""
    about = {"analyst": analyst, "dataset": dataset, "most": most, "by": CURATOR}
    with ledger.turn() as (_, append):
        append("note", {"overdue": charge, **about})


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
        found = view.state.standings.copy()
        found.follow(note)
        for subject, limit in (((ANALYST, analyst), most), ((DATASET, dataset), ALL * most)):
            standing, (kind, name) = found.recorded(subject), subject
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
        found = view.state.standings.copy()
        before = found.of(subject)
        if before.suspended == suspended and (suspended or not before.late):
            return before  # there is nothing to do
        action = "suspend" if suspended else "resume"
        found.follow(append(KIND, {"action": action, kind: name, "reason": reason}))
    return found.of(subject)


def known_subjects(ledger: Ledger) -> Iterator[Subject]:
    """Every analyst and every data set that was ever named, each once, by name."""
    analysts = {each.data.get("analyst") for each in ledger.records(("allotment", "token"))}
    yield from ((ANALYST, each) for each in sorted(each for each in analysts if each))
    yield from ((DATASET, each) for each in ledger.datasets())
