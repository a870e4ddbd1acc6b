"""What travels: a header of fixed size, then that many bytes of numbers. No pickle, no text that is run.

The header tells the run, the sender, the round, the frame's place in its connection and a digest of the step that both
sides should be at. A receiver checks all of them before it uses the first byte.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

HELLO, DATA, RECEIPT, BYE = range(1, 5)
"""Kinds: the first one on a connection, numbers, word of what has arrived, and the last one."""

_MAGIC = b"DLJ1"
_HEADER = struct.Struct("<4sBB2x16sQQQ8sQ")
HEADER = _HEADER.size
LIMIT = 1 << 26
"""The longest payload: 64 MiB, or eight million numbers."""
SHORT_LIMIT = 1 << 17
"""The longest payload of a frame that holds no numbers."""
_TOGETHER = 1 << 15
"""Payloads up to this size leave with their header, as one piece."""

_PIECE = 1 << 17


class MalformedFrameError(Exception):
    """Bytes that are no frame."""


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the numbers."""

    kind: int
    sender: int
    run: bytes
    round: int
    number: int
    received: int
    step: bytes
    length: int

    def pack(self) -> bytes:
        """Its bytes."""
        return _HEADER.pack(
            _MAGIC,
            self.kind,
            self.sender,
            self.run,
            self.round,
            self.number,
            self.received,
            self.step,
            self.length,
        )

    @classmethod
    def unpack(cls, data: bytes | bytearray, limit: int = LIMIT) -> Header:
        """The header in such bytes.

        Raises:
            MalformedFrameError: They are none, or it announces more than `limit` bytes.
        """
        magic, *rest = _HEADER.unpack(data)
        found = cls(*rest)
        if magic != _MAGIC or not HELLO <= found.kind <= BYE:
            raise MalformedFrameError("it does not begin like one")
        if found.length > (limit if found.kind == DATA else SHORT_LIMIT):
            raise MalformedFrameError(f"it announces {found.length} bytes")
        return found


def step_digest(step: str) -> bytes:
    """Eight bytes that differ where two parties are at different steps."""
    return hashlib.sha256(step.encode()).digest()[:8]


class Wire(asyncio.BufferedProtocol):
    """One connection: cuts what arrives into frames, straight into the memory that is then read as numbers."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.on_frame: Callable[[Header, memoryview], None] = lambda _header, _payload: None
        self.on_lost: Callable[[Exception | None], None] = lambda _error: None
        self.transport: asyncio.Transport | None = None
        self.closed = asyncio.get_running_loop().create_future()
        self.greeted = False
        self._limit = limit
        self._head = bytearray(HEADER)
        self._header: Header | None = None
        self._target = memoryview(self._head)
        self._filled = 0

    # --- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # noqa: D102
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002, D102
        return self._target[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:  # noqa: D102
        self._filled += nbytes
        if self._filled < len(self._target):
            return
        try:
            self._complete()
        except MalformedFrameError as error:
            self.lose(error)

    def eof_received(self) -> Literal[False]:  # noqa: D102
        return False

    def connection_lost(self, error: Exception | None) -> None:  # noqa: D102
        if not self.closed.done():
            self.closed.set_result(None)
        if self.transport is not None:
            self.transport.abort()  # the other side has hung up: so does this one
        if self._filled and error is None:
            error = MalformedFrameError("it ends in the middle")
        self.on_lost(error)

    # --- called by links

    def write(self, header: bytes, payload: bytes | memoryview) -> None:
        """Sends one frame; what cannot leave at once waits in memory."""
        if self.transport is None or self.transport.is_closing():
            return
        if len(payload) <= _TOGETHER:
            self.transport.write(header + bytes(payload))
        else:
            self.transport.write(header)
            pieces = memoryview(payload)
            for at in range(0, len(pieces), _PIECE):  # each is encrypted and handed on while it is in the cache
                self.transport.write(pieces[at : at + _PIECE])

    def lose(self, error: Exception | None) -> None:
        """Ends the connection at once."""
        on_lost, self.on_lost = self.on_lost, lambda _error: None
        if self.transport is not None:
            self.transport.abort()
        on_lost(error)

    async def close(self, patience: float) -> None:
        """Ends the connection when all that was written has left."""
        self.on_lost = lambda _error: None
        if self.transport is None:
            return
        self.transport.close()
        await asyncio.wait([self.closed], timeout=patience)
        self.transport.abort()

    def certificate(self) -> bytes:
        """The other side's certificate."""
        ssl: Any = self.transport.get_extra_info("ssl_object") if self.transport is not None else None
        return b"" if ssl is None else ssl.getpeercert(binary_form=True) or b""

    def _complete(self) -> None:
        if self._header is None:
            self._header = Header.unpack(self._head, self._limit)
            if self._header.length:
                self._target = np.empty(self._header.length, np.uint8).data
                self._filled = 0
                return
            payload = memoryview(b"")
        else:
            payload = self._target
        header, self._header = self._header, None
        self._target = memoryview(self._head)
        self._filled = 0
        self.on_frame(header, payload)
