"""`dalenius joint ask`, as a newcomer meets it: what goes wrong before anything is charged, and an answer."""

from __future__ import annotations

import json

import pytest
from tests.together import charges, hospitals

from dalenius.app.cli import build, run
from dalenius.joint.rehearsal import waiting

COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DALENIUS_HOME", raising=False)

    def calling(*words):
        code = run(build(), [*map(str, words)])
        captured = capsys.readouterr()
        return code, " ".join(captured.out.split()), " ".join(captured.err.split())

    return calling


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    return hospitals(tmp_path_factory.mktemp("three"), people=12)


def asking(home, *words):
    given = {"--with": "lab,registry", "--epsilon": "0.5", "--patience": "1"}
    options = dict(zip(words[::2], words[1::2], strict=True))
    return ("--home", home, "joint", "ask", COUNT, *(each for pair in (given | options).items() for each in pair))


@pytest.mark.parametrize(
    ("words", "exit_code", "told"),
    [
        (("--with", "nobody"), 2, "'nobody' is no partner"),
        (("--with", "lab,lab"), 2, "named twice"),
        (("--with", "clinic"), 2, "named twice"),
        (("--epsilon", "0"), 2, "epsilon"),
        (("--epsilon", "41"), 4, "no ε = 41 left"),
        (("--threshold", "3"), 2, "does not fit 3 parties"),
        (("--confidence", "2"), 2, "confidence"),
        ((), 5, "'lab' is gone"),
    ],
)
def test_what_is_wrong_with_a_question_is_told_and_nobody_pays(call, three, words, exit_code, told):
    code, out, err = call(*asking(three[0].home, *words))
    assert (code, out) == (exit_code, "") and told in err, err
    assert "No budget was spent." in err
    assert [charges(each) for each in three] == [[], [], []]


def test_a_missing_key_is_told_with_what_to_do(call, tmp_path):
    (clinic, *_) = hospitals(tmp_path, people=3)
    (clinic.home / "joint" / "tls.key").unlink()
    code, _, err = call(*asking(clinic.home))
    assert code == 5 and "key is missing or damaged" in err and "joint init" in err
    assert charges(clinic) == []


def test_who_asks_where_nothing_is_named_hears_that_joint_is_nobody(call, three):
    code, _, err = call("--home", three[0].home, "ask", COUNT, "--epsilon", "0.5")
    assert code == 2 and "Nobody may ask yet" in err


@pytest.mark.integration
def test_three_processes_give_one_answer_and_say_what_it_is_worth(call, three):
    with waiting([each.party for each in three[1:]]):
        code, out, _ = call(*asking(three[0].home, "--patience", "20"))
        assert code == 0 and "north" in out and "charged ε = 0.5" in out
        assert "each charged its own ledger" in out and "towards 1 of 3 parties together" in out
        code, out, _ = call(*asking(three[0].home, "--patience", "20"), "--json")
        found = json.loads(out)
        assert code == 0 and found["free"] and found["parties"] == ["clinic", "lab", "registry"]
        assert found["guarantee"]["epsilon"] == 0.5 and found["threshold"] == 1
        code, out, _ = call(*asking(three[0].home, "--with", "lab", "--patience", "20"))
        assert code == 0 and "A wrong share is not noticed" in out
    assert [len(charges(each)) for each in three] == [2, 2, 1]
    code, out, _ = call("--home", three[1].home, "ledger", "verify")
    assert code == 0
    release = three[1].curator.releases()[-1]
    assert release.kind == "joint" and release.analyst == "joint"
