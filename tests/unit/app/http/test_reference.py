"""The page of the HTTP API says what the routes say, and what a real server answers."""

import json
import re
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest
from tests.serving import serving

import dalenius
from dalenius import Curator
from dalenius.app.http.reference import BEGIN, OBJECTS, describe_api, generated, routes
from dalenius.app.http.settings import Settings
from dalenius.queries.reference import renew
from dalenius.tables.reading import read_text

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "http.md"
POLICY = """
[table]
name = "visits"
source = "visits.csv"
unit = "user_id"
[budget]
epsilon = 3.0
delta = 1e-6
[analysts.ana]
epsilon = 2.0
[columns.age]
type = "integer"
bounds = [18, 90]
[contribution]
rows = 1
[time]
answer = 1.5
"""
QUESTION = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.2}
WORKLOAD = {"questions": ["SELECT COUNT(*) AS n FROM visits", "SELECT AVG(age) FROM visits"], "epsilon": 0.1}
ROWS = """
[table]
name = "visits"
source = "visits.csv"
[anonymity]
identifiers = ["user_id"]
quasi = ["age"]
"""
SYNTHETIC = {"table": "visits", "epsilon": 0.1, "method": "histogram"}
ANALYSTS = {"/v1/history", "/v1/workloads", "/v1/workloads/preview", "/v1/synthetic", "/v1/synthetic/preview"}
FILLED = {"{table}": "visits", "{dataset}": "visits", "{analyst}": "ana"}
BODIES = {
    "POST /v1/protect": {"policies": [POLICY], "dry_run": True},
    "PUT /v1/datasets/{dataset}/analysts/{analyst}": {"epsilon": 1.0},
    "POST /v1/tables/{table}/refresh": {"dry_run": True},
    "POST /v1/publications": {"policy": ROWS, "k": 2, "dry_run": True},
    "POST /v1/workloads": WORKLOAD,
    "POST /v1/workloads/preview": WORKLOAD,
    "POST /v1/synthetic": SYNTHETIC,
    "POST /v1/synthetic/preview": SYNTHETIC,
}
WITH_IDS = {
    "GET /v1/receipts/{id}",
    "GET /v1/jobs/{id}/events",
    "GET /v1/publications/{name}",
    "GET /v1/releases/{id}",
    "GET /v1/models/{id}",
    "POST /v1/models",
    "POST /v1/models/preview",
    "POST /v1/models/score",
    "POST /v1/models/score/preview",
    "GET /v1/synthetic/{id}",
    "GET /v1/synthetic/{id}/comparisons",
    "GET /v1/synthetic/{id}/report",
    "GET /v1/synthetic/{id}/rows",
    "POST /v1/synthetic/{id}/open",
    "POST /v1/synthetic/compare",
    "POST /v1/synthetic/compare/preview",
    "POST /v1/releases/{kind}",
}
NOT_JSON = {"GET /metrics", "DELETE /v1/datasets/{dataset}/analysts/{analyst}"}


def test_the_committed_page_is_what_the_code_generates():
    text = PAGE.read_text()
    assert renew(text, BEGIN, generated()) == text, "run: python -m dalenius.app.http.reference docs/reference/http.md"


def test_every_route_is_on_the_page_with_who_may_use_it():
    text, told = generated(), describe_api()
    for name, _ in routes():
        assert text.count(f"`{name}`<br>") == 1
        line = next(each for each in text.splitlines() if f"`{name}`<br>" in each)
        assert re.search(r"\| (no token|any|analyst|analyst, owner|owner|auditor, owner) \|", line)
    assert sum(len(each) for each in told["paths"].values()) == sum(1 for _ in routes())
    assert OBJECTS.keys() <= {name for name, _ in routes()}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    (folder / "visits.csv").write_text("user_id,age\n1,34\n2,51\n")
    Curator(folder / ".dalenius").protect(read_text(POLICY, folder))
    with serving(folder / ".dalenius", "--data-dir", str(folder)) as running:
        yield running


