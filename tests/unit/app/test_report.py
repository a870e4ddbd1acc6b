"""`dalenius ledger report`: what it tells agrees with the ledger, and names in it are only ever text."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.accounting.event_json import KINDS
from dalenius.accounting.events import DiscreteGaussian, Laplace, Zcdp
from dalenius.app.cli import build
from dalenius.app.cli.run import run
from dalenius.app.report import body, document, report
from dalenius.app.report.html import SECTIONS
from dalenius.app.report.words import THEOREMS
from dalenius.curator import Curator
from dalenius.errors import EngineFailedError, LedgerCorruptError
from dalenius.ledger import Budget, Ledger, Request, verify
from dalenius.ledger.budgets import Accounting
from dalenius.ledger.tokens import Role, Tokens

HOSTILE = "<script>alert(1)</script>"
POLICY = """
[table]
name = "{name}"
source = "{name}.parquet"
unit = "person"
[budget]
epsilon = {epsilon}
delta = 1e-6
[analysts.ana]
epsilon = 1.0
[analysts."{hostile} & co"]
epsilon = 0.5
[columns.age]
type = "integer"
bounds = [18, {oldest}]
[contribution]
rows = 1
"""


def lay(folder, name, people=200, epsilon=3.0, oldest=90):
    pq.write_table(pa.table({"person": list(range(people)), "age": [20 + p % 60 for p in range(people)]}),
                   folder / f"{name}.parquet")  # fmt: skip
    text = POLICY.format(name=name, epsilon=epsilon, oldest=oldest, hostile=HOSTILE)
    (folder / f"{name}.toml").write_text(text)
    return folder / f"{name}.toml"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Two tables, a changed policy, a refresh, new people, a failed question, a revoked token, an alarm."""
    folder = tmp_path_factory.mktemp("report")
    curator = Curator(folder / "home")
    curator.protect(lay(folder, "visits"), lay(folder, "orders", people=180))
    ana, bob = (curator.analyst(name) for name in ("ana", f"{HOSTILE} & co"))
    ana.ask("SELECT COUNT(*) FROM visits", epsilon=0.2)
    bob.ask("SELECT COUNT(*) FROM visits", epsilon=0.2)  # granted
    curator.protect(lay(folder, "visits", epsilon=4.0, oldest=99), yes=True, reason=f"the board said so {HOSTILE}")
    lay(folder, "visits", people=250, epsilon=4.0, oldest=99)
    curator.refresh("visits", reason="month & end")
    ana.ask("SELECT SUM(age) FROM visits", epsilon=0.3)
    ana.ask("SELECT COUNT(*) FROM orders", epsilon=0.1)
    pq.write_table(pa.table({"person": list(range(1000, 1300)), "age": [30] * 300}), folder / "orders.parquet")
    curator.refresh("orders", new_people=True, yes=True, reason="a new wave")
    ana.ask("SELECT COUNT(*) FROM orders", epsilon=0.4)
    ledger = curator.ledger

    def fails(_):
        raise EngineFailedError("It failed.", why="It had to.", fix="None.")

    with pytest.raises(EngineFailedError):
        ledger.ask(Request("visits", "ana", "fails", 0.05, Zcdp(1e-9)), fails)
    ledger.record("note", {"alarm": f"late {HOSTILE}", "charge": 9, "dataset": "visits"})
    ledger.record("publication", {"what": f"k-anonymous table {HOSTILE}", "reason": "law & order"})
    tokens = Tokens(ledger)
    _, token = tokens.create(Role.ANALYST, "ana", note=f"for {HOSTILE}")
    tokens.revoke(token.id)
    ledger.set_allotment("visits", "gone", 0.3)
    curator.analyst("gone").ask("SELECT AVG(age) FROM visits", epsilon=0.1)
    ledger.end_allotment("visits", "gone")
    ledger.set_budget("monthly", Budget(1.0, accounting=Accounting.PURE, unit=HOSTILE, period="month"))
    ledger.set_allotment("monthly", "ana", 0.5)
    for month, epsilon in (("2026-01", 0.1), ("2026-02", 0.3)):
        request = Request("monthly", "ana", month, epsilon, Laplace(1000), periods=(month,))
        ledger.ask(request, lambda _: b"1")
    curator.engines.close()
    ledger.database.close()
    return ledger.home


@pytest.fixture
def call(home, capsys):
    def calling(*words, at=home):
        code = run(build(), ["ledger", "report", *map(str, words), "--home", str(at)])
        return code, capsys.readouterr().out

    return calling


class Page(HTMLParser):
    """What a browser would make of it: tags, attributes, and the text."""

    def __init__(self, html):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        self.text = " ".join("".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag  # everything that is opened is closed, in order

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data + (" " if data.strip() else ""))


