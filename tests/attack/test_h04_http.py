"""H4 over HTTP: how long an answer takes, and when anything about it shows, does not tell whether the victim is there.

The false-alarm rate of every comparison is `ALARM`, so that all of them together stay below 1e-6 (`served.chance`).
"""

from __future__ import annotations

import math
import sqlite3
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.attack.hostile import REGIONS, VICTIM, protected
from tests.attack.watched import Planted, alternately, chance, planting, timed
from tests.serving import Client, Reply, Server

from dalenius.curator import Curator

pytestmark = pytest.mark.alone

ALARM = 1e-7
BATCHES = 5  # a planted delay may take so many times as many calls to be seen, on a busy machine
ANSWER, CAP = 0.1, 1.0  # seconds, on a machine that is not busy
HELD = 1.5  # seconds, where it is watched what shows meanwhile
EPSILON = 1.0
VICTIMS = {"rows": (10_000, 1), "keys": (500, 500)}  # rows, and keys among them


def table(rows: int, keys: int) -> pa.Table:
    """2,000 people with a row each, and a victim with so many rows of so many keys."""
    people = 2000
    ordinary = range(people)
    return pa.table(
        {
            "user_id": [*ordinary, *[VICTIM] * rows],
            "age": [*(18 + at % 70 for at in ordinary), *[90] * rows],
            "region": [*(REGIONS[at % 3] for at in ordinary), *["west"] * rows],
            "amount": [*(float(at % 900) for at in ordinary), *(float(at % 5000) for at in range(rows))],
            "day": [date(2025, 1, 1) + timedelta(days=at % 300) for at in range(people + rows)],
            "smoker": [*(at % 4 == 0 for at in ordinary), *[True] * rows],
            "note": [*(f"word {at % 4}" for at in ordinary), *(f"rare {at % max(1, keys)}" for at in range(rows))],
        }
    )


def curator_of(folder: Path, rows: int, keys: int, *, answer: float = ANSWER, cap: float = CAP) -> Curator:
    more = f"[time]\nanswer = {answer}\ncap = {cap}\nlate = 1000"  # what stalls on a busy machine suspends nobody
    return protected(folder, table(rows, keys), epsilon=20_000.0, delta=1e-5, more=more)


def question(number: int, series: int) -> dict[str, Any]:
    """A new question for each number: sums over everybody's rows, or keys that are found among everybody's."""
    where = f"WHERE amount < {1000 + 200 * series + number / 100}"
    if number % 2:
        sql = f"SELECT note, COUNT(*) FROM visits {where} GROUP BY note"
        return {"sql": sql, "epsilon": EPSILON, "delta": 1e-9}
    return {"sql": f"SELECT COUNT(*), SUM(amount), COUNT(DISTINCT user_id) FROM visits {where}", "epsilon": EPSILON}


def busy(curator: Curator) -> float:
    """How many times longer than usual answers take just now: between 1 and 8."""
    took = []
    for number in range(6):
        start = time.perf_counter()
        asked = question(number, 0)
        curator.analyst("eve").ask(asked.pop("sql"), **asked)
        took.append(time.perf_counter() - start)
    return min(8.0, max(1.0, statistics.median(took) / 0.025))


@dataclass
class Pair:
    """A server, what is planted in it, the times of its policy, and how many questions may be under way at once."""

    server: Server
    planted: Planted
    answer: float
    cap: float
    threads: int = 1

    def asking(self, series: int, *, trusted: bool = False) -> Callable[[int], Reply]:
        """Asks the question of a number, each thread on a connection of its own."""
        held = threading.local()
        self.server.token("analyst", "eve", trusted=trusted)

        def call(number: int) -> Reply:
            if not hasattr(held, "client"):
                held.client = self.server.analyst("eve", trusted=trusted)
            reply: Reply = held.client.post("/v1/ask", question(number, series))
            return reply

        return call


