"""How much at once: a token bucket of requests, and how many may be open. Kept in memory, by each server process."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field

from dalenius.errors import RateLimitedError

_MOST = 10_000  # so many keys are remembered; those that were quiet the longest are forgotten, full again


@dataclass(slots=True)
class _State:
    left: float
    at: float
    open: int = 0


@dataclass
class Limits:
    """A limit of requests for each key (a token's id, or an address).

    Used on the event loop only, so it needs no lock.

    Args:
        rate: A second, on average.
        burst: At once.
        concurrency: Open at once.
    """

    rate: float
    burst: float
    concurrency: int
    _states: OrderedDict[str, _State] = field(default_factory=OrderedDict)

    def admit(self, key: str) -> None:
        """Counts one request, or refuses it. Each that was admitted must be `done` once."""
        state = self._state(key)
        if state.open >= self.concurrency:
            raise limited(f"{self.concurrency} requests are open.", 1.0)
        if state.left < 1:
            raise limited(f"At most {self.rate:g} requests a second.", (1 - state.left) / self.rate)
        state.left -= 1
        state.open += 1

    def done(self, key: str) -> None:
        """An admitted request has ended."""
        state = self._states.get(key)
        if state is not None:
            state.open -= 1

    def exhausted(self, key: str) -> bool:
        """Whether nothing more would be admitted now; counts nothing."""
        return self._state(key).left < 1

    def spend(self, key: str) -> None:
        """Counts one without holding anything open."""
        state = self._state(key)
        state.left = max(0.0, state.left - 1)  # no debt: who stops is soon heard again

    def _state(self, key: str) -> _State:
        now = time.monotonic()
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(self.burst, now)
            while len(self._states) > _MOST:
                oldest = next(iter(self._states))
                if self._states[oldest].open:
                    self._states.move_to_end(oldest)
                    break
                del self._states[oldest]
        self._states.move_to_end(key)
        state.left = min(self.burst, state.left + (now - state.at) * self.rate)
        state.at = now
        return state


class TooManyError(RateLimitedError):
    """With the time after which it is worth trying again."""

    retry: float


def limited(why: str, retry: float) -> TooManyError:
    """A refusal, and after how many seconds it is worth trying again."""
    error = TooManyError("Too many requests.", why=why, fix=f"Wait {max(1, round(retry))} s and try again.")
    error.retry = retry
    return error
