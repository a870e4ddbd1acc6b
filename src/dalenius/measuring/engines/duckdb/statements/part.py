"""One SELECT of a plan."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """The numbers of the measures that a SELECT gives, and its text after the source."""

    kind: str
    measures: tuple[int, ...]
    sql: str