@pytest.fixture(scope="module")
def servers(tmp_path_factory) -> Iterator[dict[str, Pair]]:
    """Without a victim, and with either. On a busy machine all takes longer, and several rounds run at once."""
    folder = tmp_path_factory.mktemp("h4")
    slower = busy(curator_of(folder / "busy", *VICTIMS["rows"]))
    answer, cap = math.ceil(20 * slower * ANSWER) / 20, slower * CAP
    with ExitStack() as stack:
        found = {}
        for name, victim in {"without": (0, 0), **VICTIMS}.items():
            home = curator_of(folder / name, *victim, answer=answer, cap=cap).home
            found[name] = Pair(*stack.enter_context(planting(home)), answer, cap, min(8, round(3 * slower)))
        for pair in found.values():  # the first question loads what the others have
            for trusted in (False, True):
                for number in (0, 1):
                    pair.asking(1 + trusted, trusted=trusted)(number)
        yield found


@pytest.mark.parametrize("more", [(0.0, 0.0), (0.005, 0.03)], ids=["as it is", "5 and 30 ms"])
def test_answers_about_a_victim_leave_when_all_others_do(servers, rounds, more):
    """10,000 rows or 500 keys of one person: no difference in the times, nor with so much more work in the engine."""
    for name, sleep in zip(VICTIMS, more, strict=True):
        servers[name].planted(sleep=sleep)
    calls = [each.asking(3 + bool(sum(more))) for each in servers.values()]
    without, rows, keys = alternately(calls, rounds(1000 if sum(more) else 2000), threads=servers["rows"].threads)
    for name in VICTIMS:
        servers[name].planted()
    assert min(without + rows + keys) >= servers["rows"].answer
    told = {"rows": chance(without, rows), "keys": chance(without, keys), "both": chance(rows, keys)}
    print(f"at most: {told}")
    assert min(told.values()) > ALARM, told


@pytest.mark.quiet
def test_the_same_comparison_sees_5_ms_where_answers_leave_at_once(servers, rounds):
    """Teeth: a trusted analyst's answers leave when they are ready. The victim with 500 keys is slower as it is."""
    pair = servers["without"]
    plain, late = (pair.asking(series, trusted=True) for series in (5, 6))

    def slow(number: int) -> Any:
        pair.planted(sleep=0.005)
        try:
            return late(number)
        finally:
            pair.planted()

    one: list[float] = []
    other: list[float] = []
    for _ in range(BATCHES):
        found = alternately([plain, slow], rounds(2000), len(one))
        one, other = one + found[0], other + found[1]
        print(f"at most: {chance(one, other):.2g} after {len(one)} calls a side")
        if chance(one, other) <= ALARM / BATCHES:
            return
    raise AssertionError(f"5 ms were not seen: {chance(one, other):.2g}")


# --- nothing shows before the fixed time


