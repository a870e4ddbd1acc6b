"""`dalenius attack`: what it prints, and what it says when something is wrong."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.app.cli import build, run
from dalenius.audit.attacks import MADE_UP_NAMES, NAMES
from dalenius.audit.attacks.attack import counted
from dalenius.audit.targets.curators import Curated
from dalenius.audit.targets.scene import scene_in
from dalenius.audit.targets.target import TargetRefusal

FEW = ("--table", "coins", "--people", "40", "--seed", "3")


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Exit code, stdout, stderr; in an empty folder, 80 columns wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("DALENIUS_HOME", "DALENIUS_SERVER", "DALENIUS_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def called(*words):
        code = run(build(), [*map(str, words)])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return called


@pytest.fixture
def refused(call):
    """What must fail: its error, which is an input's unless said otherwise."""

    def called(*words, code=2):
        got, out, _ = call("attack", *words, "--json")
        error = json.loads(out)["error"]
        assert got == code, error
        assert error["message"] and error["why"] and error["fix"]
        return error

    return called


def test_the_list_names_all_in_full(call):
    code, out, _ = call("attack", "list")
    assert code == 0 and "…" not in out
    assert all(name in out for name in (*NAMES, *MADE_UP_NAMES))
    listed = json.loads(call("attack", "--json")[1])["attacks"]
    assert [each["name"] for each in listed] == [*NAMES, *MADE_UP_NAMES]
    assert all(set(each.get("stopped_by", ())) < set(each["against"]) for each in listed)


def test_one_attack_says_what_it_learned_and_what_that_took(call, tmp_path):
    code, out, _ = call("attack", "differencing", "--against", "plain", *FEW)
    assert code == 0 and "plain fell" in out and "2 questions, nothing is charged" in out
    assert "1 question, " in call("attack", "averaging", "--against", "plain", *FEW)[1]
    code, out, _ = call("attack", "averaging", "--against", "noisy", *FEW, "--json", "--plot", "a.png")
    (found,) = json.loads(out)["findings"]
    assert code == 0 and found["broke"] and found["price"] == found["questions"] > 1
    assert len(found["drawing"]["curves"]) == 2
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert counted(1, "question") == "1 question"


def test_what_noise_does_is_drawn_beside(call, tmp_path):
    code, out, _ = call("attack", "reconstruction", "--against", "plain", *FEW, "--json", "--plot", "r.svg")
    shares = json.loads(out)["by_noise"]["curves"][0]["y"]
    assert code == 0 and shares[0] > 0.9 and shares[-1] < 0.8
    assert "size of the noise" in (tmp_path / "r.svg").read_text()


def test_an_attack_without_a_curve_is_drawn_as_its_verdict(call, tmp_path):
    assert call("attack", "rare-key", "--against", "plain", *FEW, "--plot", "r.svg")[0] == 0
    assert "rare-key" in (tmp_path / "r.svg").read_text()


def test_all_of_them_on_one_target(call, tmp_path):
    code, out, err = call("attack", "all", "--against", "plain", *FEW, "--plot", "all.svg")
    assert code == 0 and "…" not in out and "overlapping-sums" in out and "fell in 2" in out
    assert "Drew all.svg." in err and "overlapping-sums" in (tmp_path / "all.svg").read_text()
    found = json.loads(call("attack", "all", "--against", "plain", *FEW, "--json")[1])["findings"]
    assert {each["target"] for each in found} == {"plain"} and len(found) == 10


def test_an_attack_on_a_table_says_how_often_it_was_right_and_what_stops_it(call, tmp_path):
    code, out, _ = call("attack", "homogeneity", "--seed", "1", "--plot", "h.svg")
    assert code == 0 and "k-anonymous fell" in out and "l-diverse held" in out
    assert "of 1,000 people" in out and "Stopped by: l-diverse." in out and "question" in out
    assert "homogeneity" in (tmp_path / "h.svg").read_text()
    code, out, _ = call("attack", "release-intersection", "--people", "120", "--seed", "1", "--json", "--plot", "r.png")
    found = json.loads(out)
    assert code == 0 and found["stopped_by"] == ["m-invariant"] and "by_noise" not in found
    assert [each["broke"] for each in found["findings"]] == [True, False]
    assert found["findings"][0]["rate"]["of"] == 120 and len(found["findings"][0]["drawing"]["curves"]) == 1
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    (only,) = json.loads(call("attack", "dictionary", "--against", "keyed-hash", "--json")[1])["findings"]
    assert only["target"] == "keyed-hash" and not only["broke"]


def test_an_attack_on_a_table_makes_up_its_own(refused):
    assert "makes up itself" in refused("homogeneity", "--table", "mine.csv")["message"]
    assert "makes up itself" in refused("homogeneity", "--against", "http://127.0.0.1:9")["message"]
    assert "l-diverse" in refused("homogeneity", "--against", "plain")["why"]


