"""Tens of thousands of broken, hostile and half-right SQL texts over HTTP: refused, or answered and paid for.

No 5xx, no stack trace, no file opened, and nothing charged for what was refused before the data was looked at.
"""

from __future__ import annotations

import collections
import ctypes
import json
import os
import random
import re
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.attack.hostile import people, protected
from tests.attack.test_h21_injection import BYTES, LITERALS, REFUSED, VALID
from tests.attack.test_h21_injection import mutated as soup
from tests.conftest import LONG
from tests.serving import Reply, Server, serving

from dalenius.ledger import Ledger, verify

pytestmark = pytest.mark.integration

THREADS = 4
EPSILON = 0.001
SECRET = "c4n4ry-5ecret-w0rds"
CONFIG = "rate = 100000\nburst = 100000\nconcurrency = 100\nwait = 300"
READERS = (
    "read_text('{0}')",
    "read_blob('{0}')",
    "read_csv('{0}')",
    "read_csv_auto('{0}')",
    "read_json('{0}')",
    "read_parquet('{0}')",
    "sniff_csv('{0}')",
    "glob('{1}/*')",
    "query('FROM read_text(''{0}'')')",
    "'{0}'",
    '"{0}"',
    "file '{0}'",
)
STACKED = (
    "; COPY visits TO '{1}/out.csv'",
    "; ATTACH '{1}/out.db' AS x",
    "; INSTALL httpfs",
    "; SET threads = 1",
    ";;",
)


# --- what is sent


def flipped(chance: random.Random, text: str) -> str:
    """Some of its bytes with a bit turned; what is no UTF-8 then is sent as U+FFFD."""
    content = bytearray(text.encode("utf-8", "replace"))
    for _ in range(chance.choice((1, 1, 2, 5))):
        if content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return content.decode("utf-8", "replace")


def cut(chance: random.Random, text: str) -> str:
    """A part of it."""
    start, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
    return chance.choice((text[:end], text[start:], text[:start] + text[end:]))


def nested(chance: random.Random, text: str) -> str:
    """Deep: parentheses, functions, subqueries, cases, negations."""
    depth = chance.choice((5, 20, 100, 400, 3000))
    opened, closed = chance.choice(
        (("(", ")"), ("ABS(", ")"), ("NOT ", ""), ("- ", ""), ("CASE WHEN age > 1 THEN ", " END"), ("(SELECT ", ")"))
    )
    return f"SELECT SUM({opened * depth}age{closed * depth}) FROM visits WHERE {opened * depth}smoker{closed * depth}"


def huge(chance: random.Random, text: str) -> str:
    """A literal, a list or a name that is far too long, or a number that is far too large."""
    size = chance.choice((10, 300, 5000, 90_000))
    literal = chance.choice(
        (
            "9" * size,
            f"1e{size}",
            f"0.{'0' * size}1",
            f"'{'x' * size}'",
            f"'{'%' * size}'",
            f"age IN ({', '.join(map(str, range(size // 6)))})",
            f'"{"n" * size}"',
            f"INTERVAL {'9' * min(size, 400)} YEAR",
            f"0x{'f' * size}",
        )
    )
    return (
        f"SELECT COUNT(*) FROM visits WHERE {chance.choice(('age <', 'note LIKE', 'amount =', 'day >', ''))} {literal}"
    )


def odd(chance: random.Random, text: str) -> str:
    """Characters from all over Unicode, also where no quotes are."""
    parts = list(text)
    for _ in range(chance.choice((1, 2, 8))):
        sign = chance.choice((*BYTES, chr(chance.randrange(0x110000)), chr(chance.randrange(0x2000, 0x2100))))
        parts.insert(chance.randrange(len(parts) + 1), sign)
    return "".join(parts)


def quoted(chance: random.Random, text: str) -> str:
    """A hostile text as a constant or a name, with or without its quotes doubled."""
    literal = chance.choice(LITERALS)
    shown = literal.replace("'", "''") if chance.random() < 0.7 else literal
    return chance.choice(
        (
            f"SELECT COUNT(*) FROM visits WHERE note = '{shown}'",
            f"SELECT COUNT(*) FROM visits WHERE note LIKE '{shown}'",
            f'SELECT COUNT(*) AS "{shown}" FROM visits',
            f"SELECT region, COUNT(*) FROM visits GROUP BY region HAVING region <> '{shown}'",
        )
    )


def filed(chance: random.Random, text: str) -> str:
    """A file function, or the name of a file, wherever a table or a value stands; or a second statement."""
    reader = chance.choice(READERS)
    what = chance.randrange(4)
    if what == 0:
        return text.replace("visits", reader, 1)
    if what == 1:
        return f"SELECT COUNT(*) FROM visits WHERE note IN (SELECT content FROM {reader})"
    if what == 2:
        return f"SELECT COUNT(*) FROM visits, {reader} AS f WHERE note = f.content"
    return text + chance.choice(STACKED)