@pytest.fixture(scope="module")
def held(tmp_path_factory) -> Iterator[Pair]:
    """A server whose answers leave after HELD seconds, long after they are ready."""
    home = curator_of(tmp_path_factory.mktemp("held"), 0, 0, answer=HELD, cap=3 * HELD).home
    with planting(home) as (server, planted):
        server.analyst("eve").post("/v1/ask", question(0, 7))
        yield Pair(server, planted, HELD, 3 * HELD)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def entries(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/v1/ledger?limit=1000").json["entries"]
    return found


def on_disk(home: Path) -> list[Any]:
    """Everything in the ledger's file: what a backup, or another process, would see."""
    (file,) = (each for each in home.rglob("*") if each.is_file() and each.read_bytes()[:6] == b"SQLite")
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [(name, connection.execute(f'SELECT * FROM "{name}"').fetchall()) for name in sorted(names)]


def counted(text: str) -> list[str]:
    """Metrics that are about questions, not about the requests that watch them."""
    lines = [each for each in text.splitlines() if not each.startswith("#")]
    return [each for each in lines if "questions_total" in each or "refusals" in each or '"/v1/ask"' in each]


def test_nothing_about_a_question_changes_before_its_time(held):
    server = held.server
    eve, second, auditor, owner = server.analyst("eve"), server.analyst("eve"), server.auditor(), server.owner()
    owner.get("/metrics"), auditor.get("/v1/ledger")  # their tokens are entries too
    before = len(entries(auditor))
    asked = question(1, 8)
    started = time.monotonic()
    reply = eve.request("POST", "/v1/ask", asked, {"Prefer": "respond-async"})
    assert reply.status == 202 and reply.json["state"] == "running"
    path = reply.headers["location"]
    late: list[tuple[float, Reply]] = []
    other = threading.Thread(target=lambda: late.append(timed(lambda: second.post("/v1/ask", asked))))
    while (job := eve.get(path).json)["leaves"] is None:
        assert time.monotonic() - started < HELD / 2
    leaves = moment(job["leaves"])
    joined = time.monotonic()
    other.start()
    time.sleep(HELD / 3)  # the work is done by now
    shown = []
    while (left := (leaves - datetime.now(UTC)).total_seconds()) > 0.15:
        job = eve.get(path).json
        after = (leaves - datetime.now(UTC)).total_seconds()
        assert after - 0.002 <= job.pop("seconds_left") <= left + 0.002  # the clock's doing alone
        history = eve.get("/v1/history").json
        rows = entries(auditor)[before:]
        shown.append((job, history, rows, counted(owner.get("/metrics").content.decode()), on_disk(server.home)))
        time.sleep(0.03)
    assert len(shown) >= 3 and all(each == shown[0] for each in shown), shown
    job, _, rows, *_ = shown[0]
    assert job["state"] == "running" and [each["kind"] for each in rows] == ["charge"] and not late
    other.join()
    assert datetime.now(UTC) >= leaves and joined + late[0][0] >= started + HELD
    assert late[0][1].status == 200
    done = eve.get(path).json
    (answer,) = (each for each in entries(auditor)[before:] if each["kind"] == "answer")
    assert done["state"] == "done" and done["leaves"] == job["leaves"]
    times = [moment(answer["time"]), moment(done["result"]["receipt"]["time"])]
    fixed = timedelta(milliseconds=5)  # both clocks are read once each
    assert all(leaves - fixed <= each < leaves + timedelta(seconds=0.5) for each in times), (leaves, times)
    assert late[0][1].json["receipt"] == done["result"]["receipt"]


def test_answers_are_written_in_the_order_of_their_times_not_of_their_work(held):
    server = held.server
    eve, auditor = server.analyst("eve"), server.auditor()
    auditor.get("/v1/ledger")
    before = len(entries(auditor))
    paths = []
    for number, sleep in ((0, 0.8), (2, 0.0)):
        held.planted(sleep=sleep)
        reply = eve.request("POST", "/v1/ask", question(number, 9), {"Prefer": "respond-async"})
        paths.append(reply.headers["location"])
        time.sleep(0.2)
    held.planted()
    for path in paths:
        while eve.get(path).json["state"] == "running":
            time.sleep(0.05)
    found = [(each["kind"], each["data"].get("charge")) for each in entries(auditor)[before:]]
    first, second = (each["number"] for each in entries(auditor)[before:] if each["kind"] == "charge")
    assert found[2:] == [("answer", first), ("answer", second)]


@pytest.mark.parametrize("caps", [1, 2])
def test_what_is_late_leaves_at_the_cap_charged_and_with_an_alarm(servers, caps):
    """Also if it is not ready even then: past the cap, at the next multiple of it."""
    pair = servers["without"]
    owner, eve = pair.server.owner(), pair.server.analyst("eve")
    last = max((each["entry"] for each in owner.get("/v1/alarms").json["alarms"]), default=0)
    pair.planted(sleep=(caps - 0.5) * pair.cap)
    took, reply = timed(lambda: eve.post("/v1/ask", question(caps, 10)))
    pair.planted()
    assert caps * pair.cap <= took < (caps + 0.7) * pair.cap
    problem = reply.json
    assert (reply.status, problem["code"]) == (503, "engine.timeout")
    assert problem["charge"]["epsilon"] == EPSILON
    (alarm,) = owner.get(f"/v1/alarms?after={last}").json["alarms"]
    mine = eve.get(f"/v1/history?after={alarm['charge'] - 1}").json["history"]
    assert alarm["alarm"] == "late" and [each["entry"] for each in mine] == [alarm["charge"]]
