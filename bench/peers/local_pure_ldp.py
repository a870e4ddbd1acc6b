"""pure-ldp: CPU time and error of its frequency oracles: python local_pure_ldp.py"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pure_ldp.frequency_oracles.apple_cms import CMSClient, CMSServer  # type: ignore[import-not-found]
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer  # type: ignore[import-not-found]
from pure_ldp.frequency_oracles.hadamard_response import (  # type: ignore[import-not-found]
    HadamardResponseClient,
    HadamardResponseServer,
)
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer  # type: ignore[import-not-found]
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).parent))

import local_timing as timing  # type: ignore[import-not-found]

warnings.simplefilter("ignore")
HASHES, WIDTH = 128, 1024  # of the sketches


def _same(value: int) -> int:
    return value


def pair(name: str, epsilon: float, size: int) -> tuple[Any, Any]:
    """Client and server of a randomiser, by our name for it."""
    how = {"index_mapper": _same}
    if name == "k-ary":
        return DEClient(epsilon, size, **how), DEServer(epsilon, size, **how)
    if name in {"symmetric-unary", "optimised-unary"}:
        optimised = name == "optimised-unary"
        return UEClient(epsilon, size, optimised, **how), UEServer(epsilon, size, optimised, **how)
    if name == "local-hashing":
        return LHClient(epsilon, size, use_olh=True, **how), LHServer(epsilon, size, use_olh=True, **how)
    if name in {"count-mean-sketch", "hadamard-sketch"}:
        hadamard = name == "hadamard-sketch"
        server = CMSServer(epsilon, HASHES, WIDTH, is_hadamard=hadamard, index_mapper=_same)
        return CMSClient(epsilon, server.get_hash_funcs(), WIDTH, is_hadamard=hadamard), server
    server = HadamardResponseServer(epsilon, size, **how)
    return HadamardResponseClient(epsilon, size, server.get_hash_funcs(), **how), server


def shares(server: Any, reports: Sequence[Any], size: int) -> Any:
    """What the server makes of reports."""
    server.reset()
    server.aggregate_all(reports)
    return np.array([server.estimate(value, suppress_warnings=True) for value in range(size)]) / len(reports)


def main() -> None:
    """All cases."""
    encode = {}
    for name, size in (("k-ary", 16), ("k-ary", 1024), ("local-hashing", 16), ("local-hashing", 1024),
                       ("symmetric-unary", 1024), ("optimised-unary", 1024), ("hadamard", 65_536)):  # fmt: skip
        encode[f"{name} {size}"] = timing.encoding(pair(name, timing.EPSILON, size)[0].privatise, size)
    client, server = pair("local-hashing", timing.EPSILON, 1024)
    aggregate = timing.aggregating(client.privatise, lambda reports: shares(server, reports, 1024), 1024, 2_000)
    errors = {}
    for name, epsilon, runs in (
        ("k-ary", 1.0, 30),
        ("symmetric-unary", 1.0, 15),
        ("optimised-unary", 1.0, 15),
        ("local-hashing", 1.0, 10),
        ("hadamard", 1.0, 20),
        ("hadamard", 3.0, 20),
        ("count-mean-sketch", 2.0, 20),
        ("hadamard-sketch", 2.0, 40),
    ):
        client, server = pair(name, epsilon, 64)
        estimate = lambda reports, own=server: shares(own, reports, 64)  # noqa: E731
        found = timing.error(client.privatise, estimate, timing.population(64, 20_000), 64, runs)
        errors[f"{name} {epsilon:g}"] = found
    timing.report("pure-ldp", {"encode": encode, "aggregate": {"local-hashing 1024": aggregate}, "errors": errors})


if __name__ == "__main__":
    main()
