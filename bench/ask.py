"""How long questions take, beside one plain pass over the users and beside peers, all in one run.

    python bench/ask.py [--rows 10000000] [--peers DIR] [--skip-peers] [--json]

The measure is U: DuckDB counting the rows of each user, warm, on two threads, before and after all else. Ours go
through `Analyst.ask`, so plan, charge on disk, engine, noise and receipt are in; each asks for more ε than the one
before, since anything else would be a stored answer. Peers run in environments of their own, made with pip on first
use, at ε = 1, δ = 1e-6 and 10 rows per user, reading the same file; the time of their own setting up is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.ask_accuracy import Measure, Rows, averages_off, away, found, groups_off, largest_off, off, truths
from bench.peers.environments import environment, run, why
from bench.peers.timing import QUESTIONS
from bench.population import CACHE, Population, stored

from dalenius.curator import Curator
from dalenius.errors import DaleniusError
from dalenius.owner.protect import Protected

THREADS = 2
ROUNDS, PLAIN_ROUNDS = 3, 5
FASTER = 4.0  # than the fastest peer
PEER_SECONDS = 3600
STEADY = 1.3  # U before and after may differ so much
PLAIN = "SELECT COUNT(user_id), MAX(n) FROM (SELECT user_id, COUNT(*) AS n FROM purchases GROUP BY user_id)"
PRODUCT = "product"

# In units of U.
TARGETS = {
    "count": 0.2,
    "sum": 1.0,
    "region": 1.0,
    "median": 1.0,
    "product, no index": 4.0,
    "product": 1.0,
    "index: rows and sums": 3.0,
    "index: product": 5.0,
}
MEASURES: Mapping[str, Mapping[str, Measure]] = {
    "count": {"error": off},
    "sum": {"error": off},
    "region": {"mean error of counts": groups_off, "of averages": averages_off},
    "median": {"years off": away},
    "product": {"keys": found, "error of the 20 largest": largest_off},
}
PEERS = ("qrlew", "opendp_polars", "smartnoise")


@dataclass
class Timing:
    """What one system took for one question."""

    seconds: float | None = None
    run_seconds: float | None = None  # without what a peer does before it looks at the data
    error: str = ""
    off: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"seconds": self.seconds, "run_seconds": self.run_seconds, "error": self.error or None, "off": self.off}


# --- the measure


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Median wall time after one round to warm up."""
    work()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def plain_pass(data: Path) -> float:
    """U."""
    plain = duckdb.connect(config={"threads": THREADS})
    plain.read_parquet(str(data)).create_view("purchases")
    return seconds(lambda: plain.execute(PLAIN).fetchall(), PLAIN_ROUNDS)


# --- ours


def ours(made: Population, folder: Path, truth: Mapping[str, Rows]) -> tuple[dict[str, Timing], float]:
    """Every question with the index, the unknown keys also without it; and the seconds of `protect`."""
    home = folder / "home"
    curator = Curator(home=home)
    started = time.perf_counter()
    index = index_seconds(curator.protect(made.policy))
    protecting = time.perf_counter() - started
    times = index | {name: asked(curator, name, truth[name]) for name in QUESTIONS}
    curator.engines.close()
    if not forget_index(home):
        times["product, no index"] = times.pop(PRODUCT)
        times[PRODUCT] = Timing(error="there is no index")
    else:
        times["product, no index"] = asked(Curator(home=home), PRODUCT, truth[PRODUCT], first=1.5)
    return times, protecting


def asked(curator: Curator, name: str, truth: Rows, first: float = 1.0) -> Timing:
    """The median of fresh questions. What was asked before is free up to its ε, so every next one asks for more."""
    analyst = curator.analyst("ana")
    epsilons = (first + 0.01 * turn for turn in range(ROUNDS + 1))
    answers: list[Rows] = []

    def ask() -> None:
        release = analyst.ask(QUESTIONS[name], epsilon=next(epsilons))
        if release.free:
            raise RuntimeError("A stored answer was timed.")
        answers.append(release.rows)

    try:
        took = seconds(ask, ROUNDS)
    except DaleniusError as error:
        return Timing(error=str(error))
    return Timing(took, took, off=errors(name, answers[-1], truth))


def errors(name: str, answer: Rows, truth: Rows) -> dict[str, float]:
    """How far one answer is from the raw truth."""
    return {label: measure(answer, truth) for label, measure in MEASURES[name].items()}


def index_seconds(protected: Sequence[Protected]) -> dict[str, Timing]:
    """What `protect` says that the files of the contribution index took: rows and sums, and the unknown keys."""
    found = {}
    for label, file in (("index: rows and sums", "rows and totals"), (f"index: {PRODUCT}", f"pairs of {PRODUCT}")):
        took = (protected[0].index or {}).get("files", {}).get(file)
        found[label] = Timing(took, took, error="" if took is not None else "there is no index")
    return found


def forget_index(home: Path) -> bool:
    """Removes the stored index, after which questions take the general path. False: there was none."""
    storage = home / "storage"
    there = storage.is_dir() and any(storage.iterdir())
    shutil.rmtree(storage, ignore_errors=True)
    return there


# --- peers


