"""H7 over HTTP: whoever fails, hangs up or dies: a question that reached the data was charged in full, and says so."""

from __future__ import annotations

import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.attack.hostile import people, protected
from tests.attack.watched import CONFIG, Planted, planting
from tests.serving import Reply, Server, serving

from dalenius import Curator

EPSILON = 0.3
ANSWER = 0.8
FOREVER = 30.0


def home_in(folder: Path, epsilon: float = 2.0) -> Path:
    return protected(folder, people(victim=False), epsilon=epsilon, more=f"[time]\nanswer = {ANSWER}\ncap = 8").home


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[Server, Planted]]:
    """One server for all; each test asks what nobody asked before, and looks at what that added."""
    with planting(home_in(tmp_path_factory.mktemp("h7"), 100.0)) as found:
        for role in ("owner", "analyst"):
            found[0].token(role, "eve" if role == "analyst" else "")
        yield found


@pytest.fixture(scope="module")
def price(tmp_path_factory) -> float:
    """The ρ that one such question costs which went well, on a twin."""
    twin = protected(tmp_path_factory.mktemp("twin"), people(victim=False))
    twin.analyst("eve").ask(question()["sql"], epsilon=EPSILON)
    return spent(twin.home)[0]


NEW = itertools.count()


def question(**more: Any) -> dict[str, Any]:
    """A new one each time, at the same price."""
    sql = f"SELECT COUNT(*), SUM(amount) FROM visits WHERE amount < {100 + next(NEW)}"
    return {"sql": sql, "epsilon": EPSILON, **more}


def spent(home: Path) -> list[float]:
    """What the ledger on disk says is spent, of the analyst's allotment and of the whole."""
    ledger = Curator(home).ledger
    balances = [ledger.balance("visits", who).to_dict() for who in ("eve", "")]
    return [each["spent"]["rho"] for each in balances]


class Watch:
    """What was added to the ledger on disk since it began."""

    def __init__(self, home: Path) -> None:
        self.home, self.before, self.entries = home, spent(home), Curator(home).ledger.head.count

    @property
    def rho(self) -> list[float]:
        return [now - before for now, before in zip(spent(self.home), self.before, strict=True)]

    @property
    def kinds(self) -> list[str]:
        entries = Curator(self.home).ledger.entries(self.entries)
        return [each.kind for each in entries if each.kind in {"charge", "failure", "answer", "grant"}]

    def until(self, *wanted: str) -> None:
        end = time.monotonic() + FOREVER
        while self.kinds != list(wanted):
            assert time.monotonic() < end, self.kinds
            time.sleep(0.02)


def told(reply: Reply) -> float:
    """The charge that a problem tells, in its member and in its words."""
    problem = reply.json
    assert reply.headers["content-type"] == "application/problem+json"
    charged: float = problem["charge"]["epsilon"]
    assert (f"It cost epsilon = {EPSILON:g}" in problem["detail"]) == (charged > 0)
    return charged


@pytest.mark.parametrize(
    ("failure", "code", "way"),
    [
        ("EngineFailedError", "engine.failed", "fixed"),
        ("EngineFailedError", "engine.failed", "trusted"),
        ("EngineFailedError", "engine.failed", "job"),
        ("EngineTimeoutError", "engine.timeout", "fixed"),
        ("SourceUnavailableError", "source.unavailable", "fixed"),
        ("MemoryError", "internal", "fixed"),
        ("MemoryError", "internal", "trusted"),
        ("ValueError", "internal", "job"),
    ],
)
def test_an_engine_that_fails_costs_what_one_that_answers_does(served, price, failure, code, way):
    server, planted = served
    eve = server.analyst("eve", trusted=way == "trusted")
    watch, asked = Watch(server.home), question()
    planted(fail=failure)
    start = time.monotonic()
    if way == "job":
        path = eve.request("POST", "/v1/ask", asked, {"Prefer": "respond-async"}).headers["location"]
        while (job := eve.get(path).json)["state"] == "running":
            time.sleep(0.02)
        problem = job["problem"]
    else:
        reply = eve.post("/v1/ask", asked)
        problem = reply.json
        assert told(reply) == EPSILON
    took = time.monotonic() - start
    planted()
    assert way == "trusted" or took >= ANSWER  # at its time, as an answer
    assert problem["code"] == code and problem["charge"]["epsilon"] == EPSILON
    assert "a value of a row" not in json.dumps(problem)
    assert watch.rho == pytest.approx([price, price]) and watch.kinds == ["charge", "failure"]
    row = eve.get("/v1/history").json["history"][-1]
    assert row["charge"]["epsilon"] == EPSILON


def test_a_retry_after_a_failure_is_a_new_charge_unless_it_is_the_same_request(served, price):
    server, planted = served
    eve, watch = server.analyst("eve", trusted=True), Watch(server.home)
    keyed = question(idempotency_key="k")
    planted(fail="EngineFailedError")
    assert told(eve.post("/v1/ask", keyed)) == EPSILON
    planted()
    again = eve.post("/v1/ask", keyed)  # known to have failed: no look, and nothing for it
    assert again.status == 503 and again.json["charge"]["epsilon"] == 0
    assert watch.kinds == ["charge", "failure"]
    keyed.pop("idempotency_key")
    new = eve.post("/v1/ask", keyed)
    assert new.status == 200 and new.json["charge"]["epsilon"] == EPSILON and not new.json["free"]
    assert watch.kinds == ["charge", "failure", "charge", "answer"]
    assert watch.rho == pytest.approx([2 * price] * 2)


