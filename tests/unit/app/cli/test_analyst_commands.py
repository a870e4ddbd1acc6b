"""`dalenius analyst`: who is suspended, and who may go on."""

import json

import pytest

from dalenius.ledger import Budget, Ledger, verify
from dalenius.ledger.suspensions import record_late


@pytest.fixture
def home(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("visits", Budget(3.0, 1e-6))
    ledger.set_allotment("visits", "ana", 1.0)
    ledger.set_allotment("visits", "bob", 1.0)
    return tmp_path / "home"


@pytest.fixture
def call(home, capsys):
    from dalenius.app.cli import build, run

    def called(*arguments):
        code = run(build(), ["analyst", *arguments, "--home", str(home)])
        out = capsys.readouterr()
        return code, out.out, out.err

    return called


def test_an_analyst_is_suspended_and_goes_on_with_a_reason(call, home):
    code, out, _ = call("suspend", "ana", "--reason", "many late answers", "--json")
    found = json.loads(out)
    assert code == 0 and (found["analyst"], found["state"], found["reason"]) == (
        "ana",
        "suspended",
        "many late answers",
    )
    assert found["by"].startswith("cli:")
    assert "suspended" in call("list")[1]
    head = Ledger.open(home).head
    assert call("suspend", "ana", "--reason", "once more")[0] == 0
    assert Ledger.open(home).head == head  # it was already
    code, out, _ = call("resume", "ana", "--reason", "we talked")
    assert code == 0 and "may go on" in out
    assert [each["state"] for each in json.loads(call("list", "--json")[1])["analysts"]] == ["active", "active"]
    verify(Ledger.open(home))


def test_a_data_set_is_for_all(call, home):
    assert call("suspend", "--dataset", "visits", "--reason", "a look first")[0] == 0
    (found,) = json.loads(call("list", "--json")[1])["datasets"]
    assert (found["dataset"], found["state"]) == ("visits", "suspended")
    assert call("resume", "--dataset", "visits", "--reason", "all is well")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("suspend", "ana"),
        ("suspend", "ana", "--reason", "  "),
        ("suspend", "--reason", "who"),
        ("suspend", "ana", "--dataset", "visits", "--reason", "both"),
        ("suspend", "anna", "--reason", "a typing error"),
        ("resume", "--dataset", "orders", "--reason", "unknown"),
    ],
)
def test_mistakes_write_nothing(call, home, arguments):
    head = Ledger.open(home).head
    assert call(*arguments)[0] == 2
    assert Ledger.open(home).head == head


def test_the_list_counts_late_answers_and_lifting_counts_anew(call, home):
    for charge in range(2):
        record_late(Ledger.open(home), charge=charge, analyst="ana", dataset="visits", own=True, most=3)
    record_late(Ledger.open(home), charge=9, analyst="bob", dataset="visits", own=False, most=3)
    found = {each["analyst"]: each for each in json.loads(call("list", "--json")[1])["analysts"]}
    assert (found["ana"]["late"], found["bob"]["late"], found["ana"]["state"]) == (2, 0, "active")
    assert call("resume", "ana", "--reason", "a clean slate")[0] == 0
    found = {each["analyst"]: each for each in json.loads(call("list", "--json")[1])["analysts"]}
    assert found["ana"]["late"] == 0
    assert "curator" not in call("list")[1]


def test_what_was_written_shows_in_the_history_with_its_author(call, home, capsys):
    from dalenius.app.cli import build, run

    call("suspend", "ana", "--reason", "many late answers")
    assert run(build(), ["ledger", "show", "--home", str(home)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "ana is suspended (many late answers), by cli:" in shown


def test_entries_without_an_author_still_hold(home):
    """As earlier releases wrote them."""
    from dalenius.ledger.chain import canonical

    ledger = Ledger.open(home)
    ledger.append("note", {"text": "with one"})
    bare = ledger.anchor.read()
    with ledger.database.writing() as connection:
        entry = ledger.write(
            connection, bare, "allotment", canonical({"dataset": "visits", "analyst": "kim", "epsilon": 1.0})
        )
        connection.execute("INSERT INTO allotments VALUES ('visits', 'kim', 1.0)")
    ledger.anchor.advance(type(bare)(entry.number, entry.hash))
    verify(ledger)
    assert "by" not in list(ledger.records(("allotment",)))[-1].data
