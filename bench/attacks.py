"""The attacks that can be run against libraries too, on five of them and on ours: who held, who fell, and by what.

    python bench/attacks.py [--only H1 H12] [--systems dalenius opendp] [--peers DIR] [--json] [--write]

Peers run in environments of their own, made with pip on first use; each attack in a process of its own, one at a time,
for at most a minute. How a system is asked is in `bench/peers/attack_NAME.py`; what counts as held is in `attacking.py`
and `attacking_noise.py`, the same for all. Nothing here or there holds a verdict: run it, and see.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.peers.attacking import ATTACKS, FELL, HELD
from bench.peers.environments import PINS, environment, run, why
from bench.population import CACHE

OURS = "dalenius"
# By name: its environment, and the package that it is known by.
SYSTEMS: Mapping[str, tuple[str, str]] = {
    OURS: ("", OURS),
    "smartnoise": ("smartnoise", "smartnoise-sql"),
    "opendp": ("opendp_polars", "opendp"),
    "diffprivlib": ("diffprivlib", "diffprivlib"),
    "pipeline_dp": ("pipeline_dp", "pipeline-dp"),
    "qrlew": ("qrlew", "pyqrlew"),
}
SECONDS = 60
NOT_RUN = "not run"
RESULTS = Path(__file__).parent / "RESULTS.md"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "attacks" / "peers.md"
BEGIN, END = "<!-- attacks: begin -->", "<!-- attacks: end -->"


@dataclass(frozen=True)
class Cell:
    """What became of one attack on one system."""

    verdict: str
    why: str
    figure: str = ""
    seconds: float | None = None
    versions: Mapping[str, str] | None = None


def attacked(name: str, attack: str, python: Path) -> Cell:
    """Runs one attack in a process of its own."""
    script = Path(__file__).parent / "peers" / f"attack_{name}.py"
    shown = {**os.environ, "RUST_BACKTRACE": "0", "POLARS_MAX_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
    try:
        return Cell(**json.loads(run([str(python), str(script), attack], SECONDS, shown).splitlines()[-1]))
    except subprocess.TimeoutExpired:
        return Cell(NOT_RUN, f"not done after {SECONDS} s")
    except (OSError, subprocess.SubprocessError, ValueError, IndexError, TypeError) as error:
        return Cell(NOT_RUN, why(error))


def system(name: str, attacks: Sequence[str], cache: Path) -> dict[str, Cell]:
    """All attacks on one system; or why it is not there."""
    own = SYSTEMS[name][0]
    try:
        python = environment(own, cache) if own else Path(sys.executable)
    except (OSError, subprocess.SubprocessError) as error:
        missing = Cell(NOT_RUN, f"not installable here ({why(error)})")
        return dict.fromkeys(attacks, missing)
    found = {}
    for attack in attacks:
        print(f"{name} {attack}", file=sys.stderr, flush=True)
        found[attack] = attacked(name, attack, python)
    return found


def matrix(found: Mapping[str, Mapping[str, Cell]], attacks: Sequence[str]) -> str:
    """Who held, who fell."""
    lines = ["| | " + " | ".join(SYSTEMS[name][1] for name in found) + " |", "|---|" + "---|" * len(found)]
    for attack in attacks:
        row = [_bold(cells[attack].verdict) for cells in found.values()]
        lines.append(f"| {attack} {ATTACKS[attack]} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def reasons(found: Mapping[str, Mapping[str, Cell]]) -> str:
    """By what, and what was measured."""
    lines = []
    for name, cells in found.items():
        held = sum(each.verdict == HELD for each in cells.values())
        fell = sum(each.verdict == FELL for each in cells.values())
        lines += ["", f"**{SYSTEMS[name][1]}** ({_versions(cells)}): {held} held, {fell} fell", ""]
        lines += [f"- {attack} {each.verdict}: {_said(each)}" for attack, each in cells.items()]
    return "\n".join(lines[1:])


def _bold(verdict: str) -> str:
    return f"**{verdict}**" if verdict == FELL else verdict


def _said(cell: Cell) -> str:
    words = cell.why + (f" ({cell.figure})" if cell.figure else "")
    return words.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _versions(cells: Mapping[str, Cell]) -> str:
    known = next((each.versions for each in cells.values() if each.versions), {})
    return ", ".join(f"{package} {version}" for package, version in known.items()) or "nothing ran"


def written(page: Path, text: str) -> None:
    """Puts text between the marks of a page, in place of the last one, or at its end."""
    old, part = page.read_text(encoding="utf-8"), f"{BEGIN}\n{text}\n{END}\n"
    if BEGIN in old and END in old:
        before, rest = old.split(BEGIN, 1)
        new = before + part + rest.split(END, 1)[1].removeprefix("\n")
    else:
        new = f"{old.rstrip()}\n\n{part}"
    page.write_text(new, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS), help="these attacks")
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS), help="on these systems")
    parser.add_argument("--peers", type=Path, default=CACHE, help="folder of the peers' environments")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    parser.add_argument("--write", action="store_true", help="also into bench/RESULTS.md and the docs")
    options = parser.parse_args()
    whole = list(ATTACKS) == options.only and list(SYSTEMS) == options.systems
    if options.write and not whole:
        parser.error("--write is for whole runs: leave out --only and --systems")
    found = {name: system(name, options.only, options.peers) for name in options.systems}
    shown = matrix(found, options.only)
    text = f"{shown}\n\n{reasons(found)}"
    if options.write:
        about = f"`bench/attacks.py`, {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}"
        written(RESULTS, f"## Attacks on peers and on ours ({about})\n\n{text}")
        written(PAGE, shown)
    print(json.dumps(as_json(found), indent=2) if options.json else text)
    ours = found.get(OURS, {})
    return 0 if all(each.verdict == HELD for each in ours.values()) else 1


def as_json(found: Mapping[str, Mapping[str, Cell]]) -> dict[str, Any]:
    """For `--json`."""
    return {
        "attacks": ATTACKS,
        "pins": PINS,
        "python": platform.python_version(),
        "systems": {
            SYSTEMS[name][1]: {
                attack: {"verdict": each.verdict, "why": each.why, "figure": each.figure, "seconds": each.seconds}
                for attack, each in cells.items()
            }
            | {"versions": next((each.versions for each in cells.values() if each.versions), None)}
            for name, cells in found.items()
        },
    }


if __name__ == "__main__":
    sys.exit(main())
