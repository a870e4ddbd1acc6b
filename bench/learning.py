"""Private training: how fast, how accurate by the default rules, beside Opacus, diffprivlib and jax-privacy.

    python bench/learning.py [--data DIR] [--runs 5] [--peers DIR] [--skip-peers] [--json]

`--data` is a folder with `adult.csv` as in the ARX repository (30,162 rows, nine columns, semicolons); without it a
made-up table takes its place, and nothing is held to its targets. Digits, breast cancer, iris and made-up classes come
with scikit-learn, from an environment of its own; with `--skip-peers` they are left out. Iris and the made-up classes
have no targets: the rules were chosen without them.

Speed is in examples a CPU second of one thread (set OPENBLAS_NUM_THREADS=1). Accuracy is a mean over ten splits, the
same for all; ours over some runs of each, by default rules alone, at the ρ of ε by the ledger's conversion (half of
δ = 1e-5); Opacus has all of δ, diffprivlib is pure.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Shown

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.learned.runs import accuracy, speed
from bench.learned.tables import SPLITS, Learned, adult, jittered, of_scikit
from bench.peers.environments import environment, run, why
from bench.population import CACHE

EPSILONS = (0.5, 1.0, 3.0, 8.0)
FASTEST = 400_000
TARGETS = {"digits": (0.80, 0.885, 0.92, 0.94), "cancer": (0.92, 0.945, 0.95, 0.955)}
OF_ADULT = {1: 0.01, 50: 0.03}  # rows of a person: how far below training without privacy at most, at ε = 1
_HERE = Path(__file__).parent / "peers"


def peer(name: str, script: str, folder: Path, *arguments: str) -> dict[str, Any]:
    """What a peer prints; nothing where it does not run."""
    try:
        command = [str(environment(name, folder)), str(_HERE / script), *arguments]
        shown = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
        flags = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
        found: dict[str, Any] = json.loads(run(command, 3600, shown | flags).splitlines()[-1])
    except Exception as error:  # noqa: BLE001 — the rest is worth printing whatever went wrong there
        print(f"no {script}: {why(error)}", file=sys.stderr)
        return {}
    return found


def splits_of(table: Learned, target: Path, splits: int) -> str:
    """The numbers, the classes and the splits, as peers read them."""
    arrays: dict[str, Any] = {"x": table.numbers, "y": table.classes, "splits": splits, "epsilons": EPSILONS}
    for at in range(splits):
        train, held = table.split(at)
        arrays |= {f"train_{at}": table.rows(train), f"held_{at}": table.rows(held)}
    np.savez(target, **arrays)
    return str(target)


def by_epsilon(table: Learned, runs: int, others: Path | None) -> list[dict[str, Any]]:
    """One line for each ε: ours, the peers', and how much better ours is, split by split."""
    theirs: dict[str, dict[str, Any]] = {}
    if others is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = splits_of(table, Path(folder) / "splits.npz", SPLITS)
            theirs["none"] = peer("utility", "learning_public.py", others, path)
            theirs["diffprivlib"] = peer("diffprivlib", "learning_diffprivlib.py", others, path)
            theirs["opacus"] = peer("opacus", "learning_opacus.py", others, path)
    lines = list[dict[str, Any]]()
    for at, epsilon in enumerate(EPSILONS):
        ours = [accuracy(table, epsilon, split, runs) for split in range(SPLITS)]
        mine = np.array([each["accuracy"] for each in ours])
        line: dict[str, Any] = {"table": table.name, "epsilon": epsilon, "ours": float(mine.mean())}
        line["seconds"] = float(np.mean([each["seconds"] for each in ours]))
        for name, found in theirs.items():
            scores = found.get(str(epsilon), found.get("none"))
            line[name] = None if scores is None else float(np.mean(scores))
            if name == "opacus" and scores is not None:
                apart = mine - np.array(scores)
                line["better"] = float(apart.mean())
                line["deviation"] = float(apart.std(ddof=1) / len(apart) ** 0.5)
        least = TARGETS[table.name][at] if table.name in TARGETS else 0.0
        lines.append(line | {"target": least, "held": line["ours"] >= least})
        print(line, file=sys.stderr)
    return lines


def of_adult(folder: Path | None, runs: int, others: Path | None) -> list[dict[str, Any]]:
    """Adult at ε = 1, a person having one row, and fifty jittered ones."""
    whole, lines = adult(folder), list[dict[str, Any]]()
    for rows, most in OF_ADULT.items():
        table = whole if rows == 1 else jittered(whole, rows)
        splits = 3 if rows == 1 else 1
        ours = float(np.mean([accuracy(table, 1.0, at, runs, rows=rows)["accuracy"] for at in range(splits)]))
        line: dict[str, Any] = {"table": table.name, "epsilon": 1.0, "ours": ours, "none": None, "held": True}
        if others is not None:
            with tempfile.TemporaryDirectory() as place:
                scores = peer("utility", "learning_public.py", others, splits_of(table, Path(place) / "s.npz", splits))
            line["none"] = float(np.mean(scores["none"])) if scores else None
        if folder is not None and line["none"] is not None:
            line |= {"target": line["none"] - most, "held": ours >= line["none"] - most}
        lines.append(line)
        print(line, file=sys.stderr)
    return lines


def main() -> int:
    """Prints all of it; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the Adult table")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peers", type=Path, default=CACHE, help="folder of the peers' environments")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    options = parser.parse_args()
    others: Path | None = None if options.skip_peers else options.peers
    fast = speed()
    rates = {"dalenius": fast["examples"]}
    tables = list[Learned]()
    if others is not None:
        rates |= {
            f"opacus, {name}": each for name, each in peer("opacus", "learning_opacus.py", others, "--speed").items()
        }
        rates |= {f"jax-privacy, {name}": each for name, each in peer("jax_privacy", "learning_jax.py", others).items()}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tables.npz"
            try:
                run([str(environment("utility", others)), str(_HERE / "learning_tables.py"), str(path)], 600)
                tables = of_scikit(path)
            except Exception as error:  # noqa: BLE001 — Adult is left
                print(f"no digits, no cancer: {why(error)}", file=sys.stderr)
    lines = [line for table in tables for line in by_epsilon(table, options.runs, others)]
    lines += of_adult(options.data, options.runs, others)
    held = fast["examples"] >= FASTEST and all(line["held"] for line in lines)
    if options.json:
        print(json.dumps({"speed": rates, "lines": lines, "held": held}))
        return 0 if held else 1
    for name, rate in rates.items():
        target = f" (target {FASTEST:,})" if name == "dalenius" else ""
        print(f"{name}: {rate:,.0f} examples a CPU second{target}")
    shown = Shown("table", "ε", "ours", "target", "not private", "Opacus", "ours − Opacus", "diffprivlib", "CPU s", "")
    for line in lines:
        apart = f"{line['better']:+.3f} ± {line['deviation']:.3f}" if "better" in line else ""
        scores = [_score(line.get(name)) for name in ("ours", "target", "none", "opacus")]
        more = [apart, _score(line.get("diffprivlib")), _score(line.get("seconds"))]
        shown.add_row(line["table"], f"{line['epsilon']:g}", *scores, *more, "held" if line["held"] else "missed")
    Console(width=150).print(shown)
    return 0 if held else 1


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main())
