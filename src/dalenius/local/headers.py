"""How files of this package begin: four letters, a version, and a header of JSON in its one form.

bytes 0–3     the letters of its kind
byte 4        1, the version of the format
bytes 5–8     length of the header, low byte first
header        JSON in ASCII, keys sorted, no spaces
"""

from __future__ import annotations

import json
import mmap
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from dalenius.errors import DaleniusError, InputError, ReportInvalidError
from dalenius.local.randomisers.randomiser import Randomiser

VERSION = 1
HEADER_AT = 9
_LONGEST_HEADER = 2**16
_DOMAIN = re.compile("[0-9a-f]{64}|")


def head(magic: bytes, header: object) -> bytes:
    """The bytes up to what the header is about."""
    text = encoded(header)
    return magic + bytes([VERSION]) + len(text).to_bytes(4, "little") + text


def encoded(header: object) -> bytes:
    """JSON in its one form."""
    return json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def read_head(data: bytes | mmap.mmap, magic: bytes, called: str) -> tuple[dict[str, Any], int]:
    """The header, as JSON, and where it ends."""
    if data[:4] != magic:
        refuse(f"This is not {called}", f'it does not begin with "{magic.decode()}"', 0)
    if len(data) < HEADER_AT:
        refuse("The file ends in its header", "it is cut off", len(data))
    if data[4] != VERSION:
        refuse("The file has a format that this version does not know", f"it says {data[4]}", 4)
    length = int.from_bytes(data[5:9], "little")
    if length > _LONGEST_HEADER:
        refuse("The header is too long", f"at most {_LONGEST_HEADER:,} bytes are read", 5)
    text = data[HEADER_AT : HEADER_AT + length]
    if len(text) < length:
        refuse("The file ends in its header", "it is cut off", len(data))
    try:
        header = json.loads(text.decode("ascii"))
        canonical = encoded(header)
    except (ValueError, RecursionError):
        refuse("The header cannot be read", "it is not JSON in ASCII", HEADER_AT)
    if canonical != text or not isinstance(header, dict):
        refuse("The header cannot be read", "it is not in the one form: sorted keys, no spaces", HEADER_AT)
    return header, HEADER_AT + length


def randomiser_of(header: dict[str, Any]) -> Randomiser:
    """The randomiser that a header names, with its fields."""
    from dalenius.local.randomisers import RANDOMISERS

    known = {cls.name: cls for cls in RANDOMISERS}
    domain, fields, name = header.get("domain"), header.get("fields"), header.get("randomiser")
    if not isinstance(domain, str) or not _DOMAIN.fullmatch(domain) or not isinstance(fields, dict):
        refuse("The header is incomplete", "it must say randomiser, fields and domain", HEADER_AT)
    if not isinstance(name, str) or name not in known:
        refuse("The header names an unknown randomiser", "known are " + ", ".join(known), HEADER_AT)
    try:
        return known[name](**fields)
    except (TypeError, ValueError, OverflowError, DaleniusError):  # whatever a field's type and size
        refuse(
            "The header's fields are not those of its randomiser", "one is missing, foreign or out of range", HEADER_AT
        )


def number_of(header: dict[str, Any], key: str, *, most: int) -> int:
    """A whole number from 0 that a header must say."""
    found = header.get(key)
    if type(found) is not int or not 0 <= found <= most:
        refuse("The header is incomplete", f"it must say {key}, a whole number of at most {most:,}", HEADER_AT)
    return found


def opened(path: Path) -> mmap.mmap:
    """The bytes of a file, which stay on disk until they are used."""
    if path.is_fifo() or path.is_char_device():  # to open a pipe would wait for somebody to write
        raise InputError(f"{path} cannot be read.", why="It is no file of the ordinary kind.", fix="Check the path.")
    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                refuse("The file is empty", "it has no header", 0)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # what cannot be mapped is no file
        reason = error.strerror if isinstance(error, OSError) else "It is no file of the ordinary kind."
        raise InputError(
            f"{path} cannot be read.", why=reason or "The system refused.", fix="Check the path."
        ) from None


def write_whole(path: Path, blocks: Iterable[bytes | memoryview]) -> None:
    """Write a file whole: a crash leaves either the old file or the new one. Only its owner may read it."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                for block in blocks:
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise InputError(
            f"{path} cannot be written.", why=error.strerror or "The system refused.", fix="Check the path."
        ) from None


def refuse(what: str, why: str, byte: int) -> NoReturn:
    """A file is not as it must be, at a byte."""
    raise ReportInvalidError(
        f"{what} (byte {byte:,}).",
        why=f"{why[0].upper()}{why[1:]}.",
        fix="Leave the file out, or ask its sender for an intact copy.",
    )
