"""What is kept today is repeated tomorrow, and a memory that is not whole is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.rappor_counts import LN_9

from dalenius.errors import InputError, ReportInvalidError
from dalenius.local import memory_files, reports
from dalenius.local.collecting import encode_file
from dalenius.local.domain import Domain
from dalenius.local.memory import Memory
from dalenius.local.memory_files import read_memory, reports_of_the_day, write_memory
from dalenius.local.randomisers.bit_vector import BitVector
from dalenius.local.randomisers.hybrid import Hybrid
from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.rappor import Rappor

DOMAIN = Domain.numbered(200)
ORACLE = KAry(0.5, 200)


@pytest.mark.parametrize("oracle", [ORACLE, Rappor(LN_9, bits=16, cohorts=300), Hybrid(1.0, 0, 199, 1)])
def test_a_memory_comes_back_and_goes_on(tmp_path: Path, oracle) -> None:
    domain = DOMAIN if oracle is ORACLE else None
    memory = Memory(oracle, people=300, values=3)
    days = [memory.report(np.full(300, value)).tolist() for value in (4, 9)]
    write_memory(tmp_path / "m", memory, domain)
    found = read_memory(tmp_path / "m")
    again = found.memory
    assert found.domain == (DOMAIN.sha256 if domain else "")
    assert again.randomiser == oracle and again.spending == memory.spending
    assert [again.report(np.full(300, value)).tolist() for value in (9, 4)] == days[::-1]
    third = again.report(np.full(300, 17)).tolist()
    assert third != days[1]
    assert again.report(np.full(300, 30)).tolist() == third  # no more than three are kept


def test_days_of_files_repeat_their_answers_and_say_both_epsilons(tmp_path: Path) -> None:
    sent = []
    for day, value in enumerate((4, 9, 4, 17)):
        (tmp_path / "v").write_text(f"{value}\n" * 300)
        keep = 2 if day == 0 else None
        done = encode_file(tmp_path / "v", tmp_path / "r", ORACLE, DOMAIN, memory=tmp_path / "m", keep=keep)
        assert done.spending is not None and (done.reports, done.spending.days) == (300, day + 1)
        assert done.spending.lifetime == pytest.approx(2 * done.spending.daily)
        sent.append(reports.read(tmp_path / "r", DOMAIN).reports.tolist())
    assert sent[0] == sent[2] != sent[1] == sent[3]
    assert (tmp_path / "m").stat().st_mode & 0o077 == 0  # secret


def test_the_day_is_kept_before_its_reports_are_written(tmp_path: Path, monkeypatch) -> None:
    """Whatever breaks after a report was seen, it is repeated and never drawn anew."""
    (tmp_path / "v").write_text("4\n" * 300)

    def broken(*_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(reports, "write", broken)
    with pytest.raises(ConnectionError):
        encode_file(tmp_path / "v", tmp_path / "r", ORACLE, DOMAIN, memory=tmp_path / "m")
    kept = read_memory(tmp_path / "m").memory
    monkeypatch.undo()
    encode_file(tmp_path / "v", tmp_path / "r", ORACLE, DOMAIN, memory=tmp_path / "m")
    sent = reports.read(tmp_path / "r", DOMAIN).reports.tolist()
    assert sent == kept.kept.answers[:, 0].tolist()


def test_where_the_memory_cannot_be_written_nothing_is_sent(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "v").write_text("4\n")

    def full(*_: object) -> None:
        raise InputError("The disk is full.", why="", fix="")

    monkeypatch.setattr(memory_files, "write_whole", full)
    with pytest.raises(InputError):
        encode_file(tmp_path / "v", tmp_path / "r", ORACLE, DOMAIN, memory=tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["v"]


def test_other_people_surveys_and_numbers_of_values_are_refused_and_change_nothing(tmp_path: Path) -> None:
    path, values = tmp_path / "m", np.array([1, 2, 3])
    reports_of_the_day(path, ORACLE, values, DOMAIN, keep=2)
    before = path.read_bytes()
    other = Domain(tuple(f"x{place}" for place in range(200)))
    for call in (
        lambda: reports_of_the_day(path, ORACLE, values[:2], DOMAIN),
        lambda: reports_of_the_day(path, KAry(0.6, 200), values, DOMAIN),
        lambda: reports_of_the_day(path, ORACLE, values, other),
        lambda: reports_of_the_day(path, ORACLE, values, DOMAIN, keep=3),
    ):
        with pytest.raises(InputError):
            call()
        assert path.read_bytes() == before
    with pytest.raises(InputError, match="Nothing is kept"):
        encode_file(tmp_path / "v", tmp_path / "r", ORACLE, DOMAIN, keep=2)
    with pytest.raises(InputError, match="several bits"):
        Memory(BitVector(1.0, 4))


def test_damage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    reports_of_the_day(path, ORACLE, np.array([1, 2, 3]), DOMAIN, keep=2)
    data = path.read_bytes()
    start = 9 + int.from_bytes(data[5:9], "little")
    used, keys, answers = start, start + 6, start + 6 + 48
    places = {used: 0, used + 1: 1, keys + 8: 1, answers: 250, answers + 1: 7}  # none, 257, unused ones, no such value
    damaged = [data[:at] + bytes([value]) + data[at + 1 :] for at, value in places.items()]
    damaged += [b"", data[:-1], data + b"\0", b"DLNR" + data[4:], data.replace(b'"people":3', b'"people":0')]
    for each in damaged:
        path.write_bytes(each)
        with pytest.raises(ReportInvalidError):
            reports_of_the_day(path, ORACLE, np.array([1, 2, 3]), DOMAIN)
        assert path.read_bytes() == each
    path.write_bytes(data)
    assert read_memory(path).memory.days == 1


def test_two_answers_about_one_value_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    for value in (5, 6):
        reports_of_the_day(path, ORACLE, np.array([value]), DOMAIN, keep=2)
    data = path.read_bytes()
    six = (6).to_bytes(8, "little")
    assert data.count(six) == 1
    path.write_bytes(data.replace(six, (5).to_bytes(8, "little")))
    with pytest.raises(ReportInvalidError, match="looks like this"):
        read_memory(path)