def test_a_source_that_changes_under_the_look_is_charged_and_one_that_had_changed_is_not(served, price):
    server, planted = served
    file, eve = server.home.parent / "visits.parquet", server.analyst("eve", trusted=True)
    before, asked, watch = file.read_bytes(), question(), Watch(server.home)
    planted(sleep=0.5)
    found: list[Reply] = []
    asking = threading.Thread(target=lambda: found.append(eve.post("/v1/ask", asked)))
    asking.start()
    watch.until("charge")
    pq.write_table(people(victim=False).slice(1), file)
    asking.join()
    planted()
    (reply,) = found
    assert reply.json["code"] == "source.changed" and told(reply) == EPSILON
    assert watch.rho == pytest.approx([price, price]) and watch.kinds == ["charge", "failure"]
    reply = eve.post("/v1/ask", asked)
    assert reply.json["code"] == "source.changed" and told(reply) == 0
    assert watch.rho == pytest.approx([price, price]) and watch.kinds == ["charge", "failure"]
    file.write_bytes(before)
    assert eve.post("/v1/ask", asked).status == 200


def sent(server: Server, body: dict[str, Any]) -> socket.socket:
    """A whole request, on a connection of its own."""
    text = json.dumps(body)
    token = server.token("analyst", "eve", trusted=False)
    port = int(server.url.rsplit(":", 1)[1])
    found = socket.create_connection(("127.0.0.1", port), timeout=FOREVER)
    lines = ["POST /v1/ask HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", f"Content-Length: {len(text)}"]
    found.sendall(("\r\n".join([*lines, "Content-Type: application/json", "", ""]) + text).encode())
    return found


def test_a_client_that_hangs_up_pays_and_may_have_what_it_paid_for(served, price):
    server, _ = served
    asked = question()
    server.token("analyst", "eve", trusted=False)
    watch = Watch(server.home)
    connection = sent(server, asked)
    watch.until("charge")
    connection.close()
    assert watch.rho == pytest.approx([price, price])
    watch.until("charge", "answer")
    again = server.analyst("eve").post("/v1/ask", asked).json
    assert again["free"] and again["charge"]["epsilon"] == 0
    assert watch.rho == pytest.approx([price, price]) and watch.kinds == ["charge", "answer"]


@pytest.fixture
def small(tmp_path) -> Path:
    """A home with little budget."""
    return home_in(tmp_path)


def test_who_hangs_up_again_and_again_runs_out_of_budget(small):
    """Aborted requests look no more often than the budget allows."""
    with planting(small) as (server, _):
        server.token("analyst", "eve", trusted=False)
        for at in range(12):
            connection = sent(server, question() | {"epsilon": 1.0})
            if at % 2:
                connection.shutdown(socket.SHUT_WR)
            connection.close()
        eve, owner = server.analyst("eve"), server.owner()
        end = time.monotonic() + FOREVER
        while eve.post("/v1/ask", question() | {"epsilon": 1.0}).status != 402:
            assert time.monotonic() < end
        rows = eve.get("/v1/history").json["history"]
        while f"dalenius_questions_total {len(rows)}.0" not in owner.get("/metrics").content.decode():
            assert time.monotonic() < end  # no look that is not in the history
            time.sleep(0.05)
        assert 1 <= len(rows) < 12 and all(each["charge"]["epsilon"] == 1.0 for each in rows)


@pytest.mark.parametrize("keyed", [False, True], ids=["asked again", "same request"])
def test_a_server_that_is_killed_has_charged_and_the_next_one_finishes_without_a_second_charge(small, price, keyed):
    body = question() | ({"idempotency_key": "k"} if keyed else {})
    watch = Watch(small)

    def ask(server: Server) -> None:
        with suppress(OSError, HTTPException):
            server.analyst("eve").post("/v1/ask", body)

    with planting(small) as (server, planted):
        planted(sleep=ANSWER / 2)
        asking = threading.Thread(target=ask, args=[server])
        asking.start()
        watch.until("charge")
        server.kill()
        asking.join()
    assert watch.kinds == ["charge"] and watch.rho == pytest.approx([price, price])
    with serving(small, config=CONFIG) as server:
        (row,) = server.analyst("eve", trusted=True).get("/v1/history").json["history"]
        assert row["charge"]["epsilon"] == EPSILON
        assert server.analyst("eve", trusted=True).post("/v1/ask", body).status == 200
    assert watch.kinds == ["charge", "answer"] and watch.rho == pytest.approx([price, price])


@pytest.mark.parametrize(
    "sql", ["SELECT COUNT(* FROM visits", "SELECT FIRST(age) FROM visits", "SELECT COUNT(*) FROM u"]
)
def test_what_never_reached_the_data_costs_nothing(served, sql):
    server, _ = served
    eve, watch = server.analyst("eve"), Watch(server.home)
    reply = eve.ask(sql, epsilon=EPSILON)
    assert 400 <= reply.status < 500 and told(reply) == 0 and watch.kinds == [] and watch.rho == [0, 0]
