"""Computing together: separate processes on mutual TLS over the loopback, next to MPyC, in one run.

    python bench/joint.py [--peers DIR] [--skip-peers] [--json]

Wall-clock seconds of the slowest party, the best of some rounds, all that is needed included: masks and random bits
are made within the time. CPU seconds are those of all parties together. MPyC runs in an environment of its own with
secure arrays and without TLS, which is in its favour; its products and comparisons are measured on fewer and given by
the second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.peers.environments import environment, why
from bench.peers.environments import run as run_command
from bench.population import CACHE

from dalenius.app.joint_demo import hold_demo
from dalenius.joint.bgw import inner, multiply, reveal, share
from dalenius.joint.comparing import less
from dalenius.joint.config import Party
from dalenius.joint.fields import BIG
from dalenius.joint.meeting import Post, new_run_id
from dalenius.joint.rehearsal import lay
from dalenius.joint.run import Run
from dalenius.joint.shares import Shares

NAMES = ("ada", "bea", "cleo", "dora", "edda")
SUM, PRODUCTS, INNER, COMPARISONS = 1_000_000, 1_000_000, 100_000, 100_000
ROUNDS = 5
BIDDERS, PRICES = 1200, 4000
MOST = {"sum": 0.5, "inner": 0.03}
LEAST = {"products a second": 3e6, "comparisons a second": 5e4}
AUCTION, FIVE = 10.0, 5.0


async def measure(run: Run) -> dict[str, tuple[float, float]]:
    """For each piece of work, seconds here and CPU seconds here; the best of the rounds."""
    drawn = BIG.random(run.own, (SUM,))
    small = BIG.array(np.frombuffer(run.own.words(COMPARISONS, np.dtype("<u4")), "<u4").astype(np.int64))
    both = await share(run, BIG, drawn, (SUM,), (1, 2))
    numbers = await share(run, BIG, small, (COMPARISONS,), (1, 2))

    async def sums() -> None:
        shared = await share(run, BIG, drawn, (SUM,))
        total = BIG.combine((1,) * run.parties, [each.values for each in shared.values()])
        await reveal(run, Shares(BIG, total))

    async def products() -> None:
        await multiply(run, both[1][:PRODUCTS], both[2][:PRODUCTS])

    async def inners() -> None:
        await reveal(run, await inner(run, both[1][:INNER, None], both[2][:INNER, None]))

    async def comparisons() -> None:
        await less(run, numbers[1], numbers[2], BIG)

    works: dict[str, Callable[[], Awaitable[None]]] = {
        "sum": sums,
        "products": products,
        "inner": inners,
        "comparisons": comparisons,
    }
    found = {}
    for name, work in works.items():
        best = (float("inf"), float("inf"))
        for _ in range(ROUNDS):
            await run.exchange("ready", dict.fromkeys(run.others, b"."), dict.fromkeys(run.others, 1))
            began, cpu = time.perf_counter(), time.process_time()
            await work()
            best = min(best, (time.perf_counter() - began, time.process_time() - cpu))
        found[name] = best
    return found


async def take_part(home: Path, names: list[str], threshold: int, run_id: str) -> None:
    async with Post(Party.load(home), patience=120) as post:
        run = await post.meet(bytes.fromhex(run_id), names, threshold, {"name": "bench"})
        found = await measure(run)
        await run.close()
    print(json.dumps(found), flush=True)


def ours(count: int) -> dict[str, Any]:
    """All parties as processes of their own."""
    names = list(NAMES[:count])
    run_id = new_run_id().hex()
    with tempfile.TemporaryDirectory(prefix="joint-") as folder:
        lay(Path(folder), names)
        processes = [
            subprocess.Popen(
                [
                    sys.executable,
                    __file__,
                    "--party",
                    str(Path(folder, name)),
                    "--names",
                    ",".join(names),
                    "--run",
                    run_id,
                ],
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in names
        ]
        told = [json.loads(each.communicate(timeout=300)[0]) for each in processes]
    slowest = {name: max(each[name][0] for each in told) for name in told[0]}
    cpu = {f"{name} cpu": sum(each[name][1] for each in told) for name in told[0]}
    return {
        "sum": slowest["sum"],
        "products a second": PRODUCTS / slowest["products"],
        "inner": slowest["inner"],
        "comparisons a second": COMPARISONS / slowest["comparisons"],
        "seconds": slowest,
        "cpu": cpu,
    }


def auction() -> dict[str, float]:
    data, _ = hold_demo(NAMES[:3], BIDDERS, PRICES)
    if data["price"] != data["openly"]:
        raise AssertionError("the auction found another price")
    return {"auction": data["seconds"]}


def check(three: dict[str, Any], five: dict[str, Any], auctioned: dict[str, float]) -> list[str]:
    """What was promised and not kept."""
    broken = [f"{name}: {three[name]:.3g} s, not {most:g}" for name, most in MOST.items() if three[name] > most]
    broken += [f"{name}: {three[name]:,.0f}, not {least:,.0f}" for name, least in LEAST.items() if three[name] < least]
    for name, seconds in three["seconds"].items():
        if five["seconds"][name] > FIVE * seconds:
            broken.append(
                f"five parties: {name} takes {five['seconds'][name] / seconds:.1f} times as long as with three"
            )
    if auctioned["auction"] > AUCTION:
        broken.append(f"auction: {auctioned['auction']:.1f} s")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, default=CACHE)
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--party", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--names", help=argparse.SUPPRESS)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.party is not None:
        names = given.names.split(",")
        asyncio.run(take_part(given.party, names, (len(names) - 1) // 2, given.run))
        return 0
    three, five = ours(3), ours(5)
    auctioned = auction()
    peer: dict[str, Any] = {}
    if not given.skip_peers:
        try:
            python = environment("mpyc", given.peers)
            script = Path(__file__).parent / "peers" / "joint_mpyc.py"
            peer = json.loads(run_command([str(python), str(script), "-M3"], 900).splitlines()[-1])
        except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
            print(f"MPyC: {why(error)}", file=sys.stderr)
    broken = check(three, five, auctioned)
    if given.json:
        print(json.dumps({"three": three, "five": five, "mpyc": peer, **auctioned, "broken": broken}))
        return 6 if broken else 0
    console = Console(width=110)
    table = Table(box=None, padding=(0, 3, 0, 0))
    for name in ("", "three parties", "five", "MPyC, three", "times as fast", "asked for"):
        table.add_column(name, justify="left" if not name else "right")
    for name in ("sum", "products a second", "inner", "comparisons a second"):
        quick = name in MOST
        shown = [
            f"{each[name]:.3g} s" if quick else f"{each[name]:,.0f}" if name in each else "" for each in (three, five)
        ]
        theirs = "" if name not in peer else f"{peer[name]:.3g} s" if quick else f"{peer[name]:,.0f}"
        ratio = "" if name not in peer else peer[name] / three[name] if quick else three[name] / peer[name]
        asked = f"≤ {MOST[name]:g} s" if quick else f"≥ {LEAST[name]:,.0f}"
        table.add_row(name, *shown, theirs, f"{ratio:.0f}" if ratio else "", asked)
    table.add_row("auction", f"{auctioned['auction']:.2f} s", "", "", "", f"≤ {AUCTION:g} s")
    console.print(table)
    console.print(f"CPU seconds of all parties: {three['cpu']} (three), {five['cpu']} (five)", highlight=False)
    for each in broken:
        console.print(f"not kept: {each}", style="bold red")
    return 6 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
