"""What was said to a page: how much of it is kept for a browser that was away, and how much waits to be read.

The framework counts messages, not bytes, and forgets old ones when the next is sent. Here both have a size.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nicegui import Client

MESSAGES = 100  # that are kept; a browser says every three seconds what it has heard
_KEPT = 2**19  # bytes of one page
_WAITING, _UNREAD = 300, 2**22  # messages and bytes that may wait on one line while more is asked for


class History(deque[Any]):
    """The newest messages, up to so many bytes.

    One that is larger by itself is not kept: whose line broke before it was heard loads the page anew.
    """

    def __init__(self, most: int = _KEPT) -> None:
        super().__init__()
        self._most = most
        self._sizes: deque[int] = deque()

    def append(self, entry: Any) -> None:
        """Keeps one more, and forgets the oldest."""
        super().append(entry)
        self._sizes.append(size(entry, self._most))
        while sum(self._sizes) > self._most:
            self.popleft()

    def popleft(self) -> Any:
        """The oldest, which is forgotten."""
        self._sizes.popleft()
        return super().popleft()

    def pop(self) -> Any:  # type: ignore[override]  # a deque's has no place either
        """The newest, which is forgotten."""
        self._sizes.pop()
        return super().pop()

    def clear(self) -> None:
        """Forgets all."""
        self._sizes.clear()
        super().clear()


def limit_history(page: Client) -> None:
    """Gives a page a history that has a size; to be called before its first line is opened."""
    if not isinstance(page.outbox.message_history, History):
        page.outbox.message_history = History()


def is_unread(line: Any) -> bool:
    """Whether so much waits on a line (the framework's socket, if there still is one) that it should be read first."""
    if line is None:
        return False
    waiting = line.queue._queue  # noqa: SLF001
    return len(waiting) > _WAITING or sum(size(each.data, _UNREAD) for each in waiting if each) > _UNREAD


def size(value: object, most: int) -> int:
    """Bytes that it takes in memory, about; what is beyond ``most`` is not counted to its end.

    >>> size(["a" * 1000, {"b": b"c" * 1000}], 10_000) > 2000
    True
    """
    total, left = 0, [value]
    while left and total <= most:
        each = left.pop()
        total += sys.getsizeof(each)
        if isinstance(each, dict):
            left += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple):
            left += each
    return total