@pytest.mark.parametrize("name", sorted(OBJECTS.keys() - WITH_IDS - NOT_JSON))
def test_a_route_gives_the_members_that_the_page_names(name, server):
    method, path = name.split(" ")
    for place, value in FILLED.items():
        path = path.replace(place, value)
    trusted = path == "/v1/synthetic"  # whose fixed time is long: it comes as a job otherwise
    with closing(server.analyst("ana", trusted=trusted) if path in ANALYSTS else server.owner()) as client:
        reply = client.request(method, path, BODIES.get(name))
    assert reply.status == 200, reply.content
    said = [re.findall(r"`(\w+)`", part.partition(":")[0]) for part in OBJECTS[name].split(";")]
    named = {each for part in said for each in part}
    assert not named or named == set(reply.json), (named, set(reply.json))


@pytest.mark.parametrize(
    ("path", "schema"), [("/v1/ask", "ReleaseOut"), ("/v1/preview", "PreviewOut"), ("/v1/explain", "ExplanationOut")]
)
def test_an_answer_has_the_members_of_its_description(path, schema, server):
    with closing(server.analyst("ana")) as ana:
        found = ana.post(path, QUESTION).json
    told = describe_api()["components"]["schemas"][schema]
    assert set(told["required"]) <= set(found) <= set(told["properties"])


def test_a_job_a_receipt_and_a_token_have_the_members_of_their_descriptions(server):
    schemas = describe_api()["components"]["schemas"]
    with closing(server.analyst("ana")) as ana, closing(server.owner()) as owner:
        job = ana.post("/v1/ask", QUESTION | {"epsilon": 0.3}, headers={"Prefer": "respond-async"})
        assert job.status == 202 and set(job.json) == set(schemas["JobOut"]["properties"])
        assert ana.get(f"{job.headers['location']}/events").content.startswith(b"event: status\ndata: {")
        done = ana.get(job.headers["location"]).json
        assert done["state"] == "done"
        receipt = done["result"]["receipt"]
        assert ana.get(f"/v1/receipts/{receipt['id']}").json == receipt
        stored = ana.get(f"/v1/releases/{receipt['id']}").json
        assert set(stored) == {*schemas["StoredOut"]["properties"], "receipt", "content"}
        asked = {"question": QUESTION["sql"], "epsilon": 0.3}
        again = ana.post("/v1/releases/question", {"request": asked}).json
        assert set(schemas["ReleaseOut"]["required"]) <= set(again) and again["receipt"] == receipt
        new = owner.post("/v1/tokens", {"role": "auditor", "days": 1})
        assert new.status == 201 and set(schemas["NewTokenOut"]["required"]) <= set(new.json)


def test_the_client_reads_a_job_of_a_real_server_to_its_end(server):
    (server.home / "config.toml").write_text("[server]\nwait = 0.01\n")
    with serving(server.home) as other, dalenius.connect(other.url, other.token("analyst", "ana")) as ana:
        assert len(ana.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 40", epsilon=0.1).rows) == 1
        job = [each for each in other.log if each.get("route") == "/v1/jobs/{id}"]
    assert job


def test_the_client_asks_many_questions_at_one_price(server):
    questions = [f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}" for age in (30, 45, 60)]
    with dalenius.connect(server.url, server.token("analyst", "ana")) as ana:
        assert not ana.preview_many(questions, epsilon=0.2).known
        found = ana.ask_many(questions, epsilon=0.2, weights=[1, 1, 2])
        again = ana.ask_many(questions, epsilon=0.1, weights=[1, 1, 2])
        assert again.free and [each.rows for each in again.releases] == [each.rows for each in found.releases]
        assert [each.question for each in found.releases] == questions and found.expected.parts
        assert ana.ask(questions[1], epsilon=0.2).free
        with pytest.raises(dalenius.errors.DaleniusError, match="Question 2"):
            ana.ask_many([questions[0], "SELECT nothing FROM nowhere"], epsilon=0.1)


def test_the_page_of_serve_names_every_setting_with_its_default():
    page = (PAGE.parent / "serve.md").read_text().partition("<!-- settings -->")[2].partition("\n\n")[0]
    told = dict(re.findall(r"^\| `([^|]*)` \| `?([^|`]*)`? \|", page, re.MULTILINE))
    expected = {}
    for each in fields(Settings):
        expected[each.name] = "none" if each.default is None else json.dumps(each.default)
    assert told.pop("tls_cert`, `tls_key") == expected.pop("tls_cert") == expected.pop("tls_key")
    assert told == expected
