"""Rows over HTTP: the owner alone, a job like other long releases, on record before the file can be got."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from tests.published import BARE, ROLES, laid_out, protected_in
from tests.serving import Reply, Server, serving

pytestmark = pytest.mark.integration

ASKED = {"table": "people", "k": 5, "suppress": 0.05}
GONE = "ε no longer bounds what can be learned"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("publications")
    curator = protected_in(folder)
    curator.ledger.database.close()
    data = folder / "data"
    data.mkdir()
    laid_out(data, 120)
    (folder / "outside.csv").write_text("a\n1\n")
    with serving(curator.home, "--data-dir", str(data), config="rate = 100000\nburst = 100000") as found:
        yield found
        text = found.log_file.read_text()
        assert "Traceback" not in text and '"bug"' not in text and "P0001" not in text


def ended(server: Server, reply: Reply) -> dict[str, Any]:
    """What became of a request: its result at once, or that of its job."""
    owner = server.owner()
    if reply.status != 202:
        return {"state": "done" if reply.status == 200 else "failed", "result": reply.json}
    while True:
        job: dict[str, Any] = owner.request("GET", reply.headers["location"]).json
        if job["state"] != "running":
            return job
        owner.request("GET", f"{reply.headers['location']}/events")  # ends with the job


def test_a_dry_run_tells_the_loss_by_k_and_records_nothing(server):
    reply = server.owner().request("POST", "/v1/publications", {**ASKED, "dry_run": True, "curve": [2, 5, 10]})
    assert reply.status == 200, reply.content
    assert [each["k"] for each in reply.json["curve"]] == [2, 5, 10]
    assert reply.json["published"] is False and reply.json["file"] is None
    assert server.owner().request("GET", "/v1/publications").json == {"publications": []}


def test_it_is_the_owners_alone_and_asks_for_a_yes(server):
    for client in (server.analyst("ana"), server.auditor()):
        assert client.request("POST", "/v1/publications", {**ASKED, "yes": True}).status == 403
        assert client.request("GET", f"/v1/publications/{'0' * 64}.csv").status == 403
    kind = {"request": {**ASKED, "yes": True}}
    assert server.analyst("ana").request("POST", "/v1/releases/publication", kind).status == 422
    refused = server.owner().request("POST", "/v1/publications", ASKED)
    assert refused.status == 400 and "cannot be undone" in refused.json["title"]
    assert server.owner().request("GET", "/v1/publications").json == {"publications": []}


def test_files_outside_the_data_folder_are_not_named(server):
    policy = (BARE + ROLES).replace('"people.csv"', '"../outside.csv"')
    for body in (
        {"policy": policy, "k": 2},
        {"policy": (BARE + ROLES).replace('"zip.csv"', '"../zip.csv"'), "k": 2},
        {**ASKED, "presence": [0.0, 0.5], "population": "../people.csv"},
    ):
        assert server.owner().request("POST", "/v1/publications", body).status == 422


def test_files_that_nobody_has_protected_come_with_a_policy_and_leave_no_record(server):
    done = ended(server, server.owner().request("POST", "/v1/publications", {"policy": BARE + ROLES, "k": 4}))
    assert done["state"] == "done", done
    got = server.owner().request("GET", done["result"]["file"])
    assert got.status == 200 and got.content.count(b"\n") == 121
    assert server.owner().request("GET", "/v1/publications").json == {"publications": []}


def test_what_is_published_as_a_job_is_on_record_and_its_file_is_the_recorded_one(server):
    body = {**ASKED, "yes": True, "reason": "a law asks for it"}
    reply = server.owner().request("POST", "/v1/publications", body, {"Prefer": "respond-async"})
    assert reply.status == 202
    done = ended(server, reply)
    assert done["state"] == "done", done
    found = done["result"]
    assert found["charge"] == {"epsilon": None, "delta": None, "rho": None} and found["guarantee"] is None
    got = server.owner().request("GET", found["file"])
    assert hashlib.sha256(got.content).hexdigest() == found["sha256"]
    (listed,) = server.auditor().request("GET", "/v1/publications").json["publications"]
    assert listed["release"] == found["sha256"] and listed["words"] == "k = 5" and listed["by"].startswith("token:")
    assert GONE in server.auditor().request("GET", "/v1/releases").json["notes"][0]
    told = server.auditor().request("GET", f"/v1/releases/{found['id']}").json
    assert told["kind"] == "publication" and told["receipt"]["release"] == found["sha256"]
    assert server.auditor().request("GET", "/v1/ledger/verify").json["verified"] is True
    ana = server.analyst("ana")
    assert GONE in ana.request("GET", "/v1/budget").json["datasets"]["people"]["published"]
    assert GONE in ana.request("GET", "/v1/tables/people").json["tables"][0]["published"]
    preview = ana.request("POST", "/v1/preview", {"sql": "SELECT COUNT(*) AS n FROM people"}).json
    assert any(GONE in each for each in preview["notes"])
    assert server.owner().request("GET", "/v1/publications/../ledger.sqlite").status == 404


def test_a_search_over_http_has_an_end(server):
    from dalenius.app.http.routes.publications import _time
    from dalenius.app.http.schemas import PublishIn

    assert server.owner().request("POST", "/v1/publications", {**ASKED, "dry_run": True, "time": 3600}).status == 400
    assert _time(PublishIn.model_validate(ASKED)) == {"time": 60.0}
    assert _time(PublishIn.model_validate({**ASKED, "curve": [2, 5, 10]})) == {"time": 15.0}
    assert _time(PublishIn.model_validate({**ASKED, "method": "local", "time": 30, "curve": [2, 5]})) == {"time": 10.0}
    assert _time(PublishIn.model_validate({"table": "people", "m": 2, "id": "name"})) == {}
    job = ended(server, server.owner().request("POST", "/v1/publications", {**ASKED, "k": 7, "yes": True}))
    told = server.auditor().request("GET", f"/v1/releases/{job['result']['id']}").json
    assert told["content"]["options"]["time"] == 60
