"""H14 by `dalenius attack --against URL`: its price first, an end by exhaustion, and the ledger shows it."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.attack.served import QUICK
from tests.serving import serving

from dalenius.app.cli import build, run
from dalenius.audit.targets.curators import EVE, protect
from dalenius.audit.targets.remote import Remote
from dalenius.audit.targets.scene import made_up
from dalenius.audit.targets.target import TargetRefusal
from dalenius.errors import SourceUnavailableError
from dalenius.ledger import Ledger, verify

pytestmark = pytest.mark.integration
LONG = os.environ.get("DALENIUS_LONG") == "1"
# A price at which few questions are the whole budget: each waits for its time.
RUNS = {"averaging": 3, "differencing": 3, "membership": 3, "race": 3} if LONG else {"averaging": 1, "race": 1}
PRICE = "0.4"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A table, and a budget, for each run."""
    folder = tmp_path_factory.mktemp("lab")
    tables = [f"{name}_{number}" for name, runs in RUNS.items() for number in range(runs)]
    for number, table in enumerate(tables):
        scene = made_up(40, np.random.default_rng(number))
        protect(scene, folder, epsilon=1.0, name=table, more="[time]\nanswer = 0.2\n").ledger.database.close()
        pyarrow.csv.write_csv(pq.read_table(folder / f"{table}.parquet"), folder / f"{table}.csv")
    with serving(folder / "home", config=QUICK) as server:
        (folder / "token").write_text(server.token("analyst", EVE, trusted=True))
        (folder / "token").chmod(0o600)
        yield server, folder


def words(server, folder, table):
    aimed = ["--against", server.url, "--table", table, "--token-file", folder / "token", "--epsilon", PRICE]
    known = ["--truth", folder / f"{table}.csv", "--person", "person", "--secret", "secret", "--amount", "amount"]
    return [*map(str, [*aimed, *known])]


def attack(capsys, server, folder, table, *more):
    name = table.rsplit("_", 1)[0]
    code = run(build(), ["attack", name, *words(server, folder, table), *more, "--json"])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, json.loads(captured.out)


def charges(folder, table):
    ledger = Ledger.open(folder / "home")
    try:
        verify(ledger)
        balance = ledger.balance(table, EVE)
        return balance.charges, balance.spent_guarantee.epsilon
    finally:
        ledger.database.close()


def test_without_a_yes_it_says_the_price_and_spends_nothing(served, capsys):
    code, found = attack(capsys, *served, "averaging_0")
    assert code == 2 and "ε = 1" in found["error"]["message"] and "--yes" in found["error"]["fix"]
    assert charges(served[1], "averaging_0")[0] == 0


def test_a_table_that_is_not_there_is_named(served, capsys):
    server, folder = served
    (folder / "averaging_99.csv").write_bytes((folder / "averaging_0.csv").read_bytes())
    code, found = attack(capsys, server, folder, "averaging_99", "--yes")
    assert code == 3 and found["error"]["code"] == "policy.unknown-table", found


def test_a_column_that_is_not_there_is_no_defence(served, capsys):
    """It was "held", since the server refused; --person given twice: the last counts."""
    code, found = attack(capsys, *served, "averaging_0", "--yes", "--person", "nobody")
    assert code in {2, 3} and "nobody" in found["error"]["message"], found
    assert charges(served[1], "averaging_0")[0] == 0


def test_a_server_that_dies_meanwhile_is_named_and_so_is_what_was_paid(served, capsys, monkeypatch):
    asked = []

    def dying(self, question):
        asked.append(question)
        if len(asked) == 3:
            raise SourceUnavailableError("The server cannot be reached.", why="It died.", fix="Try it again.")
        raise TargetRefusal("No.", final=True)

    monkeypatch.setattr(Remote, "answer", dying)
    server, folder = served
    aimed = [*words(server, folder, "averaging_0"), "--yes"]
    assert run(build(), ["attack", "all", *aimed]) == 5
    told = capsys.readouterr()
    err = " ".join(told.err.split())
    assert "Traceback" not in err and "differencing: held, 1 question, ε = 0 charged." in err
    assert "'averaging' came to an early end" in err and (folder / "token").read_text() not in told.out + told.err


@pytest.mark.parametrize("table", [f"{name}_{number}" for name, runs in RUNS.items() for number in range(runs)])
def test_it_ends_with_the_budget_and_the_ledger_shows_it(served, capsys, table):
    code, found = attack(capsys, *served, table, "--yes")
    (finding,) = found["findings"]
    assert code == 0 and not finding["broke"], finding
    count, spent = charges(served[1], table)
    assert 1 <= count <= finding["questions"] and finding["price"] == pytest.approx(spent) and spent <= 1.0
    if table.startswith("race"):
        assert count == 1  # each was to cost nine tenths of what was left
    else:
        assert "does not cover" in finding["ended"]
