<<<<<<< HEAD
"""One end for all statements of a question: together they may take as long as it may, not each of them."""

from __future__ import annotations

=======
"""One end for all statements of a question: each has a limit of its own, and none goes on past the question's."""

from __future__ import annotations

import math
>>>>>>> review8
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

<<<<<<< HEAD
_END: ContextVar[float | None] = ContextVar("end of the question's time", default=None)


@contextmanager
def until(seconds: float) -> Iterator[None]:
    """What this thread runs inside ends after so many seconds in all."""
    before = _END.set(time.monotonic() + seconds)
=======
_END: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What runs inside, in this thread, is stopped so many seconds from now."""
    before = _END.set(min(_END.get(), time.monotonic() + seconds))
>>>>>>> review8
    try:
        yield
    finally:
        _END.reset(before)


def left(seconds: float) -> float:
<<<<<<< HEAD
    """Of the seconds that a statement may take, those that the question still has; never less than a moment."""
    end = _END.get()
    return seconds if end is None else max(0.001, min(seconds, end - time.monotonic()))
=======
    """What is left of so many seconds."""
    return max(0.0, min(seconds, _END.get() - time.monotonic()))
>>>>>>> review8
