"""What finished jobs said, until it is fetched: so many bytes of a token, and so many of all, and no more.

Results are kept as the bytes that will be sent. Where they no longer fit, the oldest of the token that keeps most go
first. A job whose result was let go says so, and that asking again gives it: what was paid for is free.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Protocol


class Holder(Protocol):
    """What keeps a result."""

    token: str

    def let_go(self) -> None:
        """Its result is kept no longer."""


class Kept:
    """The results of one server process.

    Args:
        most: Bytes of all of them.
        each: Bytes of those of one token.
    """

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._sizes: dict[str, OrderedDict[Holder, int]] = {}  # by token, oldest first
        self._sums: dict[str, int] = {}
        self._all = 0
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """How many are kept."""
        return self._all

    def add(self, holder: Holder, size: int) -> None:
        """One more; those that have to go for it are let go."""
        with self._lock:
            self._sizes.setdefault(holder.token, OrderedDict())[holder] = size
            self._sums[holder.token] = self._sums.get(holder.token, 0) + size
            self._all += size
            gone = []
            while self._sums.get(holder.token, 0) > self._each:
                gone.append(self._oldest(holder.token))
            while self._all > self._most:
                gone.append(self._oldest(max(self._sums, key=lambda each: self._sums[each])))
        for each in gone:
            each.let_go()

    def remove(self, holder: Holder) -> None:
        """It is no longer wanted."""
        with self._lock:
            if holder in self._sizes.get(holder.token, ()):
                self._taken(holder)
        holder.let_go()

    def _oldest(self, token: str) -> Holder:
        holder = next(iter(self._sizes[token]))
        self._taken(holder)
        return holder

    def _taken(self, holder: Holder) -> None:
        of_token = self._sizes[holder.token]
        size = of_token.pop(holder)
        self._sums[holder.token] -= size
        self._all -= size
        if not of_token:
            del self._sizes[holder.token], self._sums[holder.token]
