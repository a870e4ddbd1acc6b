"""H16 over HTTP: no connection, token, analyst, copy, rename or link of a table gets a fresh budget."""

import os
import shutil

import pytest
from tests.attack.served import QUICK, at_once, behind, charges, count
from tests.serving import serving

from dalenius.ledger import Ledger

pytestmark = pytest.mark.integration
CROWD = ("ann", "bob", "cat", "dan")
TOTAL = 4.0
POLICY = """
[table]
name = "{name}"
source = "{source}"
unit = "user_id"
{more}
[columns.age]
type = "integer"
bounds = [18, 90]
[contribution]
rows = 20
"""
BUDGET = '[budget]\nepsilon = 1.0\ndelta = 0.0\naccounting = "pure"\n[analysts.eve]\nepsilon = 1.0'


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One table; eve may spend 1 of it and has spent 0.4; four others may spend all of it each."""
    folder = tmp_path_factory.mktemp("fresh")
    home = behind(folder, epsilon=TOTAL, analysts={"eve": 1.0, **dict.fromkeys(CROWD, TOTAL)})
    with serving(home, "--data-dir", str(folder), config=QUICK) as server:
        assert eve(server).ask(count(1), epsilon=0.4).status == 200
        yield server


def eve(server, **more):
    """A new connection."""
    return server.client(server.token("analyst", "eve", trusted=True, **more))


def left(client):
    (dataset,) = client.get("/v1/budget").json["datasets"].values()
    ((_, mine),) = dataset["analysts"].items()
    return mine["remaining"]["epsilon"] if "remaining" in mine else mine["remaining_epsilon"]


def test_a_new_connection_and_a_new_token_see_the_old_balance(server):
    for client in (eve(server), eve(server), eve(server, note="another"), server.analyst("eve")):
        assert left(client) == pytest.approx(0.6)
        assert client.ask(count(2), epsilon=0.7).status == 402


def test_a_revoked_and_renewed_token_sees_the_old_balance(server):
    owner = server.owner()
    made = owner.post("/v1/tokens", {"role": "analyst", "analyst": "eve", "trusted": True}).json
    assert owner.request("DELETE", f"/v1/tokens/{made['id']}").status == 200
    assert server.client(made["token"]).get("/v1/budget").status == 401
    again = owner.post("/v1/tokens", {"role": "analyst", "analyst": "eve"}).json
    assert left(server.client(again["token"])) == pytest.approx(0.6)


def test_an_allotment_that_is_taken_back_and_given_again_is_not_fresh(server):
    owner, path = server.owner(), "/v1/datasets/visits/analysts/eve"
    assert owner.request("DELETE", path).status == 204
    assert eve(server).ask(count(3), epsilon=0.1).status == 422
    assert owner.request("PUT", path, {"epsilon": 1.0}).status == 200
    assert left(eve(server)) == pytest.approx(0.6)
    assert eve(server).ask(count(3), epsilon=0.7).status == 402


def copied(folder):
    shutil.copy(folder / "visits.parquet", folder / "copy.parquet")
    return "copy.parquet"


def linked(folder):
    (folder / "link.parquet").symlink_to(folder / "visits.parquet")
    return "link.parquet"


def hard_linked(folder):
    os.link(folder / "visits.parquet", folder / "hard.parquet")
    return "hard.parquet"


def in_a_folder(folder):
    (folder / "inner").mkdir()
    shutil.copy(folder / "visits.parquet", folder / "inner" / "a.parquet")
    return "inner/*.parquet"


def through_a_linked_folder(folder):
    (folder / "again").symlink_to(folder)
    return "again/visits.parquet"


def respelled(folder):
    return "./[v]isits.parquet"


def absolute(folder):
    return str(folder / "visits.parquet")


def renamed(folder):
    (folder / "visits.parquet").rename(folder / "renamed.parquet")
    return "renamed.parquet"


TRICKS = [copied, linked, hard_linked, in_a_folder, through_a_linked_folder, respelled, absolute, renamed]


@pytest.mark.parametrize("trick", TRICKS)
def test_a_policy_that_is_uploaded_for_the_same_rows_gets_no_budget_of_its_own(server, trick):
    folder, owner = server.home.parent, server.owner()
    source = trick(folder)
    try:
        before = charges(server.home)
        for yes in (False, True):
            text = POLICY.format(name="fresh", source=source, more=BUDGET)
            reply = owner.post("/v1/protect", {"policies": [text], "yes": yes, "reason": "because"})
            assert reply.status == 422 and reply.json["code"] == "policy.not-allowed", reply.content
            assert "visits" in reply.json["message"] + reply.json["why"]
        assert [each["name"] for each in owner.get("/v1/tables").json["tables"]] == ["visits"]
        assert eve(server).ask("SELECT COUNT(*) AS n FROM fresh", epsilon=0.1).status == 404
        assert charges(server.home) == before
        assert left(eve(server)) == pytest.approx(0.6)
    finally:
        if (folder / "renamed.parquet").exists():
            (folder / "renamed.parquet").rename(folder / "visits.parquet")


def test_a_copy_may_join_the_data_set_and_then_sees_the_old_balance(server):
    text = POLICY.format(name="joined", source="copy.parquet", more='dataset = "visits"')
    assert server.owner().post("/v1/protect", {"policies": [text]}).status == 200
    assert left(eve(server)) == pytest.approx(0.6)
    reply = eve(server).ask("SELECT COUNT(*) AS n FROM joined", epsilon=0.7)
    assert reply.status == 402


def test_all_analysts_together_stay_within_the_total(server):
    """Each may spend all; together they may too, and no more. One who comes afterwards finds nothing."""
    tokens = {who: server.token("analyst", who, trusted=True) for who in CROWD}

    def spend(at):
        who = CROWD[at % len(CROWD)]
        client, paid = server.client(tokens[who]), 0.0
        for number in range(20):
            reply = client.ask(count(1000 * (at + 1) + number), epsilon=0.25)
            if reply.status == 402:
                return paid
            assert reply.status == 200, reply.content
            paid += reply.json["charge"]["epsilon"]
        raise AssertionError("the budget never said no")

    spent = at_once(2 * len(CROWD), spend)
    assert 0.4 + sum(spent) == pytest.approx(0.4 + 14 * 0.25)  # 3.9 of 4; 0.25 more does not fit
    owner = server.owner()
    assert owner.request("PUT", "/v1/datasets/visits/analysts/mallory", {"epsilon": 3.0}).status == 200
    mallory = server.analyst("mallory", trusted=True)
    refused = mallory.ask(count(7), epsilon=0.25)
    assert refused.status == 402 and refused.json["fits"]["epsilon"] <= 0.1 + 1e-9
    assert eve(server).ask(count(8), epsilon=0.25).status == 402
    ledger = Ledger.open(server.home)
    assert float(ledger.balance("visits").remaining_epsilon) == pytest.approx(0.1)
    ledger.database.close()
