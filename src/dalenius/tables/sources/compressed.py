"""Whether a compressed file is whole, and no larger than it may be: asked once, by the owner, before it is protected.

A gzip file whose end is missing, or that is followed by something else, is read differently by different readers, and
some of its rows may never be seen. And a megabyte can hold a gigabyte of nothing. So each is read once from beginning
to end, in pieces, nothing of it kept: memory is bounded whatever it holds. Several gzip files one after the other are
one, as gzip says.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path

from dalenius.errors import InputError, SourceUnavailableError

VARIABLE = "DALENIUS_UNCOMPRESSED"  # bytes
MOST = 64 * 2**30  # bytes of one file, uncompressed, where the variable does not say otherwise
RATIO = 200  # text is seldom packed to less than a hundredth; gzip's own limit is about a thousandth
FREE = 64 * 2**20  # bytes that any file may hold, however well it is packed
_PIECE = 2**16
_GZIP = 16 + zlib.MAX_WBITS


def check_compressed(files: Sequence[Path]) -> None:
    """Refuses compressed files that are cut off, are followed by something else, or hold too much.

    Raises:
        SourceUnavailableError: One of them.
        InputError: The variable is no number of bytes.
    """
    most = _most()
    for file in files:
        if file.name.lower().endswith(".gz"):
            _check(file, most)


def _check(file: Path, most: int) -> None:
    try:
        packed = file.stat().st_size
        allowed = min(most, max(FREE, RATIO * packed))
        whole = _whole(file, allowed)
    except (OSError, zlib.error):
        whole = False
    if whole is None:
        raise SourceUnavailableError(
            f"{file.name} holds too much.",
            why=f"Uncompressed it may have {RATIO} times its size, at most {most:,} bytes ({VARIABLE}). It has more.",
            fix="If that is right, protect the uncompressed file, or write it as Parquet.",
        )
    if not whole:
        raise SourceUnavailableError(
            f"{file.name} cannot be read to its end.",
            why="It is cut off or damaged, something follows it that is no gzip, or this user has no access to it.",
            fix="Copy it again, and check it with 'gzip --test'.",
        )


def _whole(file: Path, most: int) -> bool | None:
    """Whether it is gzip from beginning to end; None: it holds more than ``most`` bytes."""
    size, member = 0, zlib.decompressobj(_GZIP)
    with file.open("rb") as opened:
        rest = opened.read(_PIECE)
        if not rest:
            return False
        while rest:
            if member.eof:  # another member begins
                member = zlib.decompressobj(_GZIP)
            size += len(member.decompress(rest, _PIECE))
            if size > most:
                return None
            rest = (member.unused_data if member.eof else member.unconsumed_tail) or opened.read(_PIECE)
        while not member.eof:  # all was given; some may not have come out yet
            piece = member.decompress(b"", _PIECE)
            size += len(piece)
            if size > most:
                return None
            if not piece:
                return member.eof
    return True


def _most() -> int:
    said = os.environ.get(VARIABLE, "")
    if not said:
        return MOST
    if not said.isascii() or not said.isdigit() or not 0 < int(said) < 2**63:
        raise InputError(
            f"{VARIABLE} is no number of bytes.",
            why="It is a whole number above 0.",
            fix=f"Set it to {MOST}, or unset it.",
        )
    return int(said)
