"""`dalenius joint` and `dalenius party`, as newcomers meet them: three homes, real processes, and what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dalenius.app.cli import build, run
from dalenius.joint.rehearsal import lay, waiting

NAMES = ("clinic", "lab", "registry")


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DALENIUS_HOME", raising=False)

    def calling(*words):
        code = run(build(), [*map(str, words)])
        captured = capsys.readouterr()
        return code, " ".join(captured.out.split()), " ".join(captured.err.split())

    return calling


@pytest.fixture
def three(tmp_path):
    return lay(tmp_path, NAMES)


def test_a_home_becomes_a_party_and_takes_in_cards(call, tmp_path):
    for at, name in enumerate(NAMES):
        code, out, _ = call("--home", tmp_path / name, "joint", "init", name, "--address", f"127.0.0.1:{9400 + at}")
        assert code == 0 and f"'{name}' is a party now" in out and "Fingerprint" in out
    for name in NAMES[1:]:
        code, out, _ = call("--home", tmp_path / "clinic", "joint", "add", f"{name}.toml")
        assert code == 0 and f"'{name}' at 127.0.0.1" in out
    code, out, _ = call("--home", tmp_path / "clinic", "joint", "parties", "--json")
    listed = json.loads(out)
    assert listed["me"] == "clinic" and [each["party"] for each in listed["parties"]] == list(NAMES)
    code, out, _ = call("--home", tmp_path / "clinic", "joint", "parties")
    assert all(each["fingerprint"] in out for each in listed["parties"]) and "(this one)" in out


def test_what_is_wrong_with_cards_is_told(call, three, tmp_path):
    home = ("--home", tmp_path / "clinic")
    assert call(*home, "joint", "add", "absent.toml")[0] == 5
    (tmp_path / "odd.toml").write_text("name = 'lab'\n")
    code, _, err = call(*home, "joint", "add", "odd.toml")
    assert code == 2 and "no party's card" in err
    assert call("--home", tmp_path / "new", "joint", "init", "lab", "-o", "lab.toml")[0] == 0
    code, _, err = call(*home, "joint", "add", "lab.toml")
    assert code == 2 and "another card already" in err and "telephone" not in err and "Compare fingerprints" in err
    assert call(*home, "joint", "add", "lab.toml", "--yes")[0] == 0
    code, _, err = call("--home", tmp_path / "new", "joint", "init", "lab", "-o", "other.toml")
    assert code == 2 and "party already" in err
    assert call("--home", tmp_path / "x", "joint", "init", "Lab 2")[0] == 2
    assert call("--home", tmp_path / "x", "joint", "init", "lab", "--address", "nowhere", "-o", "x.toml")[0] == 2
    (tmp_path / "x").mkdir()
    code, _, err = call("--home", tmp_path / "x", "party")
    assert code == 5 and "no party yet" in err and "joint init" in err


def test_what_is_wrong_with_a_call_is_told(call, three, tmp_path):
    home = ("--home", tmp_path / "clinic")
    code, _, err = call(*home, "joint", "trial", "--with", "nobody,lab")
    assert code == 2 and "'nobody' is no partner" in err and "lab, registry" in err
    code, _, err = call(*home, "joint", "trial", "--with", "lab,lab")
    assert code == 2 and "named twice" in err
    assert call(*home, "joint", "trial", "--with", ",")[0] == 2
    assert call(*home, "joint", "trial", "--with", "lab,registry", "--threshold", 3)[0] == 2
    code, _, err = call(*home, "joint", "trial", "--with", "lab,registry", "--patience", 1)
    assert code == 5 and "'lab' is gone" in err and "Nobody at 127.0.0.1" in err and "address is right" in err
    code, _, err = call(*home, "joint", "auction", "beets", "--with", "lab,registry", "--prices", 3)
    assert code == 5 and "joint/auctions/beets/bids" in err


@pytest.mark.integration
def test_three_processes_meet_and_one_that_is_killed_is_named(call, three, tmp_path):
    with waiting(three[1:]) as processes:
        code, out, _ = call("--home", tmp_path / "clinic", "joint", "trial", "--with", "lab,registry")
        assert code == 0 and "All 3 parties met: clinic, lab, registry." in out
        assert "1 of 3 parties together learn nothing else" in out and "not whose it is" in out
        code, out, _ = call("--home", tmp_path / "clinic", "joint", "trial", "--with", "lab", "--threshold", 1)
        assert code == 0 and "sums only" in out
        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        words = ("joint", "trial", "--with", "lab,registry", "--patience", 1)
        code, _, err = call("--home", tmp_path / "clinic", *words)
        assert code == 5 and "'lab' is gone" in err


@pytest.mark.integration
def test_a_party_ends_quietly_and_says_what_it_did(three, tmp_path):
    command = [sys.executable, "-m", "dalenius", "--home", str(tmp_path / "lab"), "party"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"}
    )
    assert process.stdout is not None
    assert "'lab' waits for calls at 127.0.0.1" in process.stdout.readline()
    process.terminate()
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0 and "Traceback" not in err


@pytest.mark.integration
def test_the_demonstration_finds_the_price_of_made_up_bids(call):
    code, out, _ = call("joint", "demo", "--bidders", 20, "--prices", 40, "--json")
    found = json.loads(out)
    assert code == 0 and found["price"] == found["openly"] and found["counted"] == 20
    assert found["amount"] == found["bid"]
    code, out, _ = call("joint", "demo", "--bidders", 5, "--prices", 8, "--plot", "market.svg")
    assert code == 0 and ("clears at price number" in out or "No price clears" in out)
    assert Path("market.svg").read_text().count("demand")


@pytest.mark.integration
def test_an_auction_in_files(call, three, tmp_path):
    curves = {"ann": (9, 4, 0), "bo": (0, -2, -8), "cy": (3, 0, -1)}
    servers = ",".join(str(each.folder / "me.toml") for each in three)
    for name, curve in curves.items():
        (tmp_path / f"{name}.csv").write_text(
            "price,amount\n" + "".join(f"{at},{each}\n" for at, each in enumerate(curve))
        )
        words = ("joint", "bid", f"{name}.csv", "--auction", "beets", "--servers", servers, "-o", f"{name}.bid")
        code, out, _ = call(*words)
        assert code == 0 and f"Keep {name}.key" in out
        assert call(*words)[0] == 2  # it is there already
        for party in three:
            folder = party.folder / "auctions" / "beets" / "bids"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.bid").write_bytes((tmp_path / f"{name}.bid").read_bytes())
    with waiting(three[1:]):
        asked = ("joint", "auction", "beets", "--with", "lab,registry", "--prices", 3)
        code, out, _ = call("--home", tmp_path / "clinic", *asked)
        assert code == 0 and "clears at price number 2." in out and "3 of 3 bids counted" in out
    for name, told in (("ann", "You neither buy nor sell."), ("bo", "You sell 8."), ("cy", "You sell 1.")):
        answers = [each.folder / "auctions" / "beets" / "amounts" / f"{name}.amount" for each in three]
        code, out, _ = call("joint", "amount", f"{name}.key", *answers)
        assert code == 0 and told in out
        code, _, err = call("joint", "amount", f"{name}.key", answers[0])
        assert code == 2 and "cannot be opened" in err