def test_its_numbers_are_those_of_the_ledger(home):
    ledger, found = Ledger.open(home), report(Ledger.open(home))
    assert found.verification.holds and found.verification.head == ledger.head.hash.hex() and not found.unreadable
    assert [each.dataset for each in found.promises] == ledger.datasets()
    seen = 0
    for each in found.spending:
        if each.epoch != ledger.epoch(each.dataset) or each.cap is None:
            continue
        balance = ledger.balance(each.dataset, each.analyst, each.period)
        gone = balance.spent_guarantee
        assert (each.cap, each.questions, each.epsilon, each.delta) == (
            balance.epsilon, balance.charges, gone.epsilon, gone.delta,
        )  # fmt: skip
        assert each.left == balance.remaining_epsilon
        groups = balance.to_dict()["groups"] if each.role == "everybody" and balance.charges else {}
        assert {str(g.size): {"epsilon": g.epsilon, "delta": g.delta} for g in each.groups} == groups
        seen += 1
    assert seen == sum(len(ledger.periods(d)) * (1 + len(ledger.allotments(d))) for d in ledger.datasets())
    (ended,) = [each for each in found.spending if each.analyst == "gone"]
    assert ended.cap is None and ended.left is None and ended.questions == 1 and ended.epsilon > 0.09
    for promise in found.promises:
        if promise.line:
            assert promise.line[-1][1] == ledger.balance(promise.dataset).spent_guarantee.epsilon


def test_it_tells_policies_data_epochs_failures_actions_and_alarms(home):
    found = report(Ledger.open(home))
    first, changed = [each for each in found.policies if each.table == "visits"]
    assert first.first and not first.changes and not changed.first
    assert {each.place for each in changed.changes} == {"budget.epsilon", "columns.age.bounds"}
    assert "3.0 → 4.0" in [each.what for each in changed.changes] and changed.reason.startswith("the board")
    assert [(each.table, each.data_version, each.epoch) for each in found.data][2:] == [
        ("visits", 2, 0),
        ("orders", 2, 1),
    ]
    assert [(each.dataset, each.epoch, each.reason) for each in found.epochs] == [("orders", 1, "a new wave")]
    (before,) = [e for e in found.spending if (e.dataset, e.epoch, e.role) == ("orders", 0, "everybody")]
    assert before.questions == 1 and before.left is None and 0.09 < before.epsilon <= 0.1 + 1e-9
    assert found.questions.failed == 1 and found.questions.granted == 1 and found.questions.open == 0
    assert [(each.dataset, each.analyst, each.epsilon) for each in found.failures] == [("visits", "ana", 0.05)]
    assert [each.charge for each in found.alarms] == [9] and len(found.publications) == 1
    told = [each.what for each in found.actions]
    assert any("is revoked" in each and "of analyst ana" in each for each in told)
    assert any("from ε = 3 to 4" in each for each in told) and "gone may spend no more of visits" in told
    used = {each.mechanism: each.charges for each in found.mechanisms}
    assert used["laplace"] == 2 and used["discrete-gaussian"] >= 5 and set(used) <= set(THEOREMS)


def test_every_mechanism_that_can_be_charged_has_its_theorem():
    assert set(THEOREMS) == set(KINDS) - {"composed", "repeated", "parallel"}


def test_repeated_and_composed_mechanisms_are_counted(tmp_path):
    from dalenius.accounting.events import Composed, Repeated

    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("d", Budget(1.0, 1e-6))
    noise = DiscreteGaussian(10**9, 1, 1)
    event = Composed((Repeated(Composed((noise, Zcdp(1e-9))), 3), noise))
    ledger.ask(Request("d", "", "q", 0.5, event), lambda _: b"1")
    used = {each.mechanism: (each.charges, each.times) for each in report(ledger).mechanisms}
    assert used == {"discrete-gaussian": (1, 4), "zcdp": (1, 3)}


def test_names_are_text_and_nothing_is_loaded(home):
    html = document(report(Ledger.open(home)))
    page = Page(html)
    assert "<script" not in html.lower() and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in html
    for where in ("& co", "the board said so", "late", "k-anonymous table", "for"):
        assert HOSTILE in page.text and where in page.text
    assert "month & end" in page.text and "law & order" in page.text
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(page.tags)
    for tag, name, value in page.attributes:
        assert not name.startswith("on") and name != "src", (tag, name)
        assert name != "href" or value.startswith("#report-")
    assert "url(" not in html and "@import" not in html and "//" not in html.replace("<!doctype", "")


