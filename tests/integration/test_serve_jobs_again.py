"""Jobs after a restart: whoever polls one gets what was paid for, or is told to ask again; and is never charged."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.attack.hostile import people
from tests.attack.served import behind, charges, count
from tests.serving import Client, serving, start

from dalenius.curator import Curator

pytestmark = pytest.mark.integration
EPSILON = 2.0
LATER = {"Prefer": "respond-async"}
CONFIG = "rate = 1000\nburst = 1000\nconcurrency = 4\nconsole = false"


@pytest.fixture
def home(tmp_path):
    return behind(tmp_path, epsilon=200.0, analysts={"eve": 100.0, "bob": 100.0}, answer=1.0)


def left_behind(home: Path, sql: str) -> str:
    """A job of eve's as a process leaves it that is killed before it has charged; its name."""
    (home / "jobs").mkdir(mode=0o700, exist_ok=True)
    request = {"question": sql, "epsilon": EPSILON, "error": None, "confidence": 0.95, "delta": None, "limits": None}
    name = secrets.token_hex(16)
    content = json.dumps({"analyst": "eve", "holder": "", "request": {**request, "idempotency_key": name}})
    (home / "jobs" / f"{name}.json").write_text(content)
    return name


def polled(client: Client, name: str, seconds: float = 60.0):
    """What a job says at its end; None: it is not there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        reply = client.get(f"/v1/jobs/{name}")
        if reply.status == 404:
            return None
        if reply.status == 200 and reply.json["state"] != "running":
            return reply.json
        assert reply.status in {200, 429}, reply.content
        time.sleep(0.05)
    raise AssertionError("it has no end")


def test_polling_jobs_that_were_never_charged_charges_nothing_and_says_so(home):
    """Forty of them at once began to look, past every limit, at ε = 2 each."""
    names = [left_behind(home, count(each)) for each in range(40)]
    with serving(home, config=CONFIG) as server:
        eve = server.analyst("eve")
        first = [eve.get(f"/v1/jobs/{name}") for name in names]
        assert {each.status for each in first} <= {200, 404, 429}
        for name in names[:8]:
            told = polled(eve, name)
            assert told["state"] == "failed" and "Ask again" in told["problem"]["detail"], told
            assert told["problem"]["charge"]["epsilon"] == 0
        assert server.analyst("bob").ask(count(1), epsilon=0.1).status == 200
        assert charges(home, "eve") == 0 and charges(home) == 1


def test_polling_after_a_restart_and_a_refresh_charges_nothing(home, tmp_path):
    with serving(home, config=CONFIG) as server:
        token = server.token("analyst", "eve")
        job = server.client(token).post("/v1/ask", {"sql": count(7), "epsilon": EPSILON}, headers=LATER)
        assert job.status == 202
        done = polled(server.client(token), job.json["id"])
        assert done["state"] == "done"
        assert server.stop() == 0
    assert charges(home, "eve") == 1
    never = left_behind(home, count(8))
    pq.write_table(people(victim=False, units=100, rows=300), tmp_path / "visits.parquet")
    curator = Curator(home)
    curator.refresh("visits", reason="a new month has come in")
    curator.ledger.database.close()
    before = charges(home)
    with serving(home, config=CONFIG) as server:
        eve = server.client(token)
        for name in (job.json["id"], never):
            told = polled(eve, name)
            assert told["state"] == "failed" and told["problem"]["charge"]["epsilon"] == 0, told
            assert "Ask" in told["problem"]["detail"]
    assert charges(home) == before and charges(home, "eve") == 1


def test_a_job_that_was_charged_is_finished_after_a_kill_and_paid_once(home):
    server = start(home, config=CONFIG)
    try:
        token = server.token("analyst", "eve")
        job = server.client(token).post("/v1/ask", {"sql": count(9), "epsilon": EPSILON}, headers=LATER)
        end = time.monotonic() + 20
        while charges(home, "eve") == 0:
            assert time.monotonic() < end
            time.sleep(0.01)
    finally:
        server.kill()
    with serving(home, config=CONFIG) as again:
        told = polled(again.client(token), job.json["id"])
        assert told["state"] == "done" and told["result"]["receipt"]["charge"]["epsilon"] == EPSILON
    assert charges(home, "eve") == 1


def test_resuming_keeps_to_the_limits_of_any_other_question(home):
    """Charged jobs of a process that was killed: so many are taken up at a time, the others are told to wait."""
    server = start(home, config=CONFIG.replace("concurrency = 4", "concurrency = 30"))
    try:
        token = server.token("analyst", "eve")
        client = server.client(token)
        jobs = [
            client.post("/v1/ask", {"sql": count(each), "epsilon": 0.1}, headers=LATER).json["id"] for each in range(12)
        ]
        end = time.monotonic() + 20
        while charges(home, "eve") < 12:
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        server.kill()
    with serving(home, config=CONFIG.replace("concurrency = 4", "concurrency = 2")) as again:
        eve = again.client(token)
        first = [eve.get(f"/v1/jobs/{name}").status for name in jobs]
        assert first[0] == 200 and 429 in first
        assert polled(eve, jobs[0])["state"] == "done"
    assert charges(home, "eve") == 12
