"""Open connections, so that nobody keeps others out by holding many that say nothing.

A connection costs a file and some memory, whoever opens it and whether or not a request ever comes. There is room for
so many. When it is taken, room is made by closing a connection on which nothing is being answered: the one that has
waited longest, of the address that has the most of them. Who opens a thousand loses its own; who opens one is heard.
"""

from __future__ import annotations

import resource
from collections import OrderedDict
from typing import Protocol

MOST = 1000
_FILES = 8192  # of which at most half are connections; the rest is for tables, the ledger and the engine


class Connection(Protocol):
    """What is known of a connection here."""

    def is_idle(self) -> bool:
        """Whether nothing is being answered on it."""

    def close_now(self) -> None:
        """Ends it without another word."""


class Connections:
    """All that are open, by the address they come from; used on the event loop only.

    Args:
        most: How many there may be.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._by_address: dict[str, OrderedDict[Connection, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_address.values()))

    def add(self, address: str, connection: Connection) -> None:
        """Counts a new one; closes an idle one if there are too many now, and that may be the new one itself."""
        self._by_address.setdefault(address, OrderedDict())[connection] = None
        if len(self) > self.most:
            self._make_room()

    def used(self, address: str, connection: Connection) -> None:
        """A request came on it: it is the last to be closed for having said nothing."""
        known = self._by_address.get(address)
        if known is not None and connection in known:
            known.move_to_end(connection)

    def remove(self, address: str, connection: Connection) -> None:
        """It has ended, or became a socket, which has limits of its own."""
        known = self._by_address.get(address)
        if known is not None:
            known.pop(connection, None)
            if not known:
                del self._by_address[address]

    def _make_room(self) -> None:
        for address in sorted(self._by_address, key=lambda each: -len(self._by_address[each])):
            for connection in self._by_address[address]:
                if connection.is_idle():
                    self.remove(address, connection)
                    connection.close_now()
                    return


def room() -> int:
    """For how many connections there is room: half of the files that this process may open, which is raised first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST if soft == resource.RLIM_INFINITY else max(1, min(MOST, soft // 2))
