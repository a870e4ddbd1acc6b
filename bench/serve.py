"""Many analysts at once over HTTP, beside as many threads on the curator itself: throughput, waiting, memory, ledger.

Both do the same mix of new questions, repeats and previews on the same table, each on a fresh home, for trusted tokens
(no fixed times). The in-process half runs before and after the other, so that a busy machine hits both alike. Clients
are processes of their own with bare sockets; what CPU they take is stated, since it is taken from the server.

Targets: at least 0.5 of the in-process answers a second; no 5xx; no overspend; every answer that was paid for has its
receipt in the ledger, which verifies; the server's memory stays flat.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.accounting.conversions import zcdp_epsilon
from dalenius.curator import Curator
from dalenius.errors import BudgetError
from dalenius.ledger.ledger import Ledger
from dalenius.ledger.tokens import Role, Tokens
from dalenius.ledger.verification import verify

ROWS, UNITS = 1_000, 200
EPSILON, BUDGET = 0.001, 1000.0
LITTLE = 0.004  # ε of every sixteenth analyst, who soon runs out of it
CLIENTS = 2  # processes
NEW, AGAIN = 0.7, 0.2  # shares of the mix; the rest are previews
TARGET, GROWTH = 0.5, 1.1
REGIONS = ("north", "south", "east", "west")
WHERE = "WHERE age < {0} AND amount < {1}.{2:03}"
QUESTIONS = (
    f"SELECT COUNT(*) AS n FROM visits {WHERE}",
    f"SELECT AVG(amount) AS a FROM visits {WHERE}",
    f"SELECT region, COUNT(*) AS n, SUM(amount) AS s FROM visits {WHERE} GROUP BY region",
)
WARM = "SELECT COUNT(*) AS n FROM visits WHERE age < {0}"
POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = {budget}
delta = 1e-6
{analysts}
[columns.age]
type = "integer"
bounds = [0, 400]
[columns.region]
type = "category"
keys = ["north", "south", "east", "west"]
[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.001
[contribution]
rows = 30
groups = 3
totals = {{ amount = 20000 }}
"""
SERVER = """[server]
rate = 1e6
burst = 1000000
concurrency = 1000
wait = 120
"""


class Reply(Protocol):
    """Sends one request: "ask" or "preview", and its SQL; status, and what came back."""

    def __call__(self, path: str, sql: str) -> tuple[int, dict[str, Any]]: ...


@dataclass
class Done:
    """What one or more analysts did."""

    answered: int = 0
    statuses: collections.Counter[int] = field(default_factory=collections.Counter)
    seconds: list[float] = field(default_factory=list)
    receipts: list[str] = field(default_factory=list)
    paid: float = 0.0
    cpu: float = 0.0
    wall: float = 0.0

    def add(self, other: Done) -> None:
        self.answered += other.answered
        self.statuses.update(other.statuses)
        self.seconds += other.seconds
        self.receipts += other.receipts
        self.paid += other.paid
        self.cpu += other.cpu
        self.wall += other.wall


