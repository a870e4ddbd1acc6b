"""H14 by `dalenius attack --against URL`: its price first, an end by exhaustion, and the ledger shows it.

In the long form: three runs of every attack, and the membership game of `test_h14_lab` in 100 rounds.
"""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.attack.served import QUICK
from tests.attack.test_h14_lab import DELTA, EPSILON, PRICES, guessed, most_right, scenes
from tests.serving import serving

from dalenius.app.cli import build, run
from dalenius.audit.attacks import NAMES, attack_named
from dalenius.audit.attacks.attack import Lab
from dalenius.audit.targets.curators import EVE, MALLORY, protect
from dalenius.audit.targets.remote import Remote
from dalenius.audit.targets.scene import VICTIM, Scene, made_up, scene_in
from dalenius.audit.targets.target import TargetRefusal
from dalenius.errors import SourceUnavailableError
from dalenius.ledger import Ledger, verify
from dalenius.remote import connect

pytestmark = pytest.mark.integration
LONG = os.environ.get("DALENIUS_LONG") == "1"
# A price at which few questions are the whole budget: each waits for its time.
RUNS = dict.fromkeys(NAMES, 3) if LONG else {"averaging": 1, "race": 1, "rare-key": 1, "collusion": 1}
TABLES = [f"{name}_{number}".replace("-", "_") for name, runs in RUNS.items() for number in range(runs)]
SHARED = "all_0"
PRICE = "0.4"
TRIALS = 100 if LONG else 3
TIMED = "[time]\nanswer = 0.2\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A table, and a budget, for each run."""
    folder = tmp_path_factory.mktemp("lab")
    made = {table: made_up(40, np.random.default_rng(number)) for number, table in enumerate([*TABLES, SHARED])}
    coins = np.random.default_rng()
    for number in range(TRIALS):
        scene = scenes()[bool(coins.random() < 0.5)]
        scene.amount[-1] = number  # the same people again would get no budget
        made[f"t{number}"] = scene
    for table, scene in made.items():
        protect(scene, folder, epsilon=EPSILON, delta=DELTA, name=table, more=TIMED).ledger.database.close()
        pyarrow.csv.write_csv(pq.read_table(folder / f"{table}.parquet"), folder / f"{table}.csv")
    with serving(folder / "home", config=QUICK) as server:
        (folder / "token").write_text(server.token("analyst", EVE, trusted=True))
        (folder / "token").chmod(0o600)
        yield server, folder


def scene_of(folder, table) -> Scene:
    return scene_in(folder / f"{table}.csv", "secret", "amount", None)


def words(server, folder, table):
    aimed = ["--against", server.url, "--table", table, "--token-file", folder / "token", "--epsilon", PRICE]
    known = ["--truth", folder / f"{table}.csv", "--person", "person", "--secret", "secret", "--amount", "amount"]
    return [*map(str, [*aimed, *known])]


def attack(capsys, server, folder, table, *more):
    name = table.rsplit("_", 1)[0].replace("_", "-")
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


@pytest.mark.parametrize("table", [each for each in TABLES if not each.startswith(("rare_key", "collusion"))])
def test_it_ends_with_the_budget_and_the_ledger_shows_it(served, capsys, table):
    code, found = attack(capsys, *served, table, "--yes")
    (finding,) = found["findings"]
    assert code == 0 and not finding["broke"], finding
    count, spent = charges(served[1], table)
    assert 1 <= count <= finding["questions"] and finding["price"] == pytest.approx(spent) and spent <= EPSILON
    if table.startswith("race"):
        assert count == 1  # each was to cost nine tenths of what was left
    elif not table.startswith("error_oracle"):  # which comes to the end of its expressions
        assert "does not cover" in finding["ended"]


def test_all_of_them_share_the_budget_and_each_gets_to_ask(served, capsys):
    """The first one spent all of it, and the others "held" without a question. The race, which is about all that is
    left, comes last."""
    code, found = attack(capsys, *served, SHARED, "--yes", "--epsilon", "0.25")
    findings = found["findings"]
    assert code == 0 and not any(each["broke"] for each in findings), findings
    asked = {each["attack"]: each["questions"] for each in findings}
    assert set(asked) == {*NAMES} - {"rare-key", "collusion"} and min(asked.values()) >= 1
    prices = [each["price"] for each in findings]  # each attack's own
    assert max(prices) < 0.9 * EPSILON and min(prices) > 0, prices
    assert max(prices) < charges(served[1], SHARED)[1] <= EPSILON


class Colluding(Remote):
    """A server's table as two analysts see it, each with a token of their own."""

    friend: Remote

    def other(self):
        return self.friend


@pytest.mark.parametrize("table", [each for each in TABLES if each.startswith(("rare_key", "collusion"))])
def test_so_do_those_that_need_more_than_a_table(served, table):
    """The command has them for the lab alone: a column of words, a second analyst."""
    server, folder = served
    name, epsilon = ("rare-key", 0.9) if table.startswith("rare") else ("collusion", 0.3)
    with (
        connect(server.url, server.token("analyst", EVE, trusted=True)) as eve,
        connect(server.url, server.token("analyst", MALLORY, trusted=True)) as mallory,
    ):
        seen = [Colluding(scene_of(folder, table), each, epsilon=epsilon, table=table) for each in (eve, mallory)]
        target = seen[0]
        target.friend = seen[1]
        finding = attack_named(name).run(Lab(target, np.random.default_rng()))
    assert not finding.broke, finding
    assert charges(folder, table)[1] <= EPSILON and (finding.ended or name == "rare-key")


def test_over_http_the_game_stays_within_the_theorem_too(served):
    """One table, and one budget, for each round."""
    server, folder = served
    coins, right = np.random.default_rng(), 0
    with connect(server.url, server.token("analyst", EVE, trusted=True)) as analyst:
        for number in range(TRIALS):
            name, scene = list(PRICES)[number % len(PRICES)], scene_of(folder, f"t{number}")
            target = Remote(scene, analyst, epsilon=PRICES[name], table=f"t{number}")
            finding = attack_named(name).run(Lab(target, coins))
            assert finding.ended and not finding.broke
            right += guessed(finding) == bool(scene.secret[VICTIM])
    assert right <= most_right(TRIALS)
