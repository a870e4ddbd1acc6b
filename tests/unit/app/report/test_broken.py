"""The report of a history that does not hold: it says so, and tells what can still be read."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from itertools import count
from typing import Any

from tests.conftest import LONG
from tests.unit.app.report.conftest import Page

from dalenius.app.report import document, report
from dalenius.errors import LedgerCorruptError
from dalenius.ledger import Ledger


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

    tried, seen, ledger, turn = 0, set(), Ledger.open(home), count()
    broken_values: list[Any] = [None, -5, "<b>", [], {}, [[]], 1e999, 10**400]
    step = 1 if LONG else 3  # of these, each field of each kind of entry gets every third, from another one on

    def told(*now):
        monkeypatch.setattr(ledger, "unproved", lambda: iter(now))
        found = report(ledger)
        json.dumps(found.to_dict(), allow_nan=False)  # as the server writes it
        return document(found)

    for place, entry in enumerate(entries):
        if (kind := (entry.kind, *sorted(entry.data))) in seen:
            continue
        seen.add(kind)
        bodies = ["", "[]", "{}", "null", "not JSON"]
        for name in entry.data:
            values = broken_values[next(turn) % step :: step]
            bodies += [json.dumps(entry.data | {name: value}) for value in values]
            bodies.append(json.dumps({key: value for key, value in entry.data.items() if key != name}))
        for body_ in bodies:
            html = told(*entries[:place], replace(entry, body=body_), *entries[place + 1 :])
            assert "The history does not hold." in html and "<b>" not in html, (entry.kind, body_)
            tried += 1
        for more in ({"time": 5}, {"time": "yesterday"}, {"hash": "x"}, {"kind": "<b>"}):
            html = told(*entries[:place], replace(entry, **more), *entries[place + 1 :])
            assert "The history does not hold." in html and "<b>" not in html, (entry.kind, more)
        assert "The history does not hold." in told(*entries[:place], *entries[place + 1 :])
    assert tried > (300 if step == 1 else 250)
