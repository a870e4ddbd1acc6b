"""The file of reports: what is written is read, and whatever else is refused with its place."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from dalenius.errors import InputError, ReportInvalidError
from dalenius.local import reports
from dalenius.local.domain import Domain
from dalenius.local.randomisers.bit_vector import MOST_SENT, BitVector
from dalenius.local.randomisers.duchi import Duchi
from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.randomiser import Randomiser
from dalenius.local.randomisers.rappor import Rappor

DOMAIN = Domain(("a", "b", "c"))
RANDOMISER = KAry(1.0, 3)


@pytest.fixture
def data() -> bytes:
    return reports.to_bytes(RANDOMISER, RANDOMISER.encode([0, 1, 2, 0]), DOMAIN)


def test_a_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    made = RANDOMISER.encode([0, 1, 2, 0])
    reports.write(tmp_path / "day.reports", RANDOMISER, made, DOMAIN)
    found = reports.read(tmp_path / "day.reports", DOMAIN)
    assert found.randomiser == RANDOMISER
    assert found.domain == DOMAIN.sha256
    assert (found.reports == made).all()
    assert [path.name for path in tmp_path.iterdir()] == ["day.reports"]


def test_a_file_says_its_version_randomiser_domain_and_actual_epsilon(data: bytes) -> None:
    assert data[:5] == b"DLNR\x01"
    header = json.loads(data[9 : 9 + int.from_bytes(data[5:9], "little")])
    assert header["randomiser"] == "k-ary"
    assert header["domain"] == DOMAIN.sha256
    assert header["epsilon"] == RANDOMISER.actual_epsilon


@pytest.mark.parametrize("cut", [0, 3, 4, 8, 9, 40, -4, -1])
def test_a_truncated_file_is_refused(data: bytes, cut: int) -> None:
    with pytest.raises(ReportInvalidError, match="byte"):
        reports.from_bytes(data[:cut], DOMAIN)


def test_an_over_long_file_is_refused_with_the_place(data: bytes) -> None:
    with pytest.raises(ReportInvalidError, match=f"longer than its header says .byte {len(data):,}"):
        reports.from_bytes(data + b"\0", DOMAIN)


def test_another_domains_file_is_refused(data: bytes) -> None:
    with pytest.raises(ReportInvalidError, match="another domain"):
        reports.from_bytes(data, Domain(("a", "c", "b")))


def test_an_impossible_report_is_refused_with_its_number_and_byte(data: bytes) -> None:
    with pytest.raises(ReportInvalidError, match=f"Report 3 .*byte {len(data) - 2:,}"):
        reports.from_bytes(data[:-2] + b"\x03" + data[-1:], DOMAIN)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.5},
        {"integers": {"lie": 1}},
        {"ratio": [2, 1]},
        {"fields": {"epsilon": 1.0, "size": 4}},
        {"fields": {"epsilon": 1.0, "size": 3, "more": 1}},
        {"fields": {"epsilon": 0.0, "size": 3}},
        {"fields": []},
        {"randomiser": "none"},
        {"randomiser": 1},
        {"reports": -1},
        {"reports": True},
        {"reports": 2**63},
        {"reports": 10**4299},
        {"domain": None},
        {"report_bytes": 2},
        {"more": 1},
    ],
    ids=str,
)
def test_a_header_that_contradicts_itself_is_refused(data: bytes, change: dict[str, object]) -> None:
    length = int.from_bytes(data[5:9], "little")
    header = json.loads(data[9 : 9 + length]) | change
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(ReportInvalidError):
        reports.from_bytes(data[:5] + len(text).to_bytes(4, "little") + text + data[9 + length :], DOMAIN)


def test_a_header_in_another_form_is_refused(data: bytes) -> None:
    length = int.from_bytes(data[5:9], "little")
    text = data[9 : 9 + length]
    for other in (
        text.replace(b",", b", "),
        b"[]",
        b"\xff",
        b"[" * 60_000,
        text.replace(b'"reports":4', b'"reports":NaN'),
    ):
        with pytest.raises(ReportInvalidError):
            reports.from_bytes(data[:5] + len(other).to_bytes(4, "little") + other + data[9 + length :], DOMAIN)


def test_nothing_is_written_when_the_reports_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(ReportInvalidError):
        reports.write(tmp_path / "day.reports", RANDOMISER, np.full((2, 1), 7, np.uint8), DOMAIN)
    with pytest.raises(InputError):
        reports.write(tmp_path / "day.reports", RANDOMISER, RANDOMISER.encode([0]), Domain.numbered(4))
    with pytest.raises(InputError):
        reports.write(tmp_path / "no" / "day.reports", RANDOMISER, RANDOMISER.encode([0]), DOMAIN)
    assert not list(tmp_path.iterdir())


def headed(randomiser: Randomiser, count: int, domain: str, fields: dict[str, object] | None = None) -> bytes:
    """What a sender of nonsense might write in front of reports."""
    header = reports.header_of(randomiser, domain, count)
    header["fields"] |= fields or {}
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    return b"DLNR\x01" + len(text).to_bytes(4, "little") + text


@pytest.mark.parametrize("size", [2, 4, 2**31])
def test_a_size_that_is_not_its_domains_is_refused(size: int) -> None:
    """A few bytes must not make the reader count two thousand million values."""
    with pytest.raises(ReportInvalidError, match="the domain that it names has 3"):
        reports.from_bytes(headed(KAry(1.0, size), 0, DOMAIN.sha256), DOMAIN)


@pytest.mark.parametrize(
    ("randomiser", "fields"),
    [
        (Duchi(1.0, 0, 4, 1), {"low": 10**400}),
        (Duchi(1.0, 0, 4, 1), {"step": -(10**400)}),
        (Rappor(1.0), {"q": 10**400}),
        (Rappor(1.0), {"cohorts": 2**16, "bits": 2**16}),
        (BitVector(1.0, 500), {"sent": 500}),
        (KAry(1.0, 3), {"epsilon": 10**4000}),
        (KAry(1.0, 3), {"epsilon": 1e90}),
        (KAry(1.0, 3), {"size": [3]}),
        (KAry(1.0, 3), {"sizes": 3}),
    ],
    ids=str,
)
def test_fields_of_any_type_and_size_are_refused(randomiser: Randomiser, fields: dict[str, object]) -> None:
    with pytest.raises(ReportInvalidError, match="fields"):
        reports.from_bytes(headed(randomiser, 0, "", fields))


def test_any_byte_of_a_header_may_be_wrong() -> None:
    """Every bit of it flipped: refused, or another survey's header, and never another error."""
    for randomiser in (KAry(1.0, 3), BitVector(1.0, 4), Rappor(1.0, bits=8, cohorts=2), Duchi(1.0, 0, 4, 1)):
        domain = DOMAIN if isinstance(randomiser, KAry) else None
        data = reports.to_bytes(randomiser, np.empty((0, randomiser.report_bytes), np.uint8), domain)
        for place in range(len(data)):
            for bit in range(8):
                with contextlib.suppress(ReportInvalidError):
                    reports.from_bytes(data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :])


def test_as_many_bits_as_can_be_sent_fit_a_file() -> None:
    vector = BitVector(1.0, MOST_SENT, MOST_SENT)
    made = vector.encode(np.zeros((2, MOST_SENT), np.uint8))
    assert (reports.from_bytes(reports.to_bytes(vector, made)).reports == made).all()
    assert BitVector(5000.0, 1000).sent == MOST_SENT


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="cannot be read"):
        reports.read(tmp_path / "pipe")
