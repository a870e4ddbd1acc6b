"""The console in a real browser: first paint of Ask, live previews, and both in many sessions under a long question.

Times are taken in the page: from the moment the browser got the key or the mouse to the moment the text changed. In
many sessions, browser and server share the machine's cores; what the server alone takes is what its log says of each
preview, and what a bare client waits for one while all sessions are open and idle.

Targets: Ask is painted and usable (editor, expected error, connected) within 2 s, from an empty cache; a preview within
300 ms (95% of them); 20 open sessions stay responsive while a long question runs: a preview within 500 ms (95%), a
page within 2 s.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.async_api import Browser, Page, async_playwright

from dalenius.curator import Curator
from dalenius.ledger.ledger import Ledger
from dalenius.ledger.tokens import Role, Tokens

PAINT, PREVIEW, CROWDED, SHARE = 2000.0, 300.0, 500.0, 0.95  # ms; and of how many of them
LOADS, MOVES, DRAGS, KEYS = 7, 30, 10, 30
PAUSE = (5.0, 15.0)  # seconds between two moves in one of many sessions: with 20, two a second in all
SHOPS = 2000
# Mostly in the engine, on all cores; and mostly in Python, which has to make 100,000 groups into an answer.
LONG = {
    "many rows": "SELECT shop, COUNT(*) AS n, AVG(amount) AS a, SUM(amount) AS s FROM sales WHERE age < {0} "
    "GROUP BY shop",
    "many groups": "SELECT age, shop, AVG(amount) AS a, SUM(amount) AS s FROM sales WHERE age < 50 AND amount < {0} "
    "GROUP BY age, shop",
}
FIRST = "SELECT COUNT(*) AS n FROM visits"
POLICY = """
[table]
name = "{name}"
source = "{name}.parquet"
unit = "user_id"
[budget]
epsilon = 1000
delta = 1e-6
{analysts}
[columns.age]
type = "integer"
bounds = [0, 400]
[columns.{key}]
{spec}
[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.001
[contribution]
rows = 30
groups = 3
totals = {{ amount = 20000 }}
"""
# Runs before the page's own scripts. Times count from the start of the navigation.
WATCH = """(() => {
  const box = () => [...document.querySelectorAll("[aria-live=polite]")].at(-1);
  const text = () => box()?.innerText ?? "";
  const painted = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  const bench = window.bench = {text, usable: new Promise((done) => {
    const look = setInterval(() => {
      const editor = document.querySelector(".cm-content");
      if (!painted() || !editor?.offsetHeight || !text().startsWith("Expected") || !window.socket?.connected) return;
      clearInterval(look);
      done([painted(), performance.now()]);
    }, 5);
  })};
  let began = 0;
  for (const kind of ["keydown", "mousedown", "mousemove"])
    addEventListener(kind, (event) => { began = event.timeStamp; }, true);
  bench.arm = () => {
    const before = text();
    bench.changed = new Promise((done) => {
      const seen = new MutationObserver(() => {
        if (!text() || text() === before) return;
        done(performance.now() - began);
        seen.disconnect();
      });
      seen.observe(document.body, {subtree: true, childList: true, characterData: true});
    });
  };
  // Somebody who moves the slider now and then. In the page, since a driver of many pages would take the cores.
  bench.moving = async (seconds, least, most) => {
    const slider = document.querySelector(".q-slider"), found = [], end = performance.now() + 1000 * seconds;
    let up = true;
    while (performance.now() < end || !found.length) {
      await new Promise((done) => setTimeout(done, 1000 * (least + Math.random() * (most - least))));
      const now = Number(slider.ariaValueNow);
      up = now < 10 || (up && now <= 90);
      bench.arm();
      const key = up ? {key: "PageUp", keyCode: 33} : {key: "PageDown", keyCode: 34};
      slider.querySelector("[tabindex='0']").dispatchEvent(new KeyboardEvent("keydown", {...key, bubbles: true}));
      found.push(await bench.changed);
    }
    return found;
  };
})()"""


@dataclass
class Line:
    """Milliseconds of one kind, and what they must not exceed."""

    what: str
    times: list[float]
    target: float | None = None
    worst: bool = False  # all of them count, not SHARE

    @property
    def counted(self) -> float:
        return max(self.times) if self.worst else at(self.times, SHARE)

    @property
    def holds(self) -> bool:
        return self.target is None or self.counted <= self.target

    def __str__(self) -> str:
        half, most = statistics.median(self.times), at(self.times, SHARE)
        figures = f"{len(self.times):4}  p50 {half:6.0f}  p95 {most:6.0f}  worst {max(self.times):6.0f} ms"
        if self.target is not None:
            figures += f"  {'worst' if self.worst else 'p95'} ≤ {self.target:.0f}: {'ok' if self.holds else 'MISSED'}"
        return f"{self.what:<58} {figures}"


def at(times: Sequence[float], share: float) -> float:
    """The time that this share of them does not exceed."""
    return sorted(times)[max(0, -int(-share * len(times) // 1) - 1)]


# --- the server


def made(folder: Path, rows: int, long_rows: int, sessions: int) -> Path:
    """A home with a table for the sessions, and a larger one for the long question."""
    draw = np.random.default_rng(1)
    names = [f"a{each}" for each in range(sessions)]
    regions = 'type = "category"\nkeys = ["north", "south", "east", "west"]'
    for name, count, key, spec, whose in (
        ("visits", rows, "region", regions, names),
        ("sales", long_rows, "shop", f'type = "integer"\nbounds = [0, {SHOPS - 1}]', ["long"]),
    ):
        keys = (
            draw.choice(["north", "south", "east", "west"], count)
            if key == "region"
            else draw.integers(SHOPS, size=count)
        )
        columns = {
            "user_id": draw.integers(count // 20, size=count),
            "age": draw.integers(18, 99, size=count),
            key: keys,
            "amount": draw.random(count) * 4000,
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        analysts = "\n".join(f"[analysts.{each}]\nepsilon = 1000" for each in whose)
        (folder / f"{name}.toml").write_text(POLICY.format(name=name, key=key, spec=spec, analysts=analysts))
        Curator(folder / "home").protect(folder / f"{name}.toml")
    return folder / "home"


@dataclass
class Server:
    """A server process with settings as they come."""

    url: str
    process: int
    log: Path
    tokens: dict[str, str]

    def previews(self, since: int) -> list[float]:
        """What it logged of previews for pages, in ms, from a place in its log on."""
        with self.log.open() as lines:
            lines.seek(since)
            told = [json.loads(each) for each in lines if each.startswith("{")]
        return [each["ms"] for each in told if each["event"] == "call" and each["route"] == "POST /v1/preview"]

    @property
    def logged(self) -> int:
        return self.log.stat().st_size

    @property
    def cpu(self) -> float:
        """Its CPU seconds until now."""
        ticks = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def send(self, line: HTTPConnection, who: str, path: str, sql: str, epsilon: float) -> int:
        headers = {"Authorization": f"Bearer {self.tokens[who]}", "Content-Type": "application/json"}
        line.request("POST", f"/v1/{path}", json.dumps({"sql": sql, "epsilon": epsilon}), headers)
        response = line.getresponse()
        response.read()
        return response.status

    def line(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        return HTTPConnection(str(parts.hostname), parts.port, timeout=600)


@contextmanager
def served(home: Path, sessions: int) -> Iterator[Server]:
    (home / "config.toml").write_text("[server]\nwait = 600\n")  # no job: the long question's client waits
    tokens = Tokens(Ledger.open(home))
    texts = {f"a{each}": tokens.create(Role.ANALYST, f"a{each}")[0] for each in range(sessions)}
    texts["long"] = tokens.create(Role.ANALYST, "long", trusted=True)[0]
    log = home.parent / "log"
    command = [sys.executable, "-m", "dalenius", "serve", "--home", str(home), "--json", "--port", "0"]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        yield Server(json.loads(process.stdout.readline())["url"], process.pid, log, texts)
    finally:
        process.terminate()
        process.wait()


class Long:
    """Asks one long question after another, from a process-wide thread with a bare connection, until told to stop."""

    asked = 0  # of all: none is asked twice, since that would be free

    def __init__(self, server: Server, sql: str) -> None:
        self.server, self.sql = server, sql
        self.seconds: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        line = self.server.line()
        while not self._stop.is_set():
            Long.asked += 1
            began = time.monotonic()
            status = self.server.send(line, "long", "ask", self.sql.format(100 + Long.asked), 0.5)
            if status != 200:
                raise RuntimeError(f"the long question was answered with {status}")
            self.seconds.append(time.monotonic() - began)

    async def __aenter__(self) -> Self:
        self._thread.start()
        await asyncio.sleep(0.5)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await asyncio.to_thread(self._thread.join)
        if not self.seconds:
            raise RuntimeError("no long question was answered")


# --- the browser


@asynccontextmanager
async def signed_in(browser: Browser, server: Server, who: str) -> AsyncIterator[Page]:
    """A browser of their own, with nothing in its cache, signed in; its page is not opened yet."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        await context.add_init_script(WATCH)
        reply = await context.request.post(
            f"{server.url}/sign-in",
            form={"token": server.tokens[who]},
            headers={"Origin": server.url},
            max_redirects=0,
        )
        if reply.status != 303:
            raise RuntimeError(f"signing in was answered with {reply.status}")
        yield await context.new_page()
    finally:
        await context.close()


async def opened(page: Page, server: Server) -> tuple[float, float]:
    """Opens Ask; ms to the first contentful paint, and until it is usable."""
    await page.goto(server.url, wait_until="commit")
    painted, usable = await page.evaluate("() => window.bench.usable")
    return painted, usable


async def timed(page: Page, act: Callable[[], Awaitable[None]]) -> float:
    """ms from the last input that something sends to the page until the preview has changed."""
    await page.evaluate("() => window.bench.arm()")
    await act()
    found: float = await asyncio.wait_for(page.evaluate("() => window.bench.changed"), 20)
    return found


class Slider:
    """Moved by ten places of a hundred at a time, up and down: each changes the expected error."""

    def __init__(self, page: Page) -> None:
        self.page, self.up = page, True
        self.thumb = page.get_by_role("slider", name="Price, epsilon").locator("[tabindex='0']")

    async def move(self) -> float:
        now = int(await self.page.get_by_role("slider", name="Price, epsilon").get_attribute("aria-valuenow") or 0)
        self.up = now < 10 or (self.up and now <= 90)
        return await timed(self.page, lambda: self.thumb.press("PageUp" if self.up else "PageDown"))

    async def drag(self, count: int) -> list[float]:
        """With the button held down all the time."""
        box = await self.page.locator(".q-slider").bounding_box()
        assert box is not None
        mouse, height = self.page.mouse, box["y"] + box["height"] / 2
        await mouse.move(box["x"] + box["width"] * 0.1, height)
        await mouse.down()
        places = [box["x"] + box["width"] * (0.3 if each % 2 else 0.6 + 0.02 * each) for each in range(count)]
        found = []
        for place in places:
            found.append(await timed(self.page, partial(mouse.move, place, height)))
            await asyncio.sleep(0.2)
        await mouse.up()
        return found


async def asking(page: Page) -> None:
    """Puts in a question whose expected error is all noise, and so another at each price."""
    await page.locator(".cm-content").click()
    await page.keyboard.press("Control+A")
    await page.keyboard.insert_text(FIRST)
    await page.get_by_text("1 row; ").wait_for()


async def typed(page: Page, count: int) -> list[float]:
    """A longer and longer name of a column, which the preview repeats."""
    await page.locator(".cm-content").click()
    await page.keyboard.press("Home")
    for _ in range(FIRST.index(" FROM")):
        await page.keyboard.press("ArrowRight")
    found = []
    for each in range(count):
        key = "Backspace" if each % 8 >= 4 else "z"
        found.append(await timed(page, partial(page.keyboard.press, key)))
        await asyncio.sleep(0.2)
    return found


# --- the whole


async def alone(browser: Browser, server: Server) -> list[Line]:
    """One session on an idle server."""
    cold, warm = [], []
    async with signed_in(browser, server, "a0") as page:
        await opened(page, server)  # what only the first page after a start pays is not the page's
    for _ in range(LOADS):
        async with signed_in(browser, server, "a0") as page:
            cold.append(await opened(page, server))
            await asyncio.sleep(1)
            warm.append(await opened(page, server))
    lines = [
        Line(f"{what}, {case}", [each[at_] for each in times], target, worst=True)
        for case, times, target in (("empty cache", cold, PAINT), ("warm cache", warm, PAINT))
        for at_, what in enumerate(("Ask, first contentful paint", "Ask, usable"))
    ]
    async with signed_in(browser, server, "a0") as page:
        await opened(page, server)
        await asking(page)
        await asyncio.sleep(1)
        slider, moves, since = Slider(page), [], server.logged
        for _ in range(MOVES):
            moves.append(await slider.move())
            await asyncio.sleep(0.2)
        lines.append(Line("preview after a slider move, by key", moves, PREVIEW))
        lines.append(Line("preview after a slider move, by mouse", await slider.drag(DRAGS), PREVIEW))
        lines.append(Line("preview after a key in the editor", await typed(page, KEYS), PREVIEW))
        lines.append(Line("  of these, in the server (its log)", server.previews(since)))
    return lines


async def crowd(pages: Sequence[Page], seconds: float) -> list[float]:
    """In every session somebody moves the slider now and then, none waiting for another."""
    moves = [page.evaluate("(given) => window.bench.moving(...given)", [seconds, *PAUSE]) for page in pages]
    return [each for some in await asyncio.gather(*moves) for each in some]


def bare(server: Server, count: int) -> list[float]:
    """What a client without a browser waits for previews, one every 100 ms."""
    line = server.line()
    found: list[float] = []
    for each in range(count):
        began = time.monotonic()
        if server.send(line, "a0", "preview", FIRST, 0.1 + each / 1000) != 200:
            raise RuntimeError("no preview")
        found.append(1000 * (time.monotonic() - began))
        time.sleep(0.1)
    return found


async def many(browser: Browser, server: Server, sessions: int, seconds: float) -> tuple[list[Line], dict[str, Any]]:
    """All sessions, with an idle server, then with each of the long questions."""
    lines, told = [], {}
    entered = [signed_in(browser, server, f"a{each}") for each in range(sessions)]
    pages = [await each.__aenter__() for each in entered]
    try:
        for page in pages:
            await opened(page, server)
        await asyncio.sleep(3)
        lines += await phase(pages, server, seconds, f"{sessions} sessions, nothing asked", None)
        for name, sql in LONG.items():
            cpu, began = server.cpu, time.monotonic()
            async with Long(server, sql) as long:
                lines += await phase(pages, server, seconds, f"{sessions} sessions, {name}", CROWDED)
            share = (server.cpu - cpu) / (time.monotonic() - began)
            told[name] = {"seconds": [round(each, 1) for each in long.seconds], "cores": round(share, 2)}
    finally:
        for each in entered:
            await each.__aexit__(None, None, None)
    return lines, told


async def phase(pages: Sequence[Page], server: Server, seconds: float, case: str, target: float | None) -> list[Line]:
    """Moves in all sessions, then bare previews while they are idle, then a new load of every page in turn."""
    for page in pages:
        await asking(page)
    await asyncio.sleep(1)
    since = server.logged
    moves = await crowd(pages, seconds)
    logged = server.previews(since)
    alone_ = await asyncio.to_thread(bare, server, 50)
    loads = [(await opened(page, server))[1] for page in pages]
    return [
        Line(f"{case}: slider to preview", moves, target),
        Line("  of these, in the server (its log)", logged),
        Line("  a bare client's previews", alone_, target),
        Line("  Ask, usable, warm cache", loads, target and PAINT),
    ]


async def measured(
    server: Server, sessions: int, seconds: float, crowd_only: bool
) -> tuple[list[Line], dict[str, Any]]:
    """All of it."""
    async with async_playwright() as play:
        browser = await play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        lines = [] if crowd_only else await alone(browser, server)
        more, told = await many(browser, server, sessions, seconds) if sessions else ([], {})
        await browser.close()
    return lines + more, told


def main() -> int:
    """Alone, then together."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--crowd-only", action="store_true", help="nothing of one session alone")
    options.add_argument("--sessions", type=int, default=20, help="open at once; 0 measures one alone")
    options.add_argument("--rows", type=int, default=100_000, help="of the table that the sessions look at")
    options.add_argument("--long-rows", type=int, default=3_000_000, help="of the one that the long question is about")
    options.add_argument("--seconds", type=float, default=30, help="of moves in all sessions")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        home = made(Path(name), given.rows, given.long_rows, max(1, given.sessions))
        with served(home, max(1, given.sessions)) as server:
            lines, told = asyncio.run(measured(server, given.sessions, given.seconds, given.crowd_only))
    if given.json:
        figures = {each.what.strip(): {"times": [round(x, 1) for x in each.times], "ok": each.holds} for each in lines}
        print(json.dumps({"load before": load, "long": told, "lines": figures}))
    else:
        print(f"{given.rows:,} rows; load {load:.1f} on {os.cpu_count()} cores before")
        print(*lines, sep="\n")
        for kind, each in told.items():
            print(f"{kind}: {LONG[kind].format('…')}; {each['seconds']} s each, the server took {each['cores']} cores")
    return 0 if all(each.holds for each in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
