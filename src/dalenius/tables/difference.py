"""What changed between two versions of a policy, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dalenius.tables.policy import Policy, literal, to_plain, to_tree

_NOTES = (
    ("budget.epsilon", "how much may ever be learned about one unit"),
    ("budget.share_answers", "whether analysts are served from one another's answers; false: each asks the data anew"),
    ("budget.selection", "how much of δ is for finding keys, and how much turns ρ into ε; fixed once it is protected"),
    ("analysts.", "what this analyst may spend"),
    ("joint.", "with whom joint questions are answered, and what they may spend"),
    ("contribution.units", "more hides more of the groups whose keys have to be found"),
    ("table.source", "where the data is"),
    ("public.", "what analysts may read exactly, and for nothing"),
    ("time.", "when answers leave"),
    ("synthetic.", "what synthetic rows keep to; models that are paid for stay as they are"),
)
_UNDECLARED = {  # what holds once a limit of what one unit adds is no longer declared, by the beginning of its place
    "contribution.rows": "no longer declared: 'protect' finds limits privately, once, for a part of the budget",
    "contribution.groups": "no longer declared: one unit may be in any number of groups",
    "contribution.totals": "no longer declared: rows and bounds limit it, or 'protect' finds a limit privately",
}
_ANSWERS = "stored answers no longer fit; asking again is charged"
_LONG = 60


@dataclass(frozen=True, slots=True)
class Change:
    """One place of the policy that says something else than before; None: it says nothing there."""

    place: str
    before: Any
    after: Any
    note: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {_words(self.before, self.after)}"

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"place": self.place, "before": to_plain(self.before), "after": to_plain(self.after), "note": self.note}


def difference(before: Policy, after: Policy) -> tuple[Change, ...]:
    """All places that differ, in the order of the newer policy."""
    old, new = dict(_leaves(to_tree(before))), dict(_leaves(to_tree(after)))
    meaning = before.meaning != after.meaning
    return tuple(
        Change(place, old.get(place), new.get(place), _note(place, old.get(place), new.get(place), meaning))
        for place in dict.fromkeys([*new, *old])
        if old.get(place) != new.get(place)
    )


def _note(place: str, before: Any, after: Any, meaning: bool) -> str:
    notes = (*_NOTES, ("contribution.", _limit_note(place, before, after)))
    for beginning, words in notes:
        if place.startswith(beginning):
            changes = meaning and beginning.startswith(("contribution.", "public."))
            return f"{words}; {_ANSWERS}" if changes else words
    return _ANSWERS if meaning and place.startswith("columns.") else ""


def _limit_note(place: str, before: Any, after: Any) -> str:
    """What it means that a limit of what one unit adds is there, is gone, is higher or is lower."""
    if before is None:
        return "declared now: what one unit adds beyond it is cut off"
    if after is None:
        return next((words for beginning, words in _UNDECLARED.items() if place.startswith(beginning)), "")
    if after > before:
        return "higher: cuts off less of heavy units, and adds noise"
    return "lower: cuts off more of heavy units, and adds less noise"


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, f"{place}.{key}" if place else key)
    else:
        yield place, value


def _words(before: Any, after: Any) -> str:
    if isinstance(before, list) and isinstance(after, list) and len(literal(before) + literal(after)) > _LONG:
        gone = [each for each in before if each not in after]
        come = [each for each in after if each not in before]
        parts = [f"{sign}{_short(each)}" for sign, each in (("− ", gone), ("+ ", come)) if each]
        return "  ".join(parts) or "another order"
    if before is None:
        return f"+ {_short(after)}"
    return f"− {_short(before)}" if after is None else f"{_short(before)} → {_short(after)}"


def _short(value: Any) -> str:
    text = literal(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}… ({len(value)})"
