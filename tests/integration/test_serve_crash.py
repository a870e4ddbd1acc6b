"""kill −9 of the server under load: what a client was told is in the ledger, comes again, and is paid for once."""

from __future__ import annotations

import collections
import hashlib
import http.client
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.serving import Client, Reply, Server, start

from dalenius.curator import Curator
from dalenius.ledger import Ledger, verify

pytestmark = pytest.mark.integration

ANALYSTS = ("ana", "bob", "eve")
THREADS = 6
EPSILON = 0.001
POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 1000
delta = 1e-6
{analysts}
[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.01
[columns.region]
type = "category"
keys = ["north", "south"]
[contribution]
rows = 30
groups = 2
"""
CONFIG = "rate = 100000\nburst = 100000\nconcurrency = 100\nwait = 300"


@dataclass
class Asked:
    """A request that was sent, and what came back, if anything did."""

    analyst: str
    sql: str
    key: str
    told: dict[str, Any] | None = None

    def send(self, client: Client) -> Reply:
        return client.ask(self.sql, epsilon=EPSILON, idempotency_key=self.key)


@dataclass
class Load:
    """Analysts who ask one question after the other until the server is gone. Some ask what another one asks too."""

    chance: random.Random
    asked: list[Asked] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)  # what no client should ever see
    begun: threading.Event = field(default_factory=threading.Event)
    count: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, analyst: str) -> Asked:
        """Mostly a new question; sometimes the newest one, which somebody else may be waiting for."""
        with self.lock:
            self.count += self.chance.random() < 0.8 or not self.count
            number, kind = self.count, self.count % 2
            grouped = ("SELECT COUNT(*) AS n", "") if kind else ("SELECT region, SUM(amount) AS s", " GROUP BY region")
            sql = f"{grouped[0]} FROM visits WHERE amount < {number // 100}.{number % 100:02}{grouped[1]}"
            found = Asked(analyst, sql, f"key {len(self.asked)}")
            self.asked.append(found)
            return found

    def run(self, server: Server, analyst: str) -> None:
        client = server.analyst(analyst, trusted=True)
        while True:
            asked = self.next(analyst)
            try:
                reply = asked.send(client)
            except (OSError, http.client.HTTPException):
                return  # it was killed
            self.begun.set()
            if reply.status == 200:
                asked.told = reply.json
            else:
                self.odd.append(f"{reply.status} {reply.content[:300]!r}")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    rows = {
        "user_id": [each % 100 for each in range(500)],
        "amount": [float(each * 7 % 4000) for each in range(500)],
        "region": [("north", "south")[each % 2] for each in range(500)],
    }
    pq.write_table(pa.table(rows), tmp_path / "visits.parquet")
    analysts = "\n".join(f"[analysts.{each}]\nepsilon = 1000" for each in ANALYSTS)
    (tmp_path / "visits.toml").write_text(POLICY.format(analysts=analysts))
    Curator(tmp_path / "home").protect(tmp_path / "visits.toml")
    return tmp_path / "home"


def same(told: dict[str, Any], again: dict[str, Any]) -> bool:
    """The same release: values, errors and guarantee. Only what it costs now and what is left may differ."""
    return all(told[each] == again[each] for each in ("columns", "rows", "noise_error", "interval", "guarantee"))


def check_ledger(home: Path, load: Load) -> None:
    """Every answer that left was paid for, once, and has the receipt that was handed out."""
    ledger = Ledger.open(home)
    found = verify(ledger)
    entries = list(ledger.entries())
    by_number = {each.number: each for each in entries}
    charges = [each for each in entries if each.kind == "charge"]
    paid = collections.Counter((each.data["question"], each.data["analyst"]) for each in charges)
    assert not [question for question, count in paid.items() if count > 1]  # by each analyst, whoever was killed
    retries = collections.Counter(each.data["retry"][0] for each in entries if "retry" in each.data)
    assert not [key for key, count in retries.items() if count > 1]
    fresh = [each for each in charges if "shares" not in each.data]
    assert found.charges == len(charges) and len(fresh) == ledger.balance("visits").charges
    for asked in load.asked:
        if asked.told is None:
            continue
        receipt = asked.told["receipt"]
        number, _, start_of_hash = receipt["id"][1:].partition("-")
        entry = by_number[int(number)]
        assert entry.kind == "answer" and entry.hash.hex().startswith(start_of_hash)
        charge = by_number[entry.data["charge"]]
        assert charge.kind == "charge" and charge.number < entry.number
        assert charge.data["question"] == hashlib.sha256(asked.sql.encode()).hexdigest()
        assert charge.data["analyst"] == asked.analyst
        assert ledger.receipt(receipt["id"], asked.analyst).to_dict() == receipt
    ledger.database.close()


def check_again(server: Server, load: Load, chance: random.Random, before: int) -> None:
    """Answers come again as they were; who never heard back asks with the same key, and pays at most once."""
    clients = {each: server.analyst(each, trusted=True) for each in ANALYSTS}
    heard = [each for each in load.asked if each.told is not None]
    for asked in chance.sample(heard, min(8, len(heard))):
        again = clients[asked.analyst].ask(asked.sql, epsilon=EPSILON)
        assert again.status == 200, again.content
        assert asked.told is not None
        assert again.json["free"] and again.json["charge"]["epsilon"] == 0 and same(asked.told, again.json)
    for asked in load.asked[before:]:
        reply = asked.send(clients[asked.analyst])
        assert reply.status == 200, reply.content
        if asked.told is not None:
            assert reply.json["free"] and same(asked.told, reply.json)
        asked.told = asked.told or reply.json
        third = asked.send(clients[asked.analyst])
        assert third.json["free"] and same(asked.told, third.json)
    paid = (each for each in load.asked[before:] if each.told is not None and each.told["charge"]["epsilon"] > 0)
    other = next(paid, None)
    if other is not None:  # the key is taken; that of a request which cost nothing is not
        wrong = clients[other.analyst].ask(f"{other.sql} ", epsilon=EPSILON, idempotency_key=other.key)
        assert wrong.status == 400 and wrong.json["code"] == "input.invalid"
    for client in clients.values():
        client.close()


def test_kill_9_loses_no_charge_and_no_answer(home: Path, rounds):
    chance = random.Random(8)
    load = Load(random.Random(9))
    unheard = 0
    server = start(home, config=CONFIG)
    try:
        tokens = server.tokens
        for _ in range(max(3, rounds(50))):
            before = len(load.asked)
            load.begun.clear()
            for name in ANALYSTS:  # made here: threads would make them twice
                server.token("analyst", name, trusted=True)
            threads = [
                threading.Thread(target=load.run, args=(server, ANALYSTS[each % len(ANALYSTS)]))
                for each in range(THREADS)
            ]
            for each in threads:
                each.start()
            if chance.random() < 0.9:  # sometimes before the first answer
                assert load.begun.wait(60)
            time.sleep(chance.uniform(0, 0.5))
            server.kill()
            for each in threads:
                each.join()
            assert not load.odd
            unheard += sum(each.told is None for each in load.asked[before:])
            check_ledger(home, load)
            if server.process.stdout is not None:
                server.process.stdout.close()
            server = start(home)
            server.tokens = tokens
            check_again(server, load, chance, before)
            check_ledger(home, load)
        assert unheard >= THREADS  # kills hit requests that were on their way
        assert all("Traceback" not in line for line in server.log_file.read_text().splitlines())
    finally:
        server.kill()
        if server.process.stdout is not None:
            server.process.stdout.close()
