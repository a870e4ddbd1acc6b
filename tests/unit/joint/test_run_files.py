"""What is written down of a run: sealed, whole, once, and gone when its time is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius.errors import InputError
from dalenius.joint import run_files
from dalenius.joint.meeting import new_run_id
from dalenius.joint.run_files import RunFiles

KEY = bytes(range(32))


def test_what_was_written_is_found_again(tmp_path: Path):
    run = new_run_id()
    begun = RunFiles(tmp_path, KEY).begin(run, "terms", "ada")
    files = RunFiles(tmp_path, KEY)
    assert files.find(run) == begun and begun.inputs is None
    brought = files.bring(begun, (3, -(2**59), 0))
    assert RunFiles(tmp_path, KEY).find(run) == brought
    assert list(files.unfinished("terms", "ada")) == [brought]
    assert not list(files.unfinished("terms", "bea")) and not list(files.unfinished("others", "ada"))


def test_inputs_are_written_once(tmp_path: Path):
    files = RunFiles(tmp_path, KEY)
    brought = files.bring(files.begin(new_run_id(), "terms", "ada"), (1,))
    with pytest.raises(RuntimeError):
        files.bring(brought, (2,))


def test_nothing_can_be_read_or_moved_without_the_key(tmp_path: Path):
    run, other = new_run_id(), new_run_id()
    files = RunFiles(tmp_path, KEY)
    files.bring(files.begin(run, "a question", "ada"), (123456789,))
    (file,) = (tmp_path / "runs").iterdir()
    content = file.read_bytes()
    assert b"123456789" not in content and b"a question" not in content
    assert file.stat().st_mode & 0o077 == 0
    file.with_name(f"{other.hex()}.run").write_bytes(content)
    assert files.find(other) is None  # sealed for the run that it is of
    assert RunFiles(tmp_path, bytes(32)).find(run) is None


def test_damaged_or_old_notes_are_no_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files = RunFiles(tmp_path, KEY)
    run, old = new_run_id(), new_run_id()
    for each in (run, old):
        files.begin(each, "terms", "ada")
    file = tmp_path / "runs" / f"{run.hex()}.run"
    file.write_bytes(file.read_bytes()[:-1])
    assert files.find(run) is None
    monkeypatch.setattr(run_files, "WINDOW", -1.0)
    files.sweep()
    assert not list((tmp_path / "runs").iterdir())


def test_one_process_at_a_time_holds_a_run(tmp_path: Path):
    run = new_run_id()
    with RunFiles(tmp_path, KEY).hold(run):
        with pytest.raises(InputError, match="another process"), RunFiles(tmp_path, KEY).hold(run):
            pass
        with RunFiles(tmp_path, KEY).hold(new_run_id()):
            pass
    with RunFiles(tmp_path, KEY).hold(run):
        pass
    assert not list((tmp_path / "runs").iterdir())
