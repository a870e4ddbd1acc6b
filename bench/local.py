"""Local privacy: how fast reports are made and added up, and how far off they are, next to two packages, in one run.

    python bench/local.py [--peers DIR] [--skip-peers] [--json]

CPU seconds throughout. The peers, pure-ldp and multi-freq-ldpy, run in environments of their own, made with pip on
first use; they encode one value at a call, and what would take minutes is measured on fewer reports and scaled (their
seconds are linear in the reports). Errors are mean squared errors of the shares of 64 values among 20,000 people, over
real runs, ours on the same people as theirs. multi-freq-ldpy clips its shares at 0 and makes them add up to 1, so it is
compared with ours after `to_simplex`. The planner's choice is held against the best *measured* one: counts of pure
oracles drawn from their exact law (and one real run each), sketches in real runs.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Shown

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.peers.environments import environment, run, why
from bench.peers.local_timing import population
from bench.population import CACHE

from dalenius.local import RANDOMISERS, FrequencyOracle, PureOracle, estimate, plan, to_simplex

PEOPLE = 1_000_000
ENCODING = (
    ("k-ary", 16, 20.0),
    ("k-ary", 1024, 20.0),
    ("local-hashing", 16, 20.0),
    ("local-hashing", 1024, 20.0),
    ("symmetric-unary", 1024, 12.0),
    ("optimised-unary", 1024, 12.0),
    ("subset-selection", 1024, None),
)
AGGREGATING = 50.0
HADAMARD, HADAMARD_SECONDS, GIB = 65_536, 2.0, 1.0
WORSE = 1.05
SIZES, EPSILONS, PLANNED = (4, 64, 4096), (0.5, 1.0, 3.0), 100_000
PEERS = {"pure_ldp": "local_pure_ldp.py", "multi_freq_ldpy": "local_multi_freq.py"}
BY_NAME: dict[str, Any] = {cls.name: cls for cls in RANDOMISERS if issubclass(cls, FrequencyOracle)}


def cpu(work: Callable[[], object], rounds: int) -> float:
    """Median CPU seconds."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return float(np.median(times))


