"""`dalenius refresh`, as an owner meets it."""

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.app.cli import build, run

POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 3.0
delta = 1e-6
[analysts.ana]
epsilon = 1.0
[columns.age]
type = "integer"
bounds = [18, 90]
"""
COUNT = ("ask", "SELECT COUNT(*) FROM visits", "--analyst", "ana", "--epsilon", "0.9")


def write(folder, people, name="visits"):
    people = list(people)
    table = pa.table({"user_id": people, "age": [18 + person % 70 for person in people]})
    pq.write_table(table, folder / f"{name}.parquet")


@pytest.fixture
def call(capsys):
    def calling(*words):
        code = run(build(), [*map(str, words)])
        captured = capsys.readouterr()
        return code, " ".join(captured.out.split()), " ".join(captured.err.split())

    return calling


@pytest.fixture
def ask(call):
    def asking(*words):
        code, out, _ = call(*words, "--json")
        return code, json.loads(out)

    return asking


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, call):
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    write(tmp_path, range(3000))
    (tmp_path / "visits.toml").write_text(POLICY)
    assert call("protect", "visits.toml")[0] == 0
    return tmp_path


def test_nothing_to_do(call):
    code, out, _ = call("refresh", "visits")
    assert code == 0 and "visits is as it was; nothing to do (data version 1)" in out


def test_a_refresh_says_what_it_means(call, folder):
    write(folder, range(3100))
    code, out, _ = call("refresh", "visits", "--dry-run")
    assert code == 0 and "Would refresh visits: data version 2" in out
    code, out, err = call("refresh", "visits", "--reason", "more came")
    assert code == 0 and "Refreshed visits: data version 2" in out and "1 rewritten" in out
    assert "charged anew" in out and "covers all data versions together" in out
    assert "in data version 1" in out  # units and rows are those of before
    assert err == "" or "Index" in err
    code, out, _ = call("ledger")
    assert "visits: data version 2 (more came)" in out
    assert call("ledger", "verify")[0] == 0
    assert "in data version 1" in call("tables", "visits")[1]


def test_a_repeat_is_charged_and_the_budget_does_not_come_back(ask, folder):
    assert ask(*COUNT)[0] == 0
    assert ask(*COUNT)[1]["free"]
    write(folder, range(3100))
    assert ask(*COUNT)[1]["error"]["code"] == "source.changed"
    code, done = ask("refresh", "visits")
    assert code == 0 and done["data_version"] == 2 and done["recorded"]
    code, found = ask(*COUNT)
    assert code == 4 and found["error"]["code"] == "budget.exhausted"


def test_finding_limits_again_is_priced_first(call, ask, folder):
    write(folder, range(3100))
    code, done = ask("refresh", "visits", "--find-limits", "--dry-run")
    assert code == 0 and done["search"]["epsilon"] > 0 and not done["recorded"]
    code, out, _ = call("refresh", "visits", "--find-limits", "--dry-run")
    assert "limits will be found privately" in out
    code, out, _ = call("refresh", "visits", "--find-limits")
    assert code == 0 and "limits were found privately" in out and "in data version" not in out


def test_new_people_are_declared_in_full(call, ask, folder):
    assert ask(*COUNT)[0] == 0
    write(folder, range(10_000, 13_000))
    code, out, _ = call("refresh", "visits", "--new-people", "--dry-run")
    assert code == 0 and "needs --yes and --reason" in out and "NEW PEOPLE" in out
    code, found = ask("refresh", "visits", "--new-people")
    assert code == 2 and "--yes and --reason TEXT" in found["error"]["fix"]
    code, found = ask("refresh", "visits", "--new-people", "--yes")
    assert code == 3 and found["error"]["code"] == "policy.not-allowed"
    code, out, _ = call("refresh", "visits", "--new-people", "--yes", "--reason", "the second wave")
    assert code == 0 and "NEW PEOPLE: the budget of visits and all allotments in it start afresh" in out
    assert ask(*COUNT)[0] == 0
    assert "NEW PEOPLE in visits, epoch 1" in call("ledger")[1]
    assert call("ledger", "verify")[0] == 0


def test_new_people_are_asked_for_at_a_terminal(call, folder, monkeypatch):
    write(folder, range(10_000, 13_000))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    answers = []
    monkeypatch.setattr("typer.confirm", lambda words, **_: answers.append(words))
    monkeypatch.setattr("typer.prompt", lambda words, **_: "the second wave")
    code, out, _ = call("refresh", "visits", "--new-people")
    assert code == 0 and "NEW PEOPLE" in out and "afresh" in answers[0]


def test_a_closed_table_is_named(call, ask, folder):
    text = POLICY.replace('name = "visits"', 'name = "orders"\ndataset = "visits"').replace(
        "visits.parquet", "orders.parquet"
    )
    head, rest = text.split("[budget]")
    (folder / "orders.toml").write_text(head + rest[rest.index("[columns.age]") :] + "[contribution]\nrows = 1\n")
    write(folder, range(50), "orders")
    assert call("protect", "orders.toml")[0] == 0
    write(folder, range(10_000, 13_000))
    code, out, _ = call("refresh", "visits", "--new-people", "--yes", "--reason", "the second wave")
    assert code == 0 and "orders is closed to everyone" in out
    assert "orders is closed to everyone" in call("tables")[1]
    assert "is closed" in call("tables", "orders")[1]
    closed = {each["name"]: each["closed"] for each in ask("tables")[1]["tables"]}
    assert closed["visits"] is None and "people" in closed["orders"]
    code, found = ask("ask", "SELECT COUNT(*) FROM orders", "--analyst", "ana", "--epsilon", "0.1")
    assert code == 3 and found["error"]["message"] == "Table 'orders' is closed."


def test_the_burn_down_starts_afresh_with_new_people(ask, folder):
    from dalenius.app.views.burn_down import points
    from dalenius.ledger import Ledger

    assert ask(*COUNT)[0] == 0
    write(folder, range(10_000, 13_000))
    assert ask("refresh", "visits", "--new-people", "--yes", "--reason", "the second wave")[0] == 0
    for name, line in points(Ledger.open(folder / ".dalenius"), "ana").items():
        left = [height for _, height in line]
        assert left[-1] == pytest.approx(left[0]) and min(left) < 0.99 * left[0], name


def test_without_a_home_or_a_table(call, ask, tmp_path, monkeypatch):
    assert ask("refresh", "nobody")[1]["error"]["code"] == "policy.unknown-table"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert call("--home", empty / "none", "refresh", "visits")[0] == 5
