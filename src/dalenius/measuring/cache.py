"""What is worth keeping from one question to the next, by weight: no number of questions fills the memory with it.

Whoever asks decides what is worked out, and may ask something new each time. So a limit of how many results are kept
is none at all where one of them may be a million values. Here each has a weight, in values; what was not used for
longest goes first, and what weighs more than a quarter of the whole is not kept.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

from dalenius.measuring.expressions import Expression, Literal, walk

T = TypeVar("T")
_NODE = 8  # values that a part of an expression weighs
_TEXT = 32  # characters that weigh as much as one value


class WeightedCache(Generic[T]):
    """Results by what they depend on, for all threads of this process.

    Args:
        most: What all of them may weigh; some 80 bytes each.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.forked()
        _LIVE.add(self)

    def forked(self) -> None:
        """Starts anew, as a forked child must: it inherits a lock that nobody there may release."""
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._weight = 0

    @property
    def weight(self) -> int:
        """What is held."""
        return self._weight

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: Hashable) -> T | None:
        """What was kept under a key, if it still is."""
        with self._lock:
            if key not in self._held:
                return None
            self._held.move_to_end(key)
            return self._held[key][0]

    def put(self, key: Hashable, value: T, weight: int) -> None:
        """Keeps a result, unless it is too heavy.

        Args:
            key: What it depends on, all of it.
            value: The result.
            weight: Of both.
        """
        weight += 1
        if 4 * weight > self.most:
            return
        with self._lock:
            if key in self._held:
                self._weight -= self._held.pop(key)[1]
            self._held[key] = (value, weight)
            self._weight += weight
            while self._weight > self.most:
                _, (_, gone) = self._held.popitem(last=False)
                self._weight -= gone

    def clear(self) -> None:
        """Lets go of everything."""
        with self._lock:
            self._held.clear()
            self._weight = 0


_LIVE: weakref.WeakSet[WeightedCache[Any]] = weakref.WeakSet()


def _forked() -> None:
    for each in list(_LIVE):
        each.forked()


os.register_at_fork(after_in_child=_forked)


def weight_of(rows: Iterable[Iterable[object]]) -> int:
    """What rows weigh: a long text is more than one value."""
    return sum(1 + len(value) // _TEXT if isinstance(value, str) else 1 for row in rows for value in row)


def weight_of_parts(expressions: Iterable[Expression]) -> int:
    """What expressions weigh."""
    found = 0
    for each in expressions:
        for part in walk(each):
            found += _NODE
            if isinstance(part, Literal) and isinstance(part.value, str):
                found += len(part.value) // _TEXT
    return found