def test_it_can_be_read_by_everyone(home):
    html = document(report(Ledger.open(home)))
    page = Page(html)
    assert ("html", "lang", "en") in page.attributes and page.tags.count("h1") == 1 and page.tags.count("main") == 1
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.tags.count("caption") == page.tags.count("table") > 10
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for _, name, value in page.attributes if name == "href"} <= set(ids)
    assert all(value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label")
    assert "@media print" in html and "prefers-color-scheme: dark" in html and "size: A4" in html
    inside = Page(body(report(Ledger.open(home)), inside=True))
    assert "h1" not in inside.tags and "main" not in inside.tags and inside.tags.count("h2") == len(SECTIONS)


def test_invisible_characters_are_made_visible(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    ledger.record("note", {"says": "abc\u202edef\x1b[31m\x00", "reason": "\u200b"})
    html = document(report(ledger))
    assert not re.search("[\u202e\x1b\x00\u200b]", html) and "abc\ufffddef\ufffd[31m\ufffd" in html


def test_an_empty_ledger_has_a_report(tmp_path):
    page = Page(document(report(Ledger.create(tmp_path / "home"))))
    assert "Nothing is protected yet." in page.text and "The history holds." in page.text


def test_the_command_writes_one_file_and_never_replaces_one_unasked(call, home, tmp_path):
    file = tmp_path / "report.html"
    code, out = call("-o", file)
    assert code == 0 and "The history holds" in out and Page(file.read_text()).tags[0] == "html"
    file.write_text("mine")
    code, out = call("-o", file, "--json")
    assert code == 2 and json.loads(out)["error"]["code"] == "input.invalid" and file.read_text() == "mine"
    code, out = call("-o", file, "--yes", "--json")
    found = json.loads(out)
    assert code == 0 and found["file"] == str(file) and "Privacy report" in file.read_text()
    assert found["verification"]["head"] == Ledger.open(home).head.hash.hex()
    assert call("-o", tmp_path / "missing" / "report.html")[0] == 5
    assert call("-o", tmp_path, "--yes")[0] == 5
    assert call()[0] == 0


def test_a_history_that_does_not_hold_is_shown_as_such(call, home, tmp_path):
    for kind, change in (
        ("policy", "UPDATE entries SET body = replace(body, 'bounds', 'bound') WHERE kind = 'policy'"),
        ("charge", "UPDATE entries SET body = replace(body, '0.3', '0.1') WHERE kind = 'charge'"),
        ("budget", "UPDATE entries SET body = '[]' WHERE kind = 'budget'"),
        ("totals", "UPDATE totals SET charges = charges + 1"),
    ):
        copy = tmp_path / kind
        shutil.copytree(home, copy)
        with sqlite3.connect(copy / "ledger.sqlite") as connection:
            for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {trigger}")
            assert connection.execute(change).rowcount
        connection.close()
        file = tmp_path / f"{kind}.html"
        code, out = call("-o", file, "--json", at=copy)
        found = json.loads(out)["verification"]
        assert code == 6 and not found["holds"] and found["message"] and found["why"], kind
        page = Page(file.read_text())
        assert "The history does not hold." in page.text and "The history holds." not in page.text
        assert ("div", "role", "alert") in page.attributes and found["message"] in page.text
        code, out = call(at=copy)
        assert code == 6 and "The history does not hold" in out


def test_whatever_was_done_to_an_entry_the_rest_is_told(home, monkeypatch):
    def broken(_):
        raise LedgerCorruptError("It does not hold.", why="It was changed.", fix="Restore it.")

    monkeypatch.setattr("dalenius.app.report.gathering.verify", broken)
    entries = list(Ledger.open(home).entries())

    tried, seen, ledger = 0, set(), Ledger.open(home)
    broken_values: list[Any] = [None, -5, "<b>", [], {}, [[]], 1e999]

    def told(*now):
        monkeypatch.setattr(ledger, "entries", lambda: iter(now))
        return document(report(ledger))

    for place, entry in enumerate(entries):
        if (kind := (entry.kind, *sorted(entry.data))) in seen:
            continue
        seen.add(kind)
        bodies = ["", "[]", "{}", "null", "not JSON"]
        for name in entry.data:
            bodies += [json.dumps(entry.data | {name: value}) for value in broken_values]
            bodies.append(json.dumps({key: value for key, value in entry.data.items() if key != name}))
        for body_ in bodies:
            html = told(*entries[:place], replace(entry, body=body_), *entries[place + 1 :])
            assert "The history does not hold." in html and "<b>" not in html, (entry.kind, body_)
            tried += 1
        for more in ({"time": 5}, {"time": "yesterday"}, {"hash": "x"}, {"kind": "<b>"}):
            html = told(*entries[:place], replace(entry, **more), *entries[place + 1 :])
            assert "The history does not hold." in html and "<b>" not in html, (entry.kind, more)
        assert "The history does not hold." in told(*entries[:place], *entries[place + 1 :])
    assert tried > 300


def test_what_is_written_after_the_verification_is_not_told(home, monkeypatch, tmp_path):
    shutil.copytree(home, tmp_path / "home")
    ledger = Ledger.open(tmp_path / "home")
    before = ledger.balance("visits")

    def verified(given):
        found = verify(given)
        given.ask(Request("visits", "ana", "later", 0.05, Zcdp(1e-9)), lambda _: b"1")
        return found

    monkeypatch.setattr("dalenius.app.report.gathering.verify", verified)
    found = report(ledger)
    assert ledger.balance("visits").charges == before.charges + 1
    (told,) = found.spent("visits")
    assert told.questions == before.charges and found.verification.entries == ledger.head.count - 2
