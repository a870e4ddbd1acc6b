"""Synthetic tables: errors of their 3-way tables, what can be learned from them, and how long they take.

    python bench/synthesis.py [--data DIR] [--runs 2] [--methods tree,adaptive] [--peers DIR] [--skip-peers] [--json]
    python bench/synthesis.py --large [--methods tree,adaptive] [--json]
    python bench/synthesis.py --paper --data DIR [--runs 2] [--epsilons 0.8,1.6] [--peers DIR] [--skip-peers] [--json]

`--data` is a folder with `adult.csv` (UCI Adult, 48,842 rows as integer codes) and `adult-domain.json`, as in the
private-pgm repository. Without it a made-up table of the same shape is used, and nothing is held to the targets.
39,074 rows, chosen by a fixed seed, are trained on. Each synthetic table has as many rows and is compared with *those*
rows: the mean L1 distance over all 364 tables of three of the fourteen columns, columns above 32 values in 32 equal
classes. AUC is that of scikit-learn's gradient boosting on the rows held out, in an environment of its own. δ = 1e-9.
Seconds are CPU seconds of one process for fitting and drawing.

`--large`: a million rows of thirty columns through the curator: charged, read, fitted, stored, drawn and written.

`--paper`: PrivBayes with two parents on the task of its paper (`synthetic/paper.py`), beside what the authors' own
program does with the same rows; support vectors learn in an environment of their own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Shown

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.peers.environments import environment, run, why
from bench.population import CACHE
from bench.synthetic.adult import TARGET, Split, load
from bench.synthetic.counts import InMemory
from bench.synthetic.large import MOST, in_a_process
from bench.synthetic.paper import EPSILONS as PAPER_EPSILONS
from bench.synthetic.paper import measured as paper_measured

from dalenius.synthesis import GENERATORS, errors

DELTA = 1e-9
EPSILONS = (0.3, 1.0, 10.0)
# method, ε → most error, least AUC, most seconds
TARGETS: dict[tuple[str, float], tuple[float, float, float]] = {
    ("tree", 1.0): (0.19, 0.0, 1.0),
    ("adaptive", 1.0): (0.14, 0.905, 30.0),
    ("adaptive", 0.3): (0.23, 0.0, 30.0),
}
MEASURED = {0.3: "MST .221, SWIFT .227", 1.0: "MST .178, SWIFT .136 (AUC .908)", 10.0: "MST .155"}


def one(split: Split, method: str, epsilon: float, seed: int) -> tuple[np.ndarray, dict[str, Any]]:
    """A synthetic table, and what is known of it."""
    measurer = InMemory.at(split.domain, split.training, epsilon, DELTA)
    rng = np.random.default_rng(seed)  # of post-processing alone: the noise cannot be seeded
    options: dict[str, Any] = {"target": TARGET} if method == "adaptive" else {}
    begin = time.process_time()
    table = GENERATORS[method](measurer, rng, **options).sample(len(split.training), rng)
    seconds = time.process_time() - begin
    if measurer.left:
        raise RuntimeError(f"{method} did not spend what was typed")
    ways = errors(split.training, table, split.domain.sizes).ways
    return table, {"seconds": seconds, **{f"{way}-way": error for way, error in ways.items()}}


def learned(split: Split, tables: dict[str, np.ndarray], peers: Path) -> dict[str, float]:
    """AUC by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.npz"
        np.savez(path, held=split.held, **tables)  # type: ignore[arg-type] # any name is an array's
        script = Path(__file__).parent / "peers" / "utility.py"
        said: dict[str, float] = json.loads(run([str(environment("utility", peers)), str(script), str(path)], 3600))
        return said


def large(methods: list[str], *, as_json: bool) -> int:
    """Prints what each method takes for a large table; 1 where a target is missed."""
    lines = in_a_process(methods)
    if as_json:
        print(json.dumps(lines))
    else:
        shown = Shown("method", "rows", "columns", "CPU s", "of it fitted", "s by the clock", "GiB", "told before", "")
        for each in lines:
            seconds = [f"{each[name]:.1f}" for name in ("seconds", "fitted", "clock")]
            sizes = [f"{each['rows']:,}", str(each["columns"])]
            told = f"{each['told_seconds']:.0f} s, {each['told_gib']:.1f} GiB"
            verdict = "held" if each["held"] else "missed"
            shown.add_row(each["method"], *sizes, *seconds, f"{each['gib']:.2f}", told, verdict)
        Console(width=140).print(shown)
    return 0 if all(each["held"] for each in lines) else 1


