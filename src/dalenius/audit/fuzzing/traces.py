"""Which statements a look at the data runs, and whether they are the same on neighbours (ATTACKS, H24).

Equal means: the same texts in the same order, with the same success. A statement that fails counts as a difference by
itself, also where both sides fail alike and where the code has another way ready: no statement of ours may fail on any
rows (decision 6), so one that does fails because of some, and what runs instead takes another time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from dalenius.measuring.engines.engine import Ran, recorded

T = TypeVar("T")
Trace = tuple[Ran, ...]
SAME = "the same statements, all of them done"
# The key of an index's checksums is drawn at random when the index is made: it tells nothing of any row.
_KEY = re.compile(r"'[0-9a-f]{32}'")
_FILE = re.compile(r"'(?:[^']|'')*\.(?:parquet|csv)'")


class DifferentError(Exception):
    """Neighbours differ in what runs; the text says how."""


def trace(look: Callable[[], T]) -> tuple[T, Trace]:
    """What a look finds, and what it ran, files and random keys aside: neighbours have different ones."""
    with recorded() as ran:
        found = look()
    return found, tuple(Ran(_KEY.sub("'key'", _FILE.sub("'file'", each.text)), each.outcome) for each in ran)


def trace_difference(first: Trace, second: Trace) -> str | None:
    """How two traces differ, or what failed in one of them; None where all is well."""
    for name, trace in (("first", first), ("second", second)):
        for at, each in enumerate(trace):
            if each.outcome != "done":
                return f"statement {at + 1} of {len(trace)} on the {name} table {each.outcome}: {_short(each.text)}"
    if len(first) != len(second):
        return f"{len(first)} statements on the first table, {len(second)} on the second"
    for at, (one, other) in enumerate(zip(first, second, strict=True)):
        if one.text != other.text:
            place = _apart(one.text, other.text)
            return f"statement {at + 1} differs: {_short(one.text[place:])} / {_short(other.text[place:])}"
    return None


def check_traces(pairs: Sequence[tuple[Trace, Trace]]) -> None:
    """Raises `DifferentError` for the first pair that differs."""
    for first, second in pairs:
        found = trace_difference(first, second)
        if found is not None:
            raise DifferentError(found)


def _apart(one: str, other: str) -> int:
    place = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return max(0, place - 20)


def _short(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= 200 else f"{shown[:200]}…"
