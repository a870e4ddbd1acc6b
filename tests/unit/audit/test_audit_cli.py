"""`dalenius audit mechanism` on the command line."""

from __future__ import annotations

import json

import pytest

from dalenius.app.cli import build, run


def call(capsys, *words):
    code = run(build(), ["audit", *words])
    taken = capsys.readouterr()
    return code, taken.out, taken.err


def test_a_broken_claim_is_said_in_plain_words_and_exits_with_6(capsys, tmp_path):
    target = tmp_path / "curve.png"
    code, out, _ = call(capsys, "mechanism", "float-laplace", "--samples", "20000", "--plot", str(target))
    assert code == 6
    assert "The claim is broken" in out and "lowest bit" in out and "99.9%" in out
    assert target.read_bytes().startswith(b"\x89PNG")


def test_json_has_claim_bound_and_verdict(capsys):
    code, out, _ = call(capsys, "mechanism", "laplace", "--samples", "4000", "--epsilon", "0.5", "--json")
    found = json.loads(out)
    assert code == 0 and found["broken"] is False
    assert 0 <= found["epsilon"] <= found["claimed"] == 0.5 and found["samples"] == 4000


def test_all_mechanisms_are_listed(capsys):
    from dalenius.audit.mechanisms import BROKEN, OURS

    code, out, _ = call(capsys, "mechanism", "list", "--json")
    listed = json.loads(out)["mechanisms"]
    assert code == 0 and {each["name"] for each in listed if each["ours"]} == set(OURS)
    assert {each["name"] for each in listed if each["wrong"]} == set(BROKEN)


@pytest.mark.parametrize(
    "words",
    [
        ["nothing"],
        ["laplace", "--samples", "3"],
        ["laplace", "--confidence", "2"],
        ["laplace", "--epsilon", "-1"],
        ["laplace", "--epsilon", "nan"],
        ["laplace", "--samples", "2000", "--delta", "2"],
        ["laplace", "--plot", "curve.pdf"],
    ],
)
def test_bad_options_are_refused_without_a_traceback(words, capsys):
    code, out, err = call(capsys, "mechanism", *words)
    assert code == 2 and out == "" and "Traceback" not in err and "what to do" in err
