"""dalenius under the same attacks as its peers, through its public interfaces alone.

    python bench/peers/attack_dalenius.py H1

A curator over a Parquet file in a folder of its own, asked in SQL by analysts; the samplers as `dalenius.mechanisms`
has them. The long forms of these attacks are in `tests/attack`.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.peers import attacking
from bench.peers.attacking import DRAWS, FELL, PLAIN, ROWS, SPECIAL, Finding, attempt, faulting, report
from bench.peers.attacking_noise import forked, in_child, precision, timing

from dalenius import Curator, DaleniusError
from dalenius.mechanisms import DiscreteGaussian, Laplace

POLICY = """
[table]
name = "{name}"
source = "{source}"
unit = "id"
[budget]
epsilon = {epsilon}
delta = 1e-6
[analysts.eve]
epsilon = {epsilon}
[analysts.bob]
epsilon = {epsilon}
[columns.cell]
type = "integer"
bounds = [0, {last}]
[columns.name]
type = "text"
[columns.s]
type = "text"
[columns.x]
type = "number"
bounds = [0, 1]
step = {step}
[contribution]
rows = 1
groups = 1
"""
SCHEMA = {"id": pa.int64(), "cell": pa.int64(), "name": pa.string(), "s": pa.string(), "x": pa.float64()}
Row = tuple[int, int, str, str, Any]
TABLE: list[Row] = [(unit, 0, "a", "1", 0.5) for unit in range(ROWS)]
VICTIM: Row = (ROWS, 0, "victim", "x", 0.5)
FINEST = f"{2**-53:.53f}"  # exact: a power of two is a finite decimal
MANY = 2000  # times the plain table, so that a question spends its time in the engine
WAYS = {"COUNT": "COUNT(x)", "SUM": "SUM(x)", "AVG": "AVG(x)", "VAR": "VAR_SAMP(x)"}
SUM = "SELECT SUM(x) AS n FROM t"


def table(rows: Iterable[Row]) -> pa.Table:
    """The rows as Arrow has them."""
    columns = zip(SCHEMA.items(), zip(*rows, strict=True), strict=True)
    return pa.table({name: pa.array(each, kind) for (name, kind), each in columns})


def stored(folder: Path, rows: Iterable[Row] | pa.Table, *, epsilon: float = 1e6, step: str = "0.000001") -> Path:
    """A policy, and the file that it protects."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows if isinstance(rows, pa.Table) else table(rows), folder / "t.parquet")
    policy = folder / "t.toml"
    policy.write_text(POLICY.format(name="t", source="t.parquet", epsilon=epsilon, last=DRAWS - 1, step=step))
    return policy


def curator(folder: Path, rows: Iterable[Row] | pa.Table = TABLE, **more: Any) -> Curator:
    """A curator of these rows."""
    made = Curator(folder / "home")
    made.protect(stored(folder, rows, **more))
    return made


def fresh(at: int) -> str:
    """A condition that every row meets, and that makes another question: the same one again is free."""
    return f" WHERE cell < {1 + at % (DRAWS - 2)}"


# --- the attacks


def precise(folder: Path) -> Finding:
    """H1: the finest step that a double in [0, 1] has, and the one of a number without a step."""

    def draws(step: str) -> Callable[[float], list[float]]:
        def drawn(value: float) -> list[float]:
            rows = [(unit, unit, "a", "1", value) for unit in range(DRAWS)]
            asked = curator(folder / f"{step}-{value}", rows, step=step).analyst("eve")
            found = asked.ask("SELECT cell, SUM(x) AS n FROM t GROUP BY cell", epsilon=1.0)
            return [float(total) for _, total in found.rows]

        return drawn

    return precision({"SUM in steps of 2^-53": draws(FINEST), "SUM in steps of 1e-6": draws("0.000001")})


def samplers() -> dict[str, Callable[[], float]]:
    """One draw each."""
    laplace, gaussian = Laplace(epsilon=0.1), DiscreteGaussian(variance=100)
    return {"Laplace": lambda: laplace.release(0).value, "Gaussian": lambda: gaussian.release(0).value}


def data_errors(folder: Path) -> Finding:
    """H6: also what it cost must be the same."""
    curators = {victim: curator(folder / str(victim), TABLE + [VICTIM] * victim) for victim in (False, True)}

    def status(question: str, victim: bool) -> str:
        try:
            curators[victim].analyst("eve").ask(question, epsilon=1.0)
        except DaleniusError as error:
            return f"{error.code}, ε = {error.charge.epsilon:g}"
        return ""

    return attacking.data_errors(faulting("t"), status)


