"""`GET /v1/report` of a real server: the facts, or the document, for owners and auditors alone."""

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import datetime

import pytest
from tests.serving import serving

from dalenius.accounting.events import Zcdp
from dalenius.app.report import document, report
from dalenius.ledger import Budget, Ledger, Request, database

HOSTILE = "<script>alert(1)</script>"
POLICY = "content-security-policy"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    ledger = Ledger.create(tmp_path_factory.mktemp("report") / "home")
    ledger.set_budget(HOSTILE, Budget(1.0, 1e-6, unit=HOSTILE))
    ledger.set_allotment(HOSTILE, "ana", 0.8)
    ledger.ask(Request(HOSTILE, "ana", "count", 0.5, Zcdp(1e-9)), lambda _: b"42")
    ledger.database.close()
    with serving(ledger.home) as found:
        for role, analyst in (("owner", ""), ("auditor", ""), ("analyst", "ana")):
            found.token(role, analyst)  # each is an entry, so all of them before the first report
        yield found


def own(server, made):
    """The report as the ledger's own process would make it."""
    ledger = Ledger.open(server.home)
    with closing(ledger.database):
        return report(ledger, datetime.fromisoformat(made))


@pytest.mark.parametrize("role", ["owner", "auditor"])
def test_it_is_the_ledgers_own_report(server, role):
    client = server.client(server.token(role))
    reply = client.get("/v1/report")
    assert reply.status == 200 and reply.headers["content-type"] == "application/json"
    assert reply.json == json.loads(json.dumps(own(server, reply.json["made"]).to_dict()))
    assert reply.json["verification"]["holds"] and reply.json["questions"]["charged"] == 1
    assert client.get("/v1/report?format=json").json["promises"] == reply.json["promises"]


def test_the_document_may_load_and_run_nothing(server):
    client = server.auditor()
    reply = client.get("/v1/report?format=html")
    assert reply.status == 200 and reply.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(each.split(" ", 1) if " " in each else (each, "") for each in reply.headers[POLICY].split("; "))
    assert policy == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "sandbox": "",
    }
    assert reply.headers["cache-control"] == "no-store" and reply.headers["x-content-type-options"] == "nosniff"
    text = reply.content.decode()
    assert HOSTILE not in text and "&lt;script&gt;" in text and "The history holds." in text
    facts = client.get("/v1/report").json
    ours = document(own(server, facts["made"]))
    assert text.partition("<nav")[2] == ours.partition("<nav")[2] != ""  # above it stands the minute


def test_others_are_refused(server):
    for path in ("/v1/report", "/v1/report?format=html"):
        assert server.analyst("ana").get(path).status == 403
        assert server.client(None).get(path).status == 401
    for other in ("pdf", "HTML", ""):
        reply = server.owner().get(f"/v1/report?format={other}")
        assert reply.status == 400 and reply.json["code"] == "input.invalid", other


def test_a_history_that_does_not_hold_is_told_and_said_not_to(server, tmp_path):
    token = server.token("auditor")
    shutil.copytree(server.home, tmp_path / "home")
    with serving(tmp_path / "home") as other, closing(sqlite3.connect(other.home / database.NAME)) as file:
        assert file.execute("UPDATE totals SET charges = charges + 1").rowcount
        file.commit()
        client = other.client(token)
        facts, page = client.get("/v1/report"), client.get("/v1/report?format=html")
    assert facts.status == page.status == 200
    assert not facts.json["verification"]["holds"] and facts.json["verification"]["why"]
    assert b"The history does not hold." in page.content and b"The history holds." not in page.content
