"""How long previews take: in process over the list of typed questions, and from the command line.

    python bench/preview_times.py [--rounds 2] [--commands 5] [--json]

The questions are those of `tests/data/typed_queries` over the small shop that they are about; each is previewed at the
three usual prices. Told are the processor's time and the time on the clock, which is what people wait and is only worth
something on an idle machine. A refusal is quicker than an answer, and is told apart. Targets: median ≤ 5 ms and worst
≤ 200 ms in process, `dalenius preview` ≤ 0.8 s.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' list

from tests import typed

from dalenius.analyst import Analyst
from dalenius.errors import DaleniusError

MEDIAN, WORST, COMMAND = 5.0, 200.0, 0.8  # milliseconds, milliseconds, seconds
ASKED = "SELECT region, AVG(age) AS age FROM people GROUP BY region"


def in_process(ana: Analyst, texts: Sequence[str], rounds: int) -> dict[str, list[tuple[float, float, str]]]:
    """Milliseconds of each preview, processor's and clock's, in the last round."""
    found: dict[str, list[tuple[float, float, str]]] = {}
    for _ in range(rounds):
        found = {"answered": [], "refused": []}
        for text in texts:
            began, clock = time.process_time(), time.perf_counter()
            try:
                ana.preview(text)
                kind = "answered"
            except DaleniusError:
                kind = "refused"
            took = 1e3 * (time.process_time() - began), 1e3 * (time.perf_counter() - clock)
            found[kind].append((*took, text))
    found["all"] = found["answered"] + found["refused"]
    return found


def from_command_line(home: Path, times: int) -> list[tuple[float, float]]:
    """Seconds of whole processes, processor's and clock's; the first compiles, and does not count."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "dalenius", "preview", "--home", str(home), "--quiet", ASKED]
    found = []
    for _ in range(times + 1):
        before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found.append((used, time.perf_counter() - clock))
    return found[1:]


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--commands", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    texts = [each.text for each in typed.typed() if not each.later]
    with tempfile.TemporaryDirectory() as place:
        shop = typed.protected(Path(place, "shop"))
        found = in_process(shop.ana, texts, given.rounds)
        commands = from_command_line(Path(shop.curator.home), given.commands)
    told: dict[str, Any] = {}
    for kind, took in found.items():
        for at, name in enumerate(("cpu", "clock")):
            times = [float(each[at]) for each in took]
            told[f"{kind} {name}"] = {"number": len(times), "median": statistics.median(times), "worst": max(times)}
    told["command"] = {
        name: statistics.median(each[at] for each in commands) for at, name in enumerate(("cpu", "clock"))
    }
    if given.json:
        json.dump(told, sys.stdout, indent=1)
        return
    for kind, numbers in told.items():
        if kind != "command":
            print(
                f"{kind:16} {numbers['number']:4} median {numbers['median']:6.2f} ms  worst {numbers['worst']:7.1f} ms"
            )
    print(f"(targets: median {MEDIAN:g} ms, worst {WORST:g} ms)")
    cpu, clock = told["command"]["cpu"], told["command"]["clock"]
    print(f"dalenius preview: {cpu:.2f} s of the processor, {clock:.2f} s on the clock")
    print(f"(target: {COMMAND:g} s on an idle machine)")
    for cpu, clock, text in sorted(found["all"], reverse=True)[:5]:
        print(f"  {cpu:6.1f} ms ({clock:.1f})  {' '.join(text.split())[:110]}")


if __name__ == "__main__":
    main()
