"""What the attacks over HTTP share: servers on tables that differ in one victim, and all that can be seen of either.

Two response times of one round, of the server without the victim and of the one with it, come from the same moments
of the same machine, in a random order. If the victim changes nothing, exchanging the two changes nothing: every sum of
signs below is one of fair coins, whatever the machine does meanwhile. `chance` bounds, without further assumptions,
how probable differences as clear as those seen are then.
"""

from __future__ import annotations

import json
import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import stats
from tests.serving import Reply, Server, serving

T = TypeVar("T")
PLANTED = Path(__file__).with_name("planted.py")
CONFIG = "rate = 100000\nburst = 100000\nconcurrency = 64\nwait = 100\n"
DECILES = [each / 10 for each in range(1, 10)]
_RANDOM = {"date", "x-request-id", "content-length"}  # content-length: how many digits the noise has
_RECEIPT = {"id", "entry", "chain", "release", "time", "signature"}


class Planted:
    """What is planted in a server, from now on."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self()

    def __call__(self, **what: Any) -> None:
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps(what))
        fresh.replace(self.file)


@contextmanager
def planting(home: Path, config: str = CONFIG) -> Iterator[tuple[Server, Planted]]:
    """A server in which bugs can be planted; none is at first."""
    planted = Planted(home.parent / "planted.json")
    with serving(home, config=config, program=[str(PLANTED), str(planted.file)]) as server:
        yield server, planted


def timed(call: Callable[[], Reply]) -> tuple[float, Reply]:
    """Seconds that a call took."""
    start = time.perf_counter()
    reply = call()
    return time.perf_counter() - start, reply


def alternately(
    calls: Sequence[Callable[[int], Reply]], rounds: int, first: int = 0, threads: int = 1
) -> list[list[float]]:
    """The response times of calls, one after the other, in a new random order each round; rounds in so many threads.

    A round in which any answer was late (a machine that stalls) is left out as a whole, which treats all alike.
    """

    def one(number: int) -> list[float]:
        times, late = [0.0] * len(calls), False
        for at in random.sample(range(len(calls)), len(calls)):
            times[at], reply = timed(lambda at=at: calls[at](number))  # type: ignore[misc]
            assert reply.status == 200 or reply.json["code"] == "engine.timeout", reply.content
            assert reply.status != 200 or not reply.json["free"]  # it looked
            late |= reply.status != 200
        return [] if late else times

    with ThreadPoolExecutor(threads) as pool:
        found = [each for each in pool.map(one, range(first, first + rounds)) if each]
    assert len(found) >= 0.8 * rounds, f"{rounds - len(found)} of {rounds} rounds were late"
    return [list(each) for each in zip(*found, strict=True)]


def chance(one: Sequence[float], other: Sequence[float]) -> float:
    """How probable a difference as clear as this is, at most, if exchanging the two of a round changes nothing.

    Ten statistics, each a sum of fair signs: Wilcoxon's signed ranks, exactly up to 200 rounds and by Hoeffding's bound
    beyond; and, at every decile of all times, how often only one of the two lies below, by the exact binomial. The
    least, times ten.
    """
    a, b = np.array(one), np.array(other)
    if len(a) <= 200 and len(set(np.abs(a - b))) == len(a) and (a != b).all():
        found = [float(stats.wilcoxon(a, b, method="exact").pvalue)]
    else:
        found = [hoeffding(np.sign(a - b) * stats.rankdata(np.abs(a - b)))]
    for edge in np.quantile(np.concatenate([a, b]), DECILES):
        only_a, only_b = int(((a <= edge) & (b > edge)).sum()), int(((b <= edge) & (a > edge)).sum())
        found.append(float(stats.binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0)
    return min(1.0, len(found) * min(found))


def hoeffding(terms: Any) -> float:
    """Bounds P(|Σ ± t| ≥ |Σ t|) over fair signs: 2·exp(−(Σ t)²/(2 Σ t²))."""
    squares = float((terms**2).sum())
    return min(1.0, 2 * math.exp(-(float(terms.sum()) ** 2) / (2 * squares))) if squares else 1.0


def both(one: Callable[[], T], other: Callable[[], T]) -> tuple[T, T]:
    """Two things at the same time."""
    with ThreadPoolExecutor(2) as pool:
        a, b = pool.submit(one), pool.submit(other)
        return a.result(), b.result()


def asked(server: Server, bodies: Sequence[dict[str, Any]], threads: int, *, trusted: bool = False) -> list[Reply]:
    """Eve asks many questions, so many at once; the replies in the order of the questions."""
    held = threading.local()

    def ask(body: dict[str, Any]) -> Reply:
        if not hasattr(held, "client"):
            held.client = server.analyst("eve", trusted=trusted)
        reply: Reply = held.client.post("/v1/ask", body)
        return reply

    server.token("analyst", "eve", trusted=trusted)  # not by several threads
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(ask, bodies))


def masked(text: str) -> str:
    """Without what is drawn at random or tells the time: keys, hashes, signatures, moments."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[0-9:.]*(?:Z|\+00:00)?", "<time>", text)
    return re.sub(r"\b[0-9a-f]{12,}\b|R\d+-[0-9a-f]{12}|[A-Za-z0-9+/_-]{40,}={0,2}", "<random>", text)


def seen(reply: Reply) -> dict[str, Any]:
    """All of a response that is not noise: equal on neighbours, or it tells them apart."""
    headers = {name: value for name, value in reply.headers.items() if name not in _RANDOM}
    body = reply.json if "json" in headers.get("content-type", "") else reply.content.decode()
    return {"status": reply.status, "headers": headers, "body": without_noise(body)}


def without_noise(body: Any) -> Any:
    """A release without its noisy numbers: columns, keys, how many rows, prices and notes stay."""
    if not (isinstance(body, dict) and "rows" in body and "receipt" in body):
        return body
    keys = body["keys"]
    rows = [[cell if key else "<noisy>" for cell, key in zip(row, keys, strict=True)] for row in body["rows"]]
    receipt = {name: "<random>" if name in _RECEIPT else value for name, value in body["receipt"].items()}
    # The limits that a question found itself, and what is said about them, are noisy too.
    own = ("found its own limit", "looked for a lower limit", "was capped")
    notes = [each for each in body["notes"] if not any(words in each for words in own)]
    sizes = {name: [len(row) for row in body[name]] for name in ("noise_error", "interval", "total_interval")}
    sizes |= {name: [len(body[name])] for name in ("limits", "clipping")}
    return {**body, **sizes, "rows": rows, "receipt": receipt, "notes": notes}


def log_of(server: Server, lines: int, *, start: int = 0) -> list[dict[str, Any]]:
    """So many lines of a server's log, without what is drawn at random. A line is written after its answer has left."""
    end = time.monotonic() + 30
    while len(server.log) < start + lines and time.monotonic() < end:
        time.sleep(0.02)
    found = []
    for line in server.log[start:]:
        told = {name: value for name, value in line.items() if name not in {"time", "id", "token", "ms"}}
        found.append(told | {"token": bool(line.get("token"))})
    return found
