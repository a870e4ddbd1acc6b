"""One hostile token against a real server, while two other analysts ask a COUNT now and then.

It does all at once, as fast as it is let, from a process of its own: huge answers over a public table as jobs,
functions that cannot be interrupted, questions of 55 medians, keys that make many wide groups, a CUBE that is refused,
outer parts over releases that grow, previews of all of them, floods of polls, bad sign-ins with large forms, and
connections that stay idle. Loopback only, and bounded in time.

Targets: the others' COUNT takes at most 3 times what it takes without (median and worst; one analyst's answers leave at
fixed times, the other is trusted); server and children together stay below 1.5 GB; every charge has its answer, and
nobody was charged for anything else.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import http.client
import json
import multiprocessing
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.curator import Curator
from dalenius.ledger.ledger import Ledger
from dalenius.ledger.tokens import Role, Tokens
from dalenius.ledger.verification import verify

FACTOR, MEMORY = 3.0, 1.5e9
EPSILON = 0.001
EVERY = 0.3  # seconds between two of them
SETTLED = 180.0  # seconds at most until what the attack left has ended
POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 1000
delta = 1e-6
[analysts.eve]
epsilon = 1000
[analysts.bob]
epsilon = 1000
[analysts.ana]
epsilon = 1000
[columns.age]
type = "integer"
bounds = [0, 400]
[columns.city]
type = "category"
keys = ["a", "b", "c"]
[columns.day]
type = "date"
bounds = ["1900-01-01", "2030-12-31"]
[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.01
[contribution]
rows = 30
totals = {{ amount = 20000 }}
[time]
answer = 1.0
cap = {cap}
[public]
tables = {{ regions = {{ source = "regions.csv", key = "code" }} }}
"""
LEVENSHTEIN = "SELECT levenshtein(repeat('a', 1000000 + {0}), repeat('b', 1000000)) AS d FROM regions"
HUGE = "SELECT repeat(chr(128512), 3900000 + {0}) AS s FROM regions"
LARGE = "SELECT repeat(chr(128512), 900000 + {0}) AS s FROM regions LIMIT 1"
JOINED = "SELECT sum(a.n * b.n + {0}) AS s FROM (SELECT unnest(range(3000)) AS n FROM regions) a, regions b"
# New each time, and wide: 14,436 groups of 43 keys; and one whose sets together have far too many groups.
_KEYS = ", ".join(f"FLOOR(age / 3) + {1000 * at} + {{0}}" for at in range(40))
WIDE = f"SELECT COUNT(*) AS n FROM visits GROUP BY city, age, EXTRACT(month FROM day), {_KEYS}"
_DAYS = ", ".join(f"EXTRACT({unit} FROM day)" for unit in ("month", "day", "year"))
CUBE = f"SELECT COUNT(*) AS n FROM visits GROUP BY CUBE(city, (amount > {{0}}), age + {{0}}, {_DAYS})"
# Outer parts, which run after the charge and are free from then on: windows over 14,436 groups, all triples of a
# release's rows, texts that grow, few rows of many groups with copies of each, eight parts, names that multiply.
WINDOWS = (
    "SELECT city, age, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS s, RANK() OVER (PARTITION BY city ORDER BY COUNT(*)) "
    "AS r FROM visits GROUP BY city, age, EXTRACT(month FROM day) + {0}"
)
_AGES = "WITH t AS (SELECT age + {0} AS a, COUNT(*) AS n FROM visits GROUP BY 1)"
TRIPLES = f"{_AGES} SELECT SUM(a.n * b.n * c.n) AS s FROM t a, t b, t c"
GROWING = f"{_AGES} SELECT a, levenshtein(repeat('a', 100000 + 0 * n), repeat('b', 100000)) AS d FROM t"
_SUMS = ", ".join(f"SUM(CASE WHEN amount > {at} THEN 1 ELSE 0 END)" for at in range(30))
FEW = (
    f"SELECT {_SUMS}, RANK() OVER (ORDER BY age) AS r FROM visits GROUP BY city, age HAVING city = 'a' AND age < {{0}}"
)
PARTS = " UNION ALL ".join(f"SELECT COUNT(*) AS n FROM visits WHERE age < {at} + {{0}}" for at in range(8))
_STEPS = ", ".join(f"t{at + 1} AS (SELECT x.* FROM t{at} x, t{at} y)" for at in range(40))
DOUBLING = (
    f"WITH t0 AS (SELECT city, COUNT(*) AS n FROM visits WHERE age < {{0}} GROUP BY city), {_STEPS} SELECT n FROM t40"
)
LATER = {"Prefer": "respond-async"}


