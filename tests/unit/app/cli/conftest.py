"""A shop to ask about: a protected table with canaries in it, for the tests of `ask` and `preview`."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kept import laid

from dalenius.app.cli import build, run
from dalenius.curator import Curator
from dalenius.ledger import Ledger

# Values that are in the data and in no policy: none may ever show.
CANARIES = ("xyzzyplugh", "31415.92", "271828")
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
[columns.region]
type = "category"
keys = ["north", "south", "[red]"]
[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.01
[columns.weight]
type = "number"
[columns.when]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
[contribution]
rows = 5
groups = 2
totals = { amount = 1000 }
"""


def rows(people=200):
    """Five rows per person; the first person is the canary."""
    n = 5 * people
    regions = ["north", "south", "[red]", "nowhere", None]
    table = {
        "user_id": pa.array([str(each // 5) for each in range(n)], pa.string()),
        "age": pa.array([18 + each % 70 for each in range(n)], pa.int64()),
        "region": pa.array([regions[each % 5] for each in range(n)], pa.string()),
        "amount": pa.array([float(each % 100) for each in range(n)], pa.float64()),
        "weight": pa.array([60.0 + each % 30 for each in range(n)], pa.float64()),
        "when": pa.array([dt.date(2025, 1, 1 + each % 28) for each in range(n)], pa.date32()),
    }
    if n:
        table["user_id"] = pa.array(["xyzzyplugh"] * 5 + table["user_id"].to_pylist()[5:])
        table["amount"] = pa.array([31415.92] * 5 + table["amount"].to_pylist()[5:])
        table["weight"] = pa.array([271828.0] * 5 + table["weight"].to_pylist()[5:])
    return pa.table(table)


def lay_out(folder, people=200, policy=POLICY):
    """Writes the table and its policy."""
    pq.write_table(rows(people), folder / "visits.parquet")
    (folder / "visits.toml").write_text(policy)


class Shop:
    """Calls commands and keeps watch: no canary in any output."""

    policy = POLICY

    def __init__(self, folder, capsys):
        self.folder, self._capsys = folder, capsys

    def lay(self, *, people=200, policy=POLICY):
        """Writes and protects the table, by the command."""
        lay_out(self.folder, people, policy)
        assert self.call("protect", "visits.toml", "--quiet")[0] == 0

    def spent(self):
        """Everything that changes when something is charged."""
        ledger = Ledger.open(self.folder / ".dalenius")
        balances = [ledger.balance("visits", who) for who in ("", *ledger.allotments("visits"))]
        return [(each.spent, each.charges) for each in balances], ledger.head.count

    def call(self, *words):
        """Exit code, stdout, stderr."""
        code = run(build(), [*map(str, words)])
        captured = self._capsys.readouterr()
        for canary in CANARIES:
            assert canary not in captured.out and canary not in captured.err
        return code, captured.out, captured.err

    def json(self, *words):
        """Exit code and the object."""
        code, out, _ = self.call(*words, "--json")
        assert out.count("\n") == 1
        return code, json.loads(out)

    def refused(self, code, exit_code, *words):
        """Asks what must fail, for people and for scripts; nothing is charged. Returns the error."""
        before = self.spent()
        human, out, err = self.call(*words)
        got, found = self.json(*words)
        assert (human, got, found["error"]["code"]) == (exit_code, exit_code, code), found
        assert out == "" and code in err and "No budget was spent." in err
        assert set(found) == {"error"} and found["error"]["charge"] == {"epsilon": 0, "delta": 0}
        assert found["error"]["why"] and found["error"]["fix"]
        assert self.spent() == before
        return found["error"]


@pytest.fixture
def empty_shop(place, monkeypatch, capsys):
    """Nothing is protected yet."""
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    monkeypatch.chdir(place)
    return Shop(place, capsys)


def protected(folder):
    lay_out(folder)
    curator = Curator(folder / ".dalenius")
    curator.protect(folder / "visits.toml")
    return curator


@pytest.fixture
def shop(empty_shop):
    """One table of 200 people, protected in `.dalenius` of the working directory."""
    laid(empty_shop.folder, "the shop of the command line", protected)
    return empty_shop


@pytest.fixture(scope="session")
def _standing(tmp_path_factory):
    folder = tmp_path_factory.mktemp("standing")
    protected(folder)
    return folder


@pytest.fixture
def standing_shop(_standing, monkeypatch, capsys):
    """The same table, one for many tests: for those in which nothing is charged and no file written."""
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    monkeypatch.chdir(_standing)
    found = Shop(_standing, capsys)
    before, files = found.spent(), sorted(_standing.iterdir())
    yield found
    assert found.spent() == before and sorted(_standing.iterdir()) == files
