"""A home with some life in it, and what a browser would make of its report."""

from __future__ import annotations

from html.parser import HTMLParser

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.accounting.events import Laplace, Zcdp
from dalenius.app.cli import build, run
from dalenius.curator import Curator
from dalenius.errors import EngineFailedError
from dalenius.ledger import Budget, Request
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


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """Two tables, a changed policy, a refresh, new people, a failed question, a revoked token, an alarm."""
    folder = tmp_path_factory.mktemp("report")
    curator = Curator(folder / "home")
    curator.protect(lay(folder, "visits"), lay(folder, "orders", people=180))
    ana, bob = (curator.analyst(name) for name in ("ana", f"{HOSTILE} & co"))
    ana.ask("SELECT COUNT(*) FROM visits", epsilon=0.2)
    bob.ask("SELECT COUNT(*) FROM visits", epsilon=0.2)  # made from ana's answer
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
