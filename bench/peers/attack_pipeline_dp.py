"""pipeline-dp under attack, on its local backend.

    python bench/peers/attack_pipeline_dp.py H1

Rows are tuples of unit, partition and value, and the analyst hands in the functions that read them, in place of SQL.
Partitions are public, so that one run releases as many values as there are partitions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.peers import attacking
from bench.peers.attacking import DRAWS, PLAIN, ROWS, SPECIAL, Finding, attempt, report
from bench.peers.attacking_noise import forked, precision, timing

pipeline_dp: Any = import_module("pipeline_dp")
noise: Any = import_module("pipeline_dp.dp_computations")

Row = tuple[int, int, Any]
Reader = Callable[[Row], Any]
TABLE: list[Row] = [(unit, 0, 0.5) for unit in range(ROWS)]
METRICS = {"COUNT": "COUNT", "SUM": "SUM", "AVG": "MEAN", "VAR": "VARIANCE"}


def lazily(
    rows: Iterable[Row],
    accountant: Any,
    *,
    partitions: Sequence[int] = (0,),
    metric: str = "SUM",
    gaussian: bool = False,
    reader: Reader = lambda row: row[2],
) -> Any:
    """One aggregate of every partition, read when it is iterated over."""
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=reader
    )
    wanted = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.GAUSSIAN if gaussian else pipeline_dp.NoiseKind.LAPLACE,
        metrics=[getattr(pipeline_dp.Metrics, METRICS[metric])],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=0,
        max_value=1,
    )
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    return engine.aggregate(rows, wanted, extractors, public_partitions=list(partitions))


def released(rows: Iterable[Row], epsilon: Any = 1.0, delta: float = 0.0, **more: Any) -> list[float]:
    """The same, with an accountant of its own."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
    found = lazily(rows, accountant, **more)
    accountant.compute_budgets()
    return [float(values[0]) for _, values in found]


def each_alone(value: float, size: int = DRAWS, delta: float = 0.0) -> list[float]:
    """As many releases of one row as there are partitions; Gaussian with a δ."""
    rows = [(unit, unit, value) for unit in range(size)]
    return released(rows, 1.0, delta, gaussian=delta > 0, partitions=range(size))


PRECISE: dict[str, Callable[[float], list[float]]] = {
    "Laplace": each_alone,
    "Gaussian": lambda value: each_alone(value, delta=1e-6),
}


def special(value: str, aggregate: str) -> float:
    """One aggregate, at an ε that leaves hardly any noise."""
    more = [] if value == PLAIN else [(ROWS, 0, SPECIAL[value])]
    return released([*TABLE, *more], 1e6, metric=aggregate)[0]


READERS: dict[str, Reader] = {
    "float(text)": lambda row: float("x") if row[0] == ROWS else 1.0,
    "1 / 0": lambda row: 1 / (row[0] - ROWS),
    "a missing key": lambda row: {"a": 1.0}["b" if row[0] == ROWS else "a"],
    "10.0 ** 1000": lambda row: 10.0**1000 if row[0] == ROWS else 1.0,
}
VICTIM: Row = (ROWS, 0, 0.5)


def status(name: str, victim: bool) -> str:
    """What becomes of a reader that fails on the victim's row."""
    return attempt(lambda: released(TABLE + [VICTIM] * victim, reader=READERS[name]))[1]


def free_failures() -> Finding:
    """H7: charged if its accountant refuses whatever is asked after the failure, as it does after an answer."""

    def tried(name: str) -> tuple[str, float]:
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=0.0)
        found = lazily([*TABLE, VICTIM], accountant, reader=READERS[name])
        accountant.compute_budgets()
        error = attempt(lambda: list(found))[1]
        return error, 1.0 if attempt(lambda: lazily(TABLE, accountant))[1] and not list(found) else 0.0

    return attacking.failures({name: partial(tried, name) for name in READERS}, 1.0)


def fresh_budget() -> Finding:
    """H16."""
    kept = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=0.0)

    def first() -> bool:
        found = lazily(TABLE, kept)
        kept.compute_budgets()
        return len(list(found)) == 1

    def asked(rows: list[Row]) -> bool:
        return not attempt(lambda: released(rows))[1]

    tricks = {"a new accountant": lambda: asked(TABLE), "a copy of the table": lambda: asked(list(TABLE))}
    return attacking.fresh_budget(first, lambda: not attempt(lambda: lazily(TABLE, kept))[1], tricks)


def samplers() -> dict[str, Callable[[], float]]:
    """What the engine adds noise with."""
    laplace = noise.LaplaceMechanism.create_from_epsilon(1.0, 1.0)
    gaussian = noise.GaussianMechanism.create_from_epsilon_delta(1.0, 1e-6, 1.0)
    return {"Laplace": lambda: laplace.add_noise(0.0), "Gaussian": lambda: gaussian.add_noise(0.0)}


def drawn() -> list[float]:
    """For H17."""
    return [draw() for draw in samplers().values() for _ in range(10)] + each_alone(0.0, 10)


if __name__ == "__main__":
    report(
        {
            "H1": lambda: precision(PRECISE),
            "H3": lambda: timing(samplers()),
            "H6": lambda: attacking.data_errors(READERS, status),
            "H7": free_failures,
            "H8": lambda: attacking.special_values(special),
            "H12": lambda: attacking.bad_epsilon(lambda epsilon: released(TABLE, epsilon)[0]),
            "H13": lambda: attacking.bad_delta(lambda delta: released(TABLE, 1.0, delta, gaussian=True)[0]),
            "H16": fresh_budget,
            "H17": lambda: forked(drawn),
        },
        ("pipeline-dp", "python-dp"),
    )