def free_failures(folder: Path) -> Finding:
    """H7: no question fails on data, so one is interrupted while the engine reads, at several parts of its time."""
    made = curator(folder, pa.concat_tables([table(TABLE)] * MANY))
    eve, numbers = made.analyst("eve"), count()

    def ask() -> None:
        eve.ask(f"SELECT COUNT(DISTINCT s), VAR_SAMP(x), AVG(x) FROM t{fresh(next(numbers))}", epsilon=1.0)

    def timed() -> float:
        started = time.monotonic()
        ask()
        return time.monotonic() - started

    usual = statistics.median(timed() for _ in range(3))

    signal.signal(signal.SIGALRM, signal.default_int_handler)

    def tried(part: float) -> tuple[str, float]:
        before, error = len(eve.history()), ""
        signal.setitimer(signal.ITIMER_REAL, part * usual)
        try:
            ask()
        except (KeyboardInterrupt, DaleniusError) as raised:
            error = type(raised).__name__
        signal.setitimer(signal.ITIMER_REAL, 0)
        return error, sum(each["charge"]["epsilon"] for each in eve.history()[before:])

    tries = {f"interrupted after {part:.0%} of {usual:.2f} s": partial(tried, part) for part in (0.2, 0.4, 0.6)}
    return attacking.failures(tries, 1.0, more="no question fails on data; interrupted while it reads: ")


def special_values(folder: Path) -> Finding:
    """H8."""
    rows = {PLAIN: TABLE} | {name: [*TABLE, (ROWS, 0, "a", "1", value)] for name, value in SPECIAL.items()}
    curators = {name: curator(folder / name, each) for name, each in rows.items()}
    numbers = count()

    def ask(value: str, aggregate: str) -> float:
        question = f"SELECT {WAYS[aggregate]} AS n FROM t{fresh(next(numbers))}"
        return float(curators[value].analyst("eve").ask(question, epsilon=1000.0).value)

    return attacking.special_values(ask)


def bad_epsilon(folder: Path) -> Finding:
    """H12."""
    eve, numbers = curator(folder).analyst("eve"), count()
    return attacking.bad_epsilon(lambda epsilon: float(eve.ask(SUM + fresh(next(numbers)), epsilon=epsilon).value))


def bad_delta(folder: Path) -> Finding:
    """H13."""
    eve = curator(folder).analyst("eve")
    return attacking.bad_delta(lambda delta: float(eve.ask(SUM, epsilon=1.0, delta=delta).value))


def fresh_budget(folder: Path) -> Finding:
    """H16: more curators, analysts, processes, and the same rows under another name or path."""
    made, numbers = curator(folder, epsilon=1.0), count()

    def asked(who: Curator, analyst: str = "eve", table: str = "t") -> bool:
        question = SUM.replace("FROM t", f"FROM {table}") + fresh(next(numbers))
        release = attempt(lambda: who.analyst(analyst).ask(question, epsilon=1.0))[0]
        return release is not None and not release.free

    def under_another_name(copy: Callable[[Path, Path], object]) -> bool:
        name = f"other{next(numbers)}"
        copy(folder / "t.parquet", folder / f"{name}.parquet")
        policy = folder / f"{name}.toml"
        text = (folder / "t.toml").read_text()
        policy.write_text(text.replace('name = "t"', f'name = "{name}"').replace("t.parquet", f"{name}.parquet"))
        again = Curator(folder / "home")
        again.protect(policy)
        return asked(again, table=name)

    def in_another_process() -> bool:
        ask = f"Curator({str(folder / 'home')!r}).analyst('eve').ask({SUM + fresh(next(numbers))!r}, epsilon=1.0)"
        command = [sys.executable, "-c", f"from dalenius import Curator; {ask}"]
        return subprocess.run(command, capture_output=True, check=False, timeout=40).returncode == 0

    tricks = {
        "a new curator": lambda: asked(Curator(folder / "home")),
        "another process": in_another_process,
        "another analyst": lambda: asked(made, "bob"),
        "a copy of the table": lambda: under_another_name(shutil.copy),
        "a link to it": lambda: under_another_name(lambda source, link: link.symlink_to(source)),
    }
    return attacking.fresh_budget(lambda: asked(made), lambda: asked(made), tricks)


def forks(folder: Path) -> Finding:
    """H17: the samplers, and the curator that was open at the fork: its answers in parent and child to one question."""
    eve = curator(folder).analyst("eve")
    wide, normal = Laplace(epsilon=1e-15), DiscreteGaussian(variance=10**30)

    def asked() -> list[float]:
        return [float(eve.ask(SUM + fresh(os.getpid()), epsilon=1e-12).value)]

    before, child = asked(), in_child(asked, 20.0)
    if child and child == before:
        return Finding(FELL, "a curator repeats its noise in a forked process", f"{before} and {child}")
    found = forked(lambda: [float(draw.release(0).value) for draw in (wide, normal) for _ in range(10)])
    words = "a curator open at the fork answers with other noise" if child else "a curator open at the fork refuses"
    return Finding(found.verdict, f"{found.why}; {words}", found.figure)


def in_folder(attack: Callable[[Path], Finding]) -> Finding:
    """With a home of its own, gone afterwards."""
    with tempfile.TemporaryDirectory() as name:
        return attack(Path(name))


if __name__ == "__main__":
    report(
        {
            "H1": lambda: in_folder(precise),
            "H3": lambda: timing(samplers()),
            "H6": lambda: in_folder(data_errors),
            "H7": lambda: in_folder(free_failures),
            "H8": lambda: in_folder(special_values),
            "H12": lambda: in_folder(bad_epsilon),
            "H13": lambda: in_folder(bad_delta),
            "H16": lambda: in_folder(fresh_budget),
            "H17": lambda: in_folder(forks),
        },
        ("dalenius", "duckdb"),
    )
