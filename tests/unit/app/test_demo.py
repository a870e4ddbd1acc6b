"""The tour shows what it claims."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from dalenius.app.cli import build
from dalenius.app.cli.run import run
from dalenius.app.tour import students
from dalenius.app.tour.home import lay_anew
from dalenius.ledger import Ledger, verify
from dalenius.ledger.requests import Claim
from dalenius.samples.students import students as sample


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_tour_spends_a_real_budget_and_compares_four_ways_of_adding_up(tmp_path, capsys):
    assert run(build(), ["demo", "--json", "--quiet"]) == 0
    shown = json.loads(capsys.readouterr().out)
    spending = shown["spending"]
    errors = spending["noise_error"]
    assert spending["counts"] == [1, 10, 100, 1000] and set(errors) == {"basic", "advanced", "zcdp", "pld"}
    assert errors["pld"][3] < errors["zcdp"][3] < errors["advanced"][3] < errors["basic"][3]
    assert all(pld <= min(row[place] for row in errors.values()) * 1.001 for place, pld in enumerate(errors["pld"]))

    students = shown["students"]
    assert [each["epsilon"] for each in students["answers"]] == [0.1, 0.2, 0.4, 0.3]
    for each in students["answers"]:
        for true, private in zip(each["true"], each["private"], strict=True):
            assert abs(private - true) <= 4 * each["noise_error"]  # 7.8 σ: once in 10¹⁴ runs
    assert students["repeat"]["free"] and students["repeat"]["private"] == students["answers"][1]["private"]
    assert students["refusal"]["code"] == "budget.exhausted"
    assert students["refusal"]["fits"]["epsilon"] == students["remaining"]["analyst"]
    found = verify(Ledger.open(tmp_path / ".dalenius-demo"))
    assert found.charges == 4 and found.head == students["verified"]["head"]


def test_people_see_tables_and_charts_and_the_home_is_laid_anew(tmp_path, capsys):
    for _ in range(2):
        assert run(build(), ["demo"]) == 0
        out = capsys.readouterr().out
        assert "1,000 counts" in out and "█" in out and "zCDP" in out
        assert "refused" in out and "for nothing" in out and "holds" in out
    assert (tmp_path / ".dalenius-demo" / "DEMO").is_file()


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


def test_noise_is_that_of_what_was_charged():
    def ask(request, work):
        # a claim taken over from a dead process, charged so much that its noise is 0 all but surely
        return SimpleNamespace(content=work(Claim(1, "me", 2, 1000.0, 0.0)), free=True)

    question = students.QUESTIONS[-1]
    shown = students._asked(SimpleNamespace(ask=ask), question, sample())  # type: ignore[arg-type]
    assert shown.private == shown.true and shown.noise_error == 0
    assert question.mechanism(question.epsilon).noise_error() > 10
