"""Secure random words: AES-256 in counter mode, keyed by the operating system.

Each thread has a stream of its own, so streams need no lock and never meet. A stream is keyed from
`os.urandom` and gets a new key

- after a fork: the child forgets the streams it inherited (a fork hook; the process id is checked too);
- at every question: the caller says `fresh_key()`;
- after `REKEY_AFTER` bytes, long before counter mode could be told from random (advantage below 2⁻⁷⁶).

Values that a sampler has drawn ahead (its *stock*) belong to the stream and vanish with its key.

No function, environment variable or file sets a key. Tests bring their own words through `_injected`.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from numpy.typing import NDArray

REKEY_AFTER = 2**30
"""Bytes from one key: 2²⁶ blocks, a birthday bound of 2⁵²/2¹²⁹."""

_LARGEST_REQUEST = 2**24
"""Words made in one piece; longer requests are put together from such pieces."""


class WordSource(Protocol):
    """Where random 64-bit words come from."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` words, independent and uniform."""


class _AesSource:
    """The keystream of AES-256-CTR under a key and a first counter from the operating system."""

    def __init__(self) -> None:
        self._rekey()

    def _rekey(self) -> None:
        self._cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
        self._left = REKEY_AFTER

    def words(self, count: int) -> NDArray[np.uint64]:
        if count > _LARGEST_REQUEST:
            pieces = [self.words(min(_LARGEST_REQUEST, count - at)) for at in range(0, count, _LARGEST_REQUEST)]
            return np.concatenate(pieces)
        if 8 * count > self._left:
            self._rekey()
        self._left -= 8 * count
        return np.frombuffer(self._cipher.update(bytes(8 * count)), np.uint64)


class WordStream:
    """One thread's source of words, and what samplers have drawn ahead from it.

    Attributes:
        source: Where its words come from.
        stock: Lists of values drawn ahead, by sampler; the samplers keep it small.
    """

    __slots__ = ("birth", "source", "stock")

    def __init__(self, source: WordSource, birth: tuple[int, int] | None) -> None:
        self.source = source
        self.birth = birth
        self.stock: OrderedDict[Hashable, list[Any]] = OrderedDict()


_thread = threading.local()
_forks = 0


def _forked() -> None:
    global _forks  # noqa: PLW0603 - the one thing a child must know is that it is one
    _forks += 1


os.register_at_fork(after_in_child=_forked)


def current() -> WordStream:
    """This thread's stream, new if there is none or if the process has forked since."""
    stream = cast("WordStream | None", getattr(_thread, "stream", None))
    if stream is not None and (stream.birth is None or stream.birth == (os.getpid(), _forks)):
        return stream
    stream = WordStream(_AesSource(), birth=(os.getpid(), _forks))
    _thread.stream = stream
    return stream


def words(count: int) -> NDArray[np.uint64]:
    """The next `count` secure random words of this thread, as a read-only array."""
    return current().source.words(count)


def integers(length: int, count: int) -> list[int]:
    """Secure uniform integers of `length` bits."""
    size = -(-length // 64)
    spare = 64 * size - length
    drawn = words(size * count).tobytes()
    return [int.from_bytes(drawn[8 * size * i : 8 * size * (i + 1)], "little") >> spare for i in range(count)]


def fresh_key() -> None:
    """Give the calling thread a new key; to be called at the start of every question.

    Whatever was drawn ahead under the old key is dropped, so that the noise of one question shares neither
    key nor stock with that of another. A question that draws on several threads calls it on each.

    Example:
        >>> fresh_key()
    """
    stream = current()
    if stream.birth is None:
        stream.stock.clear()  # a test's own words stay
    else:
        _thread.stream = None


@contextmanager
def _injected(source: WordSource) -> Iterator[None]:
    """For tests only: this thread draws from `source` until the block ends."""
    before = getattr(_thread, "stream", None)
    _thread.stream = WordStream(source, birth=None)
    try:
        yield
    finally:
        _thread.stream = before
