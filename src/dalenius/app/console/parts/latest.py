"""What is looked up again and again while somebody types or moves a slider: only the last of it is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_PAUSE = 0.15  # seconds without a change: longer than between two keys that are held down, too short to be noticed


class Latest(Generic[T]):
    """Looks up what stands there, once changes pause; one look at a time.

    What was found is shown only if nothing has changed since the look began. So an older one never takes the place of a
    newer one, and after the last change there is always one more look.

    Args:
        look: Looks up what stands there when it is called; None if there is nothing to show.
        show: Shows what was found.
        pause: Seconds without a change before a look begins.
    """

    def __init__(
        self, look: Callable[[], Awaitable[T | None]], show: Callable[[T], None], pause: float = _PAUSE
    ) -> None:
        self._look, self._show, self._pause = look, show, pause
        self._changes, self._busy = 0, False

    async def changed(self) -> None:
        """Something has changed. The first to say so stays until all is shown; the others return at once."""
        self.look_again()
        if self._busy:
            return
        self._busy = True
        try:
            seen = 0
            while seen != self._changes:
                seen = await self._quiet()
                found = await self._look()
                if found is not None and seen == self._changes:
                    self._show(found)
        finally:
            self._busy = False

    def look_again(self) -> None:
        """What is looked up now is not to be shown; there is another look after it."""
        self._changes += 1

    async def _quiet(self) -> int:
        """Waits until changes pause; how many there were by then."""
        seen = -1
        while seen != self._changes:
            seen = self._changes
            await asyncio.sleep(self._pause)
        return seen
