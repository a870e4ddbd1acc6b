"""One end for all statements of a question: together they may take as long as it may, not each of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float | None] = ContextVar("end of the question's time", default=None)


@contextmanager
def until(seconds: float) -> Iterator[None]:
    """What this thread runs inside ends after so many seconds in all."""
    before = _END.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _END.reset(before)


def left(seconds: float) -> float:
    """Of the seconds that a statement may take, those that the question still has; never less than a moment."""
    end = _END.get()
    return seconds if end is None else max(0.001, min(seconds, end - time.monotonic()))
