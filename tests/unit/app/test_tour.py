"""The tour shows what it claims."""

import contextlib
import io
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.conftest import LONG
from tests.serving import Client

from dalenius.app.cli import build, run
from dalenius.app.tour import lay_anew
from dalenius.ledger import Ledger, verify
from dalenius.ledger.tokens import Tokens

fromisoformat = datetime.fromisoformat


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def toured(tmp_path_factory):
    """A folder where a demo was before, and what the tour says there."""
    folder = tmp_path_factory.mktemp("toured")
    (lay_anew(folder) / "old").touch()
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(build(), ["demo", "--json", "--quiet"]) == 0
    return folder, json.loads(out.getvalue())


def test_the_tour_asks_a_real_curator_and_compares_four_ways_of_adding_up(toured):
    folder, shown = toured
    spending = shown["spending"]
    errors = spending["noise_error"]
    assert spending["counts"] == [1, 10, 100, 1000] and set(errors) == {"basic", "advanced", "zcdp", "pld"}
    assert errors["pld"][3] < errors["zcdp"][3] < errors["advanced"][3] < errors["basic"][3]
    assert all(pld <= min(row[place] for row in errors.values()) * 1.001 for place, pld in enumerate(errors["pld"]))

    editors, scholarships, regions, shape, again, budget = shown["questions"]
    clipped = 0.04  # of the visits in a region at most: what people have past 25
    for each in (editors, scholarships, regions):
        assert each["charge"]["epsilon"] == each["epsilon"] and not each["free"]
        for row, noise, true in zip(each["rows"], each["noise_error"], each["true"], strict=True):
            for private, error, exact in zip(row[1:], noise[1:], true[1:], strict=True):
                bias = clipped * exact if each is regions else 0
                assert abs(private - exact) <= 4 * error + bias  # 7.8 σ: once in 10¹³ runs
                assert error <= 0.15 * exact  # an answer that is of use
    assert again["free"] and again["charge"]["epsilon"] == 0 and again["rows"] == editors["rows"][:2]
    assert shape["error"]["code"] == "sql.refused" and budget["error"]["code"] == "budget.exhausted"
    assert budget["error"]["fits"]["epsilon"] == shown["remaining"]["visits"]["analyst"]
    found = verify(Ledger.open(folder / ".dalenius-demo"))
    assert found.charges == 3 and found.head == shown["verified"]["head"]


def test_people_see_tables_a_chart_refusals_and_commands_that_work_as_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(build(), ["demo"]) == 0
    out = capsys.readouterr().out
    words = " ".join(out.split())
    assert "█" in out and "true" in words and "made up" in words and "zCDP" in words
    assert (
        words.count("refused:") == 2
        and "free: follows from an earlier answer" in words
        and "The history holds" in words
    )
    assert "left of students: ana ε ≤" in words
    lines = out.splitlines()
    commands = [line for line in lines if line.startswith("dalenius ")]
    assert len(commands) == 5
    assert all(len(line.rstrip()) <= 80 for line in lines if line not in commands)
    for command in commands:
        assert run(build(), shlex.split(command)[1:]) == 0, command
    assert "Traceback" not in capsys.readouterr().err


def test_the_demo_home_is_laid_anew_and_readable_by_its_owner_only(toured):
    home = toured[0] / ".dalenius-demo"
    assert (home / "DEMO").is_file() and not (home / "old").exists()
    assert all(each.stat().st_mode & 0o077 == 0 for each in home.rglob("*"))


def test_a_folder_that_is_no_demo_home_is_never_deleted(tmp_path, capsys):
    (tmp_path / ".dalenius-demo").mkdir()
    (tmp_path / ".dalenius-demo" / "precious").write_text("data")
    assert run(build(), ["demo", "--json"]) == 2
    assert (tmp_path / ".dalenius-demo" / "precious").read_text() == "data"


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_the_demo_home_is_its_owners_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        home = lay_anew(tmp_path)
    finally:
        os.umask(before)
    assert home.stat().st_mode & 0o777 == 0o700 and (home / "DEMO").stat().st_mode & 0o777 == 0o600


class Killed(BaseException):
    pass


@pytest.mark.parametrize("step", ["mkdir", "touch", "chmod", "write_text", "rename"])
@pytest.mark.parametrize("there", [False, True])
def test_a_demo_that_was_killed_can_be_run_again(tmp_path, monkeypatch, step, there):
    if there:
        (lay_anew(tmp_path) / "ledger.sqlite").write_text("old")

    def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Path, step, killed)
        patch.setattr("shutil.rmtree", killed)  # the dead do not tidy up
        with pytest.raises(Killed):
            lay_anew(tmp_path)
    home = lay_anew(tmp_path)
    assert [each.name for each in home.iterdir()] == ["DEMO"]


def test_an_empty_folder_may_be_taken_and_nothing_else(tmp_path, capsys):
    home = tmp_path / ".dalenius-demo"
    home.mkdir(mode=0o755)
    assert lay_anew(tmp_path) == home and home.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in tmp_path.iterdir()] == [home.name]
    (home / "DEMO").unlink()
    home.rename(tmp_path / "elsewhere")
    home.symlink_to(tmp_path / "elsewhere")
    assert run(build(), ["demo", "--json"]) == 2
    home.unlink()
    home.write_text("a file")
    assert run(build(), ["demo", "--json"]) == 2 and home.read_text() == "a file"


def test_a_place_that_cannot_be_written_is_something_missing(tmp_path, monkeypatch, capsys):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.mkdir", refused)  # root may write anywhere
    assert run(build(), ["demo", "--json"]) == 5


def lines_until(process, mark):
    """What a process prints, until a line has ``mark``."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if mark in line:
            return lines
    raise AssertionError("".join(lines))


# In the short form the option with JSON, and the words for people at a terminal.
@pytest.mark.parametrize("how", [*(["--serve"] if LONG else []), "--serve --json", "terminal"])
def test_the_demo_serves_its_tables_until_it_is_stopped(tmp_path, how):
    words = [sys.executable, "-m", "dalenius", "demo", *(how.split() if how != "terminal" else [])]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words,
        stdin=theirs if how == "terminal" else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        if "--json" in how:
            found = json.loads(process.stdout.readline())
            url, tokens = found["url"], found["tokens"]
            assert found["verified"]["entries"] > 0
        else:
            out = lines_until(process, "Stop with Ctrl-C")
            assert any("What the ledger remembers" in line for line in out)
            (url,) = [line.split()[0] for line in out if line.startswith("http")]
            tokens = {line.split()[0]: line.split()[1] for line in out if " dalenius_" in line}
            tokens["analyst"] = tokens.pop("ana")
        client = Client(url, None)
        assert client.get("/healthz").status == 200
        assert set(tokens) == {"analyst", "owner", "auditor"}
        for role, token in tokens.items():
            signed = Client(url, token)
            assert signed.get("/v1/tables").status == 200
            assert signed.get("/v1/ledger").status == (403 if role == "analyst" else 200)
            signed.close()
        client.close()
        given = Tokens(Ledger.open(tmp_path / ".dalenius-demo")).all()
        assert all(fromisoformat(each.expires) - fromisoformat(each.created) <= timedelta(days=1) for each in given)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        os.close(ours)
        os.close(theirs)


def test_without_a_terminal_the_demo_ends(tmp_path):
    words = [sys.executable, "-m", "dalenius", "demo"]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False
    )
    assert done.returncode == 0 and "Try next" in done.stdout and "Ctrl-C" not in done.stdout
