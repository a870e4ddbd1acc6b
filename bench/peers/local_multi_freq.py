"""multi-freq-ldpy: CPU time and error of its frequency oracles: python local_multi_freq.py"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import (  # type: ignore[import-not-found]
    GRR_Aggregator_MI,
    GRR_Client,
)
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client  # type: ignore[import-not-found]
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client  # type: ignore[import-not-found]
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).parent))

import local_timing as timing  # type: ignore[import-not-found]


def client(name: str, epsilon: float, size: int) -> Callable[[int], Any]:
    """What encodes one value, by our name for it."""
    if name == "k-ary":
        return lambda value: GRR_Client(value, size, epsilon)
    if name == "local-hashing":
        return lambda value: LH_Client(value, size, epsilon)
    if name == "subset-selection":
        return lambda value: SS_Client(value, size, epsilon)
    return lambda value: UE_Client(value, size, epsilon, name == "optimised-unary")


def server(name: str, epsilon: float, size: int) -> Callable[[Any], Any]:
    """What estimates shares from reports; it clips at 0 and makes them sum to 1."""
    if name == "k-ary":
        return lambda reports: GRR_Aggregator_MI(np.array(reports), size, epsilon)
    if name == "local-hashing":
        return lambda reports: LH_Aggregator_MI(reports, size, epsilon)
    if name == "subset-selection":
        return lambda reports: SS_Aggregator_MI(np.array(reports), size, epsilon)
    return partial(_unary, epsilon=epsilon, optimised=name == "optimised-unary")


def _unary(reports: Any, *, epsilon: float, optimised: bool) -> Any:
    return UE_Aggregator_MI(reports, epsilon, optimised)


def main() -> None:
    """All cases."""
    encode = {}
    for name, size in (("k-ary", 16), ("k-ary", 1024), ("local-hashing", 16), ("local-hashing", 1024),
                       ("symmetric-unary", 1024), ("optimised-unary", 1024), ("subset-selection", 1024)):  # fmt: skip
        encode[f"{name} {size}"] = timing.encoding(client(name, timing.EPSILON, size), size)
    lh = client("local-hashing", timing.EPSILON, 1024), server("local-hashing", timing.EPSILON, 1024)
    aggregate = timing.aggregating(*lh, 1024, 2_000)
    errors = {}
    for name in ("k-ary", "symmetric-unary", "optimised-unary", "local-hashing", "subset-selection"):
        pair = client(name, 1.0, 64), server(name, 1.0, 64)
        errors[f"{name} 1"] = timing.error(*pair, timing.population(64, 20_000), 64, 10)
    timing.report(
        "multi-freq-ldpy", {"encode": encode, "aggregate": {"local-hashing 1024": aggregate}, "errors": errors}
    )


if __name__ == "__main__":
    main()