def paper(options: argparse.Namespace) -> int:
    """Prints PrivBayes beside its paper's program; 1 where it is worse."""
    epsilons = [float(each) for each in options.epsilons.split(",")] if options.epsilons else list(PAPER_EPSILONS)
    lines = paper_measured(options.data, epsilons, options.runs, None if options.skip_peers else options.peers)
    if options.json:
        print(json.dumps(lines))
    else:
        named = list(lines[0]["found"])
        shown = Shown("ε", "neighbours", *(f"{each}: ours, theirs" for each in named), "")
        for line in lines:
            pairs = [(line["found"][each], line["theirs"].get(each)) for each in named]
            cells = [f"{own:.4f}, {'?' if other is None else f'{other:.4f}'}" for own, other in pairs]
            shown.add_row(f"{line['epsilon']:g}", line["neighbors"], *cells, "held" if line["held"] else "missed")
        Console(width=180).print(shown)
    return 0 if all(each["held"] for each in lines) else 1


def main() -> int:
    """Prints all of it; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the Adult table")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--methods", default="")
    parser.add_argument("--large", action="store_true", help="a large table through the curator instead")
    parser.add_argument("--paper", action="store_true", help="PrivBayes on its paper's task instead")
    parser.add_argument("--epsilons", default="")
    parser.add_argument("--drop", default="", help="columns to leave out")
    parser.add_argument("--peers", type=Path, default=CACHE, help="folder of the peers' environments")
    parser.add_argument("--skip-peers", action="store_true", help="no AUC")
    parser.add_argument("--json", action="store_true", help="one list on stdout")
    options = parser.parse_args()
    if options.large:
        return large(options.methods.split(",") if options.methods else list(MOST), as_json=options.json)
    if options.paper:
        if options.data is None:
            parser.error("--paper needs --data: its task is about Adult")
        return paper(options)
    epsilons = [float(each) for each in options.epsilons.split(",")] if options.epsilons else EPSILONS
    if options.data is None:
        print("a made-up table of the same shape (--data DIR for Adult)", file=sys.stderr)
    split = load(options.data, tuple(filter(None, options.drop.split(","))))
    tables, runs = {"real": split.training}, dict[tuple[str, float], list[dict[str, Any]]]()
    for method in options.methods.split(",") if options.methods else GENERATORS:
        for epsilon in epsilons:
            for seed in range(options.runs):
                table, found = one(split, method, epsilon, seed)
                tables[f"{method} {epsilon} {seed}"] = table
                runs.setdefault((method, epsilon), []).append(found)
                print(method, epsilon, {key: round(each, 4) for key, each in found.items()}, file=sys.stderr)
    auc = dict[str, float]()
    if not options.skip_peers:
        try:
            auc = learned(split, tables, options.peers)
        except Exception as error:  # noqa: BLE001 — the rest is worth printing whatever went wrong there
            print(f"no AUC: {why(error)}", file=sys.stderr)
    lines = list[dict[str, Any]]()
    for (method, epsilon), each in runs.items():
        line = {key: float(np.mean([found[key] for found in each])) for key in ("1-way", "2-way", "3-way", "seconds")}
        scored = [auc[f"{method} {epsilon} {seed}"] for seed in range(options.runs)] if auc else []
        mean = float(np.mean(scored)) if scored else None
        most, least, slow = TARGETS.get((method, epsilon), (2.0, 0.0, np.inf)) if options.data else (2.0, 0.0, np.inf)
        held = line["3-way"] <= most and line["seconds"] <= slow and (mean is None or mean >= least)
        lines.append({"method": method, "epsilon": epsilon, "auc": mean, "held": held, **line})
    if options.json:
        print(json.dumps({"real_auc": auc.get("real"), "lines": lines}))
    else:
        shown = Shown("method", "ε", "1-way", "2-way", "3-way", "AUC", "CPU s", "measured elsewhere", "")
        for found in lines:
            ways = [f"{found[f'{way}-way']:.3f}" for way in (1, 2, 3)]
            score = "" if found["auc"] is None else f"{found['auc']:.3f}"
            other = MEASURED.get(found["epsilon"], "") if options.data else ""
            verdict = "held" if found["held"] else "missed"
            shown.add_row(
                found["method"], f"{found['epsilon']:g}", *ways, score, f"{found['seconds']:.1f}", other, verdict
            )
        Console(width=140).print(shown)
        print(f"AUC of the real rows: {auc['real']:.3f}" if auc else "no AUC")
    return 0 if all(each["held"] for each in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
