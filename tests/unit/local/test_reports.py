"""The file of reports: what is written is read, and whatever else is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dalenius.errors import InputError, ReportInvalidError
from dalenius.local import reports
from dalenius.local.domain import Domain
from dalenius.local.randomisers.k_ary import KAry

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
