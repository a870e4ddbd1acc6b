"""A file of reports: what made them (`headers`), then the packed reports, then nothing.

    header        under "DLNR"
    reports       `reports` × `report_bytes` bytes

The header says everything twice, once as asked for (name, fields) and once as it follows (integers, ratio, ε); a
reader works the second out from the first and refuses a file where they differ. docs/reference/reports.md specifies
it to the bit.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dalenius.errors import InputError, ReportInvalidError
from dalenius.local.domain import Domain
from dalenius.local.headers import (
    HEADER_AT,
    encoded,
    head,
    number_of,
    opened,
    randomiser_of,
    read_head,
    refuse,
    write_whole,
)
from dalenius.local.randomisers.randomiser import FrequencyOracle, Randomiser, Reports

MAGIC = b"DLNR"
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
    begin = _head(randomiser, count, domain)

    def parts() -> Iterator[bytes | memoryview]:
        left = count
        yield begin
        for block in blocks:
            yield randomiser.check(block).data
            left -= len(block)
        assert not left  # noqa: S101 - who writes blocks counts them

    write_whole(path, parts())


def read(path: Path, domain: Domain | None = None) -> ReportFile:
    """Read and check a file; with a domain, only one of that domain's. Its reports stay on disk until they are used."""
    return from_bytes(opened(path), domain)


def from_bytes(data: bytes | mmap.mmap, domain: Domain | None = None) -> ReportFile:
    """The reports in the bytes of a file."""
    header, start = read_head(data, MAGIC, "a file of reports")
    count = number_of(header, "reports", most=_MOST_REPORTS)
    randomiser = randomiser_of(header)
    if encoded(header_of(randomiser, header["domain"], count)) != data[HEADER_AT:start]:
        refuse("The header contradicts itself", "its integers, ratio or ε do not follow from its fields", HEADER_AT)
    size, expected = len(data) - start, count * randomiser.report_bytes
    if size != expected:
        word = "shorter" if size < expected else "longer"
        refuse(
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
        refuse(
            "The header contradicts itself",
            f"it counts {randomiser.size:,} values, and the domain that it names has {domain.size:,}",
            HEADER_AT,
        )
    rows = np.frombuffer(data, np.uint8, offset=start).reshape(count, randomiser.report_bytes)
    return ReportFile(randomiser, header["domain"], randomiser.check(rows, start=start))


def _head(randomiser: Randomiser, reports: int, domain: Domain | None) -> bytes:
    check_domain(randomiser, domain)
    return head(MAGIC, header_of(randomiser, domain.sha256 if domain else "", reports))


def check_domain(randomiser: Randomiser, domain: Domain | None) -> None:
    """A randomiser of categories has a domain, of its size."""
    if isinstance(randomiser, FrequencyOracle) and (domain is None or domain.size != randomiser.size):
        raise InputError(
            "The domain does not fit the randomiser.",
            why=f"The randomiser is for {randomiser.size:,} values.",
            fix="Make both of one size.",
        )
