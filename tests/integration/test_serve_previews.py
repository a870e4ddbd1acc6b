"""Over HTTP: prices by accuracy, what is known already, and nothing of what others asked."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.serving import Reply, Server, serving
from tests.unit.queries.test_expectations import BY_WARD, laid

COUNT = "SELECT COUNT(*) AS n FROM stays"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    curator = laid(tmp_path_factory.mktemp("previews"))
    curator.ledger.database.close()
    with serving(curator.home) as found:
        yield found


def previewed(server: Server, who: str, sql: str, **more: object) -> dict[str, Any]:
    reply = server.analyst(who).post("/v1/preview", {"sql": sql, **more})
    assert reply.status == 200, reply.json
    found: dict[str, Any] = reply.json
    return found


@pytest.mark.parametrize("error", ["20%", {"n": "20%"}, {"n": 3000}, 3000])
def test_an_accuracy_is_a_price(server, error):
    (choice,) = previewed(server, "ana", BY_WARD, error=error)["choices"]
    assert choice["epsilon"] > 0 and choice["noise_error"][0] is None and choice["noise_error"][1] > 0
    assert choice["total_error"][1] >= choice["noise_error"][1] and choice["known"] is False


def test_the_price_of_an_accuracy_is_paid_up_to_a_ceiling(server):
    """A quarter of what is left, or what is named: refused for nothing, and told."""
    wish: dict[str, Any] = {"sql": COUNT, "error": 2, "limits": {"rows": 12}}
    found = previewed(server, "ana", **wish)
    (choice,), left = found["choices"], found["remaining"]["analyst"]["epsilon"]
    assert left / 4 < choice["epsilon"] < left and any("a quarter of" in each for each in found["notes"])
    for named, words in (({}, "a quarter of"), ({"epsilon": 80.0}, "that you would pay")):
        reply = server.analyst("ana").post("/v1/ask", wish | named)
        assert reply.status == 400 and reply.json["code"] == "input.invalid" and words in reply.json["title"]
        assert f"--epsilon {choice['epsilon']:g}" in reply.json["fix"] and reply.json["charge"]["epsilon"] == 0
    again = wish | {"epsilon": choice["epsilon"], "idempotency_key": "at most that"}
    ana = server.analyst("ana")
    paid, twice = ana.post("/v1/ask", again), ana.post("/v1/ask", again)
    assert paid.status == twice.status == 200 and twice.json["rows"] == paid.json["rows"] and twice.json["free"]
    assert paid.json["charge"]["epsilon"] == choice["epsilon"]


def test_what_is_computed_from_a_release_is_previewed_asked_and_free_the_second_time(server):
    share = "SELECT ward, COUNT(*) AS n, n * 1.0 / SUM(n) OVER () AS share FROM stays WHERE cost > 2 GROUP BY ward"
    (choice,) = previewed(server, "ana", share, epsilon=0.4)["choices"]
    assert choice["noise_error"][1] > 0 and choice["noise_error"][2] is None and choice["known"] is False
    ana = server.analyst("ana")
    first = ana.post("/v1/ask", {"sql": share, "epsilon": 0.4})
    if first.status == 202:  # a slow machine: its fixed time is longer than a request waits
        job = first.json["id"]
        while (found := ana.get(f"/v1/jobs/{job}").json)["state"] == "running":
            time.sleep(0.2)
        first = Reply(200, {}, json.dumps(found["result"]).encode())
    assert first.status == 200 and first.json["charge"]["epsilon"] == 0.4, first.json
    assert sum(row[2] for row in first.json["rows"]) == pytest.approx(1)
    assert all(errors[2] > 0 for errors in first.json["noise_error"])
    again = ana.post("/v1/ask", {"sql": f"SELECT MAX(share) FROM ({share}) QUALIFY RANK() OVER () = 1", "epsilon": 0.4})
    assert again.status == 200 and again.json["free"], again.json
    assert again.json["rows"][0][0] == max(row[2] for row in first.json["rows"])
    rows = ana.post("/v1/ask", {"sql": "SELECT ward, RANK() OVER (ORDER BY cost) FROM stays", "epsilon": 0.4})
    assert rows.status == 422 and rows.json["code"] == "sql.refused" and "RANK over rows" in rows.json["title"]


@pytest.mark.parametrize("error", ["20", "x%", "-2%", "1e2%", {"n": "2"}, [], True, "0%"])
def test_what_is_no_accuracy_is_refused(server, error):
    assert server.analyst("ana").post("/v1/preview", {"sql": COUNT, "error": error}).status in {400, 422}


def test_what_was_paid_for_is_known_to_who_paid_and_to_nobody_else(server):
    def told(who: str) -> str:
        data = previewed(server, who, COUNT, epsilon=0.3)
        del data["remaining"]
        return json.dumps(data, sort_keys=True)

    before = told("ben")
    release = server.analyst("ana").ask(COUNT, epsilon=0.5)
    assert release.status == 200 and not release.json["free"]
    (choice,) = previewed(server, "ana", COUNT, epsilon=0.3)["choices"]
    assert choice["known"] is True
    assert told("ben") == before and '"known": false' in before
    paid = server.analyst("ana").ask(COUNT, error="90%")
    assert paid.status == 200 and paid.json["free"]
