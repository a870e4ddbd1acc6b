"""The tour shows what it claims."""

import json

import pytest

from dalenius.app.cli import build
from dalenius.app.cli.run import run
from dalenius.ledger import Ledger, verify


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
