"""A file of reports: what made them, then the packed reports, then nothing.

    bytes 0–3     "DLNR"
    byte 4        1, the version of the format
    bytes 5–8     length of the header, low byte first
    header        JSON in ASCII, keys sorted, no spaces
    reports       `reports` × `report_bytes` bytes

The header says everything twice, once as asked for (name, fields) and once as it follows (integers, ratio, ε); a
reader works the second out from the first and refuses a file where they differ. docs/reference/reports.md specifies
it to the bit.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dalenius.errors import DaleniusError, InputError, ReportInvalidError
from dalenius.local.domain import Domain
from dalenius.local.randomisers.randomiser import FrequencyOracle, Randomiser, Reports

MAGIC = b"DLNR"
VERSION = 1
_HEADER_AT = 9
_LONGEST_HEADER = 2**16
_DOMAIN = re.compile("[0-9a-f]{64}|")
_MOST_REPORTS = 2**63 - 1


@dataclass(frozen=True, eq=False)
class ReportFile:
    """Reports with what is needed to fold them.

    Attributes:
        randomiser: What made them.
        domain: The SHA-256 of the domain, "" for a randomiser without one.
        reports: The packed reports, checked.
    """

    randomiser: Randomiser
    domain: str
    reports: Reports


def header_of(randomiser: Randomiser, domain: str, reports: int) -> dict[str, Any]:
    """What a file says of its reports."""
    return {
        "randomiser": randomiser.name,
        "fields": randomiser.fields(),
        "integers": dict(randomiser.integers),
        "ratio": [randomiser.ratio.numerator, randomiser.ratio.denominator],
        "epsilon": randomiser.actual_epsilon,
        "domain": domain,
        "report_bytes": randomiser.report_bytes,
        "reports": reports,
    }


def to_bytes(randomiser: Randomiser, reports: Reports, domain: Domain | None = None) -> bytes:
    """The file's bytes in front of the reports, and the reports."""
    return _head(randomiser, len(reports), domain) + randomiser.check(reports).tobytes()


def write(path: Path, randomiser: Randomiser, reports: Reports, domain: Domain | None = None) -> None:
    """Write a file whole: a crash leaves either the old file or the new one."""
    write_blocks(path, randomiser, len(reports), [reports], domain)


def write_blocks(
    path: Path, randomiser: Randomiser, count: int, blocks: Iterable[Reports], domain: Domain | None = None
) -> None:
    """The same for `count` reports that come in blocks, so that they need not fit into memory together."""
    head, left = _head(randomiser, count, domain), count
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                file.write(head)
                for block in blocks:
                    file.write(randomiser.check(block).data)
                    left -= len(block)
                assert not left  # noqa: S101 - who writes blocks counts them
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


def read(path: Path, domain: Domain | None = None) -> ReportFile:
    """Read and check a file; with a domain, only one of that domain's. Its reports stay on disk until they are used."""
    if path.is_fifo() or path.is_char_device():  # to open a pipe would wait for somebody to write
        raise InputError(f"{path} cannot be read.", why="It is no file of the ordinary kind.", fix="Check the path.")
    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                _refuse("The file is empty", "it has no header", 0)
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # what cannot be mapped is no file
        reason = error.strerror if isinstance(error, OSError) else "It is no file of the ordinary kind."
        raise InputError(
            f"{path} cannot be read.", why=reason or "The system refused.", fix="Check the path."
        ) from None
    return from_bytes(data, domain)


