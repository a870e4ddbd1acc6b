"""One end for all statements of a question: each has a limit of its own, and none goes on past the question's."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What runs inside, in this thread, is stopped so many seconds from now."""
    before = _END.set(min(_END.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _END.reset(before)


def left(seconds: float) -> float:
    """What is left of so many seconds."""
    return max(0.0, min(seconds, _END.get() - time.monotonic()))