def test_the_scorecard_has_tables_beside_questions(tmp_path):
    from dalenius.audit.attacks.attack import Finding, Rate
    from dalenius.audit.attacks.drawing import draw_scorecard

    asked = Finding("averaging", "plain", True, "", 3, None)
    table = Finding("homogeneity", "k-anonymous", True, "", 0, None, rate=Rate(1, 4))
    draw_scorecard([asked, table], tmp_path / "both.svg")
    text = (tmp_path / "both.svg").read_text()
    assert "fell in 3" in text and "1 of 4" in text and "fell in 0" not in text


def test_counterexamples(call):
    code, out, _ = call("attack", "counterexamples", "--seed", "1")
    assert code == 0 and "Looks private" in out
    assert len(json.loads(call("attack", "counterexamples", "--json")[1])["counterexamples"]) == 4


def test_what_is_not_there(refused):
    assert "averaging" in refused("averagin")["fix"]
    assert "plain" in refused("averaging", "--against", "nois")["why"]
    assert "made for" in refused("race", "--against", "plain", *FEW)["why"]
    refused("averaging", "--table", "nowhere.csv")


@pytest.mark.parametrize("words", [("--total", "0"), ("--epsilon", "-1"), ("--epsilon", "nan"), ("--total", "inf")])
def test_odd_prices(refused, words):
    assert "price" in refused("averaging", *FEW, *words)["message"]


@pytest.mark.parametrize("people", ["0", "-1", "3"])
@pytest.mark.parametrize("table", ["students", "coins", "people.csv"])
def test_too_few_people(refused, tmp_path, table, people):
    (tmp_path / "people.csv").write_text("secret,amount\n" + "1,5\n0,6\n" * 50)
    assert "people" in refused("averaging", "--table", table, "--people", people)["message"]


def test_a_picture_that_cannot_be_drawn_is_named_before_anything_is_asked(refused):
    refused("averaging", *FEW, "--plot", "a.docx")
    assert "folder" in refused("averaging", *FEW, "--plot", "nowhere/a.png", code=5)["message"]


def test_files_without_a_secret(refused, tmp_path):
    (tmp_path / "words.csv").write_text("name,street\n" + "".join(f"n{at},s{at}\n" for at in range(50)))
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "broken.parquet").write_text("no parquet")
    assert "could be a secret" in refused("averaging", "--table", "words.csv")["message"]
    assert "cannot be a secret" in refused("averaging", "--table", "words.csv", "--secret", "name")["message"]
    assert "no column 'x'" in refused("averaging", "--table", "words.csv", "--secret", "x")["message"]
    for file in ("empty.csv", "broken.parquet"):
        assert "cannot be read" in refused("averaging", "--table", file)["message"]


def test_any_table_has_a_secret_in_its_own_words(tmp_path):
    people = pa.table({"age": np.arange(40), "smokes": ["it's", "no"] * 20, "old": [True, False] * 20})
    pq.write_table(people, tmp_path / "people.parquet")
    found = {each: scene_in(tmp_path / "people.parquet", each, None, None) for each in ("age", "smokes", "old")}
    assert [each.secret_sql for each in found.values()] == ['"age" > 19.5', "\"smokes\" = 'no'", '"old"']
    assert found["smokes"].secret.sum() == 20 and found["age"].secret[-1] and found["old"].amount_sql == '"age"'


def test_a_target_that_refuses_everything_ends_every_attack(call, monkeypatch):
    def refusing(*_):
        raise TargetRefusal("No.", final=True)

    monkeypatch.setattr(Curated, "answer", refusing)
    monkeypatch.setattr(Curated, "count_words", refusing)
    code, out, _ = call("attack", "all", "--against", "dalenius", *FEW, "--json")
    found = json.loads(out)["findings"]
    assert code == 0 and len(found) == len(NAMES)
    for each in found:
        assert not each["broke"] and each["price"] == 0, each
        assert each["ended"] == "No." or each["attack"] == "race"  # which only counts who passes


def test_a_server_needs_the_rows_and_a_token(refused, tmp_path):
    (tmp_path / "rows.csv").write_text("person,secret\n" + "".join(f"{at},{at % 2}\n" for at in range(40)))
    there = ("--against", "http://127.0.0.1:9", "--table", "t")
    assert "--truth" in refused("averaging", *there)["message"]
    assert "not for servers" in refused("collusion", *there, "--truth", "rows.csv")["message"]
    refused("averaging", *there, "--truth", "rows.csv", code=3)


def test_a_server_that_is_down(refused, tmp_path, monkeypatch):
    monkeypatch.setenv("DALENIUS_TOKEN", "dalenius_0123456789ab_" + "x" * 43)
    (tmp_path / "rows.csv").write_text("person,secret\n" + "".join(f"{at},{at % 2}\n" for at in range(40)))
    refused("averaging", "--against", "http://127.0.0.1:9", "--table", "t", "--truth", "rows.csv", "--yes", code=5)