def from_bytes(data: bytes | mmap.mmap, domain: Domain | None = None) -> ReportFile:
    """The reports in the bytes of a file."""
    header, start = _header(data)
    randomiser = _randomiser(header)
    if _encoded(header_of(randomiser, header["domain"], header["reports"])) != data[_HEADER_AT:start]:
        _refuse("The header contradicts itself", "its integers, ratio or ε do not follow from its fields", _HEADER_AT)
    size, expected = len(data) - start, header["reports"] * randomiser.report_bytes
    if size != expected:
        word = "shorter" if size < expected else "longer"
        _refuse(
            f"The file is {word} than its header says",
            f"{header['reports']:,} reports take {expected:,} bytes, and there are {size:,}",
            min(len(data), start + expected),
        )
    if domain is not None and not header["domain"]:
        raise ReportInvalidError(
            f"Reports of {randomiser.name} have no domain.",
            why="Their values are not those of a list.",
            fix="Leave the domain out.",
        )
    if domain is not None and header["domain"] != domain.sha256:
        raise ReportInvalidError(
            "The reports are about another domain.",
            why=f"Their domain's SHA-256 begins {header['domain'][:12]}; this one's {domain.sha256[:12]}.",
            fix="Give the domain file that was used for encoding, unchanged and in the same order.",
        )
    if domain is not None and isinstance(randomiser, FrequencyOracle) and randomiser.size != domain.size:
        _refuse(
            "The header contradicts itself",
            f"it counts {randomiser.size:,} values, and the domain that it names has {domain.size:,}",
            _HEADER_AT,
        )
    rows = np.frombuffer(data, np.uint8, offset=start).reshape(header["reports"], randomiser.report_bytes)
    return ReportFile(randomiser, header["domain"], randomiser.check(rows, start=start))


def _head(randomiser: Randomiser, reports: int, domain: Domain | None) -> bytes:
    if isinstance(randomiser, FrequencyOracle) and (domain is None or domain.size != randomiser.size):
        raise InputError(
            "The domain does not fit the randomiser.",
            why=f"The randomiser is for {randomiser.size:,} values.",
            fix="Make both of one size.",
        )
    header = header_of(randomiser, domain.sha256 if domain else "", reports)
    text = _encoded(header)
    return MAGIC + bytes([VERSION]) + len(text).to_bytes(4, "little") + text


def _encoded(header: object) -> bytes:
    """JSON in its one form."""
    return json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _header(data: bytes | mmap.mmap) -> tuple[dict[str, Any], int]:
    """The header, as JSON, and where the reports start."""
    if data[:4] != MAGIC:
        _refuse("This is not a file of reports", 'it does not begin with "DLNR"', 0)
    if len(data) < _HEADER_AT:
        _refuse("The file ends in its header", "it is cut off", len(data))
    if data[4] != VERSION:
        _refuse("The file has a format that this version does not know", f"it says {data[4]}", 4)
    length = int.from_bytes(data[5:9], "little")
    if length > _LONGEST_HEADER:
        _refuse("The header is too long", f"at most {_LONGEST_HEADER:,} bytes are read", 5)
    text = data[_HEADER_AT : _HEADER_AT + length]
    if len(text) < length:
        _refuse("The file ends in its header", "it is cut off", len(data))
    try:
        header = json.loads(text.decode("ascii"))
        canonical = _encoded(header)
    except (ValueError, RecursionError):
        _refuse("The header cannot be read", "it is not JSON in ASCII", _HEADER_AT)
    if canonical != text or not isinstance(header, dict):
        _refuse("The header cannot be read", "it is not in the one form: sorted keys, no spaces", _HEADER_AT)
    return header, _HEADER_AT + length


def _randomiser(header: dict[str, Any]) -> Randomiser:
    """The randomiser that a header names, with its fields."""
    from dalenius.local.randomisers import RANDOMISERS

    known = {cls.name: cls for cls in RANDOMISERS}
    reports, domain, fields = header.get("reports"), header.get("domain"), header.get("fields")
    if (
        type(reports) is not int
        or not 0 <= reports <= _MOST_REPORTS
        or not isinstance(domain, str)
        or not _DOMAIN.fullmatch(domain)
        or not isinstance(fields, dict)
    ):
        _refuse(
            "The header is incomplete", "it must say randomiser, fields, domain and the number of reports", _HEADER_AT
        )
    name = header.get("randomiser")
    if not isinstance(name, str) or name not in known:
        _refuse("The header names an unknown randomiser", "known are " + ", ".join(known), _HEADER_AT)
    try:
        return known[name](**fields)
    except (TypeError, ValueError, OverflowError, DaleniusError):  # whatever a field's type and size
        _refuse(
            "The header's fields are not those of its randomiser", "one is missing, foreign or out of range", _HEADER_AT
        )


def _refuse(what: str, why: str, byte: int) -> NoReturn:
    raise ReportInvalidError(
        f"{what} (byte {byte:,}).",
        why=f"{why[0].upper()}{why[1:]}.",
        fix="Leave the file out, or ask its sender for an intact copy.",
    )
