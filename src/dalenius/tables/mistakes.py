"""How a mistake in a policy is reported: where, what, why, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from dalenius.errors import PolicyInvalidError


def invalid(place: str, what: str, *, why: str, fix: str) -> PolicyInvalidError:
    """The error for a mistake at a dotted place, such as columns.age.bounds."""
    return PolicyInvalidError(f"{place}: {what}" if place else what, why=why, fix=fix)


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that was probably meant."""
    spelled = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), spelled, n=1, cutoff=cutoff)
    return spelled[found[0]] if found else None


def join_names(names: Iterable[str]) -> str:
    """Names as a person would list them.

    >>> join_names(["rows", "groups", "totals"])
    'rows, groups and totals'
    """
    *most, last = list(names)
    return f"{', '.join(most)} and {last}" if most else last