def mix(number: int, run: int, reply: Reply, end: float) -> Done:
    """One analyst until a time: mostly new questions, some of them again, some previews."""
    chance, done = random.Random(f"{number} {run}"), Done()
    asked: list[str] = []
    at = 0
    while time.monotonic() < end:
        draw = chance.random()
        at += 1
        place = 100_000 * run + at  # nobody else asks this, and nobody has
        new = QUESTIONS[at % len(QUESTIONS)].format(number + 1, 1 + place // 1000, place % 1000)
        started = time.monotonic()
        if draw < NEW or not asked:
            status, told = reply("ask", new)
            if status == 200:
                asked.append(new)
        elif draw < NEW + AGAIN:
            status, told = reply("ask", chance.choice(asked))
        else:
            status, told = reply("preview", new)
        done.seconds.append(time.monotonic() - started)
        done.statuses[status] += 1
        if status == 200 and "receipt" in told:
            done.answered += 1
            done.receipts.append(told["receipt"]["id"])
            done.paid += told["charge"]["epsilon"]
    return done


def together(work: Callable[[int], Done], numbers: Sequence[int]) -> Done:
    """Threads, one for each analyst."""
    total, lock = Done(), threading.Lock()

    def one(number: int) -> None:
        found = work(number)
        with lock:
            total.add(found)

    started = time.monotonic()
    threads = [threading.Thread(target=one, args=(number,)) for number in numbers]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    total.wall = time.monotonic() - started  # with the last answers
    total.cpu = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    return total


# --- the two sides


def inside(home: Path, analysts: int, run: int, seconds: float, out: Connection) -> None:
    """The curator itself, in this process."""
    curator = Curator(home)
    curator.engines, curator.registry.place  # noqa: B018 (made once)

    def work(number: int) -> Done:
        analyst = curator.analyst(f"a{number}")

        def reply(path: str, sql: str) -> tuple[int, dict[str, Any]]:
            try:
                found = getattr(analyst, path)(sql, epsilon=EPSILON)
            except BudgetError:
                return 402, {}
            return 200, found.to_dict()

        return mix(number, run, reply, end)

    curator.analyst("a1").ask(WARM.format(100 + run), epsilon=EPSILON)
    end = time.monotonic() + seconds
    out.send(together(work, range(analysts)))


def clients(url: str, tokens: dict[int, str], run: int, seconds: float, out: Connection) -> None:
    """Analysts at their sockets."""
    end = time.monotonic() + seconds
    parts = urlsplit(url)

    def work(number: int) -> Done:
        with socket.create_connection((str(parts.hostname), parts.port), timeout=300) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return mix(number, run, partial(sent, line, tokens[number]), end)

    out.send(together(work, list(tokens)))


def sent(line: socket.socket, token: str, path: str, sql: str) -> tuple[int, dict[str, Any]]:
    """One request, and its response with a Content-Length, as all of ours have."""
    content = json.dumps({"sql": sql, "epsilon": EPSILON})
    head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json"
    line.sendall(f"POST /v1/{path} HTTP/1.1\r\n{head}\r\nContent-Length: {len(content)}\r\n\r\n{content}".encode())
    found = b""
    while b"\r\n\r\n" not in found:
        more = line.recv(65536)
        if not more:
            raise ConnectionError("the server hung up")
        found += more
    top, _, body = found.partition(b"\r\n\r\n")
    length = int(top.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += line.recv(65536)
    return int(top[9:12]), json.loads(body)


def apart(target: Callable[..., None], several: Sequence[tuple[Any, ...]]) -> Done:
    """Each in a fresh process; what all of them did."""
    context, total, running = multiprocessing.get_context("spawn"), Done(), []
    for arguments in several:
        here, there = context.Pipe()
        process = context.Process(target=target, args=(*arguments, there))
        process.start()
        there.close()
        running.append((process, here))
    for process, here in running:
        total.add(here.recv())
        process.join()
    return total


def watched(process: int, every: float, stop: threading.Event, sizes: list[float]) -> None:
    """The resident memory of a process, in MB."""
    page = os.sysconf("SC_PAGE_SIZE")
    while not stop.wait(every):
        sizes.append(int(Path(f"/proc/{process}/statm").read_text().split()[1]) * page / 2**20)


# --- the whole


def made(folder: Path, analysts: int) -> Path:
    """A fresh home with the table."""
    folder.mkdir()
    draw = random.Random(1)
    rows = {
        "user_id": [draw.randrange(UNITS) for _ in range(ROWS)],
        "age": [draw.randrange(18, 99) for _ in range(ROWS)],
        "region": [draw.choice(REGIONS) for _ in range(ROWS)],
        "amount": [draw.random() * 4000 for _ in range(ROWS)],
    }
    pq.write_table(pa.table(rows), folder / "visits.parquet")
    given = [f"[analysts.a{each}]\nepsilon = {LITTLE if each % 16 == 0 else BUDGET}" for each in range(analysts)]
    (folder / "visits.toml").write_text(POLICY.format(budget=BUDGET, analysts="\n".join(given)))
    Curator(folder / "home").protect(folder / "visits.toml")
    return folder / "home"


def checked(home: Path, done: Done, more: int = 0) -> list[str]:
    """What is wrong with the ledger after all that; ``more`` charges were made by others."""
    ledger, wrong = Ledger.open(home), []
    found = verify(ledger)
    charges = [each.data for each in ledger.entries() if each.kind == "charge"]
    answers = {f"R{each.number}-{each.hash.hex()[:12]}" for each in ledger.entries() if each.kind == "answer"}
    spent, balance = sum(each["epsilon"] for each in charges), ledger.balance("visits")
    if not balance.charges == len(charges) == found.charges:
        wrong.append("charges do not add up")
    lost = [each for each in done.receipts if each not in answers]
    if lost:
        wrong.append(f"{len(lost)} receipts are not in the ledger")
    if abs(spent - done.paid - more * EPSILON) > 1e-6 * spent:
        wrong.append(f"clients paid {done.paid:.4f}, the ledger charged {spent:.4f}")
    for who, cap in {"": BUDGET, **ledger.allotments("visits")}.items():
        rho = sum(each["rho"] for each in charges if who in {"", each["analyst"]})
        if rho and zcdp_epsilon(rho, balance.budget.conversion_delta) > cap * (1 + 1e-9):
            wrong.append(f"{who or 'the data set'} overspent")
    return wrong


def main() -> None:
    """In process, over HTTP, in process again."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=120, help="of load over HTTP")
    options.add_argument("--analysts", type=int, default=64)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, half = Path(name), max(5.0, given.seconds / 4)
        own, served = made(folder / "own", given.analysts), made(folder / "served", given.analysts)
        direct = apart(inside, [(own, given.analysts, 1, half)])
        http, sizes, server_cpu = over_http(served, given.analysts, given.seconds)
        direct.add(apart(inside, [(own, given.analysts, 2, half)]))
        print(f"{given.analysts} analysts, {given.seconds:g} s over HTTP; in process {half:g} s before and after")
        http.wall /= CLIENTS  # they ran side by side
        rates = told("in process", direct), told("over HTTP", http)
        print(f"CPU s: in process {direct.cpu:.0f}, server {server_cpu:.0f}, its clients {http.cpu:.1f}")
        wrong = checked(own, direct, more=2) + checked(served, http, more=1)
        bad = sum(count for status, count in http.statuses.items() if status not in {200, 402})
        print(f"other statuses than 200 and 402: {bad}  {_verdict(bad == 0)}")
        print(f"ledgers: {'; '.join(wrong) or 'verified, no charge lost, none too many'}  {_verdict(not wrong)}")
        ratio = rates[1] / rates[0]
        print(f"HTTP / in process: {ratio:.2f} (target ≥ {TARGET})  {_verdict(ratio >= TARGET)}")
        quarter = len(sizes) // 4
        if quarter:
            before, after = statistics.median(sizes[quarter : 2 * quarter]), statistics.median(sizes[-quarter:])
            growth = f"memory: {before:.0f} MB in the 2nd quarter, {after:.0f} MB in the last"
            print(f"{growth}: {after / before:.3f} (target ≤ {GROWTH})  {_verdict(after / before <= GROWTH)}")


def over_http(home: Path, analysts: int, seconds: float) -> tuple[Done, list[float], float]:
    """The load on a server; what its clients did, its memory over time, its CPU seconds."""
    (home / "config.toml").write_text(SERVER)
    tokens = Tokens(Ledger.open(home))
    texts = {each: tokens.create(Role.ANALYST, f"a{each}", trusted=True)[0] for each in range(analysts)}
    command = [sys.executable, "-m", "dalenius", "serve", "--home", str(home), "--json", "--port", "0", "--quiet"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    sizes: list[float] = []
    stop = threading.Event()
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        parts = urlsplit(url)
        with socket.create_connection((str(parts.hostname), parts.port)) as line:
            sent(line, texts[1], "ask", WARM.format(100))
        watch = threading.Thread(target=watched, args=(server.pid, min(5.0, seconds / 20), stop, sizes))
        watch.start()
        share = [{each: text for each, text in texts.items() if each % CLIENTS == at} for at in range(CLIENTS)]
        done = apart(clients, [(url, each, 0, seconds) for each in share])
        stop.set()
        watch.join()
        ticks = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    finally:
        stop.set()
        server.terminate()
        server.wait()
    return done, sizes, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def told(case: str, done: Done) -> float:
    """One line; answers a second."""
    waits = sorted(done.seconds)
    half, most = (1e3 * waits[int(len(waits) * share)] for share in (0.5, 0.99))
    counts = ", ".join(f"{count} × {status}" for status, count in sorted(done.statuses.items()))
    rate = done.answered / done.wall
    print(f"{case:<11} {rate:7.1f} answers/s  p50 {half:6.0f} ms  p99 {most:6.0f} ms  ({counts})")
    return rate


def _verdict(holds: bool) -> str:
    return "ok" if holds else "MISSED"


if __name__ == "__main__":
    main()
