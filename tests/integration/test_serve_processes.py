"""Must show 6 of Serve: two server processes on one home agree, always, and spend nothing twice."""

import threading
import time
from functools import partial
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.attack.hostile import people
from tests.attack.served import QUICK, at_once, behind, charges, count
from tests.serving import serving

from dalenius.ledger import Ledger

pytestmark = pytest.mark.integration
POLICY = """
[table]
name = "later"
source = "later.parquet"
unit = "user_id"
[budget]
epsilon = 1.0
delta = 0.0
accounting = "pure"
[analysts.eve]
epsilon = 1.0
[columns.age]
type = "integer"
bounds = [18, 90]
[contribution]
rows = 20
"""


def _asked(clients: list[Any], body: dict[str, Any], at: int) -> Any:
    return clients[at].post("/v1/ask", body)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    home = behind(folder, epsilon=20.0, analysts={"eve": 5.0, "bob": 5.0, "cat": 2.0})
    with (
        serving(home, "--data-dir", str(folder), config=QUICK) as one,
        serving(home, "--data-dir", str(folder)) as two,
    ):
        two.tokens = one.tokens
        yield one, two
        for each in (one, two):
            text = each.log_file.read_text()
            assert "Traceback" not in text and '"bug"' not in text
            assert not [line for line in each.log if line.get("status", 0) >= 500]
    charges(home)


def spent(reply, who):
    """What an analyst has spent, as one server says."""
    balance = reply.json["datasets"]["visits"]["analysts"][who]
    return balance["charges"]


def test_balances_agree_under_load_and_nothing_is_spent_twice(servers):
    """Four clients spend on both servers until nothing is left; what either says lies between what the other said."""
    one, _ = servers
    token = one.token("analyst", "eve", trusted=True)
    watchers = [each.client(token) for each in servers]
    stop, wrong = threading.Event(), []

    def watch():
        while not stop.is_set():
            seen = [spent(watchers[at % 2].get("/v1/budget"), "eve") for at in range(4)]
            if seen != sorted(seen):  # a charge that one server knows, the other knows from then on
                wrong.append(seen)

    watching = threading.Thread(target=watch)
    watching.start()

    def spend(at):
        client = servers[at % 2].client(token)
        paid: list[Any] = []
        for number in range(40):
            reply = client.ask(count(1000 * (at + 1) + number), epsilon=0.25)
            if reply.status == 402:
                return paid
            assert reply.status == 200, reply.content
            paid.append(reply.json["charge"]["epsilon"])
        raise AssertionError("the allotment never said no")

    found = at_once(4, spend)
    stop.set()
    watching.join()
    assert not wrong
    assert sum(len(each) for each in found) == 20 and sum(sum(each) for each in found) == 5.0
    assert [spent(each.get("/v1/budget"), "eve") for each in watchers] == [20, 20]
    assert charges(one.home, "eve") == 20
    ledger = Ledger.open(one.home)
    assert ledger.balance("visits", "eve").remaining_epsilon == pytest.approx(0)


def test_the_same_question_on_both_at_once_is_one(servers):
    token = servers[0].token("analyst", "bob", trusted=True)
    for number in range(5):
        body = {"sql": count(50 + number), "epsilon": 0.1, "idempotency_key": f"both {number}"}
        clients = [servers[at % 2].client(token) for at in range(8)]
        replies = at_once(8, partial(_asked, clients, body))
        assert {each.status for each in replies} == {200}
        assert len({str(each.json["rows"]) for each in replies}) == 1
        assert sum(not each.json["free"] for each in replies) == 1
    assert charges(servers[0].home, "bob") == 5


def test_a_token_that_one_makes_or_revokes_the_other_knows_at_once(servers):
    one, two = servers
    made = one.owner().post("/v1/tokens", {"role": "auditor"}).json
    here, there = one.client(made["token"]), two.client(made["token"])
    assert there.get("/v1/me").status == here.get("/v1/me").status == 200
    assert one.owner().request("DELETE", f"/v1/tokens/{made['id']}").status == 200
    assert there.get("/v1/me").status == here.get("/v1/me").status == 401
    assert there.get("/v1/me").content == here.get("/v1/me").content


def test_an_allotment_that_one_changes_holds_on_the_other(servers):
    one, two = servers
    dan, path = two.analyst("dan", trusted=True), "/v1/datasets/visits/analysts/dan"
    assert dan.ask(count(1), epsilon=0.1).status == 422
    assert one.owner().request("PUT", path, {"epsilon": 1.0}).status == 200
    assert dan.ask(count(1), epsilon=0.1).status == 200
    assert one.owner().request("DELETE", path).status == 204
    assert dan.ask(count(2), epsilon=0.1).status == 422


def test_a_job_that_began_on_one_is_polled_on_the_other(servers):
    one, two = servers
    cat = one.token("analyst", "cat")
    before = charges(one.home, "cat")
    body = {"sql": count(7), "epsilon": 0.3}
    job = one.client(cat).post("/v1/ask", body, headers={"Prefer": "respond-async"})
    assert job.status == 202 and job.json["state"] == "running"
    clients = {"here": one.client(cat), "there": two.client(cat)}
    ended: dict[str, Any] = {}
    end = time.monotonic() + 60
    while len(ended) < 2 and time.monotonic() < end:
        for name, client in clients.items():
            reply = client.get(f"/v1/jobs/{job.json['id']}")
            assert reply.status == 200
            if reply.json["state"] != "running":
                ended.setdefault(name, reply.json)
            else:
                assert reply.json["result"] is None and reply.json["problem"] is None
        time.sleep(0.02)
    assert {each["state"] for each in ended.values()} == {"done"}, ended
    assert ended["here"]["result"]["rows"] == ended["there"]["result"]["rows"]
    assert charges(one.home, "cat") == before + 1
    stranger = two.analyst("bob").get(f"/v1/jobs/{job.json['id']}")
    assert stranger.status == 404


def test_a_job_of_a_refused_question_is_not_asked_again_by_who_polls_it(servers):
    one, two = servers
    cat = one.token("analyst", "cat", trusted=True)
    body = {"sql": count(8), "epsilon": 100.0}
    job = one.client(cat).post("/v1/ask", body, headers={"Prefer": "respond-async"})
    assert job.status in {202, 402}
    if job.status == 202:
        client, end = one.client(cat), time.monotonic() + 30
        while (found := client.get(f"/v1/jobs/{job.json['id']}").json)["state"] == "running":
            assert time.monotonic() < end
            time.sleep(0.02)
        assert found["state"] == "failed" and found["problem"]["code"] == "budget.exhausted"
        assert two.client(cat).get(f"/v1/jobs/{job.json['id']}").status == 404
    assert two.client(cat).get("/v1/me").status == 200


def test_a_policy_that_one_protects_is_asked_on_the_other(servers):
    one, two = servers
    folder = one.home.parent
    pq.write_table(people(victim=False, units=60, rows=100).select(["user_id", "age"]), folder / "later.parquet")
    eve = two.analyst("eve", trusted=True)
    sql = "SELECT COUNT(*) AS n FROM later"
    assert eve.ask(sql, epsilon=0.5).status == 404
    assert one.owner().post("/v1/protect", {"policies": [POLICY]}).status == 200
    first = eve.ask(sql, epsilon=0.5)
    again = one.analyst("eve", trusted=True).ask(sql, epsilon=0.5)
    assert first.status == again.status == 200, first.content
    assert not first.json["free"] and again.json["free"] and first.json["rows"] == again.json["rows"]
    assert {each["name"] for each in eve.get("/v1/tables").json["tables"]} == {"visits", "later"}
