"""H19 over HTTP: asked again, in other words, as a retry or in pages: the same answer for nothing, or a new charge."""

from typing import Any

import pytest
from tests.attack.served import QUICK, at_once, behind, charges
from tests.serving import serving

pytestmark = pytest.mark.integration
SQL = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
WORDINGS = [
    "select region, count(*) as n from visits group by region",
    "SELECT region,\n\tCOUNT(*) AS n -- again\nFROM visits /* the same */ GROUP BY region;",
    'SELECT "region", COUNT(*) AS n FROM "visits" GROUP BY 1',
    "SELECT v.region, COUNT(*) AS n FROM visits AS v GROUP BY v.region",
]
PAGES = [
    f"{SQL} ORDER BY region LIMIT 2",
    f"{SQL} ORDER BY region LIMIT 2 OFFSET 2",
    f"{SQL} ORDER BY region DESC LIMIT 1",
    f"{SQL} ORDER BY n DESC LIMIT 1 OFFSET 3",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    analysts = dict.fromkeys(("eve", "bob", "cat", "dan", "fay"), 20.0)
    home = behind(tmp_path_factory.mktemp("replay"), epsilon=50.0, analysts=analysts)
    with serving(home, config=QUICK) as server:
        yield server


def cells(release):
    return {tuple(row) for row in release["rows"]}


def test_the_same_question_is_free_in_any_wording_from_any_connection(server):
    first = server.analyst("eve", trusted=True).ask(SQL, epsilon=0.5)
    assert first.status == 200 and not first.json["free"]
    before = charges(server.home)
    for wording in (SQL, *WORDINGS):
        for token in ({"trusted": True}, {"trusted": False}, {"note": "new"}):
            reply = server.client(server.token("analyst", "eve", **token)).ask(wording, epsilon=0.5)
            assert reply.status == 200, reply.content
            assert reply.json["rows"] == first.json["rows"] and reply.json["free"]
            assert reply.json["charge"]["epsilon"] == 0
    assert charges(server.home) == before


def test_pages_are_cut_out_of_the_one_answer_or_charged(server):
    eve = server.analyst("eve", trusted=True)
    whole = eve.ask(SQL, epsilon=0.5).json
    for page in (*PAGES, *PAGES):
        before = charges(server.home)
        reply = eve.ask(page, epsilon=0.5)
        if reply.status != 200:
            assert reply.json["charge"]["epsilon"] == 0 and charges(server.home) == before
            continue
        assert charges(server.home) == before + (not reply.json["free"])
        if reply.json["free"]:
            assert cells(reply.json) <= cells(whole)


def test_a_lower_price_is_no_second_look(server):
    """The stored answer, or a charge: never a second, independent noise for nothing."""
    eve = server.analyst("eve", trusted=True)
    whole = eve.ask(SQL, epsilon=0.5).json
    for epsilon in (0.5, 0.4999, 0.25, 0.1):
        before = charges(server.home)
        reply = eve.ask(SQL, epsilon=epsilon).json
        assert charges(server.home) == before + (not reply["free"])
        assert not reply["free"] or reply["rows"] == whole["rows"]


def test_a_retry_is_charged_once_with_a_key_and_without(server):
    bob = server.analyst("bob", trusted=True)
    body = {"sql": f"{SQL.replace('COUNT(*)', 'SUM(age)')}", "epsilon": 0.3, "idempotency_key": "bob's first"}
    before = charges(server.home)
    first = bob.post("/v1/ask", body)
    assert first.status == 200 and not first.json["free"]
    for again in (body, body, {**body, "idempotency_key": None}, {**body, "idempotency_key": "bob's second"}):
        reply = bob.post("/v1/ask", again)
        assert reply.status == 200 and reply.json["free"] and reply.json["rows"] == first.json["rows"]
    late = bob.post("/v1/ask", body, headers={"Prefer": "respond-async"})
    assert late.status in {200, 202}
    assert charges(server.home) == before + 1


def test_one_key_sent_at_once_is_one_charge(server):
    body = {"sql": "SELECT SUM(amount) AS s FROM visits", "epsilon": 0.3, "idempotency_key": "cat"}
    before = charges(server.home)
    found = [server.analyst("cat") for _ in range(16)]
    replies = at_once(16, lambda at: found[at].post("/v1/ask", body))
    assert {each.status for each in replies} == {200}, [each.content for each in replies]
    assert len({str(each.json["rows"]) for each in replies}) == 1
    assert sum(not each.json["free"] for each in replies) == 1
    assert charges(server.home) == before + 1


@pytest.mark.parametrize(
    "other",
    [
        {"sql": "SELECT COUNT(*) AS n FROM visits WHERE age > 41"},
        {"epsilon": 0.21},
        {"confidence": 0.9},
        {"limits": {"rows": 2}},
        {"epsilon": None, "error": 500.0},
        {"delta": 1e-9},
    ],
)
def test_a_key_that_comes_with_another_body_is_refused_for_nothing(server, other):
    dan = server.analyst("dan", trusted=True)
    body = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE age > 40", "epsilon": 0.2, "idempotency_key": "dan"}
    assert dan.post("/v1/ask", body).status == 200
    before = charges(server.home)
    reply = dan.post("/v1/ask", {**body, **other})
    assert reply.status == 400 and reply.json["code"] == "input.invalid", reply.content
    assert "key" in reply.json["message"] and reply.json["charge"]["epsilon"] == 0
    assert charges(server.home) == before


def test_anothers_key_is_nobodys_business(server):
    """Keys are an analyst's own: the same text of another's is another key, and shows nothing of the first."""
    body = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE age > 50", "epsilon": 0.2, "idempotency_key": "shared"}
    assert server.analyst("dan", trusted=True).post("/v1/ask", body).status == 200
    other = {**body, "sql": "SELECT COUNT(*) AS n FROM visits WHERE age > 51"}
    reply = server.analyst("fay", trusted=True).post("/v1/ask", other)
    assert reply.status == 200 and not reply.json["free"]


def test_history_in_pages_is_the_history_and_charges_nothing(server):
    eve = server.analyst("eve", trusted=True)
    for at in range(7):
        assert eve.ask(f"SELECT COUNT(*) AS n FROM visits WHERE age > {60 + at}", epsilon=0.01).status == 200
    before = charges(server.home)
    whole = eve.get("/v1/history").json
    assert whole["next"] is None and len(whole["history"]) >= 7
    for limit in (1, 2, 3, 1000):
        rows: list[Any] = []
        after: Any = 0
        while after is not None:
            page = eve.get(f"/v1/history?after={after}&limit={limit}").json
            assert len(page["history"]) <= limit
            rows += page["history"]
            after = page["next"]
        assert rows == whole["history"]
    for bad in ("after=-1", "limit=0", "limit=1001", "after=x", f"after={2**60}", "limit=1e2", "after=nan"):
        assert eve.get(f"/v1/history?{bad}").status == 400
    assert {each["dataset"] for each in whole["history"]} == {"visits"}
    assert server.analyst("nobody").get("/v1/history").json["history"] == []
    assert charges(server.home) == before
