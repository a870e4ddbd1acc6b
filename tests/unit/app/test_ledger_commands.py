"""`dalenius ledger` and `dalenius budget`, as a user meets them."""

import json
import shutil

import pytest

from dalenius.accounting.events import Zcdp
from dalenius.app.cli import build
from dalenius.app.cli.run import run
from dalenius.ledger import Budget, Ledger, Request


@pytest.fixture
def home(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("students", Budget(1.0, 1e-6, unit="student_id"))
    ledger.set_allotment("students", "ana", 0.8)
    answered = ledger.ask(Request("students", "ana", "count", 0.5, Zcdp(0.01)), lambda claim: b"42")
    (tmp_path / "receipt.json").write_text(json.dumps(answered.receipt.to_dict()))
    ledger.database.close()
    return ledger.home


@pytest.fixture
def call(home, capsys):
    def calling(*words):
        code = run(build(), [*map(str, words), "--home", str(home)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return calling


def test_show_lists_entries_balances_and_the_head(call, home):
    for words in (("ledger",), ("ledger", "show")):
        code, out, _ = call(*words, "--json")
        shown = json.loads(out)
        assert code == 0
        assert [entry["kind"] for entry in shown["entries"]] == ["ledger", "budget", "allotment", "charge", "answer"]
        assert shown["count"] == 5 and len(shown["head"]) == 64
        assert set(shown["datasets"]["students"]["groups"]) == {"2", "5", "10"}
    code, out, _ = call("ledger")
    assert code == 0 and "ana asked students with ε = 0.5" in out and "groups of 2" in out
    code, out, _ = call("ledger", "show", "--last", "1", "--json")
    assert [entry["number"] for entry in json.loads(out)["entries"]] == [5]


def test_budget_says_what_is_left_and_what_it_buys(call):
    code, out, _ = call("budget", "--json")
    students = json.loads(out)["datasets"]["students"]
    assert code == 0
    assert students["analysts"]["ana"]["remaining"]["epsilon"] < students["dataset"]["remaining"]["epsilon"] < 1
    code, out, _ = call("budget", "--analyst", "ana")
    assert code == 0 and "of ε = 0.05" in out
    code, out, _ = call("budget", "--analyst", "eve", "--json")
    assert code == 3 and json.loads(out)["error"]["code"] == "policy.not-allowed"


@pytest.mark.parametrize("command", ["budget", "ledger show"])
def test_burn_down_is_drawn(call, tmp_path, command):
    code, _, _ = call(*command.split(), "--plot", tmp_path / "burn.svg")
    assert code == 0 and "<svg" in (tmp_path / "burn.svg").read_text()


def test_verify_holds_and_fits_receipts_and_heads(call, tmp_path):
    code, out, _ = call("ledger", "verify", tmp_path / "receipt.json", "--json")
    found = json.loads(out)
    assert code == 0 and found["verified"] and found["receipts"] == 1
    code, out, _ = call("ledger", "verify", "--expect", found["head"])
    assert code == 0 and "holds" in out
    code, out, _ = call("ledger", "verify", "--expect", "0" * 64, "--json")
    assert code == 6 and json.loads(out)["error"]["code"] == "ledger.corrupt"


def test_a_receipt_is_checked_with_the_public_key_alone(call, home, tmp_path, capsys):
    receipt = tmp_path / "receipt.json"
    assert call("ledger", "receipt", receipt)[0] == 0
    key = tmp_path / "owner.pub"
    shutil.copy(home / "keys" / "signing.pub", key)
    shutil.rmtree(home)
    assert run(build(), ["ledger", "receipt", str(receipt), "--public-key", str(key)]) == 0
    assert "genuine" in capsys.readouterr().out
    data = json.loads(receipt.read_text())
    for name, value in (("analyst", "bob"), ("release", "0" * 64), ("charge", {}), ("signature", "AAAA")):
        receipt.write_text(json.dumps(data | {name: value}))
        assert run(build(), ["ledger", "receipt", str(receipt), "--public-key", str(key), "--json"]) == 6, name
        assert json.loads(capsys.readouterr().out)["error"]["code"] == "ledger.corrupt"
    receipt.write_text("{}")
    assert run(build(), ["ledger", "receipt", str(receipt), "--public-key", str(key), "--json"]) == 2


def test_a_home_without_a_ledger_is_something_missing(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for words in (["ledger"], ["ledger", "verify"], ["budget"]):
        assert run(build(), [*words, "--home", str(tmp_path / "empty"), "--json"]) == 5
        assert json.loads(capsys.readouterr().out)["error"]["code"] == "ledger.unavailable"


def test_a_changed_ledger_fails_every_command(call, home):
    import sqlite3

    connection = sqlite3.connect(home / "ledger.sqlite", isolation_level=None)
    connection.execute("DELETE FROM entries WHERE number = 5")
    connection.close()
    for words in (("ledger",), ("ledger", "verify"), ("budget",)):
        code, out, _ = call(*words, "--json")
        assert code == 6 and json.loads(out)["error"]["code"] == "ledger.corrupt"
