"""`dalenius ledger` and `dalenius budget`, as a user meets them."""

import json
import os
import re
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from dalenius.accounting.events import Laplace, Zcdp
from dalenius.app.cli import build, run
from dalenius.app.views import burn_down
from dalenius.app.views.balances import SpentFilter, what_it_buys
from dalenius.app.views.burn_down import LineName, points, visible_lines
from dalenius.ledger import Budget, Ledger, Request
from dalenius.ledger.budgets import Accounting


@pytest.fixture
def home(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("students", Budget(1.0, 1e-6, unit="student_id"))
    ledger.set_allotment("students", "ana", 0.8)
    answered = ledger.ask(Request("students", "ana", "count", 0.5, Zcdp(1e-9)), lambda claim: b"42")
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
        students = shown["datasets"]["students"]
        assert set(students["dataset"]["groups"]) == {"2", "5", "10"} and students["analysts"]["ana"]["charges"] == 1
    code, out, _ = call("ledger")
    assert code == 0 and "ana asked students with ε = 0.5" in out and "groups of 2" in out
    assert "students, ana" in out
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


def test_budget_says_how_many_questions_can_still_find_their_keys(call, home):
    _, out, _ = call("budget", "--json")
    students = json.loads(out)["datasets"]["students"]
    whole, own = students["dataset"], students["analysts"]["ana"]
    counts = {each["epsilon"]: each["questions"] for each in whole["finding_keys"]}
    assert list(counts) == [0.05, 0.2, 0.5] and counts[0.05] > 100 > counts[0.2] > counts[0.5] > 0
    pairs = zip(own["finding_keys"], whole["finding_keys"], strict=True)
    assert all(one["questions"] <= other["questions"] for one, other in pairs)
    _, out, _ = call("budget", "--analyst", "ana")
    words = " ".join(out.split())
    assert f"of questions that find their keys, about {counts[0.05]:,} of ε = 0.05" in words
    assert "δ ≤ 5e-07 is left for them" in words
    Ledger.open(home).charge(Request("students", "ana", "keys", 0.01, Zcdp(1e-9, 4.999e-7), delta=4.999e-7))
    _, out, _ = call("budget", "--analyst", "ana", "--json")
    gone = json.loads(out)["datasets"]["students"]["dataset"]
    assert [each["questions"] for each in gone["finding_keys"]] == [0, 0, 0]
    assert "no more questions of usual size that find their keys" in " ".join(call("budget")[1].split())


def test_a_pure_budget_counts_none_that_find_their_keys(tmp_path, call, home):
    Ledger.open(home).set_budget("pure", Budget(1.0, accounting=Accounting.PURE))
    _, out, _ = call("budget", "--json")
    pure = json.loads(out)["datasets"]["pure"]["dataset"]
    assert pure["finding_keys"] is None and pure["selection"] is None
    assert call("budget")[1].count("find their keys") == 2  # of the students, all and ana


def test_budget_says_why_spent_and_left_do_not_add_up_where_rho_does(call, home):
    said = "do not add up to the budget in ε: losses are added up in ρ"
    assert " ".join(call("budget")[1].split()).count(said) == 1


def test_a_pure_budget_adds_up_and_needs_no_explanation(tmp_path, capsys):
    ledger = Ledger.create(tmp_path / "pure")
    ledger.set_budget("pure", Budget(3.0, accounting=Accounting.PURE))
    ledger.set_allotment("pure", "ana", 1.0)
    ledger.ask(Request("pure", "ana", "count", 0.5, Laplace(10.0)), lambda claim: b"42")
    ledger.database.close()
    assert run(build(), ["budget", "--home", str(tmp_path / "pure")]) == 0
    assert "add up" not in capsys.readouterr().out


def test_groups_to_whom_nothing_is_promised_have_no_bound(tmp_path, capsys):
    ledger = Ledger.create(tmp_path / "wide")
    ledger.set_budget("wide", Budget(40.0, 1e-6))
    ledger.set_allotment("wide", "ana", 40.0)
    ledger.ask(Request("wide", "ana", "keys", 10.0, Zcdp(1e-9, 1e-7), 1e-7), lambda claim: b"42")
    ledger.database.close()
    assert run(build(), ["budget", "--home", str(tmp_path / "wide")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "10: no bound (no bound: nothing is promised to so many together)" in said and "none" not in said


def test_what_is_counted_at_a_server_is_what_its_json_says(home):
    """The client counts from the balances that it got."""
    from dalenius.app.views.balances import balances_json, totals, totals_of

    found = balances_json(totals(Ledger.open(home)))
    assert balances_json(totals_of(json.loads(json.dumps(found)))) == found


@pytest.mark.parametrize("command", ["budget", "ledger show"])
def test_burn_down_is_drawn(call, tmp_path, command):
    code, _, _ = call(*command.split(), "--plot", tmp_path / "burn.svg")
    assert code == 0 and "<svg" in (tmp_path / "burn.svg").read_text()


def test_ledger_without_show_takes_the_options_of_show(call, tmp_path):
    code, out, _ = call("ledger", "--last", "1", "--plot", tmp_path / "burn.png", "--json")
    assert code == 0 and [entry["number"] for entry in json.loads(out)["entries"]] == [5]
    assert (tmp_path / "burn.png").is_file()
    code, out, _ = call("ledger", "--last", "1", "verify", "--json")  # never swallowed unseen
    assert code == 2 and "--last" in json.loads(out)["error"]["message"]


def _shown_left(out):
    return [float(each) for each in re.findall(r"left: one question of ε ≤ (\S+?)[,\s]", out.replace("\n", " "))]


def test_what_is_shown_as_left_passes_when_typed(call, home):
    ledger = Ledger.open(home)
    ledger.set_allotment("students", "bob", 1.0)
    for number in range(6):
        left = _shown_left(call("budget", "--analyst", "bob")[1])[-1]
        assert 0 < left <= ledger.balance("students", "bob").remaining_epsilon  # also of what ana has left him
        spent = left if number % 2 else left / 3
        ledger.charge(Request("students", "bob", f"question {number}", spent, Zcdp(1e-12)))
    ledger.set_budget("pure", Budget(0.3, accounting=Accounting.PURE))
    ledger.set_allotment("pure", "ana", 0.3)
    for number in range(2):
        ledger.charge(Request("pure", "ana", f"question {number}", 0.1, Laplace(100)))
    assert ledger.balance("pure").remaining_epsilon < 0.1  # 0.3 is a little less than three times 0.1
    assert 0.099 < _shown_left(call("budget")[1])[0] < 0.1


def test_what_it_buys_is_what_the_filter_lets_pass():
    for budget in (
        Budget(0.31, 1e-6),
        Budget(3.0, accounting=Accounting.PURE),
        Budget(0.2, accounting=Accounting.PURE),
    ):
        for epsilon, count in what_it_buys(budget, [SpentFilter(budget.epsilon, (0, 0))]).items():
            guard, passed = budget.filter(), 0
            while guard.admits(guard.price(epsilon)):
                guard.charge(guard.price(epsilon))
                passed += 1
            assert count == passed
    pure = Budget(3.0, accounting=Accounting.PURE)
    assert what_it_buys(pure, [SpentFilter(3.0, (0, 0))])[0.05] == 59
    spent = pure.filter()
    spent.charge(spent.price(2.0))
    assert what_it_buys(pure, [SpentFilter(3.0, spent.units), SpentFilter(1.5, (0, 0))])[0.5] == 2
    assert what_it_buys(pure, [SpentFilter(1.0, spent.units)]) == {0.05: 0, 0.2: 0, 0.5: 0}
    assert what_it_buys(pure, [SpentFilter(1e6, (0, 0))])[0.2] == 4_999_999
    assert what_it_buys(Budget(1e6, 1e-6), [SpentFilter(1e6, (0, 0))])[0.05] > 10**9


def test_an_untouched_allotment_buys_a_question_of_its_size(call, home):
    Ledger.open(home).set_allotment("students", "bob", 0.5)
    shown = " ".join(call("budget", "--analyst", "bob")[1].split()).rsplit("students, bob", 1)[1]
    assert "left: one question of ε ≤ 0.5, or" in shown and "1 of ε = 0.5" in shown


@pytest.fixture
def monthly(home):
    ledger = Ledger.open(home)
    ledger.set_budget("visits", Budget(2.0, 1e-6, period="month"))
    ledger.set_allotment("visits", "ana", 1.0)
    return ledger


def _ask(ledger, analyst, key, *periods, epsilon=0.5):
    return ledger.ask(Request("visits", analyst, key, epsilon, Zcdp(1e-4), periods=periods), lambda claim: b"1")


def test_periods_have_a_place_of_their_own_that_no_name_can_take(call, monthly):
    monthly.set_budget("visits 2025-01", Budget(9.0, 1e-6))
    assert set(json.loads(call("budget", "--json")[1])["datasets"]["visits"]["periods"]) == {""}
    _ask(monthly, "ana", "both", "2025-01", "2025-02")
    for command in ("budget", "ledger"):
        found = json.loads(call(command, "--json")[1])["datasets"]
        assert set(found["visits"]) == {"periods", "published"} and set(found["visits"]["periods"]) == {
            "2025-01",
            "2025-02",
        }
        january = found["visits"]["periods"]["2025-01"]
        assert january["dataset"]["epsilon"] == 2.0 and january["analysts"]["ana"]["charges"] == 1
        assert found["visits 2025-01"]["dataset"]["epsilon"] == 9.0
        out = call(command)[1]
        assert "visits, month 2025-01, ana" in out and "visits, month 2025-02" in out


def test_of_many_periods_the_last_are_shown_and_it_says_so(call, monthly):
    months = [f"2025-{month:02}" for month in range(1, 13)]
    _ask(monthly, "ana", "year", *months)
    for command in ("budget", "ledger"):
        out = " ".join(call(command)[1].split())
        assert "the last 6 of 12 periods" in out and "month 2025-07" in out and "month 2025-06" not in out
        assert set(json.loads(call(command, "--json")[1])["datasets"]["visits"]["periods"]) == set(months)


def test_text_of_entries_is_shown_as_it_is_and_commands_nothing(call, home):
    ledger = Ledger.open(home)
    ledger.record("note", {"text": "[/foo] [red]hidden[/red] [link=x]"})
    ledger.record("note", {"text": "\x1b[2J\x07 wiped \u202e"})
    ledger.record("policy", {"text": "neither table nor version"})
    code, out, _ = call("ledger")
    words = " ".join(out.split())
    assert code == 0 and "[/foo] [red]hidden[/red] [link=x]" in words and "neither table nor version" in words
    assert "wiped" in words and not {"\x1b", "\x07", "\u202e"} & set(out)


def test_text_of_receipts_is_shown_as_it_is(call, home, tmp_path):
    ledger = Ledger.open(home)
    ledger.set_allotment("students", "[/foo]", 0.3)
    answered = ledger.ask(Request("students", "[/foo]", "x", 0.1, Zcdp(1e-5)), lambda claim: b"1")
    (tmp_path / "odd.json").write_text(json.dumps(answered.receipt.to_dict()))
    code, out, _ = call("ledger", "receipt", tmp_path / "odd.json")
    assert code == 0 and "[/foo]" in out and "ε = 0.1, δ = 0" in out


def test_burn_down_of_a_data_set_starts_full_and_is_carried_to_now(home):
    ledger = Ledger.open(home)
    ledger.set_budget("idle", Budget(2.0, 1e-6))
    now = datetime.now(UTC) + timedelta(hours=1)
    lines = points(ledger, now=now)
    assert set(lines) == {("students", "", ""), ("idle", "", "")}
    students, idle = ([left for _, left in line] for line in lines.values())
    assert students == pytest.approx([1.0, students[1], students[1]]) and students[1] < 1
    assert idle == pytest.approx([2.0, 2.0])
    assert all(line[-1][0] == now for line in lines.values())
    assert all(line == sorted(line, key=lambda each: each[0]) for line in lines.values())


def test_burn_down_of_periods_starts_full_and_shows_raises(monthly):
    assert ("visits", "each month", "") in points(monthly)
    _ask(monthly, "ana", "january", "2025-01")
    monthly.set_budget("visits", Budget(3.0, 1e-6, period="month"))
    _ask(monthly, "ana", "february", "2025-02")
    lines = {name: [left for _, left in line] for name, line in points(monthly).items() if name.dataset == "visits"}
    assert set(lines) == {("visits", "2025-01", ""), ("visits", "2025-02", "")}
    full, less, raised, now = lines[LineName("visits", "2025-01", "")]
    assert full == pytest.approx(2.0) and less < 2 < raised < 3 and now == raised
    assert lines[LineName("visits", "2025-02", "")] == pytest.approx([2.0, 3.0, raised, raised])


def test_burn_down_of_an_analyst_counts_what_the_data_set_has_left(home):
    ledger = Ledger.open(home)
    ledger.set_allotment("students", "bob", 0.9)
    asked = Request("students", "bob", "count", 0.5, Zcdp(0.005), shareable=True)
    ledger.ask(asked, lambda claim: b"")  # made from a stored answer: his allotment alone
    ledger.charge(Request("students", "ana", "more", 0.6, Zcdp(1e-4)))
    lines = points(ledger, "bob")
    assert set(lines) == {("students", "", ""), ("students", "", "bob")}
    first, shared, *_, last = (left for _, left in lines[LineName("students", "", "bob")])
    assert first == ledger.balance("students").budget.filter(1.0, _units(ledger, 0.5)).remaining_epsilon  # 0.86 < 0.9
    assert shared < first
    assert last == ledger.balance("students", "bob").remaining_epsilon == lines[LineName("students", "", "")][-1][1]
    ledger.end_allotment("students", "bob")
    assert points(ledger, "bob")[LineName("students", "", "bob")][-1][1] == 0


def _units(ledger, epsilon):
    guard = ledger.budget("students").filter()
    guard.charge(guard.price(epsilon))
    return guard.units


def _seen(ledger, analyst):
    return {(each.dataset, each.balance.period, each.analyst): line for each, line in visible_lines(ledger, analyst)}


def test_an_analyst_sees_lines_of_the_own_data_sets_and_of_nobody_else(home):
    ledger = Ledger.open(home)
    ledger.set_budget("idle", Budget(2.0, 1e-6))
    ledger.set_allotment("students", "bob", 0.9)
    assert _seen(ledger, "eve") == {}
    assert set(_seen(ledger, "bob")) == {("students", "", ""), ("students", "", "bob")}
    assert all(len(line) > 1 for line in _seen(ledger, "bob").values())
    everything = _seen(ledger, None)
    assert {name for name, line in everything.items() if line} == {("students", "", ""), ("idle", "", "")}
    assert {name for name, line in everything.items() if not line} == {
        ("students", "", each) for each in ("ana", "bob")
    }
    ledger.end_allotment("students", "bob")
    assert _seen(ledger, "bob") == {}


def test_lines_of_periods_are_seen_with_their_totals(monthly):
    visits = ("visits", "", "")
    assert [left for _, left in _seen(monthly, None)[visits]] == pytest.approx([2.0, 2.0])
    for month in range(1, burn_down.SHOWN_PERIODS + 2):
        _ask(monthly, "ana", f"question {month}", f"2025-{month:02}")
    found = {name: line for name, line in _seen(monthly, None).items() if name[0] == "visits" and not name[2]}
    assert [name[1] for name, line in found.items() if not line] == ["2025-01"]  # before the newest
    assert all(line[-1][1] < 2 for line in found.values() if line)


def test_burn_down_of_a_long_history_is_thinned(home, monkeypatch):
    ledger = Ledger.open(home)
    for number in range(40):
        ledger.charge(Request("students", "ana", f"question {number}", 0.01, Zcdp(1e-12)))
    whole = points(ledger)[LineName("students", "", "")]
    monkeypatch.setattr(burn_down, "_FINEST", 10)
    thin = points(ledger)[LineName("students", "", "")]
    assert len(whole) == 43 and len(thin) <= 14 and set(thin[:-1]) <= set(whole) and thin[-1][1] == whole[-1][1]


def test_burn_down_draws_any_name(call, home, tmp_path):
    ledger = Ledger.open(home)
    for name in ("_first", "$\\frac$", "^_$x"):
        ledger.set_budget(name, Budget(1.0, 1e-6))
    code, _, _ = call("budget", "--analyst", "ana", "--plot", tmp_path / "burn.svg")
    assert code == 0
    assert call("budget", "--plot", tmp_path / "burn.png")[0] == 0


@pytest.mark.parametrize("command", ["budget", "ledger show", "ledger"])
def test_a_plot_that_cannot_be_written_is_something_missing(call, tmp_path, command, monkeypatch):
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "full.png").symlink_to("/dev/full")
    (tmp_path / "loop.png").symlink_to("loop.png")
    (tmp_path / "astray.png").symlink_to(tmp_path / "nowhere" / "astray.png")
    for name in ("folder.png", "full.png", "loop.png", "astray.png", "nowhere/x.png", "x" * 300 + ".png"):
        code, out, _ = call(*command.split(), "--plot", tmp_path / name, "--json")
        assert code == 5 and json.loads(out)["error"]["code"] == "source.unavailable", name
    monkeypatch.setattr("os.access", lambda file, mode: mode != os.W_OK)  # root may write anywhere
    assert call(*command.split(), "--plot", tmp_path / "x.png", "--json")[0] == 5


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