@dataclass
class Seen:
    """What came of it."""

    idle: dict[str, list[float]] = field(default_factory=dict)
    busy: dict[str, list[float]] = field(default_factory=dict)
    statuses: dict[str, collections.Counter[int]] = field(default_factory=dict)
    answered: collections.Counter[str] = field(default_factory=collections.Counter)
    memory: int = 0
    charges: int = 0
    answers: int = 0
    failures: int = 0
    unanswered: dict[str, int] = field(default_factory=dict)

    def ratio(self, who: str, of: Callable[[list[float]], float] = statistics.median) -> float:
        return of(self.busy[who]) / of(self.idle[who])


def medians(number: int) -> str:
    """A question of so many medians."""
    columns = ", ".join(f"MEDIAN(amount + {at}) AS m{at}" for at in range(number))
    return f"SELECT {columns} FROM visits WHERE age < {{0}}"


class Wire:
    """A client that connects anew whenever it has to."""

    def __init__(self, url: str, token: str | None) -> None:
        self._parts, self._token = urlsplit(url), token
        self._connection: http.client.HTTPConnection | None = None

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """One request; 0 for one that got no answer."""
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(str(self._parts.hostname), self._parts.port, timeout=120)
            sent = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            if body is not None and not isinstance(body, bytes):
                body, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
            self._connection.request(method, path, body, {**sent, **(headers or {})})
            reply = self._connection.getresponse()
            found = reply.status, reply.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return 0, b""
        if reply.will_close:
            self.close()
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Attack:
    """The hostile token."""

    def __init__(self, url: str, token: str, end: float, many: int) -> None:
        self.url, self.token, self.end = url, token, end
        self.statuses: dict[str, collections.Counter[int]] = collections.defaultdict(collections.Counter)
        self.jobs: collections.deque[str] = collections.deque(maxlen=300)
        self._number, self._lock = 0, threading.Lock()
        self._questions = (
            LARGE,
            CUBE,
            HUGE,
            medians(many),
            WIDE,
            LARGE,
            LEVENSHTEIN,
            medians(many),
            CUBE,
            JOINED,
            WIDE,
            WINDOWS,
            TRIPLES,
            DOUBLING,
            FEW,
            GROWING,
            PARTS,
        )

    def start(self) -> list[threading.Thread]:
        """All ways at once."""
        ways = (self.job, self.job, self.job, self.ask, self.ask, self.preview, self.poll, self.poll)
        threads = [threading.Thread(target=self._repeated, args=(way,)) for way in (*ways, self.sign_in, self.idle)]
        for each in threads:
            each.start()
        return threads

    def results(self) -> dict[str, collections.Counter[int]]:
        """All of it, until the end; what the server said."""
        for each in self.start():
            each.join()
        return dict(self.statuses)

    def _repeated(self, way: Callable[[Wire], None]) -> None:
        wire = Wire(self.url, self.token)
        while time.monotonic() < self.end:
            way(wire)
            time.sleep(0.02)
        wire.close()

    def _next(self) -> int:
        with self._lock:
            self._number += 1
            return self._number

    def _body(self) -> dict[str, Any]:
        number = self._next()
        sql = self._questions[number % len(self._questions)]
        return {"sql": sql.format(number % 390 if "visits" in sql else number), "epsilon": EPSILON * (1 + number)}

    def job(self, wire: Wire) -> None:
        status, content = wire.send("POST", "/v1/ask", self._body(), LATER)
        self.statuses["job"][status] += 1
        if status == 202:
            self.jobs.append(json.loads(content)["id"])

    def ask(self, wire: Wire) -> None:
        self.statuses["ask"][wire.send("POST", "/v1/ask", self._body())[0]] += 1

    def preview(self, wire: Wire) -> None:
        self.statuses["preview"][wire.send("POST", "/v1/preview", self._body())[0]] += 1

    def poll(self, wire: Wire) -> None:
        name = self.jobs[self._next() % len(self.jobs)] if self.jobs else "0" * 32
        self.statuses["poll"][wire.send("GET", f"/v1/jobs/{name}")[0]] += 1

    def sign_in(self, _: Wire) -> None:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        form = b"token=x&" + b"a=b&" * 50_000
        bare = Wire(self.url, None)
        self.statuses["sign-in"][bare.send("POST", "/sign-in", form, headers)[0]] += 1
        bare.close()
        time.sleep(0.2)

    def idle(self, _: Wire) -> None:
        parts = urlsplit(self.url)
        with contextlib.ExitStack() as stack:
            for _each in range(200):
                with contextlib.suppress(OSError):
                    stack.enter_context(socket.create_connection((str(parts.hostname), parts.port), timeout=5))
            time.sleep(min(5.0, max(0.0, self.end - time.monotonic())))
        self.statuses["idle"][200] += 1