def peer(name: str, made: Population, cache: Path, truth: Mapping[str, Rows]) -> tuple[dict[str, Timing], str]:
    """What one peer took, and its versions; or why it did not run."""
    try:
        python = environment(name, cache)
        script = Path(__file__).parent / "peers" / f"{name}.py"
        shown = {**os.environ, "POLARS_MAX_THREADS": str(THREADS), "RUST_BACKTRACE": "0"}
        done = run([str(python), str(script), str(made.data)], PEER_SECONDS, shown)
        said = json.loads(done.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        return {}, f"skipped: {why(error)}"
    times = {}
    for question, answer in said["answers"].items():
        if "error" in answer:
            times[question] = Timing(error=answer["error"])
        else:
            about = errors(question, answer["rows"], truth[question])
            times[question] = Timing(answer["seconds"], answer["run_seconds"], off=about)
    return times, ", ".join(f"{package} {version}" for package, version in said["versions"].items())


# --- what is shown


def own_table(times: Mapping[str, Timing], unit: float) -> tuple[Table, bool]:
    """Ours in units of U."""
    shown = Table(title=f"ours; U = {unit:.3f} s", title_justify="left")
    for name in ("question", "seconds", "in U", "target", "", "off by"):
        shown.add_column(name, justify="right" if name in {"seconds", "in U", "target"} else "left")
    passed = True
    for name, target in TARGETS.items():
        timing = times[name]
        if timing.seconds is None:
            passed = False
            shown.add_row(name, "-", "-", f"≤ {target:g}", f"miss: {timing.error}", "")
            continue
        good = timing.seconds / unit <= target
        passed &= good
        ratio = f"{timing.seconds / unit:.2f}"
        verdict = "pass" if good else "miss"
        shown.add_row(name, f"{timing.seconds:.3f}", ratio, f"≤ {target:g}", verdict, _errors(timing))
    return shown, passed


def peer_table(
    own: Mapping[str, Timing], peers: Mapping[str, Mapping[str, Timing]]
) -> tuple[Table, bool, dict[str, float | None]]:
    """Ours beside each peer, and how many times faster than the fastest."""
    shown = Table(title="seconds (in brackets: without preparing)", title_justify="left")
    for name in ("question", "ours", *peers, "faster than the fastest", ""):
        shown.add_column(name)
    passed, factors = True, {}
    for question in QUESTIONS:
        mine = own[question]
        if question == PRODUCT and mine.seconds is None:
            mine = own["product, no index"]
        theirs = [times[question] for times in peers.values() if question in times]
        whole = [each.seconds for each in theirs if each.seconds is not None]
        bare = [each.run_seconds for each in theirs if each.run_seconds is not None]
        cells = [_cell(times.get(question, Timing(error="skipped"))) for times in peers.values()]
        factors[question] = min(whole) / mine.seconds if whole and mine.seconds else None
        factor, text, verdict = factors[question], "-", ""
        if factor is not None and mine.seconds:
            good = factor >= FASTER
            passed &= good
            text = f"{factor:.1f}x ({min(bare) / mine.seconds:.1f}x)"
            verdict = "pass" if good else f"miss (≥ {FASTER:g}x)"
        elif not whole:
            verdict = "no peer answers it"
        shown.add_row(question, "-" if mine.seconds is None else f"{mine.seconds:.3f}", *cells, text, verdict)
    return shown, passed, factors


def _cell(timing: Timing) -> str:
    if timing.seconds is None:
        return timing.error
    about = _errors(timing)
    return f"{timing.seconds:.3f} ({timing.run_seconds:.3f})" + (f"\n{about}" if about else "")


def _errors(timing: Timing) -> str:
    counted = {"keys", "years off"}
    shown = {label: f"{value:g}" if label in counted else f"{value:.2%}" for label, value in timing.off.items()}
    return ", ".join(f"{label} {value}" for label, value in shown.items())


@contextmanager
def two_cores() -> Iterator[None]:
    """On a larger machine, this process and those it starts keep to two cores, so that nobody has more than U had."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(before)[:THREADS]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--data", type=Path, default=CACHE, help="folder in which the made-up tables are kept")
    parser.add_argument("--peers", type=Path, default=CACHE, help="folder of the peers' environments")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    options = parser.parse_args()
    made = stored(options.rows, options.data)
    truth = dict(zip(QUESTIONS, truths(made.data, list(QUESTIONS.values())), strict=True))
    console = Console(stderr=options.json, width=None if sys.stdout.isatty() else 180)
    with tempfile.TemporaryDirectory() as name, two_cores():
        folder = Path(name)
        before = plain_pass(made.data)
        times, protecting = ours(made, folder, truth)
        chosen = () if options.skip_peers else PEERS
        found_peers = {name: peer(name, made, options.peers, truth) for name in chosen}
        after = plain_pass(made.data)
    unit, drift = (before + after) / 2, max(before, after) / min(before, after)
    shown, passed = own_table(times, unit)
    console.print(f"{options.rows:,} rows; Python {platform.python_version()}, DuckDB {duckdb.__version__}, two cores")
    if drift > STEADY:
        console.print(
            f"U was {before:.3f} s before and {after:.3f} s after: something else ran, so mistrust the ratios."
        )
    console.print(shown, f"protect, with the search for limits: {protecting:.2f} s = {protecting / unit:.2f} U")
    factors: dict[str, float | None] = {}
    if found_peers:
        beside, faster, factors = peer_table(times, {name: each for name, (each, _) in found_peers.items()})
        console.print(beside, *(f"{name}: {said}" for name, (_, said) in found_peers.items()), sep="\n")
        passed &= faster
    if options.json:
        report = {
            "rows": options.rows,
            "unit_seconds": unit,
            "unit_before_and_after": [before, after],
            "protect_seconds": protecting,
            "ours": {name: timing.to_dict() for name, timing in times.items()},
            "targets": TARGETS,
            "faster": factors,
            "peers": {
                name: {"versions": said, "answers": {question: each.to_dict() for question, each in answers.items()}}
                for name, (answers, said) in found_peers.items()
            },
        }
        print(json.dumps(report, indent=2))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