def ours() -> dict[str, float]:
    """CPU seconds of all that is timed, and the most memory; runs in a process of its own."""
    found = {}
    for name, size, _ in ENCODING:
        oracle = BY_NAME[name](epsilon=1.0, size=size)
        values = np.random.default_rng(1).integers(0, size, PEOPLE).astype(np.uint32)
        oracle.encode(values[:1000])
        rounds = 7 if name in {"k-ary", "local-hashing"} else 3
        found[f"{name} {size}"] = cpu(lambda own=oracle, values=values: own.encode(values), rounds)  # type: ignore[misc]
    oracle = BY_NAME["local-hashing"](epsilon=1.0, size=1024)
    reports = oracle.encode(np.arange(PEOPLE) % 1024)
    found["aggregate"] = cpu(lambda: estimate(oracle.fold(reports)).shares, 3)
    hadamard = BY_NAME["hadamard"](epsilon=1.0, size=HADAMARD)
    values = np.random.default_rng(1).integers(0, HADAMARD, PEOPLE).astype(np.uint32)
    found["hadamard"] = cpu(lambda: estimate(hadamard.fold(hadamard.encode(values))).shares, 3)
    unary = BY_NAME["optimised-unary"](epsilon=1.0, size=1024)
    found["unary round trip"] = cpu(lambda: estimate(unary.fold(unary.encode(values % 1024))).shares, 1)
    found["gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return found


def peers(folder: Path | None) -> dict[str, Any]:
    """What each peer measured of itself."""
    found = {}
    for name, script in PEERS.items() if folder is not None else ():
        try:
            python = environment(name, folder or CACHE)
            found[name] = json.loads(run([str(python), str(Path(__file__).parent / "peers" / script)], 3600))
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            print(f"{name} did not run: {why(error)}", file=sys.stderr)
    return found


def speed(theirs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Seconds for a million reports, against the better peer."""
    own = json.loads(run([sys.executable, __file__, "--ours"], 3600))
    for name, size, least in ENCODING:
        case = f"{name} {size}"
        told = {peer: each["encode"][case]["seconds"] for peer, each in theirs.items() if case in each["encode"]}
        yield against(f"encode, {name}, d = {size:,}", own[case], told, least)
    told = {peer: each["aggregate"]["local-hashing 1024"]["seconds"] for peer, each in theirs.items()}
    yield against("aggregate, local-hashing, d = 1,024", own["aggregate"], told, AGGREGATING)
    yield most(f"Hadamard, d = {HADAMARD:,}, encode + aggregate, s", own["hadamard"], HADAMARD_SECONDS)
    yield most("peak memory of all of these, GiB", own["gib"], GIB)


def against(case: str, own: float, told: dict[str, float], least: float | None) -> dict[str, Any]:
    """A ratio to the better peer."""
    ratio = min(told.values()) / own if told else None
    words = ", ".join(f"{peer} {seconds:,.2f} s" for peer, seconds in told.items())
    held = least is None or ratio is None or ratio >= least
    return {"case": f"{case}, s", "figure": own, "ratio": ratio, "bound": least, "against": words, "held": held}


def most(case: str, own: float, bound: float) -> dict[str, Any]:
    """A figure that has a bound of its own."""
    return {"case": case, "figure": own, "ratio": None, "bound": bound, "against": "", "held": own <= bound}


def closed(name: str, epsilon: float, size: int, peer: str) -> float | None:
    """The mean squared error that follows from a peer's own chances, for one person; None: not a pure oracle."""
    grown = math.exp(epsilon)
    if name == "k-ary":
        p, q = grown / (grown + size - 1), 1 / (grown + size - 1)
    elif name == "symmetric-unary":
        p, q = math.sqrt(grown) / (math.sqrt(grown) + 1), 1 / (math.sqrt(grown) + 1)
    elif name == "optimised-unary":
        p, q = 0.5, 1 / (grown + 1)
    elif name == "local-hashing":
        buckets = round(grown) + 1
        p, q = grown / (grown + buckets - 1), 1 / buckets
    elif name == "subset-selection" and peer == "multi_freq_ldpy":
        chosen = max(1, round(size / (grown + 1)))
        p = chosen * grown / (chosen * grown + size - chosen)
        q = (chosen - p) / (size - 1)
    elif name == "hadamard" and epsilon <= 1:
        p, q = grown / (grown + 1), 0.5
    else:
        return None
    return (p * (1 - p) / size + (1 - 1 / size) * q * (1 - q)) / (p - q) ** 2


def accuracy(theirs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Errors per randomiser: closed forms where there are any, real runs for all."""
    size, people = 64, 20_000
    values = np.array(population(size, people))
    truth = np.bincount(values, minlength=size) / people
    cases = sorted({(case, peer) for peer, each in theirs.items() for case in each["errors"]})
    for case, peer in cases:
        name, typed = case.rsplit(" ", 1)
        epsilon, told = float(typed), theirs[peer]["errors"][case]
        oracle = BY_NAME[name](epsilon=epsilon, size=size)
        tidied = peer == "multi_freq_ldpy"
        found = []
        for _ in range(100 if "sketch" in name else 200):
            shares = estimate(oracle.fold(oracle.encode(values))).shares
            found.append(float(np.mean(((to_simplex(shares) if tidied else shares) - truth) ** 2)))
        own, exact = float(np.mean(found)), closed(name, epsilon, size, peer)
        law = float(oracle.variances(truth, people).mean())
        if "sketch" in name:  # the peer's hashes and width, were its hashes ideal
            exact = float(BY_NAME[name](epsilon, size, 128, 1024).variances(truth, people).mean()) * people
        ratio, words = own / told["mse"], f"real runs {told['mse']:.3e} ± {told['spread']:.0e} ({told['runs']})"
        if exact is not None and not tidied:  # their own law says it more exactly than their runs
            ratio, words = law * people / exact, f"closed form; {words}"
        yield {
            "case": f"MSE, {name}, ε = {epsilon:g}, d = 64{', tidied' if tidied else ''}",
            "figure": own,
            "ratio": ratio,
            "bound": WORSE,
            "against": f"{peer}: {words}",
            "held": ratio <= WORSE,
        }
        if tidied and exact is not None:
            ratio = law * people / exact
            yield {
                "case": f"MSE, {name}, ε = {epsilon:g}, d = 64, unbiased",
                "figure": law,
                "ratio": ratio,
                "bound": WORSE,
                "against": f"{peer}: closed form of its chances {exact / people:.3e}",
                "held": ratio <= WORSE,
            }


def measured(oracle: Any, shares: Any, random: np.random.Generator) -> float:
    """Mean squared error: of a pure oracle from drawn counts, of another from real runs."""
    size = oracle.size
    held = np.round(shares * PLANNED).astype(np.int64)
    truth = held / held.sum()
    values = np.repeat(np.arange(size), held)
    if not isinstance(oracle, PureOracle):
        runs = max(2, 400 // size)
        found = [estimate(oracle.fold(oracle.encode(values))).shares for _ in range(runs)]
        return float(np.mean((np.array(found) - truth) ** 2))
    p, q = float(oracle.p), float(oracle.q)
    runs = max(8, 40_000 // size)
    counts = random.binomial(held, p, (runs, size)) + random.binomial(held.sum() - held, q, (runs, size))
    drawn = float(np.mean(((counts / held.sum() - q) / (p - q) - truth) ** 2))
    real = float(np.mean((estimate(oracle.fold(oracle.encode(values))).shares - truth) ** 2))
    if not 0.02 < real / drawn < 1 + 8 * math.sqrt(2 / min(size, 8)):  # a single run of d values, which hang together
        raise SystemExit(f"a real run of {oracle.name} is far from its law: {real:.3e}, not {drawn:.3e}")
    return drawn


def planning() -> Iterator[dict[str, Any]]:
    """The planner's choice against the best that was measured."""
    random = np.random.default_rng(5)
    for size in SIZES:
        shares = 1 / np.arange(1, size + 1)
        shares /= shares.sum()
        for epsilon in EPSILONS:
            found = plan(PLANNED, size, epsilon)
            errors = {each.name: measured(each.randomiser, shares, random) for each in found.choices}
            best = min(errors, key=lambda name: errors[name])
            ratio = errors[found.best.name] / errors[best]
            yield {
                "case": f"planner, n = {PLANNED:,}, d = {size:,}, ε = {epsilon:g}: {found.best.name}, MSE",
                "figure": errors[found.best.name],
                "ratio": ratio,
                "bound": WORSE,
                "against": f"best measured: {best} {errors[best]:.3e}",
                "held": ratio <= WORSE,
            }


def main() -> int:
    """Prints all of it; 1 where something is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, default=CACHE, help="folder of the peers' environments")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--ours", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one list on stdout")
    options = parser.parse_args()
    if options.ours:
        print(json.dumps(ours()))
        return 0
    theirs = peers(None if options.skip_peers else options.peers)
    found = [*speed(theirs), *accuracy(theirs), *planning()]
    if options.json:
        print(json.dumps(found))
    else:
        shown = Shown("case", "ours", "ratio", "bound", "against", "")
        for each in found:
            ratio = "" if each["ratio"] is None else f"{each['ratio']:,.3g}"
            bound = "" if each["bound"] is None else f"{each['bound']:g}"
            row = (each["case"], f"{each['figure']:.4g}", ratio, bound, each["against"])
            shown.add_row(*row, "held" if each["held"] else "missed")
        Console(width=200).print(shown)
    return 0 if all(each["held"] for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