def protected(folder: Path, rows: int, cap: float = 60.0) -> Path:
    """A home with a protected table and a public one."""
    table = {
        "user_id": [at % (rows // 5) for at in range(rows)],
        "age": [(7 * at) % 400 for at in range(rows)],
        "city": ["abc"[at % 3] for at in range(rows)],
        "day": [date(1980 + at % 40, 1 + at % 12, 1 + at % 28) for at in range(rows)],
        "amount": [float((37 * at) % 4900) for at in range(rows)],
    }
    pq.write_table(pa.table(table), folder / "visits.parquet")
    (folder / "regions.csv").write_text("code,name\n1,north\n2,south\n3,east\n")
    (folder / "visits.toml").write_text(POLICY.format(cap=cap))
    curator = Curator(folder / "home")
    curator.protect(folder / "visits.toml", yes=True)
    curator.ledger.database.close()
    return folder / "home"


@contextlib.contextmanager
def served(home: Path) -> Iterator[tuple[int, str]]:
    """A server with the settings that everybody has; its process id and address."""
    command = [sys.executable, "-m", "dalenius", "serve", "--home", str(home), "--json", "--port", "0"]
    with (home.parent / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        yield process.pid, json.loads(process.stdout.readline())["url"]
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=90)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def memory(process: int) -> int:
    """Bytes in memory of a process and all below it; what they share counts twice."""
    found = 0
    with contextlib.suppress(OSError, ValueError):
        root = Path(f"/proc/{process}")
        found = int((root / "statm").read_text().split()[1]) * 4096
        for task in (root / "task").iterdir():
            found += sum(memory(int(each)) for each in (task / "children").read_text().split())
    return found


def counted(
    url: str, token: str, numbers: Iterator[int], until: Callable[[int], bool]
) -> tuple[list[float], list[int]]:
    """Asks one COUNT after another; seconds and statuses."""
    wire = Wire(url, token)
    took: list[float] = []
    statuses: list[int] = []
    while not until(len(took)):
        sql = f"SELECT COUNT(*) AS n FROM visits WHERE amount < {next(numbers)}"
        start = time.monotonic()
        status, _ = wire.send("POST", "/v1/ask", {"sql": sql, "epsilon": EPSILON})
        took.append(time.monotonic() - start)
        statuses.append(status)
        time.sleep(EVERY)
    wire.close()
    return took, statuses


def run(
    folder: Path, seconds: float, rows: int = 20_000, many: int = 55, *, counts: int = 12, cap: float = 60.0
) -> Seen:
    """The whole of it: idle, then the attack.

    Args:
        folder: An empty one.
        seconds: How long the attack takes.
        rows: Of the protected table.
        many: Medians of one question.
        counts: COUNTs of each analyst before it.
        cap: Seconds after which a question of it is stopped, and a public one as well.
    """
    home, seen = protected(folder, rows, cap), Seen()
    (home / "config.toml").write_text(f"[server]\npublic_seconds = {min(30.0, cap)}\ngrace = {min(30.0, cap)}\n")
    ledger = Ledger.open(home)
    tokens = {
        name: Tokens(ledger).create(Role.ANALYST, name, trusted=name == "ana")[0] for name in ("eve", "bob", "ana")
    }
    ledger.database.close()
    with served(home) as (process, url):
        numbers = {"bob": iter(range(1, 10**6, 2)), "ana": iter(range(2, 10**6, 2))}
        asked: dict[str, list[int]] = {"bob": [], "ana": []}

        def both(into: dict[str, list[float]], until: Callable[[int], bool]) -> None:
            def one(who: str) -> None:
                into[who], statuses = counted(url, tokens[who], numbers[who], until)
                asked[who] += statuses

            threads = [threading.Thread(target=one, args=(who,)) for who in numbers]
            for each in threads:
                each.start()
            for each in threads:
                each.join()

        both({}, lambda done: done == 2)  # warm
        both(seen.idle, lambda done: done == counts)
        end = time.monotonic() + seconds
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.2):
                seen.memory = max(seen.memory, memory(process))

        watching = threading.Thread(target=watch)
        watching.start()
        # Elsewhere: whoever attacks has a Python of their own, and the others' clocks must not wait for its lock.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            attack = pool.apply_async(attacked, (url, tokens["eve"], end, many))
            both(seen.busy, lambda _: time.monotonic() > end)
            statuses = attack.get(timeout=300)
        over.set()
        watching.join()
        _settled(home)
    seen.statuses = {**statuses, **{who: collections.Counter(found) for who, found in asked.items()}}
    seen.answered.update({who: found.count(200) for who, found in asked.items()})
    _account(home, seen)
    return seen


def attacked(url: str, token: str, end: float, many: int) -> dict[str, collections.Counter[int]]:
    """The attack, in a process of its own."""
    return Attack(url, token, end, many).results()


def _settled(home: Path) -> None:
    """Waits until every question that was charged has ended: a server that is stopped leaves the rest to the next."""
    end = time.monotonic() + SETTLED
    while time.monotonic() < end:
        seen = Seen()
        _account(home, seen)
        if seen.charges == seen.answers + seen.failures:
            return
        time.sleep(0.2)


def _account(home: Path, seen: Seen) -> None:
    ledger = Ledger.open(home)
    verify(ledger)
    entries = list(ledger.entries())
    ended = {each.data["charge"] for each in entries if each.kind == "answer"}
    charges = [each for each in entries if each.kind == "charge" and each.data["analyst"]]
    seen.charges, seen.answers = len(charges), sum(each.number in ended for each in charges)
    seen.failures = sum(each.kind == "failure" for each in entries)
    seen.unanswered = dict(collections.Counter(each.data["analyst"] for each in charges if each.number not in ended))
    paid = collections.Counter(each.data["analyst"] for each in charges)
    for who in ("bob", "ana"):
        if paid[who] != seen.answered[who]:
            seen.unanswered[who] = abs(paid[who] - seen.answered[who])
    ledger.database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--medians", type=int, default=55)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seen = run(Path(folder), given.seconds, given.rows, given.medians)
    for who, how in (("bob", "fixed times"), ("ana", "trusted")):
        idle, busy = seen.idle[who], seen.busy[who]
        print(
            f"COUNT, {how}: idle {statistics.median(idle):.3f} s (worst {max(idle):.3f}), attacked "
            f"{statistics.median(busy):.3f} s (worst {max(busy):.3f}), {len(busy)} times; "
            f"{seen.ratio(who):.2f} × (worst {seen.ratio(who, max):.2f} ×)"
        )
    print(f"memory: {seen.memory / 1e6:.0f} MB at most")
    print(f"charges: {seen.charges}, answers: {seen.answers}, failures: {seen.failures}, unanswered: {seen.unanswered}")
    others = {who for who in seen.unanswered if who != "eve"}  # her own are late, which she made them
    for way, statuses in sorted(seen.statuses.items()):
        print(f"{way}: {dict(sorted(statuses.items()))}")
    good = all(seen.ratio(who) <= FACTOR for who in seen.idle) and seen.memory < MEMORY and not others
    good = good and seen.charges == seen.answers + seen.failures
    print("within all targets" if good else "NOT within all targets")
    sys.exit(not good)


if __name__ == "__main__":
    main()
