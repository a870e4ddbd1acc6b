"""`dalenius ledger report`: one file for everyone, in which names are only ever text."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from tests.unit.app.report.conftest import HOSTILE, Page

from dalenius.accounting.events import Zcdp
from dalenius.app.report import body, document, report
from dalenius.app.report.html import SECTIONS
from dalenius.ledger import Budget, Ledger, Request


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


def test_where_nothing_is_promised_to_a_group_it_says_so(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("large", Budget(8.0, 1e-6))
    ledger.ask(Request("large", "", "q", 0.5, Zcdp(1e-9)), lambda _: b"1")
    ledger.set_budget("unused", Budget(0.1, 1e-9))
    text = Page(document(report(ledger))).text
    assert "5 no bound" in text and "10 no bound" in text and "2 16 more than a million 0.003 " in text
    assert "1 0.1 1.11 1e-9 0 1 0" in text and "10 1 2.72 1.7e-8 0 1 0" in text


def test_what_is_rounded_never_promises_more(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("d", Budget(1.0, 1e-6))
    for place in range(3):
        ledger.ask(Request("d", "", str(place), 0.123456789, Zcdp(1e-9)), lambda _: b"1")
    found = report(ledger)
    (spent,), (told,) = found.spent("d"), re.findall(r"spent: ε = ([0-9.]+)<", document(found))
    assert spent.epsilon <= float(told) < spent.epsilon + 0.001
