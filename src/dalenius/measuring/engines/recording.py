"""A record of the statements that the engines of this process run, for audits. Nobody watches a server.

Which statements run for a question, in which order and with what success must not depend on what single rows hold
(ATTACKS, H24): each takes its time, and time can be seen. All statements pass `connections.WarmConnection`, which notes
them here; while nobody watches, a note is one comparison. A record holds the texts that our compiler wrote, never a
result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Ran(NamedTuple):
    """One statement, and what became of it: "done", "failed", "late", or "refused" before it ran; "left" half read."""

    text: str
    outcome: str


_watched: list[Ran] | None = None


def note(text: str, outcome: str) -> None:
    """A statement came to its end."""
    if _watched is not None:
        _watched.append(Ran(text, outcome))


@contextmanager
def recorded() -> Iterator[list[Ran]]:
    """All statements of this process, in the order of their ends, while the block runs; one record at a time."""
    global _watched  # noqa: PLW0603 (an engine's threads must see it as well)
    before, _watched = _watched, []
    try:
        yield _watched
    finally:
        _watched = before
