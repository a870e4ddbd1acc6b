"""How long a question may be planned: in seconds of processor time, so that how busy others are does not matter.

Planning is free and looks at no row, so nothing here tells about data. Each of its limits (characters, sets, groups,
values) is meant to keep it short; this one holds whatever they miss.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dalenius.errors import QuestionRefusedError

SECONDS = 10.0
_END: ContextVar[float | None] = ContextVar("planned by", default=None)


@contextmanager
def patiently(seconds: float | None = None) -> Iterator[None]:
    """What is planned inside, in this thread, is refused after so many seconds of its processor time."""
    before = _END.set(time.thread_time() + (SECONDS if seconds is None else seconds))
    try:
        yield
    finally:
        _END.reset(before)


def check() -> None:
    """Called wherever planning may have gone on for long."""
    end = _END.get()
    if end is not None and time.thread_time() > end:
        raise QuestionRefusedError(
            "The question takes too long to plan.",
            why=f"What it says was worked on for {SECONDS:g} seconds, before any row is looked at.",
            fix="Ask for fewer keys, grouping sets or columns at once.",
        )
