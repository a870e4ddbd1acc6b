"""Calls of a server that try again: troubles that pass are waited for, and what was charged is never left unsaid."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dalenius.errors import (
    NOTHING,
    UNKNOWN,
    BudgetError,
    Charge,
    DaleniusError,
    EngineError,
    InputError,
    InternalError,
    PolicyError,
    QuestionError,
    SourceUnavailableError,
)
from dalenius.remote import wire
from dalenius.remote.transport import LostError, Reply, Transport

T = TypeVar("T")

TRIES = 5
FIRST_PAUSE = 0.2  # seconds; doubles from try to try
_LONGEST_PAUSE = 5.0
_PATIENCE = 20.0  # seconds that one try has at least: a server takes ten before it makes a job of a question
_GOOD = (200, 201, 202, 204)
_SLOW = 408  # it came in too slowly, this time: says nothing of an earlier try
_PASSING = (_SLOW, 429, 502, 503, 504)  # statuses of troubles that pass
# Errors that mean the same whether or not an earlier try came through.
_SETTLED = (BudgetError, EngineError, InputError, PolicyError, QuestionError)


class Calls:
    """Requests to one server, each repeated where that helps: to all of ours the answer is the same the second time."""

    def __init__(self, transport: Transport, timeout: float) -> None:
        self.transport = transport
        self.timeout = timeout

    def found(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """What is answered, as JSON."""
        return self.reply(method, path, body).data

    def reply(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        asking: bool = False,
        missing: bool = False,
    ) -> Reply:
        """The reply, after as many tries as it takes.

        Args:
            method: Of HTTP.
            path: On the server.
            body: As JSON.
            asking: It may be charged, so that what it cost is not known where its answer is lost.
            missing: A 404 is an answer.
        """
        end, pause, lost, attempt = time.monotonic() + self.timeout, FIRST_PAUSE, False, 0
        while True:
            attempt += 1
            left = max(0.001, end - time.monotonic())
            after, settled = None, False
            try:
                # half of the time, so that one silent connection does not take all of it
                reply = self.transport.request(method, path, body, seconds=min(left, max(_PATIENCE, left / 2)))
            except LostError as error:
                lost |= asking and error.sent
                failure: DaleniusError = SourceUnavailableError(
                    f"{self.transport.address} cannot be reached.",
                    why=f"{error.why} (tried {'once' if attempt == 1 else f'{attempt} times'}).",
                    fix="Check the address and the network, then ask the same again.",
                )
                again = True
            else:
                if reply.status in _GOOD or (missing and reply.status == 404):
                    return reply
                after = reply.retry_after
                failure, again, unclear = self._failure(reply)
                lost |= asking and (unclear or reply.repeated)
                settled = isinstance(failure, _SETTLED) and reply.status != _SLOW
            # between a half and the whole, so that many clients do not come back at once
            wait = max(after or 0.0, pause * (0.5 + secrets.randbelow(1000) / 2000))
            pause = min(2 * pause, _LONGEST_PAUSE)
            if not again or attempt == TRIES or time.monotonic() + wait >= end:
                if lost and failure.charge == NOTHING and not settled:
                    failure.charge = UNKNOWN
                raise failure
            time.sleep(wait)

    def _failure(self, reply: Reply) -> tuple[DaleniusError, bool, bool]:
        """What went wrong; whether it is worth another try; whether a question may be charged all the same."""
        passing = reply.status in _PASSING
        found = wire.problem(reply.data, reply.status)
        if found is None:  # behind a proxy's error page the server may well be at work
            failure = self.strange(f"It answered HTTP {reply.status} without saying why.")
            return failure, passing, reply.status >= 500
        # What an engine failed at it will fail at again; and what was charged must be told.
        again = passing and found.charge == NOTHING and not isinstance(found, EngineError)
        return found, again, isinstance(found, InternalError)

    def read(self, data: Any, read: Callable[[Any], T], *, charge: Charge = NOTHING) -> T:
        """The answer as what it should be; where it is not that, the mistake is the server's, not the caller's."""
        try:
            return read(data)
        except InputError as error:
            raise self.strange(error.why, charge) from None

    def strange(self, why: str, charge: Charge = NOTHING) -> SourceUnavailableError:
        """Whoever answers, answers like nothing that we know."""
        return SourceUnavailableError(
            f"{self.transport.address} does not answer as a dalenius server.",
            why=why,
            fix="Check the address, and what stands between: a proxy may answer in its place.",
            charge=charge,
        )