MUTATIONS: tuple[Callable[[random.Random, str], str], ...] = (
    *(flipped, cut, nested, huge, odd, quoted, filed),
    *(lambda chance, _: soup(chance),) * 3,  # tokens exchanged, doubled, dropped, moved
)


def texts(seed: int, canary: Path) -> Iterator[str]:
    """Without an end; the same for the same seed."""
    chance = random.Random(seed)
    corpus = [*VALID, *VALID, *(each for each in REFUSED if len(each) < 2000)]
    while True:
        text = chance.choice(MUTATIONS)(chance, chance.choice(corpus))
        if chance.random() < 0.2:
            text = chance.choice((flipped, cut, odd))(chance, text)
        yield text.replace("{0}", str(canary)).replace("{1}", str(canary.parent))[:99_999] or " "


# --- what is looked at


@contextmanager
def watched(file: Path) -> Iterator[Callable[[], int]]:
    """How often a file was opened, by whichever process: the kernel counts."""
    library = ctypes.CDLL(None, use_errno=True)
    number = library.inotify_init1(os.O_NONBLOCK)
    assert number >= 0 and library.inotify_add_watch(number, os.fsencode(file), 0x20) >= 0  # IN_OPEN

    def opened() -> int:
        try:
            return len(os.read(number, 65536)) // struct.calcsize("iIII")
        except BlockingIOError:
            return 0

    try:
        yield opened
    finally:
        os.close(number)


@dataclass
class Seen:
    """What came back, over all threads."""

    statuses: collections.Counter[int] = field(default_factory=collections.Counter)
    codes: collections.Counter[str] = field(default_factory=collections.Counter)
    charges: int = 0
    wrong: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, path: str, sql: str, reply: Reply, seconds: float) -> None:
        shown = f"{path} {ascii(sql)[:1000]} -> {reply.status} {reply.content[:500]!r}"
        with self.lock:
            self.statuses[reply.status] += 1
            self.slowest = max(self.slowest, (seconds, shown))
            found = reply.json
            charged = found.get("charge", {}).get("epsilon", 0) or 0
            self.charges += charged > 0
            self.codes[found.get("code", "answered")] += 1
            trace = re.search(rb'Traceback|File \\?"[^"]*\.py', reply.content)
            if reply.status >= 500 or trace or SECRET.encode() in reply.content:
                self.wrong.append(shown)
            if charged and (path == "/v1/preview" or reply.status != 200):
                self.wrong.append(f"charged: {shown}")


def sending(server: Server, seed: int, count: int, canary: Path, seen: Seen) -> None:
    client = server.analyst("eve", trusted=True)
    chance = random.Random(seed)
    for sql, _ in zip(texts(seed, canary), range(count), strict=False):
        path = "/v1/ask" if chance.random() < 0.4 else "/v1/preview"
        body = {"sql": sql, "epsilon": EPSILON} | ({"plan": True} if path == "/v1/preview" else {})
        started = time.monotonic()
        try:
            reply = client.post(path, json.dumps(body).encode(), seconds=120)
        except Exception as error:  # noqa: BLE001 (a thread must not end in silence)
            seen.wrong.append(f"{path} {ascii(sql)[:1000]} -> {error!r}")
            continue
        seen.add(path, sql, reply, time.monotonic() - started)
    client.close()


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_no_text_breaks_the_server_reads_a_file_or_is_charged_when_refused(tmp_path: Path):
    home = protected(tmp_path / "table", people(victim=True), epsilon=900.0).home
    canary = tmp_path / "files" / "canary.csv"
    canary.parent.mkdir()
    canary.write_text(f"content\n{SECRET}\n")
    before = sum(entry.kind == "charge" for entry in Ledger.open(home).entries())
    seen = Seen()
    with serving(home, config=CONFIG) as server, watched(canary) as opened:
        server.token("analyst", "eve", trusted=True)  # here: threads would make it twice
        each = (50_000 if LONG else 1_000) // THREADS
        threads = [threading.Thread(target=sending, args=(server, seed, each, canary, seen)) for seed in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not seen.wrong, f"{len(seen.wrong)}:\n" + "\n".join(seen.wrong[:20])
        assert server.process.poll() is None
        log = server.log_file.read_text()
        assert opened() == 0
        assert canary.read_text() and opened() == 1  # it would have been seen
    assert [file.name for file in canary.parent.iterdir()] == [canary.name]
    assert "Traceback" not in log and SECRET not in log and "visits" not in log
    assert all(line["event"] == "request" for line in server.log)
    assert sum(seen.statuses.values()) == THREADS * each
    assert seen.statuses[200] > each / 20 and seen.statuses[400] + seen.statuses[422] > each  # both ways are walked
    ledger = Ledger.open(home)
    verify(ledger)
    entries = list(ledger.entries())
    charges = {entry.number for entry in entries if entry.kind == "charge"}
    ended = {entry.data["charge"] for entry in entries if entry.kind in {"answer", "failure"}}
    assert charges == ended
    assert len(charges) - before == seen.charges > 0
    print(dict(seen.statuses), dict(seen.codes), f"slowest {seen.slowest[0]:.1f} s: {seen.slowest[1][:300]}")
