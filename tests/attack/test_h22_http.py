"""H22 over HTTP: no token, the wrong role, somebody else's receipt or job, a forged receipt, a tampered ledger.

Refused or detected; and what is not yours is refused exactly as what does not exist.
"""

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from tests.attack.served import QUICK, behind, charges, count
from tests.serving import serving

from dalenius import connect
from dalenius.app.http.guard import OPEN
from dalenius.curator import Curator
from dalenius.errors import DaleniusError
from dalenius.ledger import Ledger, database
from dalenius.ledger.home import public_key
from dalenius.ledger.receipts import check, read
from dalenius.queries.ask import Ask

pytestmark = pytest.mark.integration

# Who may use what: written down here a second time, so that a route that opens up is noticed.
EVERYBODY, SEEING, OWNER, ANALYST = {"owner", "analyst", "auditor"}, {"owner", "auditor"}, {"owner"}, {"analyst"}
ASKING = {"owner", "analyst"}
ROLES = {
    ("POST", "/v1/ask"): ANALYST,
    ("POST", "/v1/preview"): ANALYST,
    ("POST", "/v1/explain"): ANALYST,
    ("POST", "/v1/workloads"): ANALYST,
    ("POST", "/v1/workloads/preview"): ANALYST,
    ("POST", "/v1/synthetic"): ANALYST,
    ("POST", "/v1/synthetic/preview"): ANALYST,
    ("POST", "/v1/synthetic/compare"): ANALYST,
    ("POST", "/v1/synthetic/compare/preview"): ANALYST,
    ("GET", "/v1/synthetic/{id}"): ANALYST,
    ("GET", "/v1/synthetic/{id}/comparisons"): ANALYST,
    ("GET", "/v1/synthetic/{id}/report"): ANALYST,
    ("GET", "/v1/synthetic/{id}/rows"): ANALYST,
    ("POST", "/v1/synthetic/{id}/open"): OWNER,
    ("POST", "/v1/models"): ANALYST,
    ("POST", "/v1/models/preview"): ANALYST,
    ("POST", "/v1/models/score"): ANALYST,
    ("POST", "/v1/models/score/preview"): ANALYST,
    ("GET", "/v1/models/{id}"): ANALYST,
    ("GET", "/v1/jobs/{id}"): ASKING,
    ("GET", "/v1/jobs/{id}/events"): ASKING,
    ("GET", "/v1/history"): ANALYST,
    ("GET", "/v1/tables"): EVERYBODY,
    ("GET", "/v1/tables/{table}"): EVERYBODY,
    ("GET", "/v1/budget"): EVERYBODY,
    ("GET", "/v1/budget/over-time"): EVERYBODY,
    ("GET", "/v1/receipts/{id}"): EVERYBODY,
    ("GET", "/v1/releases"): EVERYBODY,
    ("GET", "/v1/releases/{id}"): EVERYBODY,
    ("POST", "/v1/releases/{kind}"): ANALYST,
    ("GET", "/v1/me"): EVERYBODY,
    ("GET", "/v1/openapi.json"): EVERYBODY,
    ("GET", "/v1/ledger"): SEEING,
    ("GET", "/v1/ledger/verify"): SEEING,
    ("GET", "/v1/report"): SEEING,
    ("GET", "/v1/policies/{table}"): SEEING,
    ("GET", "/v1/policies/{table}/difference"): SEEING,
    ("GET", "/v1/analysts"): SEEING,
    ("POST", "/v1/publications"): OWNER,
    ("GET", "/v1/publications"): SEEING,
    ("GET", "/v1/publications/{name}"): OWNER,
    ("GET", "/v1/files"): OWNER,
    ("GET", "/v1/files/{name}"): OWNER,
    ("PUT", "/v1/files/{name}"): OWNER,
    ("POST", "/v1/protect"): OWNER,
    ("POST", "/v1/tables/{table}/refresh"): OWNER,
    ("PUT", "/v1/datasets/{dataset}/analysts/{analyst}"): OWNER,
    ("DELETE", "/v1/datasets/{dataset}/analysts/{analyst}"): OWNER,
    ("POST", "/v1/analysts/{analyst}/suspend"): OWNER,
    ("POST", "/v1/analysts/{analyst}/resume"): OWNER,
    ("POST", "/v1/datasets/{dataset}/suspend"): OWNER,
    ("POST", "/v1/datasets/{dataset}/resume"): OWNER,
    ("GET", "/v1/tokens"): OWNER,
    ("POST", "/v1/tokens"): OWNER,
    ("DELETE", "/v1/tokens/{id}"): OWNER,
    ("GET", "/v1/alarms"): SEEING,
    ("GET", "/metrics"): SEEING,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tenancy")
    behind(folder, "secret", units=90, analysts={"bob": 3.0})
    home = behind(folder, analysts={"eve": 3.0, "bob": 3.0})
    with serving(home, "--data-dir", str(folder), config=QUICK) as server:
        yield server


def described(server):
    """Every route of the description."""
    paths = server.owner().get("/v1/openapi.json").json["paths"]
    return [(method.upper(), path) for path, held in paths.items() for method in held]


def filled(path):
    known = {"{id}": "0" * 12, "{name}": "none.csv", "{table}": "visits", "{dataset}": "visits", "{analyst}": "eve"}
    known["{kind}"] = "question"
    for name, value in known.items():
        path = path.replace(name, value)
    return path


def clients(server):
    return {"owner": server.owner(), "auditor": server.auditor(), "analyst": server.analyst("eve", trusted=True)}


def test_every_route_is_for_whom_it_is_for(server):
    found = described(server)
    assert {each for each in found if each[1] not in OPEN} == set(ROLES)
    before = charges(server.home)
    bodies = set()
    for method, path in found:
        if path in OPEN:
            continue
        body: dict[str, str] | None = {} if method in {"POST", "PUT"} else None
        missing = server.client(None).request(method, filled(path), body)
        assert missing.status == 401 and missing.headers["www-authenticate"].startswith("Bearer")
        bodies.add(missing.content)
        for role, client in clients(server).items():
            if role not in ROLES[method, path]:
                reply = client.request(method, filled(path), body)
                assert reply.status == 403 and reply.json["code"] == "auth.denied", (method, path, role)
    assert len(bodies) == 1
    assert charges(server.home) == before
    allotted = server.owner().get("/v1/analysts").json["analysts"]
    assert {"analyst": "eve", "dataset": "visits", "epsilon": 3.0} in allotted  # no DELETE got through


def test_every_route_lets_in_whom_it_is_for(server):
    """Else a server that refuses everybody would pass."""
    for (method, path), roles in ROLES.items():
        if method in {"DELETE", "PUT"}:
            continue
        for role in roles:
            body = {"unknown": 1} if method == "POST" else None
            reply = clients(server)[role].request(method, filled(path), body)
            assert reply.status in {200, 400, 404}, (method, path, role, reply.content)


def test_what_is_not_described_is_not_there(server):
    for path in ("/v1", "/v2/ask", "/docs", "/redoc", "/openapi.json", "/v1/ask/x", "/admin", "/.env"):
        assert server.client(None).get(path).status == 401
        for client in clients(server).values():
            assert client.get(path).status == 404


def test_anothers_receipt_is_one_that_was_never_given(server):
    bob, eve = server.analyst("bob", trusted=True), server.analyst("eve", trusted=True)
    receipt = bob.ask(count(1), epsilon=0.1).json["receipt"]
    path = f"/v1/receipts/{receipt['id']}"
    assert bob.get(path).json == receipt
    for client in (server.owner(), server.auditor()):
        assert client.get(path).json == receipt
    number, digest = receipt["id"][1:].split("-")
    wrong = ("0" if digest[0] != "0" else "1") + digest[1:]
    replies = [
        eve.get(path),
        *(eve.get(f"/v1/receipts/{each}") for each in ("R1-000000000000", "x", f"R{number}-{wrong}")),
    ]
    assert {each.status for each in replies} == {404}
    assert len({each.content for each in replies}) == 1
    assert {name for each in replies for name in each.headers} == set(replies[0].headers)
    assert bob.get(f"/v1/receipts/R{number}-{wrong}").status == 404  # nor can one's own be guessed from its number


def test_a_number_without_measure_holds_up_nobody(server):
    """A short text that is a fraction of millions of digits: refused before it is worked out, by every route."""
    eve = server.analyst("eve", trusted=True)
    asked = {"question": count(3), "epsilon": 0.1, "limits": {"totals": {"amount": "1e60000000"}}}
    replies = [
        eve.request("POST", "/v1/releases/question", {"request": asked}),
        eve.request("POST", "/v1/ask", {"sql": count(3), "epsilon": 0.1, "limits": asked["limits"]}),
    ]
    assert {each.status for each in replies} <= {400, 422}
    assert {each.json["charge"]["epsilon"] for each in replies} == {0}


def test_anothers_release_is_one_that_was_never_made(server):
    bob, eve = server.analyst("bob", trusted=True), server.analyst("eve", trusted=True)
    sql = count(2)
    release = bob.request("POST", "/v1/releases/question", {"request": {"question": sql, "epsilon": 0.1}}).json
    assert release["free"] is False and release["question"] == sql
    again = bob.ask(sql, epsilon=0.1).json  # the same by its own route
    assert again["free"] is True and again["rows"] == release["rows"]
    path = f"/v1/releases/{release['receipt']['id']}"
    found = bob.get(path).json
    assert found["kind"] == "question" and found["receipt"] == release["receipt"] and found["content"]["measures"]
    assert server.auditor().get(path).json == found
    missing = eve.get("/v1/releases/R1-000000000000")
    assert eve.get(path).status == missing.status == 404 and eve.get(path).content == missing.content
    assert path.rpartition("/")[2] not in str(eve.get("/v1/releases").json)
    assert found["id"] in {each["id"] for each in bob.get("/v1/releases").json["releases"]}
    assert {each["analyst"] for each in bob.get("/v1/releases").json["releases"]} == {"bob"}
    assert eve.request("POST", "/v1/releases/nothing", {"request": {}}).status == 400
    with connect(server.url, str(bob.token)) as remote:
        assert remote.obtain("question", Ask(sql, 0.1)).to_dict()["rows"] == release["rows"]
        assert found["id"] in {each.id for each in remote.releases()}


def test_a_forged_receipt_does_not_verify(server, tmp_path):
    bob = server.analyst("bob", trusted=True)
    receipt = bob.ask(count(2), epsilon=0.1).json["receipt"]
    file, key = tmp_path / "receipt.json", public_key(Ledger.open(server.home).keys.public_file)
    file.write_text(json.dumps(receipt))
    check(read(file), key)
    for member, value in (
        ("analyst", "eve"),
        ("dataset", "secret"),
        ("charge", {**receipt["charge"], "epsilon": 0.001}),
        ("entry", receipt["entry"] + 1),
        ("time", "2020-01-01T00:00:00.000+00:00"),
        ("release", "0" * 64),
        ("signature", bob.ask(count(4), epsilon=0.1).json["receipt"]["signature"]),
    ):
        file.write_text(json.dumps({**receipt, member: value}))
        with pytest.raises(DaleniusError):
            check(read(file), key)


def test_anothers_job_is_one_that_never_was(server):
    bob, eve = server.analyst("bob"), server.analyst("eve")
    body = {"sql": count(3), "epsilon": 0.1}
    job = bob.post("/v1/ask", body, headers={"Prefer": "respond-async"})
    assert job.status == 202 and job.headers["location"] == f"/v1/jobs/{job.json['id']}"
    name = job.json["id"]
    before = charges(server.home, "eve")
    for suffix in ("", "/events"):
        replies = [
            eve.get(f"/v1/jobs/{each}{suffix}") for each in (name, "0" * 32, name[:-1], name.upper(), f"{name}.json")
        ]
        assert {each.status for each in replies} == {404} and len({each.content for each in replies}) == 1
    assert charges(server.home, "eve") == before
    events = bob.get(f"/v1/jobs/{name}/events").content.decode()  # and its own analyst gets it
    last = json.loads(events.rstrip().rsplit("data: ", 1)[1])
    assert last["state"] == "done" and last["result"]["rows"]
    after = [eve.get(f"/v1/jobs/{each}") for each in (name, "0" * 32)]
    assert {each.status for each in after} == {404} and len({each.content for each in after}) == 1
    assert server.auditor().get(f"/v1/jobs/{name}").status == 403
    assert server.owner().get(f"/v1/jobs/{name}").status == 404  # has jobs of its own


def test_a_table_of_others_is_one_that_is_not_there(server):
    eve, bob = server.analyst("eve", trusted=True), server.analyst("bob", trusted=True)
    assert [each["name"] for each in eve.get("/v1/tables").json["tables"]] == ["visits"]
    assert eve.get("/v1/tables/secret").content == eve.get("/v1/tables/nowhere").content
    assert eve.get("/v1/tables/secret").status == 404 and bob.get("/v1/tables/secret").status == 200
    for path in ("/v1/ask", "/v1/preview"):
        there, nowhere = (
            eve.post(path, {"sql": f"SELECT COUNT(*) AS n FROM {name}", "epsilon": 0.1})
            for name in ("secret", "absent")
        )
        assert there.status == nowhere.status == 404
        assert there.content.replace(b"secret", b"absent") == nowhere.content
    budget = eve.get("/v1/budget").json["datasets"]
    assert set(budget) == {"visits"} and set(budget["visits"]["analysts"]) == {"eve"}
    assert b"bob" not in eve.get("/v1/budget").content + eve.get("/v1/history").content
    assert set(server.auditor().get("/v1/budget").json["datasets"]) == {"visits", "secret"}


def test_no_hash_and_no_secret_of_a_token_is_shown(server):
    texts = list(server.tokens.values())
    shown = b"".join(
        client.get(path).content
        for client in (server.owner(), server.auditor())
        for path in ("/v1/ledger?kind=token", "/v1/ledger?limit=1000", "/v1/tokens", "/v1/me", "/metrics")
    )
    for text in texts:
        assert text[-43:].encode() not in shown
        assert hashlib.sha256(text.encode()).hexdigest().encode() not in shown


TAMPERING = {
    "a charge is forgotten": (
        "entries",
        "DELETE FROM entries WHERE number = (SELECT MAX(number) FROM entries WHERE kind = 'charge')",
    ),
    "a charge is cheaper": (
        "entries",
        "UPDATE entries SET body = REPLACE(body, '0.1', '0.0001') WHERE kind = 'charge'",
    ),
    "the balance starts again": ("totals", "UPDATE totals SET loss = '0', charges = 0"),
    "an allotment grows": ("allotments", "UPDATE allotments SET epsilon = 1000"),
    "a budget grows": ("budgets", "UPDATE budgets SET body = REPLACE(body, '3.0', '3000.0')"),
    "an auditor becomes owner": (
        "entries",
        "UPDATE entries SET body = REPLACE(body, 'auditor', 'owner') WHERE kind = 'token'",
    ),
    "a request is anothers": ("retries", "UPDATE retries SET analyst = 'eve'"),
}


def test_a_tampered_ledger_is_detected(server, tmp_path):
    """The file of a copy is changed while a server uses it; each change is undone before the next."""
    assert server.analyst("bob", trusted=True).ask(count(5), epsilon=0.1, idempotency_key="k").status == 200
    auditor, home = server.token("auditor"), tmp_path / "home"
    shutil.copytree(server.home, home)
    with serving(home, config=QUICK) as other, closing(sqlite3.connect(home / database.NAME)) as file:
        client = other.client(auditor)
        assert client.get("/v1/ledger/verify").status == 200
        for trick, (table, change) in TAMPERING.items():
            rows = file.execute(f"SELECT * FROM {table}").fetchall()
            assert file.execute(change).rowcount > 0, trick
            file.commit()
            assert file.execute(f"SELECT * FROM {table}").fetchall() != rows, trick
            reply = client.get("/v1/ledger/verify")
            assert reply.status == 500 and reply.json["code"] == "ledger.corrupt", (trick, reply.content)
            assert client.get("/v1/tokens").status in {403, 500}, trick
            file.execute(f"DELETE FROM {table}")
            file.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            file.commit()
            assert client.get("/v1/ledger/verify").status == 200, trick
    assert "Traceback" not in other.log_file.read_text()


def test_answers_that_are_exchanged_for_a_while_are_not_given_out(server, tmp_path):
    """Change, ask, put back: the entries and contents of two stored answers."""
    stored = [server.analyst("bob", trusted=True).ask(count(age), epsilon=0.1) for age in (20, 21)]
    assert [each.status for each in stored] == [200, 200]
    home = tmp_path / "home"
    shutil.copytree(server.home, home)
    with serving(home, config=QUICK) as other, closing(sqlite3.connect(home / database.NAME)) as file:
        client = other.analyst("bob", trusted=True)
        _exchange(file)
        for age in (20, 21):
            reply = client.ask(count(age), epsilon=0.1)
            assert reply.status == 500 and reply.json["code"] == "ledger.corrupt", reply.content
        _exchange(file)
        for age, before in zip((20, 21), stored, strict=True):
            again = client.ask(count(age), epsilon=0.1).json
            assert (again["rows"], again["receipt"]) == (before.json["rows"], before.json["receipt"])
        assert other.auditor().get("/v1/ledger/verify").status == 200


def _exchange(file):
    """The last two stored answers, with each other."""
    (first, answer), (second, reply) = file.execute(
        "SELECT number, answer FROM questions WHERE state = 'answered' ORDER BY number DESC LIMIT 2"
    ).fetchall()
    file.execute("UPDATE questions SET answer = ? - answer WHERE number IN (?, ?)", (answer + reply, first, second))
    file.execute("UPDATE releases SET question = -question WHERE question IN (?, ?)", (first, second))
    file.execute("UPDATE releases SET question = ? + question WHERE question < 0", (first + second,))
    file.commit()


def test_an_abandoned_question_is_not_answered_at_an_epsilon_that_somebody_wrote_down(server, tmp_path, monkeypatch):
    """Charged ε = 0.01 and left by a process that died; its row says 50 for a while."""
    home = tmp_path / "home"
    shutil.copytree(server.home, home)

    def dies(*_args, **_more):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("dalenius.queries.answering.measure_plan", dies)
        patch.setattr("dalenius.ledger.charging.fail", lambda *_: None)
        with pytest.raises(RuntimeError, match="killed"):
            Curator(home).analyst("bob").ask(count(33), epsilon=0.01)
    with serving(home, config=QUICK) as other, closing(sqlite3.connect(home / database.NAME)) as file:
        client = other.analyst("bob", trusted=True)
        assert file.execute("UPDATE questions SET holder = 'x', epsilon = 50 WHERE state = 'claimed'").rowcount == 1
        file.commit()
        reply = client.ask(count(33), epsilon=0.01)
        assert reply.status == 500 and reply.json["code"] == "ledger.corrupt", reply.content
        file.execute("UPDATE questions SET epsilon = 0.01 WHERE state = 'claimed'")
        file.commit()
        reply = client.ask(count(33), epsilon=0.01)
        assert reply.status == 200 and reply.json["guarantee"]["epsilon"] == 0.01, reply.content
        assert other.auditor().get("/v1/ledger/verify").status == 200
