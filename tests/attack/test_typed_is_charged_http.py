"""The same over HTTP: what another analyst's token gets of a question that was asked before, when, and for how much."""

import json
import threading
import time

import pytest
from tests.attack.served import QUICK, behind, charges
from tests.serving import serving

from dalenius.ledger import Ledger, verify

pytestmark = pytest.mark.integration
ANSWER = 1.0
DEAR = 1.3579
SQL = "SELECT region, COUNT(*) AS n FROM visits WHERE age > {} GROUP BY region"
KEPT = {"limits": {"search": 0}}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    analysts = dict.fromkeys(("eve", "bob", "cat"), 9.0)
    home = behind(tmp_path_factory.mktemp("typed"), epsilon=30.0, analysts=analysts, answer=ANSWER)
    with serving(home, config=QUICK) as server:
        yield server


def spent(home, analyst=""):
    ledger = Ledger.open(home)
    try:
        verify(ledger)
        return ledger.balance("visits", analyst).spent.epsilon
    finally:
        ledger.database.close()


def timed(client, sql, epsilon):
    start = time.monotonic()
    reply = client.ask(sql, epsilon=epsilon, **KEPT)
    assert reply.status == 200, reply.content
    return reply, time.monotonic() - start


def test_it_costs_what_was_typed_and_leaves_at_the_fixed_time_naming_nobody(server):
    eve, bob = server.analyst("eve"), server.analyst("bob")
    sql = SQL.format(20)
    timed(eve, SQL.format(19), 0.25)  # the balance of the data set tells a sum; see the threat model
    first, _ = timed(eve, sql, DEAR)
    before = spent(server.home), charges(server.home)
    mine = spent(server.home, "bob")
    reply, took = timed(bob, sql, 0.01)
    assert took >= ANSWER
    assert reply.json["charge"]["epsilon"] == 0.01 and not reply.json["free"]
    assert (spent(server.home), charges(server.home)) == before
    assert spent(server.home, "bob") == pytest.approx(mine + 0.01, abs=1e-12)
    others = [bob.get(path) for path in ("/v1/history", "/v1/budget", f"/v1/receipts/{reply.json['receipt']['id']}")]
    assert all(each.status == 200 for each in others), [each.status for each in others]
    seen = json.dumps([reply.json, *(each.json for each in others), *(dict(each.headers) for each in (reply, *others))])
    told = ('"eve"', "shares", str(DEAR), first.json["receipt"]["id"], first.json["receipt"]["release"])
    assert [each for each in told if each in seen] == []
    fresh, _ = timed(bob, SQL.format(21), 0.01)
    assert set(fresh.json) == set(reply.json) and {*fresh.headers} == {*reply.headers}
    again = bob.ask(sql, epsilon=0.01, **KEPT)
    assert again.json["free"] and again.json["rows"] == reply.json["rows"]
    # who may read the ledger can follow it
    entries = server.auditor().get("/v1/ledger?kind=charge&limit=1000").json["entries"]
    assert any("shares" in each["data"] and each["data"]["analyst"] == "bob" for each in entries)


def test_who_asks_while_another_is_answered_leaves_at_the_own_time_and_the_data_set_pays_once(server):
    sql = SQL.format(30)
    before = charges(server.home)
    eve, bob = server.analyst("eve"), server.analyst("bob")
    twin = threading.Thread(target=lambda: timed(eve, sql, 0.5))
    twin.start()
    time.sleep(0.3 * ANSWER)
    reply, took = timed(bob, sql, 0.2)
    twin.join()
    assert took >= ANSWER and reply.json["charge"]["epsilon"] == 0.2
    assert charges(server.home) - before in {1, 2}  # two, if eve's thread came second on a busy machine
    verify(Ledger.open(server.home))


def test_a_retry_of_such_a_question_is_charged_once(server):
    sql = SQL.format(40)
    timed(server.analyst("eve"), sql, 0.5)
    cat = server.analyst("cat")
    body = {"sql": sql, "epsilon": 0.1, "idempotency_key": "cat's", **KEPT}
    first = cat.post("/v1/ask", body)
    assert first.status == 200 and not first.json["free"]
    again = cat.post("/v1/ask", body)
    assert again.json["free"] and again.json["rows"] == first.json["rows"]
    late = cat.post("/v1/ask", body, headers={"Prefer": "respond-async"})
    assert late.status in {200, 202}
    assert spent(server.home, "cat") == pytest.approx(0.1, abs=1e-12)
