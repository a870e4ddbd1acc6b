"""Anonymised tables: how much they lose, how fast they are made and checked, and how that grows with the rows.

    python bench/anonymity.py [--data DIR] [--peers DIR] [--skip-peers] [--rows 1000000] [--json]

`--data` is a folder with `adult.csv` (UCI Adult, 30,162 rows) and `adult_hierarchy_COLUMN.csv`, as in ARX's repository.
Without it those parts are skipped. Quasi-identifiers are all columns but salary-class, which is sensitive. Losses are
scored by one scorer, read from the published labels. ARX's figures are those of version 3.9.2 with the same scorer.
pycanon runs in an environment of its own, made with pip on first use, on the same file. Where other work keeps the
machine busy, look at the CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Shown

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.peers.environments import environment, run, why
from bench.population import CACHE

from dalenius.anonymity import Roles, Table, anonymize, asked, read_table, write_table
from dalenius.anonymity.checking import profile
from dalenius.anonymity.models import KAnonymity
from dalenius.anonymity.table import Column

KS = (5, 10, 50)
ARX = {"optimal": (0.292, 0.344, 0.487), "local": (0.177, 0.220, 0.276)}
MOST = {"optimal": (0.292, 0.3445, 0.487), "local": (0.10, 0.14, 0.24)}  # ARX's are rounded to three places
SECONDS = {"optimal": 3.0, "local": 5.0}
CHECK_SECONDS, CHECK_RATIO = 0.05, 100
MANY_SECONDS, MANY_GIB, GROWTH = 60.0, 4.0, 15.0
MORE: tuple[dict[str, Any], ...] = (
    {"k": 5, "l": 1.5, "l_kind": "entropy"},
    {"k": 5, "t": 0.2},
    {"k": 5, "beta": 1},
)
SENSITIVE = "salary-class"


def adult(folder: Path) -> tuple[Table, Roles]:
    """The table and its roles."""
    table = read_table(folder / "adult.csv")
    quasi = [name for name in table.names if name != SENSITIVE]
    files = {name: f"adult_hierarchy_{name}.csv" for name in quasi}
    return table, Roles.from_dict({"quasi": quasi, "sensitive": [SENSITIVE], "hierarchies": files}, folder)


def made(folder: Path) -> Iterator[dict[str, Any]]:
    """What each method loses at k = 5, 10, 50."""
    table, roles = adult(folder)
    for method in ("optimal", "local", "mondrian", "mondrian-relaxed", "greedy"):
        full = method in {"optimal", "greedy"}
        for at, k in enumerate(KS):
            begin = time.process_time()
            found = anonymize(table, roles, asked(k=k), suppress=0.05 if full else 0.0, method=method)
            cpu = time.process_time() - begin
            most = MOST.get(method, (None,) * 3)[at]
            proved = ", proved" if found.optimal else ""
            yield {
                "case": f"Adult, k = {k}, {method}, NCP",
                "figure": found.loss.ncp,
                "most": most,
                "against": f"ARX {ARX[method][at]}" if method in ARX else "",
                "seconds": found.seconds,
                "note": f"{cpu:.2f} CPU s, {found.classes:,} classes, {found.suppressed:,} suppressed{proved}",
                "held": most is None or (found.loss.ncp <= most and found.seconds <= SECONDS[method]),
            }
    for options in MORE:
        for method in ("optimal", "local"):
            found = anonymize(table, roles, asked(**options), suppress=0.05, method=method)
            words = ", ".join(f"{key} = {value}" for key, value in options.items())
            yield {
                "case": f"Adult, {words}, {method}, NCP",
                "figure": found.loss.ncp,
                "most": None,
                "against": "",
                "seconds": found.seconds,
                "note": f"{found.classes:,} classes, {found.suppressed:,} suppressed",
                "held": all(each.met for each in found.models),
            }


def checked(folder: Path, peers: Path | None) -> Iterator[dict[str, Any]]:
    """k, all l, t and β of the raw table (18,109 classes) and of a published one."""
    table, roles = adult(folder)
    published = anonymize(table, roles, [KAnonymity(5)], method="mondrian").table
    for name, own in (("as it is", table), ("5-anonymous by Mondrian", published)):
        times = list[tuple[float, float]]()
        for _ in range(15):
            begin, cpu = time.perf_counter(), time.process_time()
            found = profile(own, roles)
            times.append((time.perf_counter() - begin, time.process_time() - cpu))
        ours, cpu = np.median(np.array(times), axis=0).tolist()
        reached = found["sensitive"][SENSITIVE]
        against, ratio = "", None
        if peers is not None:
            try:
                with tempfile.TemporaryDirectory() as temporary:
                    write_table(own, Path(temporary) / "table.csv")
                    python = environment("pycanon", peers)
                    script = Path(__file__).parent / "peers" / "anonymity_pycanon.py"
                    said = json.loads(
                        run([str(python), str(script), f"{temporary}/table.csv", SENSITIVE, *roles.quasi], 3600)
                    )
                theirs = sum(each["seconds"] for each in said["checks"].values())
                ratio = theirs / ours
                values = ", ".join(f"{key} {each['said'][0]:.4g}" for key, each in said["checks"].items())
                against = f"pycanon {said['version']}: {theirs:.1f} s, {ratio:,.0f} times as long; it says {values}"
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                against = f"pycanon did not run: {why(error)}"
        yield {
            "case": f"checks of Adult {name}, seconds",
            "figure": ours,
            "most": CHECK_SECONDS,
            "against": against,
            "seconds": ours,
            "note": f"{1000 * cpu:.1f} CPU ms, k {found['k']}, "
            + ", ".join(f"{key} {each:.4g}" for key, each in reached.items() if each),
            "held": ours <= CHECK_SECONDS and (ratio is None or ratio >= CHECK_RATIO),
        }


def people(rows: int) -> tuple[Table, Roles]:
    """Made-up people with six quasi-identifiers and a diagnosis."""
    rng = np.random.default_rng(22)

    def column(codes: Any, texts: list[str]) -> Any:
        return Column.coded(np.asarray(codes, np.int32), tuple(texts))

    columns = {
        "age": column(np.clip(rng.normal(45, 20, rows), 0, 99), [str(each) for each in range(100)]),
        "zip": column(rng.zipf(1.2, rows) % 20_000, [f"{each:05d}" for each in range(20_000)]),
        "sex": column(rng.integers(0, 2, rows), ["f", "m"]),
        "born": column(rng.integers(0, 366, rows), [str(each) for each in range(366)]),
        "income": column(np.clip(rng.lognormal(3.5, 0.7, rows), 0, 999), [str(100 * each) for each in range(1000)]),
        "trade": column(np.minimum(rng.geometric(0.2, rows), 30) - 1, [f"trade {each}" for each in range(30)]),
        "diagnosis": column(np.minimum(rng.geometric(0.1, rows), 60) - 1, [f"diagnosis {each}" for each in range(60)]),
    }
    roles = {
        "quasi": list(columns)[:6],
        "sensitive": ["diagnosis"],
        "hierarchies": {
            "age": {"width": 5, "levels": 4},
            "zip": {"prefix": [4, 3, 2, 1]},
            "born": {"width": 7, "levels": 5},
            "income": {"width": 500, "levels": 7},
        },
    }
    return Table(columns, rows), Roles.from_dict(roles, Path())


def one_of_many(rows: int) -> dict[str, float]:
    """k = 10 by Mondrian, in this process."""
    table, roles = people(rows)
    begin, cpu = time.perf_counter(), time.process_time()
    found = anonymize(table, roles, asked(k=10), method="mondrian")
    return {
        "seconds": time.perf_counter() - begin,
        "cpu": time.process_time() - cpu,
        "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "ncp": found.loss.ncp,
        "classes": found.classes,
    }


def many(rows: int) -> Iterator[dict[str, Any]]:
    """A tenth of the rows, then all of them, each in a process of its own."""
    times = list[float]()
    for size in (rows // 10, rows):
        found = json.loads(run([sys.executable, __file__, "--one", str(size)], 3600))
        times.append(found["cpu"])  # which other work does not change much
        growth = times[-1] / times[0]
        note = f"{found['cpu']:.1f} CPU s, {found['gib']:.2f} GiB, {found['classes']:,} classes, NCP {found['ncp']:.3f}"
        yield {
            "case": f"{size:,} rows, 6 quasi-identifiers, k = 10, mondrian, seconds with check and scores",
            "figure": found["seconds"],
            "most": MANY_SECONDS,
            "against": f"{growth:.1f} times the CPU of a tenth" if len(times) > 1 else "",
            "seconds": found["seconds"],
            "note": note,
            "held": found["seconds"] <= MANY_SECONDS and found["gib"] <= MANY_GIB and growth <= GROWTH,
        }


def main() -> int:
    """Prints all of it; 1 where something is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the Adult table and its hierarchies")
    parser.add_argument("--peers", type=Path, default=CACHE, help="folder of the peers' environments")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one list on stdout")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_of_many(options.one)))
        return 0
    found = list[dict[str, Any]]()
    if options.data is not None and (options.data / "adult.csv").is_file():
        found += [*made(options.data), *checked(options.data, None if options.skip_peers else options.peers)]
    else:
        print("skipped: the Adult table is not here (--data DIR with adult.csv)", file=sys.stderr)
    found += many(options.rows)
    if options.json:
        print(json.dumps(found))
    else:
        shown = Shown("case", "figure", "at most", "against", "seconds", "", "")
        for each in found:
            most = "" if each["most"] is None else f"{each['most']:.4g}"
            row = (each["case"], f"{each['figure']:.4g}", most, each["against"], f"{each['seconds']:.2f}", each["note"])
            shown.add_row(*row, "held" if each["held"] else "missed")
        Console(width=200).print(shown)
    return 0 if all(each["held"] for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
